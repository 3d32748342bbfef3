//go:build linux || darwin

package filesystem_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe with nobody at its other end, a socket and a device: no tool opens them, so none
// waits.
func TestPipesAndDevices(t *testing.T) {
	f := start(t, nil, nil)
	if err := syscall.Mkfifo(f.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"pipe"}
	if err := unix.Mknod(f.path("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err == nil { // root alone may
		names = append(names, "device")
	}
	for _, name := range names {
		for tool, in := range map[string]args{
			"read_text_file": {"path": name}, "read_file": {"path": name, "tail": 1}, "read_media_file": {"path": name},
			"write_file": {"path": name, "content": "x"}, "edit_file": {"path": name, "edits": []args{}},
		} {
			f.refused(tool, in, "neither a file nor a directory")
		}
		f.refused("list_directory", args{"path": name}, "ENOTDIR")
		f.refused("create_directory", args{"path": name}, "EEXIST")
		if info, err := os.Lstat(f.path(name)); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// What is written over a private file is never to be read by others, not even under the name
// that it has until it is whole. The owner stays, where the writer may give files away.
func TestWritePrivate(t *testing.T) {
	f := start(t, nil, nil)
	if err := os.Chmod(f.path("a.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	owner := os.Getuid()
	if owner == 0 {
		owner = 12345
		if err := os.Chown(f.path("a.txt"), owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 8 {
			f.want("write_file", args{"path": "a.txt", "content": strings.Repeat("private\n", 400_000)}, "Successfully wrote to a.txt")
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		names, err := filepath.Glob(f.path(".parley-*.tmp"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, f.path("a.txt")) {
			if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has the permissions %v", filepath.Base(name), info.Mode())
			}
		}
	}
	info, err := os.Stat(f.path("a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != owner {
		t.Errorf("the file belongs to %d, want %d", st.Uid, owner)
	}
}
