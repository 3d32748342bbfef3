//go:build unix && !solaris && !aix

package safefile

import (
	"errors"
	"os"
	"syscall"
)

// TryLock takes the lock of an open file until it is closed, and reports whether it was free.
func TryLock(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, os.NewSyscallError("flock", err)
		}
	}
}
