package filesystem

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs a function as a user who may not read everything. The files of the directory become
// theirs.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // it is the thread that becomes another user
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Setfsuid(0) }()
	f()
}

// A directory that may not be read does not hide the others: each tool says which one it is, and
// shows the rest.
func TestUnreadable(t *testing.T) {
	s, d, dir := inside(t, nil)
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.MkdirAll(in("closed/below"), 0o755), os.MkdirAll(in("open"), 0o755), os.MkdirAll(in("names"), 0o755),
		os.WriteFile(in("open/x.txt"), []byte("text"), 0o600), os.WriteFile(in("names/y.txt"), []byte("text"), 0o600), os.WriteFile(in("z.txt"), []byte("z"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(os.Chmod(in("closed"), 0o700), os.Chmod(in("names"), 0o700)) })
	if err := errors.Join(os.Chmod(in("closed"), 0), os.Chmod(in("names"), 0o400)); err != nil {
		t.Fatal(err)
	}
	asNobody(t, dir, func() {
		denied := "EACCES: permission denied, scandir '" + in("closed") + "'"
		tree, note, err := s.tree(t.Context(), d, treeIn{Path: dir})
		compact := strings.Join(strings.Fields(tree), "")
		for _, part := range []string{
			`{"name":"closed","type":"directory","children":[],"error":"` + strings.ReplaceAll(denied, " ", "") + `"}`,
			`{"name":"x.txt","type":"file"}`, `{"name":"y.txt","type":"file"}`, `{"name":"z.txt","type":"file"}`,
		} {
			if err != nil || note != "" || !strings.Contains(compact, part) {
				t.Errorf("directory_tree: %s, %q, %v, want %s", tree, note, err, part)
			}
		}
		found, note, err := s.search(t.Context(), d, searchIn{Path: dir, Pattern: "**/*.txt"})
		if want := in("names/y.txt") + "\n" + in("open/x.txt") + "\n" + in("z.txt"); err != nil || found != want || note != "1 directories below could not be searched, such as: "+denied+"." {
			t.Errorf("search_files: %q, %q, %v", found, note, err)
		}
		sizes, note, err := s.listSizes(t.Context(), d, sizesIn{Path: in("names")})
		if err != nil || !strings.Contains(sizes, "[FILE] y.txt") || !strings.Contains(note, "The sizes of 1 entries are shown as 0 B") || !strings.Contains(note, "EACCES") {
			t.Errorf("list_directory_with_sizes: %q, %q, %v", sizes, note, err)
		}
		files, err := s.readMany(t.Context(), d, readManyIn{[]string{in("closed/x"), in("z.txt")}})
		if err != nil || !strings.Contains(files, in("closed/x")+": Error - EACCES") || !strings.Contains(files, in("z.txt")+":\nz\n") {
			t.Errorf("read_multiple_files: %q, %v", files, err)
		}
		if _, _, err := s.tree(t.Context(), d, treeIn{Path: in("closed")}); err == nil || err.Error() != denied {
			t.Errorf("directory_tree of it: %v", err)
		}
	})
}

// A result that is cut says so, whatever cut it: the number of entries of a tree or of one directory,
// the bytes, the depth.
func TestCutSaysSo(t *testing.T) {
	for name, o := range map[string]*Options{
		"entries": {MaxEntries: 5}, "visited": {MaxVisited: 5}, "one directory": {MaxVisited: 12}, "bytes": {MaxRead: 500}, "all": nil,
	} {
		s, d, dir := inside(t, o)
		for i := range 12 {
			path := filepath.Join(dir, "d", strings.Repeat("x", i+1), "y")
			if i > 5 {
				path = filepath.Join(dir, strings.Repeat("x", i+1))
			}
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		tree, note, err := s.tree(t.Context(), d, treeIn{Path: dir})
		if cut := strings.Count(tree, `"name"`) < 19; err != nil || cut != strings.HasPrefix(note, "The tree is cut") || cut != (name != "all") {
			t.Errorf("%s: %d entries, %q, %v", name, strings.Count(tree, `"name"`), note, err)
		}
		found, note, err := s.search(t.Context(), d, searchIn{Path: dir, Pattern: "**"})
		if cut := strings.Count(found, "\n") < 18; err != nil || cut != strings.HasPrefix(note, "The search ended early") || cut != (name != "all") {
			t.Errorf("%s: %d matches, %q, %v", name, strings.Count(found, "\n")+1, note, err)
		}
	}
	s, d, dir := inside(t, &Options{MaxPath: 200})
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("deep/", 60)), 0o700); err != nil {
		t.Fatal(err)
	}
	tree, _, err := s.tree(t.Context(), d, treeIn{Path: dir})
	if err != nil || strings.Count(tree, "ENAMETOOLONG") != 1 {
		t.Errorf("deep: %.300s, %v", tree, err)
	}
	_, note, err := s.search(t.Context(), d, searchIn{Path: dir, Pattern: "none"})
	if err != nil || !strings.Contains(note, "ENAMETOOLONG") {
		t.Errorf("deep: %q, %v", note, err)
	}
}
