package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
)

// maxLinks is the most symbolic links that the way to one file may have.
const maxLinks = 40

// A directory is one that may be used, with all below it.
type directory struct {
	name string // as it was given: absolute and clean
	real string // the same without symbolic links
	root *os.Root
}

// directories are those that a call may use.
type directories struct {
	list       []*directory
	maxPath    int
	maxVisited int
	uses       int // guarded by the mutex of dirSet
}

// A place is where something is, or could be, in one of the directories.
type place struct {
	dir *directory
	rel string // below dir; "." is dir itself
	abs string // the same as an absolute path
}

// child is the entry of a directory that has this name.
func (p place) child(name string) place {
	return place{dir: p.dir, rel: filepath.Join(p.rel, name), abs: filepath.Join(p.abs, name)}
}

// names are the directories as they are shown.
func (d *directories) names(sep string) string {
	var names []string
	for _, dir := range d.list {
		names = append(names, dir.name)
		if dir.real != dir.name {
			names = append(names, dir.real)
		}
	}
	return valid(strings.Join(names, sep))
}

// place finds the place that a path names, without a look at the disk.
func (d *directories) place(path string) (place, error) {
	if len(d.list) == 0 {
		return place{}, errNoDirectory
	}
	path, err := localPath(path, runtime.GOOS == "windows")
	if err != nil {
		return place{}, mcp.Errorf("%v", err)
	}
	if err := checkPath(path, d.maxPath); err != nil {
		return place{}, err
	}
	if runtime.GOOS != "windows" && hasDrive(path) {
		return place{}, mcp.Errorf("Access denied - Windows-style path received on a POSIX host: %s", path)
	}
	if filepath.IsAbs(path) {
		abs := filepath.Clean(path)
		if p, ok := d.find(abs); ok {
			return p, nil
		}
		return place{}, d.denied("path", abs)
	}
	for _, dir := range d.list {
		if p, ok := d.find(filepath.Join(dir.name, path)); ok {
			return p, nil
		}
	}
	return place{}, d.denied("path", filepath.Join(d.list[0].name, path))
}

func (d *directories) denied(what, abs string) error {
	return mcp.Errorf("Access denied - %s outside allowed directories: %s not in %s", what, valid(abs), d.names(", "))
}

// find finds the innermost directory that an absolute, clean path is in.
func (d *directories) find(abs string) (best place, ok bool) {
	longest := -1
	for _, dir := range d.list {
		for _, base := range []string{dir.name, dir.real} {
			if rel, in := within(base, abs); in && len(base) > longest {
				longest, best, ok = len(base), place{dir: dir, rel: rel, abs: abs}, true
			}
		}
	}
	return best, ok
}

// within gives the path of abs below base. Both are absolute and clean.
func within(base, abs string) (rel string, ok bool) {
	if len(abs) < len(base) || !samePath(abs[:len(base)], base) {
		return "", false
	}
	rest := abs[len(base):]
	switch {
	case rest == "":
		return ".", true
	case os.IsPathSeparator(base[len(base)-1]): // the root of a system or a drive
		return rest, true
	case os.IsPathSeparator(rest[0]):
		return rest[1:], true
	}
	return "", false
}

