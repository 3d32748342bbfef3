package filesystem

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A meddler is a context that does something when it is looked at first: edits look at theirs after the file
// was read.
type meddler struct {
	context.Context //nolint:containedctx // it is a context

	once func()
}

func (m *meddler) Err() error {
	m.once()
	return m.Context.Err()
}

// What another program writes while a file is edited is not lost: the edit is refused.
func TestEditMeetsAnother(t *testing.T) {
	dir := t.TempDir()
	made, closer, err := New("1", []string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	s, ok := closer.(*service)
	if !ok || made != s.server {
		t.Fatalf("%T", closer)
	}
	path := filepath.Join(dir, "a.txt")
	for what, other := range map[string]string{"in place": "one TWO", "with more": "one two three", "with the same": "one two"} {
		if err := os.WriteFile(path, []byte("one two"), 0o600); err != nil {
			t.Fatal(err)
		}
		d := s.dirs.acquire()
		ctx := &meddler{t.Context(), sync.OnceFunc(func() {
			if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
				t.Error(err)
			}
		})}
		_, err := s.edit(ctx, d, editIn{Path: path, Edits: []edit{{"one", "1"}}})
		s.dirs.release(d)
		want := other
		if same := other == "one two"; same {
			want = "1 two"
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "another program has changed") {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, want %q, %v", what, got, want, err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".parley-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: %q are left, %v", what, left, err)
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
	for path, want := range map[string]string{"/c/x/y": "C:/x/y", "/cc/x": "/cc/x", "/c": "/c", "c:/x": "c:/x", "/1/x": "/1/x"} {
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

func TestFileURIs(t *testing.T) {
	for _, bad := range []string{"file://host/x", "http://localhost/x", "file:///x?y", "file:///x#y", "file:x", "file:///%zz"} {
		if path, err := uriPath(bad); err == nil {
			t.Errorf("%q is %q", bad, path)
		}
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
	top, err := d.existing("scandir", dir)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no longer wanted")
	for at, seen := range map[string][]string{"a": {"a"}, "b": {"a", "b"}, "b/c": {"a", "b", "b/c"}, "e": {"a", "b", "b/c", "b/d", "e"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var visited []string
		walk := &tour{ctx: ctx, d: d, top: top, most: 100, failed: func(place, error) error { return nil }}
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
		_, err := patterns(list)
		if (err != nil) != (text != "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want %q", list, err, text)
		}
	}
}
