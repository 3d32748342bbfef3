//go:build unix

package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// nonblock has a pipe opened without waiting for its other end.
	nonblock = syscall.O_NONBLOCK
	// directoryOnly refuses what is no directory without opening it.
	directoryOnly = syscall.O_DIRECTORY
)

// rename moves an entry, also from one of the directories to another. Nothing that exists
// is overwritten, as far as the system can promise it.
func rename(from, to place) error {
	a, err := from.dir.root.Open(filepath.Dir(from.rel))
	if err != nil {
		return err
	}
	b, err := to.dir.root.Open(filepath.Dir(to.rel))
	if err != nil {
		return errors.Join(err, a.Close())
	}
	err = renameAt(int(a.Fd()), filepath.Base(from.rel), int(b.Fd()), filepath.Base(to.rel))
	if err != nil {
		err = &os.LinkError{Op: "rename", Old: from.rel, New: to.rel, Err: err}
	}
	return errors.Join(err, a.Close(), b.Close())
}

// renameUnlessThere moves an entry of one open directory into another where the system cannot promise that
// nothing is overwritten: it looks right before.
func renameUnlessThere(from int, name string, to int, newName string) error {
	var st unix.Stat_t
	err := unix.Fstatat(to, newName, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil:
		return unix.EEXIST
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return unix.Renameat(from, name, to, newName)
}

// sparse reports whether a file has holes: it takes less of the disk than it has bytes.
func sparse(info fs.FileInfo) bool {
	const block = 512
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Blocks*block < st.Size
}

// keepOwner gives a new file the owner and the group of the old one, as far as the system
// allows it: root can, and others can choose among their groups.
// It reports whether both are those of the old one.
func keepOwner(f *os.File, old fs.FileInfo) bool {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if f.Chown(int(was.Uid), int(was.Gid)) == nil {
		return true
	}
	_ = f.Chown(-1, int(was.Gid)) // the file is the writer's then, as with other editors
	return false
}

// keepLink gives a copy of a symbolic link its owner and its times, as far as the system allows it.
func keepLink(p place, old fs.FileInfo) {
	if was, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = p.dir.root.Lchown(p.rel, int(was.Uid), int(was.Gid))
	}
	parent, err := p.dir.root.Open(filepath.Dir(p.rel))
	if err != nil {
		return
	}
	at := []unix.Timespec{unix.NsecToTimespec(accessed(old).UnixNano()), unix.NsecToTimespec(old.ModTime().UnixNano())}
	_ = unix.UtimesNanoAt(int(parent.Fd()), filepath.Base(p.rel), at, unix.AT_SYMLINK_NOFOLLOW)
	_ = parent.Close() // it was only looked at
}

// A fileID tells whether two names are of one file.
type fileID struct{ device, inode uint64 }

// severalNames returns the identity of a file, and whether it has several names (hard links).
func severalNames(info fs.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino}, true // the type of Dev differs between systems
}
