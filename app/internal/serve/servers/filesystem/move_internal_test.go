package filesystem

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// elsewhere has the next move treat its two places as ones on different file systems. meddle is called when
// the copy has the name of the destination, before the source is removed.
func elsewhere(s *service, meddle func()) {
	moves := 0
	s.rename = func(from, to place) error {
		if moves++; moves == 1 {
			return syscall.EXDEV
		}
		err := rename(from, to)
		if moves == 2 {
			meddle()
		}
		return err
	}
}

// A move that copied all and could not remove the source never says to remove a file that is nowhere else.
// It names the entry that it could not remove.
func TestMoveHalfDone(t *testing.T) {
	for name, test := range map[string]struct {
		meddle func(in func(string) string) error
		entry  string   // that the error names
		want   []string // words of the error
		copied bool     // the copy is there
		newer  string   // a file that the copy does not have as it is
	}{
		"a new file": {
			func(in func(string) string) error {
				return os.WriteFile(in("from/sub/new"), []byte("only here"), 0o600)
			},
			"from/sub'",
			[]string{"ENOTEMPTY"},
			true, "from/sub/new",
		},
		"a file that changed": {
			func(in func(string) string) error { return os.WriteFile(in("from/z"), []byte("only here"), 0o600) },
			"from/z",
			[]string{"another program has changed"},
			true, "from/z",
		},
		"the first file changed": {
			func(in func(string) string) error { return os.WriteFile(in("from/a"), []byte("only here"), 0o600) },
			"from/a",
			[]string{"another program has changed", "nothing was moved"},
			false, "from/a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, d, dir := inside(t, nil)
			in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
			for _, name := range []string{"from/a", "from/sub/b", "from/z"} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(in(name)), 0o700), os.WriteFile(in(name), []byte(name), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			elsewhere(s, func() {
				if err := test.meddle(in); err != nil {
					t.Error(err)
				}
			})
			_, _, err := s.move(t.Context(), d, moveIn{in("from"), in("to")})
			want := append(test.want, in(test.entry))
			if test.copied {
				want = append(want, "What is left in "+in("from")+" may be newer than the copy in "+in("to")+" or missing from it: compare both before you remove anything")
			}
			for _, words := range want {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("%v, want %q", err, words)
				}
			}
			if err != nil && strings.Contains(err.Error(), "remove it") {
				t.Errorf("%v: the caller loses %s", err, test.newer)
			}
			if data, err := os.ReadFile(in(test.newer)); err != nil || string(data) != "only here" {
				t.Errorf("%q, %v", data, err)
			}
			if _, err := os.Lstat(in("to")); (err == nil) != test.copied {
				t.Errorf("the copy: %v", err)
			}
		})
	}
}

// A part of a copy that cannot be removed is named, whatever the move failed for.
func TestMoveLeavesPart(t *testing.T) {
	_, d, dir := inside(t, nil)
	top := place{dir: d.list[0], rel: ".", abs: dir}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for words, test := range map[string]struct {
		ctx context.Context //nolint:containedctx // of a call that fails
		err error
	}{
		"Destination already exists: " + top.child("to").abs: {t.Context(), fs.ErrExist},
		context.Canceled.Error():                             {gone, syscall.ENOSPC},
	} {
		m := &mover{ctx: test.ctx, d: d, part: top.child("part"), to: top.child("to")}
		err := m.failed(test.err, syscall.EBUSY)
		if want := words + "; the source is as it was. A part of a copy is left in " + top.child("part").abs + ": remove it"; err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A copy that cannot be taken back is what the caller may remove: the source is whole then.
func TestMoveNotTakenBack(t *testing.T) {
	_, d, dir := inside(t, nil)
	top := place{dir: d.list[0], rel: ".", abs: dir} // which an os.Root does not remove
	from := top.child("from")
	m := &mover{ctx: t.Context(), d: d}
	err := m.notRemoved(from, top, 0, &opError{"unlink", from.child("a"), syscall.EACCES})
	for _, words := range []string{"EACCES", from.child("a").abs, from.abs + " is whole", "an incomplete copy is left in " + dir + ": remove that"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

// A file can have contents although its size is reported as 0, as on file systems that do not know it.
func TestContentsOfUnknownSize(t *testing.T) {
	source, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip(err) // only Linux has such a file
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil || info.Size() != 0 {
		t.Skip(info.Size(), err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := &mover{ctx: t.Context()}
	if err := m.contents(f, source, place{}, place{}, info); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.Name()); err != nil || !strings.Contains(string(text), "Name:") {
		t.Errorf("%v, copied %q", err, text)
	}
}
