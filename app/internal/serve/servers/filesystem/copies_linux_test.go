package filesystem

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcptest"
)

// A move to another file system keeps when files, directories and links were read last, though it reads them.
func TestMoveKeepsAccessTimes(t *testing.T) {
	s, d, dir := inside(t, nil)
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(in("from/sub"), 0o700), os.WriteFile(in("from/sub/file"), []byte("text"), 0o600), os.Symlink("file", in("from/sub/link"))); err != nil {
		t.Fatal(err)
	}
	read, changed := time.Unix(1_000_000_000, 123), time.Unix(1_100_000_000, 456)
	names := []string{"/sub/file", "/sub/link", "/sub", ""}
	at := []unix.Timespec{unix.NsecToTimespec(read.UnixNano()), unix.NsecToTimespec(changed.UnixNano())}
	for _, name := range names {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, in("from"+name), at, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere(s, func() {
		for _, name := range names {
			var st unix.Stat_t
			if err := unix.Lstat(in("to"+name), &st); err != nil {
				t.Error(err)
			}
			if accessed, modified := time.Unix(st.Atim.Unix()), time.Unix(st.Mtim.Unix()); !accessed.Equal(read) || !modified.Equal(changed) {
				t.Errorf("%q was read %v and changed %v", name, accessed, modified)
			}
		}
	})
	if _, _, err := s.move(t.Context(), d, moveIn{in("from"), in("to")}); err != nil {
		t.Error(err)
	}
}

// Where the file system cannot promise not to overwrite, the server looks right before it renames.
func TestRenameLooksFirst(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"from", "there"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := int(f.Fd())
	for to, want := range map[string]error{"there": fs.ErrExist, "link": fs.ErrExist, "there/x": syscall.ENOTDIR, "none/x": fs.ErrNotExist, "new": nil} {
		if err := renameUnlessThere(fd, "from", fd, to); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", to, err, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(data) != "from" {
		t.Errorf("%q, %v", data, err)
	}
}

// A name that is taken within the copy is not the destination.
func TestMoveMeetsNameInCopy(t *testing.T) {
	s, d, dir := inside(t, nil)
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(in("from"), 0o700), os.WriteFile(in("from/a"), []byte("a"), 0o600), os.WriteFile(in("from/b"), []byte("b"), 0o600)); err != nil {
		t.Fatal(err)
	}
	elsewhere(s, func() {})
	onWrite = func() error {
		part, err := filepath.Glob(in(".parley-*"))
		if err != nil || len(part) != 1 {
			t.Fatalf("%q, %v", part, err)
		}
		return os.WriteFile(filepath.Join(part[0], "b"), nil, 0o600)
	}
	defer func() { onWrite = nil }()
	_, _, err := s.move(t.Context(), d, moveIn{in("from"), in("to")})
	for _, words := range []string{"EEXIST", in("to/b"), "the source is as it was"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	noneLeft(t, "a taken name", dir)
}

// A move to another file system reports progress, while it copies and while it removes the source.
func TestMoveProgress(t *testing.T) {
	s, _, dir := inside(t, nil)
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(in("from"), 0o700), os.WriteFile(in("from/long"), make([]byte, 3*moveProgress*readPart), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * moveProgress {
		if err := os.WriteFile(filepath.Join(in("from"), fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere(s, func() {})
	var reports []string
	res, err := mcptest.Client(t, s.server).CallTool(t.Context(), "move_file", map[string]any{"source": in("from"), "destination": in("to")},
		&client.CallOptions{OnProgress: func(_, _ float64, message string) { reports = append(reports, message) }})
	if err != nil || res.IsError || len(reports) != 7 {
		t.Fatalf("%+v, %v, reports %q", res, err, reports)
	}
	if first, last := reports[0], reports[6]; !strings.Contains(first, "entries copied") || !strings.Contains(last, "of 42 entries of the source removed") {
		t.Errorf("%q", reports)
	}
}
