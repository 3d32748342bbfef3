package memory

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// If only the folder could not be synced, the error says that the memory is changed, and it is.
func TestFolderNotSynced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "memory.jsonl")
	s, err := newStore(path, &Options{MaxFile: DefaultMaxFile, LockWait: DefaultLockWait})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	s.changed = func() { told++ }
	if err := errors.Join(os.Chmod(dir, 0o300), os.Chmod(filepath.Dir(dir), 0o711)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if os.Getuid() == 0 { // who may open every folder
		const nobody = 65534
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // it is the thread that becomes another user
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			t.Skip(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
	}
	for changes, name := range []string{"one", "two", "three"} {
		if name == "three" { // is made although a bad line is set aside before
			old, err := os.ReadFile(path)
			if err = errors.Join(err, os.WriteFile(path, append(old, "broken\n"...), 0o600)); err != nil {
				t.Fatal(err)
			}
			s.o.SetAside = true
		}
		err := s.change(t.Context(), adding(name))
		if err == nil || !strings.Contains(err.Error(), "the memory is changed, but a failure of the machine can undo that") || told != changes+1 {
			t.Errorf("%s: %v, told %d times", name, err, told)
		}
		if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), name) {
			t.Errorf("%s: %v, the file is\n%s", name, err, data)
		}
	}
}