// samePath compares as the file systems do that this kind of system has usually. It
// only decides through which directory a path is opened.
func samePath(a, b string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// locate follows the symbolic links of a path, as far as it exists. It does so itself,
// because os.Root takes no absolute link and none from one of the directories to another.
// What it finds is opened through os.Root, so nothing depends on links staying as they are.
func (d *directories) locate(ctx context.Context, path string) (p place, exists bool, err error) {
	return d.follow(ctx, path, walk{})
}

// locateNew is locate for what a call makes: if the last element of the path does not exist, no other
// form of its name is looked for.
func (d *directories) locateNew(ctx context.Context, path string) (p place, exists bool, err error) {
	return d.follow(ctx, path, walk{exact: true})
}

// locateEntry is locate for an entry itself: if the last element of the path is a link, it is not
// followed.
func (d *directories) locateEntry(ctx context.Context, path string) (p place, exists bool, err error) {
	return d.follow(ctx, path, walk{entry: true})
}

// locateNewEntry is locateNew for an entry itself.
func (d *directories) locateNewEntry(ctx context.Context, path string) (p place, exists bool, err error) {
	return d.follow(ctx, path, walk{entry: true, exact: true})
}

func (d *directories) follow(ctx context.Context, path string, walk walk) (p place, exists bool, err error) {
	if p, err = d.place(path); err != nil {
		return place{}, false, err
	}
	walk.d, walk.at, walk.pending = d, p.dir.real, elements(p.rel)
	walk.own = len(walk.pending)
	missing, err := walk.run(ctx)
	if err != nil {
		return place{}, false, d.explain(ctx, "realpath", p.abs, err)
	}
	end := filepath.Join(append([]string{walk.at}, missing...)...)
	found, ok := d.find(end)
	if !ok {
		return place{}, false, d.denied("symlink target", walk.at)
	}
	return found, len(missing) == 0, nil
}

// existing is locate for what has to exist; op names what is done with it.
func (d *directories) existing(ctx context.Context, op, path string) (place, error) {
	p, exists, err := d.locate(ctx, path)
	if err == nil && !exists {
		err = d.explain(ctx, op, p.abs, fs.ErrNotExist)
	}
	return p, err
}

// walk goes along a path, element by element.
type walk struct {
	d       *directories
	at      string   // where it is, free of links
	pending []string // what is to come
	own     int      // how many of them are from the path itself, not from a link
	links   int
	entry   bool           // the last element is not followed
	exact   bool           // the last element has no other form
	last    *danglingError // the last link that was followed
}

// A danglingError is that a symbolic link leads to nothing.
type danglingError struct{ link, target string }

func (e *danglingError) Error() string {
	return fmt.Sprintf("the symbolic link '%s' leads to '%s', which does not exist", valid(e.link), valid(e.target))
}

// run goes to the end of the path. missing is the rest of it from the first element that
// does not exist.
func (w *walk) run(ctx context.Context) (missing []string, err error) {
	for len(w.pending) > 0 {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		name := w.pending[0]
		next := filepath.Join(w.at, name)
		p, ok := w.d.find(next)
		if !ok || name == ".." {
			// Outside of the directories nothing is looked at; the way may come back in.
			w.step(next)
			continue
		}
		info, err := p.dir.root.Lstat(p.rel)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(w.pending) > w.own:
			return nil, w.last
		case errors.Is(err, fs.ErrNotExist) && w.exact && len(w.pending) == 1:
			return w.pending, nil
		case errors.Is(err, fs.ErrNotExist):
			other, err := w.d.sameName(ctx, p)
			if other == "" || other == name || err != nil {
				return w.pending, err
			}
			w.pending[0] = other
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0 && (!w.entry || len(w.pending) > 1):
			if err := w.follow(p); err != nil {
				return nil, err
			}
		case !info.IsDir() && len(w.pending) > 1:
			return nil, syscall.ENOTDIR
		default:
			w.step(next)
		}
	}
	return nil, nil
}

func (w *walk) step(next string) {
	w.at, w.pending = next, w.pending[1:]
	w.own = min(w.own, len(w.pending))
}

// follow puts the target of a link in the place of its name.
func (w *walk) follow(p place) error {
	if w.links++; w.links > maxLinks {
		return syscall.ELOOP
	}
	target, err := p.dir.root.Readlink(p.rel)
	if err != nil {
		return err
	}
	w.last = &danglingError{p.abs, target}
	rest := w.pending[1:]
	w.own = min(w.own, len(rest))
	if filepath.IsAbs(target) {
		w.at = filepath.VolumeName(target) + string(filepath.Separator)
		target = target[len(filepath.VolumeName(target)):]
	}
	w.pending = slices.Concat(elements(target), rest)
	return nil
}

// elements splits a path. What says nothing is left out.
func elements(path string) []string {
	list := strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	return slices.DeleteFunc(list, func(e string) bool { return e == "." })
}
