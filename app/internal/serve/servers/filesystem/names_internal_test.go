package filesystem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The search for another form of a name looks at its context, says if it did not look at all names, and
// names few of many.
func TestSameNameBounds(t *testing.T) {
	s, d, dir := inside(t, nil)
	spaces := []string{" ", "\u00a0", "\u202f"}
	for i := range 27 {
		name := "a" + spaces[i/9] + "b" + spaces[i/3%3] + "c" + spaces[i%3] + "d"
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "a b c d")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := s.readText(t.Context(), d, readIn{Path: path})
	if err == nil || strings.Count(err.Error(), `", `) != 10 || !strings.Contains(err.Error(), "and 16 more") {
		t.Errorf("%v", err)
	}
	d.maxVisited = 20
	for _, name := range []string{"a b c d", "none like\u00a0it"} {
		_, err = s.readText(t.Context(), d, readIn{Path: filepath.Join(dir, name)})
		for _, words := range []string{"ENOENT", "more than 20 entries", "give the name exactly"} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%q: %v, want %q", name, err, words)
			}
		}
	}
	d.maxVisited = 10_000
	for i := range 3_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%0200d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := &meddler{Context: t.Context(), meddle: func() {}}
	p := place{dir: d.list[0], rel: ".", abs: dir}
	if _, _, err := p.entries(ctx, d.maxVisited); err != nil {
		t.Fatal(err)
	}
	read := -ctx.left
	if _, err := d.sameName(ctx, p.child("x y")); err != nil || -ctx.left < 2*read+3 {
		t.Errorf("%d polls to read the entries, %d with comparing them, %v", read, -ctx.left-read, err)
	}
}

// A directory is not moved if another one that is allowed is at or below it.
func TestMoveKeepsAllowed(t *testing.T) {
	s, d, dir := inside(t, nil)
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	if err := errors.Join(os.MkdirAll(in("b/c"), 0o700), os.MkdirAll(in("bc"), 0o700)); err != nil {
		t.Fatal(err)
	}
	inner, err := openDirectory(in("b/c"))
	if err != nil {
		t.Fatal(err)
	}
	d.list = append(d.list, inner)
	for _, name := range []string{"", "b", "b/c"} {
		if _, _, err := s.move(t.Context(), d, moveIn{in(name), in("to")}); err == nil || !strings.Contains(err.Error(), "allowed directory") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, err := s.move(t.Context(), d, moveIn{in("bc"), in("to")}); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("b", in("link")); err != nil {
		t.Skip(err)
	}
	if _, _, err := s.move(t.Context(), d, moveIn{in("link"), in("link2")}); err != nil {
		t.Error(err)
	}
}

// The end of a file that another program cut meanwhile has no bytes that are not in it.
func TestTailOfCutFile(t *testing.T) {
	s, _, _ := inside(t, nil)
	for text, want := range map[string]string{"": "", "a\nb\n": "a\nb", "a\nb\nc": "b\nc", strings.Repeat("x", chunk) + "\na\nb": "a\nb"} {
		got, err := s.tail(t.Context(), strings.NewReader(text), 3*chunk, 2)
		if err != nil || string(got) != want {
			t.Errorf("%.20q: %.300q, %v, want %q", text, got, err, want)
		}
	}
}
