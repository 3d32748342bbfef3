//go:build unix

package filesystem

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

// keepOwner gives a new file the owner and the group of the old one, as far as the system
// allows it: root can, and others can choose among their groups.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok || f.Chown(int(was.Uid), int(was.Gid)) == nil {
		return
	}
	_ = f.Chown(-1, int(was.Gid)) // the file is the writer's then, as with other editors
}
