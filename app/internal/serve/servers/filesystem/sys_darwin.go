package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameAt moves an entry of one open directory into another.
func renameAt(from int, name string, to int, newName string) error {
	err := unix.RenameatxNp(from, name, to, newName, unix.RENAME_EXCL)
	if errors.Is(err, unix.ENOTSUP) {
		return renameUnlessThere(from, name, to, newName) // a file system that cannot promise it
	}
	return err
}

// inKernel reports whether a file is a view of the kernel's; macOS has none.
func inKernel(*os.File, fs.FileInfo) bool { return false }

// accessed is when something was read last.
func accessed(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Atimespec.Unix())
}

// created is when something was made.
func created(_ place, info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Birthtimespec.Unix())
}

// extent returns all that is left of a file: holes are copied as zeros.
func extent(_ *os.File, at, size int64) (begin, end int64) { return at, size }
