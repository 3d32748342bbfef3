//go:build unix

package tasks_test

import (
	"os"
	"syscall"
)

// lock locks a file without waiting.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
