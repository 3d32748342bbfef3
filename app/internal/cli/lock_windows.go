package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks a file until it is closed, or fails at once if another process has.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
}
