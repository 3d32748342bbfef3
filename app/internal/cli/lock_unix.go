//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file until it is closed, or fails at once if another process has.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
