//go:build unix && !linux

package filesystem

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// listable makes a file of an open directory whose entries are read without a system call
// for each, as package os makes it for directories below an os.Root. It takes f over.
func listable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
