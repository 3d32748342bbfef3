package gogit

import (
	"errors"
	"io/fs"
	"os"

	"github.com/parley-mcp/parley/mcp"
)

// A lockFile is the lock of a file of git's own, which git respects: a file beside it that must not
// exist. What it has then takes the place of the file.
type lockFile struct {
	dir  *os.Root
	name string
	file *os.File // nil once it is released
}

func lock(dir *os.Root, name string) (*lockFile, error) {
	f, err := dir.OpenFile(name+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, mcp.Errorf("another git process seems to be at work in this repository, because .git/%s.lock exists; if no git process is running, remove that file", name)
	}
	if err != nil {
		return nil, err
	}
	return &lockFile{dir, name, f}, nil
}

// replace gives the file new contents and releases the lock.
func (l *lockFile) replace(text []byte) error {
	_, err := l.file.Write(text)
	err = errors.Join(err, l.file.Close())
	l.file = nil
	if err == nil {
		err = l.dir.Rename(l.name+".lock", l.name)
	}
	if err != nil {
		err = errors.Join(err, l.dir.Remove(l.name+".lock"))
	}
	return err
}

// release gives up the lock, if it is still held, and leaves the file as it is.
func (l *lockFile) release() {
	if l.file != nil {
		_ = l.file.Close() // nothing was written to it
		l.file = nil
		_ = l.dir.Remove(l.name + ".lock")
	}
}
