package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// What Windows has no flags for.
const (
	nonblock      = 0
	directoryOnly = 0
)

// listable makes a file whose entries are read quickly; Windows tells all of them at once.
func listable(f *os.File) (*os.File, error) { return f, nil }

// rename moves an entry within one of the directories. That nothing is there was looked at
// before; between two directories Windows has no call that could not be led astray.
func rename(from, to place) error {
	if from.dir != to.dir {
		return mcp.Errorf("on Windows nothing is moved from one allowed directory to another: read it and write it, or move it in parts")
	}
	if _, err := to.dir.root.Lstat(to.rel); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	return from.dir.root.Rename(from.rel, to.rel)
}

// inKernel reports whether a file is a view of the kernel's; Windows has none.
func inKernel(*os.File, fs.FileInfo) bool { return false }

// accessed is when something was read last.
func accessed(info fs.FileInfo) time.Time {
	d, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(0, d.LastAccessTime.Nanoseconds())
}

// created is when something was made.
func created(_ place, info fs.FileInfo) time.Time {
	d, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(0, d.CreationTime.Nanoseconds())
}

// sparse reports whether a file has holes, which are copied as zeros here.
func sparse(fs.FileInfo) bool { return false }

// extent returns all that is left of a file.
func extent(_ *os.File, at, size int64) (begin, end int64) { return at, size }

// keepOwner has nothing to do: the directory decides about the owner.
func keepOwner(*os.File, fs.FileInfo) bool { return true }

// keepLink has nothing to do.
func keepLink(place, fs.FileInfo) {}

// A fileID tells whether two names are of one file.
type fileID struct{}

// severalNames reports whether a file has several names, which is not told here.
func severalNames(fs.FileInfo) (fileID, bool) { return fileID{}, false }
