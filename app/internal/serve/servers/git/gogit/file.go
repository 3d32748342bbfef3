package gogit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// openRegular opens a file to read it. A pipe, which would keep the call waiting, is not there, nor
// is a device.
func openRegular(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := dir.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat() // it may have been replaced
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = f.Close() // it was only opened
		return nil, nil, err
	}
	return f, info, nil
}

// openFolder opens a folder of the working tree. No link is followed on the way: one may take the place of
// a folder at any time, and lead to git's own files. With create what is missing is made.
func openFolder(tree *os.Root, dir string, create bool) (*os.Root, error) {
	at, err := tree.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for name := range strings.SplitSeq(dir, "/") {
		var next *os.Root
		if create {
			err = makeFolder(at, name)
		}
		if err == nil {
			next, err = openChild(at, name)
		}
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// openChild opens a folder that is in another one, and is no link.
func openChild(dir *os.Root, name string) (*os.Root, error) {
	child, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := child.Stat(".")
	if err == nil {
		var there fs.FileInfo
		if there, err = dir.Lstat(name); err == nil && !os.SameFile(opened, there) {
			err = mcp.Errorf("the folder %q was replaced in the meantime", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, child.Close())
	}
	return child, nil
}

// makeFolder makes a folder unless it is there. A file that is in its place is removed.
func makeFolder(dir *os.Root, name string) error {
	info, err := dir.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		err = dir.Remove(name)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	return dir.Mkdir(name, 0o777)
}

// remove removes a file or an empty folder of the working tree.
func remove(tree *os.Root, name string) error {
	dir, err := openFolder(tree, path.Dir(name), false)
	if err != nil {
		return err
	}
	return errors.Join(dir.Remove(path.Base(name)), dir.Close())
}

// removeEmpty removes a folder in which there is nothing but empty folders.
func removeEmpty(dir *os.Root, name string) error {
	child, err := openChild(dir, name)
	if err != nil {
		return err
	}
	list, err := fs.ReadDir(child.FS(), ".")
	for _, e := range list {
		if err == nil && e.IsDir() {
			err = removeEmpty(child, e.Name())
		}
	}
	return cmp.Or(err, child.Close(), dir.Remove(name)) // a file in it is an error of Remove
}

// readInRoot reads a regular file, up to a limit.
func readInRoot(dir *os.Root, name string) ([]byte, error) {
	const most = 16 << 20
	f, info, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()          // it is only read
	if over := info.Size() - most; over > 0 { // the end is what counts in logs
		if _, err := f.Seek(over, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// readSettings reads a file of the working tree that says what is ignored or converted, and is no link.
func readSettings(tree *os.Root, name string) ([]byte, error) {
	info, err := tree.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	if info.Size() > maxSmallFile {
		return nil, mcp.Errorf("%q is larger than %d bytes; make it shorter", name, maxSmallFile)
	}
	return readInRoot(tree, name)
}

// A pollReader reads until a call ends.
type pollReader struct {
	ctx context.Context //nolint:containedctx // of the one call
	in  io.Reader
}

// Read reads, or fails once the call is over.
func (p pollReader) Read(b []byte) (int, error) {
	if err := context.Cause(p.ctx); err != nil {
		return 0, err
	}
	return p.in.Read(b)
}
