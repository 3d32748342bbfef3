package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// apart starts a server for two directories that are on different file systems.
func apart(t *testing.T) (s *service, d *directories, dir, other string) {
	t.Helper()
	s, d, dir = inside(t, nil)
	other, err := os.MkdirTemp("/dev/shm", "parley") //nolint:usetesting // t.TempDir is on the disk
	if err != nil {
		t.Skipf("no file system in memory here: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	var a, b unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &a), unix.Stat(other, &b)); err != nil || a.Dev == b.Dev {
		t.Skipf("%s and %s are on one file system (%v)", dir, other, err)
	}
	opened, err := openDirectory(other)
	if err != nil {
		t.Fatal(err)
	}
	d.list = append(d.list, opened)
	return s, d, dir, other
}

// fill makes a tree with each kind of entry that is moved.
func fill(t *testing.T, tree string) {
	t.Helper()
	old := time.Unix(1_000_000_000, 123_456_000)
	write := func(name, text string, mode fs.FileMode) {
		path := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "text", 0o640)
	write("run", "#!", 0o755)
	write("sub/deep/b", strings.Repeat("long", 600_000), 0o400)
	write("sub/"+strings.Repeat("n", 255), "long name", 0o644)
	in := func(name string) string { return filepath.Join(tree, name) }
	err := errors.Join(
		os.Symlink("a", in("link")), os.Symlink("/nowhere", in("dangling")), os.Symlink("sub", in("dirlink")), os.Link(in("a"), in("sub/hard")),
		os.Mkdir(in("empty"), 0o700), os.Chmod(in("empty"), 0o2750), os.Chtimes(in("sub/deep"), old, old), os.Chtimes(in("sub"), old, old), os.Chtimes(tree, old, old),
	)
	at := unix.NsecToTimespec(old.UnixNano())
	if err := errors.Join(err, unix.UtimesNanoAt(unix.AT_FDCWD, in("link"), []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Lchown(in("link"), 12, 34), os.Chown(in("run"), 12, 34), os.Chmod(in("run"), 0o755|fs.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot is all of a tree that a move keeps.
func snapshot(t *testing.T, tree string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files := map[uint64]string{}
	err := filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		rel, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), " ", st.Uid, ":", st.Gid, " ", info.ModTime().UnixNano(), " ")
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if other, known := files[st.Ino]; known {
				text += "is " + other
			}
			files[st.Ino] = rel
			text += string(data)
			if st.Size > 1<<20 && st.Blocks*512 < st.Size/2 {
				text += " sparse"
			}
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A move between file systems keeps all that mv keeps: contents, permissions, owners, times, links
// and hard links. A symbolic link itself is moved, not the file that it leads to.
func TestMoveAcross(t *testing.T) {
	s, d, dir, other := apart(t)
	fill(t, filepath.Join(dir, "tree"))
	for _, name := range []string{"tree", "file", "private", "link", "dirlink", "dangling", "out", "empty", "sparse", "hole"} {
		from, to := filepath.Join(dir, name), filepath.Join(other, "moved "+name)
		var err error
		switch name {
		case "file":
			err = os.WriteFile(from, []byte("file"), 0o644)
		case "private":
			err = os.WriteFile(from, []byte("file"), 0o600)
		case "link":
			err = os.Symlink("file", from)
		case "dirlink":
			err = os.Symlink(other, from)
		case "dangling":
			err = os.Symlink("missing", from)
		case "out":
			err = os.Symlink("/etc/passwd", from)
		case "empty":
			err = os.WriteFile(from, nil, 0o644)
		case "sparse":
			err = errors.Join(os.WriteFile(from, []byte("begin"), 0o644), os.Truncate(from, 5<<20))
			if f, failed := os.OpenFile(from, os.O_WRONLY, 0); failed == nil {
				_, failed = f.WriteAt(bytes.Repeat([]byte("data"), 400_000), 2<<20+777)
				err = errors.Join(err, failed, f.Close())
			}
		case "hole":
			err = errors.Join(os.WriteFile(from, nil, 0o644), os.Truncate(from, 3<<20))
		}
		if err != nil {
			t.Fatal(err)
		}
		want := snapshot(t, from)
		if _, _, err := s.move(t.Context(), d, moveIn{from, to}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, snapshot(t, to)); diff != "" {
			t.Errorf("%s: -before +after\n%.2000s", name, diff)
		}
		if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
		noneLeft(t, name, dir, other)
		if _, _, err := s.move(t.Context(), d, moveIn{to, from}); err != nil { // and back
			t.Errorf("%s back: %v", name, err)
		} else if diff := cmp.Diff(want, snapshot(t, from)); diff != "" {
			t.Errorf("%s back: -before +after\n%.2000s", name, diff)
		}
		if err := os.RemoveAll(from); err != nil {
			t.Fatal(err)
		}
	}
}

// A file system that does not keep permissions or times, such as vfat, fails no move: the result says what
// is lost, as mv does.
func TestMoveAcrossLoses(t *testing.T) {
	s, d, dir, other := apart(t)
	from, to := filepath.Join(dir, "from"), filepath.Join(other, "to")
	fill(t, from)
	sets := 0
	onKeep = func() error {
		if sets++; sets == 1 {
			return nil
		}
		return syscall.EPERM
	}
	defer func() { onKeep = nil }()
	_, note, err := s.move(t.Context(), d, moveIn{from, to})
	want := fmt.Sprintf("%d permissions or times were not kept there, such as: EPERM: operation not permitted, utime '%s/a'.", sets-1, to)
	if err != nil || note != want || sets < 10 {
		t.Errorf("%v, %d sets, note %q, want %q", err, sets, note, want)
	}
	if data, err := os.ReadFile(filepath.Join(to, "a")); err != nil || string(data) != "text" {
		t.Errorf("the copy: %q, %v", data, err)
	}
	if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the source is left: %v", err)
	}
}

func noneLeft(t *testing.T, what string, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if left, err := filepath.Glob(filepath.Join(dir, ".parley-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: %q are left, %v", what, left, err)
		}
	}
}

// A move that is refused or cancelled, whenever that is, leaves the source whole and nothing else.
func TestMoveAcrossRefused(t *testing.T) {
	s, d, dir, other := apart(t)
	tree, to := filepath.Join(dir, "tree"), filepath.Join(other, "to")
	fill(t, tree)
	want := snapshot(t, tree)
	untouched := func(what string, err error, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", what, err, words)
		}
		if diff := cmp.Diff(want, snapshot(t, tree)); diff != "" {
			t.Errorf("%s: the source: -before +after\n%.2000s", what, diff)
		}
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the destination: %v", what, err)
		}
		noneLeft(t, what, dir, other)
	}
	cause := errors.New("no longer wanted")
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		m := &meddler{ctx, n, func() { cancel(cause) }}
		_, _, err := s.move(m, d, moveIn{tree, to})
		cancel(nil)
		if err == nil {
			if n < 10 {
				t.Errorf("only %d polls", n)
			}
			break // it was cancelled too late: all is moved
		}
		if !errors.Is(err, cause) {
			t.Errorf("poll %d: %v", n, err)
		}
		untouched(fmt.Sprint("poll ", n), err, "no longer")
		if t.Failed() {
			return
		}
	}
	if _, _, err := s.move(t.Context(), d, moveIn{to, tree}); err != nil {
		t.Fatal(err)
	}
	writes := 0
	defer func() { onWrite = nil }()
	for n := 1; ; n++ {
		writes = 0
		onWrite = func() error {
			if writes++; writes == n {
				return syscall.ENOSPC
			}
			return nil
		}
		_, _, err := s.move(t.Context(), d, moveIn{tree, to})
		if err == nil {
			break
		}
		untouched(fmt.Sprint("write ", n), err, "ENOSPC: no space left on device, write '"+to)
		if t.Failed() {
			return
		}
	}
	onWrite = nil
	if _, _, err := s.move(t.Context(), d, moveIn{to, tree}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(tree, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	want = snapshot(t, tree)
	_, _, err := s.move(t.Context(), d, moveIn{tree, to})
	untouched("pipe", err, "neither a file nor a directory")
	_, _, err = s.move(t.Context(), d, moveIn{tree, filepath.Join(other, "missing", "to")})
	untouched("no directory", err, "make it with create_directory")
	if err := os.WriteFile(to, []byte("there"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err = s.move(t.Context(), d, moveIn{tree, to}); err == nil || !strings.Contains(err.Error(), "Destination already exists") {
		t.Errorf("%v", err)
	}
	// Another program takes the name while the copy is made.
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(tree, "pipe")); err != nil {
		t.Fatal(err)
	}
	onWrite = func() error { return os.WriteFile(to, []byte("there"), 0o600) }
	if _, _, err = s.move(t.Context(), d, moveIn{tree, to}); err == nil || !strings.Contains(err.Error(), "Destination already exists") {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != "there" {
		t.Errorf("%q, %v", got, err)
	}
	noneLeft(t, "taken", dir, other)
}

// What another program writes into the source while it is moved is not lost, whenever it does so.
func TestMoveAcrossMeetsAnother(t *testing.T) {
	s, d, dir, other := apart(t)
	from, to := filepath.Join(dir, "from"), filepath.Join(other, "to")
	for _, name := range []string{"a", "new", "sub/new"} {
		for n := 1; ; n++ {
			for _, path := range []string{from, to} {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			fill(t, from)
			wrote := false
			ctx := &meddler{t.Context(), n, func() {
				f, err := os.OpenFile(filepath.Join(from, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, err = f.WriteString("added")
					wrote = true
					err = errors.Join(err, f.Close())
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}}
			_, _, err := s.move(ctx, d, moveIn{from, to})
			found := false
			for _, tree := range []string{from, to} {
				if data, err := os.ReadFile(filepath.Join(tree, name)); err == nil && strings.HasSuffix(string(data), "added") {
					found = true
				}
			}
			if wrote && !found {
				t.Errorf("%s at poll %d: lost, %v", name, n, err)
			}
			if data, err := os.ReadFile(filepath.Join(to, "sub/deep/b")); err != nil {
				if data, err = os.ReadFile(filepath.Join(from, "sub/deep/b")); err != nil || len(data) != 2_400_000 {
					t.Errorf("%s at poll %d: a file is not whole: %v", name, n, err)
				}
			} else if len(data) != 2_400_000 {
				t.Errorf("%s at poll %d: a file is not whole", name, n)
			}
			noneLeft(t, name, dir, other)
			if ctx.left > 0 || t.Failed() {
				break
			}
		}
	}
}

// mount mounts a file system, or skips the test.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

// A full disk, a file system that is read-only, and a folder that a bind mount shows in two places:
// the error says which, and nothing is changed.
func TestMountedFolders(t *testing.T) {
	s, d, dir := inside(t, nil)
	in := func(name string) string { return filepath.Join(dir, name) }
	mount(t, "tmpfs", in("small"), "tmpfs", 0, "size=64k")
	if err := os.WriteFile(in("small/old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, in("tree"))
	before := snapshot(t, in("tree"))
	refused := func(what string, err error, words ...string) {
		t.Helper()
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want %q", what, err, word)
			}
		}
		noneLeft(t, what, dir, in("small"), in("bound"))
		if diff := cmp.Diff(before, snapshot(t, in("tree"))); diff != "" {
			t.Errorf("%s: -before +after\n%.2000s", what, diff)
		}
	}
	big := strings.Repeat("x", 100_000)
	_, err := s.write(t.Context(), d, writeIn{in("small/old"), big})
	refused("write, full", err, "ENOSPC: no space left on device", in("small/old"), "nothing was changed")
	_, err = s.edit(t.Context(), d, editIn{Path: in("small/old"), Edits: []edit{{"old", big}}})
	refused("edit, full", err, "ENOSPC", "nothing was changed")
	_, err = s.write(t.Context(), d, writeIn{in("small/new"), big})
	refused("new, full", err, "ENOSPC", "nothing was changed")
	_, _, err = s.move(t.Context(), d, moveIn{in("tree"), in("small/tree")})
	refused("move, full", err, "ENOSPC", in("small/tree"), "the source is as it was, and nothing is left of the copy")
	if got, want := snapshot(t, in("small")), []string{".", "old"}; len(got) != len(want) || !strings.HasSuffix(got["old"], " old") {
		t.Errorf("%v", got)
	}

	mount(t, in("tree/sub"), in("bound"), "", unix.MS_BIND, "")
	_, _, err = s.move(t.Context(), d, moveIn{in("tree/sub"), in("bound/deep/x")})
	refused("into itself", err, "EINVAL")
	if _, _, err := s.move(t.Context(), d, moveIn{in("tree/a"), in("bound/a")}); err != nil {
		t.Errorf("bind mount: %v", err)
	}
	if _, _, err := s.move(t.Context(), d, moveIn{in("bound/a"), in("tree/a")}); err != nil {
		t.Errorf("bind mount back: %v", err)
	}
	got := snapshot(t, in("tree"))
	for _, all := range []map[string]string{before, got} { // the directory has another time, and the hard link is two files now
		maps.DeleteFunc(all, func(name, _ string) bool { return name == "." || name == "sub" || name == "sub/hard" })
	}
	if diff := cmp.Diff(before, got); diff != "" {
		t.Errorf("bind mount: -before +after\n%.2000s", diff)
	}
	before = snapshot(t, in("tree"))

	if err := unix.Mount("", in("small"), "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=64k"); err != nil {
		t.Skipf("nothing can be mounted again: %v", err)
	}
	_, err = s.write(t.Context(), d, writeIn{in("small/old"), "new"})
	refused("write, read-only", err, "EROFS: read-only file system, create a file in '"+in("small")+"'", "nothing was changed")
	_, err = s.edit(t.Context(), d, editIn{Path: in("small/old"), Edits: []edit{{"old", "new"}}})
	refused("edit, read-only", err, "EROFS", "nothing was changed")
	_, _, err = s.move(t.Context(), d, moveIn{in("tree"), in("small/tree")})
	refused("move, read-only", err, "EROFS", in("small/tree"), "the source is as it was")
	_, _, err = s.move(t.Context(), d, moveIn{in("small/old"), in("old")})
	refused("from read-only", err, "EROFS", "nothing was moved")
}
