package filesystem

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameAt moves an entry of one open directory into another.
func renameAt(from int, name string, to int, newName string) error {
	return unix.RenameatxNp(from, name, to, newName, unix.RENAME_EXCL)
}

// inKernel reports whether a file is a view of the kernel's; macOS has none.
func inKernel(*os.File, fs.FileInfo) bool { return false }

// times are when something was made, and when it was read last.
func times(_ place, info fs.FileInfo) (created, accessed time.Time) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime(), info.ModTime()
	}
	return time.Unix(st.Birthtimespec.Unix()), time.Unix(st.Atimespec.Unix())
}
