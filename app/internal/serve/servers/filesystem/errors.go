package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/mcp"
)

// errNotRegular is the refusal to open what is neither a file nor a directory: reading a
// pipe could wait for ever, and a device could do anything.
var errNotRegular = errors.New("not a regular file")

// codes are the names and texts of errors, as programs that know the original server
// expect them. The first that fits is taken.
var codes = []struct {
	err        error
	code, text string
}{
	{syscall.ENOTEMPTY, "ENOTEMPTY", "directory not empty"},
	{syscall.ENOTDIR, "ENOTDIR", "not a directory"},
	{syscall.EISDIR, "EISDIR", "illegal operation on a directory"},
	{syscall.ELOOP, "ELOOP", "too many symbolic links encountered"},
	{syscall.ENAMETOOLONG, "ENAMETOOLONG", "name too long"},
	{syscall.EXDEV, "EXDEV", "cross-device link not permitted"},
	{syscall.ENOSPC, "ENOSPC", "no space left on device"},
	{syscall.EROFS, "EROFS", "read-only file system"},
	{syscall.EPERM, "EPERM", "operation not permitted"},
	{syscall.EINVAL, "EINVAL", "invalid argument"},
	{fs.ErrNotExist, "ENOENT", "no such file or directory"},
	{fs.ErrExist, "EEXIST", "file already exists"},
	{fs.ErrPermission, "EACCES", "permission denied"},
}

// explain makes an error for the caller of one of the system; op is what was done with
// the file. Errors that already are for the caller stay as they are.
func (d *directories) explain(ctx context.Context, op, abs string, err error) error {
	var shown *mcp.Error
	var dangling *danglingError
	switch {
	case err == nil || errors.As(err, &shown):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &dangling):
		return mcp.Errorf("ENOENT: %w; use the path that it leads to, or remove the link", dangling)
	case errors.Is(err, errNotRegular):
		return mcp.Errorf("%s is neither a file nor a directory, so it is not opened", valid(abs))
	case isEscape(err):
		return d.denied("symlink target", abs)
	case op == "read" && errors.Is(err, syscall.EISDIR): // the original names no path then
		return mcp.Errorf("EISDIR: illegal operation on a directory, read")
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return mcp.Errorf("%s: %s, %s '%s'", c.code, c.text, op, valid(abs))
		}
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // its path is not the one that the caller knows
	}
	return mcp.Errorf("cannot %s '%s': %v", op, valid(abs), err)
}

// isEscape reports whether an os.Root refused to leave its directory. Package os has no
// name for this error.
func isEscape(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && strings.Contains(path.Err.Error(), "escapes")
}

// An opError is an error of the system, with what was done and where.
type opError struct {
	op  string
	at  place
	err error
}

func (e *opError) Error() string { return fmt.Sprintf("%s %s: %v", e.op, e.at.abs, e.err) }
func (e *opError) Unwrap() error { return e.err }

// notWritten makes an error for the caller of one of place.replace.
func (d *directories) notWritten(ctx context.Context, p place, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !p.parentExists() {
		return noParent(p)
	}
	op, abs := "open", p.abs
	var at *opError
	if errors.As(err, &at) {
		op, abs, err = at.op, at.at.abs, at.err
	}
	if err = d.explain(ctx, op, abs, err); ctx.Err() != nil {
		return err
	}
	return mcp.Errorf("%w; nothing was changed", err)
}
