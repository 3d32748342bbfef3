package filesystem

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameAt moves an entry of one open directory into another.
func renameAt(from int, name string, to int, newName string) error {
	err := unix.Renameat2(from, name, to, newName, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return renameUnlessThere(from, name, to, newName) // a file system that cannot promise it
	}
	return err
}

// inKernel reports whether a file is none, but a view of the kernel's, as below /proc. No such view is on
// a device, so the major number of its device is 0, as it is in some other file systems.
func inKernel(f *os.File, info fs.FileInfo) bool {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && unix.Major(st.Dev) != 0 {
		return false
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false
	}
	return st.Type == unix.PROC_SUPER_MAGIC
}

// extent returns the first part of a file that is no hole, from at on, and moves the file to its
// beginning. At the end of the data, and where the file system does not know about holes, it is all that
// is left.
func extent(f *os.File, at, size int64) (begin, end int64) {
	begin, err := f.Seek(at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err == nil {
		end, err = f.Seek(begin, unix.SEEK_HOLE)
	}
	if err != nil {
		begin, end = at, size
	}
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return at, size // the next read fails as well
	}
	return min(begin, size), min(end, size)
}

// accessed is when something was read last.
func accessed(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Atim.Unix())
}

// created is when something was made.
func created(p place, info fs.FileInfo) time.Time {
	f, err := p.dir.root.Open(filepath.Dir(p.rel))
	if err != nil {
		return info.ModTime()
	}
	defer func() { _ = f.Close() }() // it was only looked at
	var st unix.Statx_t
	err = unix.Statx(int(f.Fd()), filepath.Base(p.rel), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if err != nil {
		return info.ModTime()
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return statxTime(st.Ctime)
	}
	return statxTime(st.Btime)
}

func statxTime(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }
