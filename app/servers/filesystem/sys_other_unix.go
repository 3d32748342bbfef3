//go:build unix && !linux && !darwin

package filesystem

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// renameAt moves an entry of one open directory into another. That nothing is there was
// looked at before.
func renameAt(from int, name string, to int, newName string) error {
	return unix.Renameat(from, name, to, newName)
}

// inKernel reports whether a file is a view of the kernel's.
func inKernel(*os.File, fs.FileInfo) bool { return false }

// times are when something was made, and when it was read last, which is not told here.
func times(_ place, info fs.FileInfo) (created, accessed time.Time) {
	return info.ModTime(), info.ModTime()
}
