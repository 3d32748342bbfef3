package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A meddler is a context that does something when it is looked at for the nth time.
type meddler struct {
	context.Context //nolint:containedctx // it is a context

	left   int
	meddle func()
}

func (m *meddler) Err() error {
	if m.left--; m.left == 0 {
		m.meddle()
	}
	return m.Context.Err()
}

// inside starts a server for a directory, and returns it with the directory.
func inside(t *testing.T, o *Options) (s *service, d *directories, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, closer, err := New("1", []string{dir}, o)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := closer.(*service)
	if !ok {
		t.Fatalf("%T", closer)
	}
	d = s.dirs.acquire()
	t.Cleanup(func() {
		s.dirs.release(d)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, d, dir
}

// What another program writes while a file is edited is not lost, whenever it does so: the edit is made
// in it, or refused.
func TestEditMeetsAnother(t *testing.T) {
	s, d, dir := inside(t, nil)
	path := filepath.Join(dir, "a.txt")
	for what, other := range map[string]string{"in place": "one TWO", "with more": "one two three", "with the same": "one two"} {
		refused := 0
		for n, more := 1, true; more; n++ {
			if err := os.WriteFile(path, []byte("one two"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx := &meddler{t.Context(), n, func() {
				if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
					t.Error(err)
				}
			}}
			_, err := s.edit(ctx, d, editIn{Path: path, Edits: []edit{{"one", "1"}}})
			if more = ctx.left <= 0; !more {
				break
			}
			want := strings.Replace(other, "one", "1", 1)
			if err != nil {
				refused, want = refused+1, other
				if !strings.Contains(err.Error(), "another program has changed") {
					t.Errorf("%s at %d: %v", what, n, err)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s at %d: %q, want %q, %v", what, n, got, want, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".parley-*")); err != nil || len(left) > 0 {
				t.Errorf("%s at %d: %q are left, %v", what, n, left, err)
			}
		}
		if want := other != "one two"; refused > 0 != want {
			t.Errorf("%s: refused %d times, want some: %t", what, refused, want)
		}
	}
}

// What Windows takes for devices, streams and other names is refused there.
func TestWindowsNames(t *testing.T) {
	for _, bad := range []string{
		"CON", "nul", `dir\aux.txt`, "COM1", "lpt9.log", "com¹", "CONIN$", "nul .txt", "file:stream", `C:\x\file:stream:$DATA`,
		"name.", "name ", `dir.\x`, "a?", "a*", "<a>", "a|b", `a"b`, `\\?\C:\x`, `C:\COM3`,
	} {
		if err := checkWindowsPath(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, good := range []string{`C:\Users\a b`, "dir/x.txt", "..", `.\x`, "console", "COM", "COM10", "nullable.txt", "a.CON", "/c/x", ""} {
		if err := checkWindowsPath(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for path, want := range map[string]string{"/c/x/y": "C:/x/y", "/cc/x": "/cc/x", "/c": "/c", "c:/x": "c:/x", "/1/x": "/1/x", "C:": `C:\`, "d:": `d:\`, "C:x": "C:x"} {
		if got := windowsPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]bool{"C:": true, `c:\x`: true, "C:/": true, "C:x": false, "1:": false, "x": false, "": false} {
		if got := hasDrive(path); got != want {
			t.Errorf("%q: %t", path, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.00 KB", 1152: "1.13 KB", 1536: "1.50 KB", 1<<20 - 1: "1024.00 KB",
		1 << 20: "1.00 MB", 10 << 30: "10.00 GB", 5 << 40: "5.00 TB", 5000 << 40: "5000.00 TB",
	} {
		if got := formatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestCompareNames(t *testing.T) {
	want := []string{"", "_b", "-a", ".git", "1", "10", "2", "a", "A", "a.txt", "a1", "ab", "Ab", "b", "B.md", "é"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, compareNames)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Paths and file URIs of arguments, roots and the command line, as each kind of system has them
// (modelcontextprotocol/servers#3434 for C: alone).
func TestLocalPath(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	for text, want := range map[string]string{
		"/x/y": "/x/y", "x": "x", "": "", "~": home, "~/x": filepath.Join(home, "x"), "file:x": "file:x", "file:/x": "file:/x", "files://x": "files://x",
		"file:///x/y": "/x/y", "FILE:///x": "/x", "file://localhost/x": "/x", "file://LocalHost/x": "/x", "file:///a%20b": "/a b", "file:///a b": "/a b",
		"file:///%C3%A9": "/é", "file:///é": "/é", "file:///%2525": "/%25", "file:///x%2fy": "/x/y", "file:////x": "//x", "file:///~": "/~", "file:///x%3Fy%23z": "/x?y#z",
		"C:": "C:", "file:///C:/x": "/C:/x",
		"file://host/x": "!not the URI of a file on this machine", "file://": "!absolute path", "file:///x?y": "!%3F", "file:///x#y": "!%23", "file:///%zz": "!invalid file URI",
		"file://a@localhost/x": "!not the URI", "file://localhost:1/x": "!not the URI",
	} {
		checkLocalPath(t, text, false, want)
	}
	for text, want := range map[string]string{
		"C:": `C:\`, "c:": `c:\`, `C:\`: `C:\`, "C:/": "C:/", `C:\x`: `C:\x`, "C:x": "C:x", "/c/x": "C:/x", "/c": "/c", "x": "x", "": "",
		"file:///C:/x/y": "C:/x/y", "file:///c:": `c:\`, "file:///c%3A/x": "c:/x", "file://localhost/C:/x": "C:/x", "file:///c/x": "C:/x",
		"file://C:/x": "!", "file://server/share": "!not the URI of a file on this machine",
	} {
		checkLocalPath(t, text, true, want)
	}
}

// checkLocalPath wants a path, or an error that holds what follows "!".
func checkLocalPath(t *testing.T, text string, windows bool, want string) {
	t.Helper()
	got, err := localPath(text, windows)
	part, bad := strings.CutPrefix(want, "!")
	switch {
	case bad && (err == nil || !strings.Contains(err.Error(), part)):
		t.Errorf("%q (Windows %t) is %q, %v, want an error with %q", text, windows, got, err, part)
	case !bad && (err != nil || got != want):
		t.Errorf("%q (Windows %t) is %q, %v, want %q", text, windows, got, err, want)
	}
}

// A tour that is cancelled in the middle visits nothing more, and a pattern is not compared any more.
func TestTourEnds(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "b/d", "e", "f"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, closer, err := New("1", []string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	d := closer.(*service).dirs.acquire() // New made it
	defer closer.(*service).dirs.release(d)
	top, err := d.existing(t.Context(), "scandir", dir)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no longer wanted")
	for at, seen := range map[string][]string{"a": {"a"}, "b": {"a", "b"}, "b/c": {"a", "b", "b/c"}, "e": {"a", "b", "b/c", "b/d", "e"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var visited []string
		walk := &tour{ctx: ctx, d: d, top: top, most: 100, failed: func(string, error) {}}
		walk.visit = func(_ place, rel string, _ entry) (bool, error) {
			if visited = append(visited, rel); rel == at {
				cancel(cause)
			}
			return true, nil
		}
		if err := walk.run(); !errors.Is(err, cause) || !slices.Equal(visited, seen) {
			t.Errorf("cancelled at %s it visits %q and fails with %v, want %q", at, visited, err, seen)
		}
		cancel(nil)
	}
}

// Patterns are bounded in number by the schema, and their alternatives by this.
func TestPatternsBounded(t *testing.T) {
	for text, list := range map[string][]string{
		"":                                 {"**/*.go", "{1..998}", "x"},
		"more than 1000 patterns together": {"{1..999}", "x", "y"},
	} {
		_, err := patterns(t.Context(), list)
		if (err != nil) != (text != "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want %q", list, err, text)
		}
	}
}

// A search does not follow links that it excludes: behind them can be a drive that answers late
// (modelcontextprotocol/servers#4162).
func TestSearchExcludesFirst(t *testing.T) {
	s, d, dir := inside(t, nil)
	const links = 50
	for i := range links {
		if err := os.Symlink(dir, filepath.Join(dir, fmt.Sprintf("%d.cloud", i))); err != nil {
			t.Skip(err) // on Windows not everybody may
		}
	}
	polls := func(exclude ...string) int {
		ctx := &meddler{t.Context(), 0, func() {}}
		if _, _, err := s.search(ctx, d, searchIn{Path: dir, Pattern: "*.cloud", Exclude: exclude}); err != nil {
			t.Fatal(err)
		}
		return -ctx.left
	}
	if followed, excluded := polls("*.other"), polls("*.cloud"); excluded+links > followed {
		t.Errorf("%d looks at the context with links that are followed, %d with links that are excluded", followed, excluded)
	}
}
