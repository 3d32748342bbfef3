//go:build unix && !linux && !darwin

package filesystem

import (
	"io/fs"
	"os"
	"time"
)

// renameAt moves an entry of one open directory into another.
func renameAt(from int, name string, to int, newName string) error {
	return renameUnlessThere(from, name, to, newName)
}

// inKernel reports whether a file is a view of the kernel's.
func inKernel(*os.File, fs.FileInfo) bool { return false }

// accessed is when something was read last, which is not told here.
func accessed(info fs.FileInfo) time.Time { return info.ModTime() }

// created is when something was made, which is not told here.
func created(_ place, info fs.FileInfo) time.Time { return info.ModTime() }

// extent returns all that is left of a file: holes are copied as zeros.
func extent(_ *os.File, at, size int64) (begin, end int64) { return at, size }
