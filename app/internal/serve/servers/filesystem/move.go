package filesystem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// beside returns a place in the directory of p whose name is not used. It is short, so that names of any
// length can be replaced.
func (p place) beside() place {
	name := ".parley-" + rand.Text() + ".tmp"
	return place{dir: p.dir, rel: filepath.Join(filepath.Dir(p.rel), name), abs: filepath.Join(filepath.Dir(p.abs), name)}
}

func (s *service) move(ctx context.Context, d *directories, in moveIn) (out, note string, err error) {
	from, exists, err := d.locateEntry(ctx, in.Source)
	if err == nil && !exists {
		err = d.explain(ctx, "rename", from.abs, fs.ErrNotExist)
	}
	if err != nil {
		return "", "", err
	}
	to, exists, err := d.locateNewEntry(ctx, in.Destination)
	if err != nil {
		return "", "", err
	}
	switch {
	case exists:
		return "", "", mcp.Errorf("Destination already exists: %s", valid(to.abs))
	case d.allowedIn(from) != nil:
		return "", "", mcp.Errorf("%s is an allowed directory or has one in it, %s, which cannot be moved", valid(from.abs), valid(d.allowedIn(from).name))
	case strings.HasPrefix(to.abs, from.abs+string(filepath.Separator)):
		return "", "", d.explain(ctx, "rename", from.abs, syscall.EINVAL)
	}
	if err := s.confirm(ctx, fmt.Sprintf("Move %s to %s?", from.abs, to.abs)); err != nil {
		return "", "", err
	}
	if err := s.lock(ctx); err != nil {
		return "", "", err
	}
	defer s.unlock()
	err = s.rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		note, err = s.moveAcross(ctx, d, from, to)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", "", mcp.Errorf("Destination already exists: %s", valid(to.abs))
	case errors.Is(err, fs.ErrNotExist) && !to.parentExists():
		return "", "", noParent(to)
	case err != nil:
		return "", "", d.explain(ctx, "rename", from.abs, err)
	}
	return "Successfully moved " + in.Source + " to " + in.Destination, note, nil
}

// allowedIn returns a directory that may be used and is at or below a place, or nil.
func (d *directories) allowedIn(p place) *directory {
	for _, dir := range d.list {
		if _, in := within(p.abs, dir.real); in {
			return dir
		}
	}
	return nil
}

// parentExists reports whether the directory of a place exists.
func (p place) parentExists() bool {
	info, err := p.dir.root.Stat(filepath.Dir(p.rel))
	return err == nil && info.IsDir()
}

// noParent is the error about a place that has no directory to be in.
func noParent(p place) error {
	return mcp.Errorf("ENOENT: no such directory '%s'; make it with create_directory. Nothing was changed", valid(filepath.Dir(p.abs)))
}

// A mover copies an entry to another file system, and removes it then.
type mover struct {
	ctx    context.Context //nolint:containedctx // a mover is one call
	d      *directories
	most   int
	copied []copied         // each directory after its entries
	names  map[fileID]place // the copies of files that have several names
	steps  int              // entries and parts of files that were copied, and entries that were removed
	own    fs.FileInfo      // the copy itself, which a bind mount can show within the source
	part   place            // the copy before it has the name of the destination, to
	to     place
	lost   problems // permissions and times that the other file system does not keep
}

// copied is an entry that was copied, as it was then.
type copied struct {
	place
	info fs.FileInfo
}

// moveAcross moves an entry to another file system: it copies all to a name next to the destination,
// gives the copy the name of the destination when it is on the disk, and removes the source then. At
// each moment the source or the destination is whole. note says what was not kept.
func (s *service) moveAcross(ctx context.Context, d *directories, from, to place) (note string, err error) {
	if inside, err := isInside(to, from); err != nil || inside {
		return "", errors.Join(err, syscall.EINVAL)
	}
	part := to.beside()
	m := &mover{ctx: ctx, d: d, most: s.opts.MaxVisited, names: make(map[fileID]place), part: part, to: to}
	if err = m.copy(from, part); err == nil {
		syncDir(part)
		if err = servers.Ended(ctx); err == nil {
			err = s.rename(part, to)
		}
	}
	if err != nil {
		return "", m.failed(err, part.dir.root.RemoveAll(part.rel))
	}
	syncDir(to)
	if n, err := m.remove(); err != nil {
		return "", m.notRemoved(from, to, n, err)
	}
	return m.lost.note("", "%d permissions or times were not kept there, such as: %v."), nil
}

// isInside reports whether a place is in a directory, also where mounts show it by another path.
func isInside(p, dir place) (bool, error) {
	info, err := dir.dir.root.Lstat(dir.rel)
	if err != nil || !info.IsDir() {
		return false, err
	}
	for rel := filepath.Dir(p.rel); ; rel = filepath.Dir(rel) {
		above, err := p.dir.root.Lstat(rel)
		if err != nil || os.SameFile(above, info) {
			return err == nil, err
		}
		if rel == "." {
			return false, nil
		}
	}
}

// failed is the error about a copy that was not made, of which nothing is left, or part.
func (m *mover) failed(err, left error) error {
	var at *opError
	switch inCopy := errors.As(err, &at); {
	case inCopy:
		err = m.explain(at)
	case errors.Is(err, fs.ErrExist) && left == nil:
		return err
	case errors.Is(err, fs.ErrExist):
		err = mcp.Errorf("Destination already exists: %s", valid(m.to.abs))
	default:
		err = m.d.explain(m.ctx, "rename", m.to.abs, err)
	}
	switch {
	case left != nil:
		return mcp.Errorf("%w; the source is as it was. A part of a copy is left in %s: remove it", err, valid(m.part.abs))
	case m.ctx.Err() != nil:
		return err
	}
	return mcp.Errorf("%w; the source is as it was, and nothing is left of the copy", err)
}

// explain makes an error for the caller of one about an entry of the source or the copy, which is named as
// if it were at the destination.
func (m *mover) explain(e *opError) error {
	path := e.at.abs
	if below, in := strings.CutPrefix(path, m.part.abs); in && m.part.abs != "" {
		path = m.to.abs + below
	}
	return m.d.explain(m.ctx, e.op, path, e.err)
}

// notRemoved is the error about a source of which only n entries were removed. If none was, the copy
// is taken back.
func (m *mover) notRemoved(from, to place, n int, err error) error {
	var at *opError
	if errors.As(err, &at) {
		err = m.d.explain(context.WithoutCancel(m.ctx), at.op, at.at.abs, at.err)
	}
	switch {
	case n > 0:
		return mcp.Errorf("%w; all was copied before. What is left in %s may be newer than the copy in %s or missing from it: compare both before you remove anything",
			err, valid(from.abs), valid(to.abs))
	case to.dir.root.RemoveAll(to.rel) != nil:
		return mcp.Errorf("%w; %s is whole, and an incomplete copy is left in %s: remove that", err, valid(from.abs), valid(to.abs))
	}
	return mcp.Errorf("%w; nothing was moved", err)
}

// copy copies an entry with all below it.
func (m *mover) copy(from, to place) error {
	if err := servers.Ended(m.ctx); err != nil {
		return err
	}
	info, err := from.dir.root.Lstat(from.rel)
	if err != nil {
		return &opError{"lstat", from, err}
	}
	if m.own != nil && os.SameFile(info, m.own) {
		return &opError{"rename", from, syscall.EINVAL}
	}
	if len(m.copied) >= m.most {
		return mcp.Errorf("%s has more than %d entries, too many to copy to another file system in one call; move parts of it", valid(from.abs), m.most)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		err = m.copyLink(from, to, info)
	case info.IsDir():
		return m.copyDir(from, to, info)
	case info.Mode().IsRegular():
		err = m.copyFile(from, to, info)
	default:
		err = &opError{"copy", from, errNotRegular}
	}
	if err != nil {
		return err
	}
	return m.done(from, info)
}

// moveProgress is how many steps of a move are taken between two notices of progress, and how many parts of
// a file are copied before they are brought to the disk.
const moveProgress = 20

// done notes that an entry was copied.
func (m *mover) done(from place, info fs.FileInfo) error {
	m.copied = append(m.copied, copied{from, info})
	return m.step("%d entries copied", len(m.copied))
}

// step reports progress once in moveProgress times.
func (m *mover) step(format string, args ...any) error {
	if m.steps++; m.steps%moveProgress != 0 {
		return nil
	}
	return server.Progress(m.ctx, float64(m.steps), 0, fmt.Sprintf(format, args...))
}

func (m *mover) copyLink(from, to place, info fs.FileInfo) error {
	target, err := from.dir.root.Readlink(from.rel)
	if err != nil {
		return &opError{"readlink", from, err}
	}
	if err := to.dir.root.Symlink(target, to.rel); err != nil {
		return &opError{"symlink", to, err}
	}
	keepLink(to, info)
	return nil
}

func (m *mover) copyDir(from, to place, info fs.FileInfo) error {
	list, more, err := from.entries(m.ctx, m.most)
	if err != nil {
		return &opError{"scandir", from, err}
	}
	if more {
		return mcp.Errorf("%s has more than %d entries, too many to copy to another file system in one call; move parts of it", valid(from.abs), m.most)
	}
	if err := to.dir.root.Mkdir(to.rel, 0o700); err != nil {
		return &opError{"mkdir", to, err}
	}
	if m.own == nil {
		if m.own, err = to.dir.root.Lstat(to.rel); err != nil {
			return &opError{"lstat", to, err}
		}
	}
	for _, e := range list {
		if err := m.copy(from.child(e.name), to.child(e.name)); err != nil {
			return err
		}
	}
	f, err := to.openDir()
	if err == nil {
		m.keep(f, to, info)
		err = errors.Join(syncFile(f), f.Close())
	}
	if err != nil {
		return &opError{"mkdir", to, err}
	}
	return m.done(from, info)
}

func (m *mover) copyFile(from, to place, info fs.FileInfo) error {
	id, several := severalNames(info)
	if other, known := m.names[id]; several && known {
		if err := to.dir.root.Link(other.rel, to.rel); err != nil {
			return &opError{"link", to, err}
		}
		return nil
	}
	source, now, err := from.open()
	if err != nil {
		return &opError{"open", from, err}
	}
	defer func() { _ = source.Close() }() // it was only read
	if !same(info, now) {
		return changed(from)
	}
	f, err := to.dir.root.OpenFile(to.rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &opError{"open", to, err}
	}
	if err = m.contents(f, source, from, to, info); err == nil {
		m.keep(f, to, info)
		err = syncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		var at *opError
		if errors.As(err, &at) || m.ctx.Err() != nil {
			return err
		}
		return &opError{"write", to, err}
	}
	if now, err := source.Stat(); err != nil || !same(info, now) {
		return changed(from)
	}
	m.names[id] = to
	return nil
}

// onWrite is called by tests before a part of a file is written; an error is that of the disk.
var onWrite func() error

// contents copies what a file holds. What is a hole in a sparse file becomes one in the copy.
func (m *mover) contents(f, source *os.File, from, to place, info fs.FileInfo) error {
	buf := make([]byte, readPart)
	at := int64(0)
	for part := 1; ; part++ {
		if err := servers.Ended(m.ctx); err != nil {
			return err
		}
		begin, end, err := m.skipHole(f, source, to, info, at)
		if err != nil || begin == end {
			return err
		}
		n, err := source.Read(buf[:min(int64(len(buf)), end-begin)])
		at = begin + int64(n)
		if n > 0 {
			if err := write(f, buf[:n]); err != nil {
				return &opError{"write", to, err}
			}
			if part%moveProgress == 0 { // or bringing all of a large file to the disk is a long silence
				if err := syncFile(f); err != nil {
					return &opError{"write", to, err}
				}
			}
			if err := m.step("%d entries copied", len(m.copied)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &opError{"read", from, err}
		}
	}
}

// holeStep is how much a file grows at once by a hole: a file system without holes writes zeros there.
const holeStep = 64 << 20

// skipHole returns where the next part of a file that is no hole is, from at on, and leaves a hole before
// it in the copy f. The part is empty at the end of a sparse file. A file that is not sparse has an open end:
// some file systems report a size of 0 for files that have contents.
func (m *mover) skipHole(f, source *os.File, to place, info fs.FileInfo, at int64) (begin, end int64, err error) {
	size := info.Size()
	if !sparse(info) {
		return at, math.MaxInt64, nil
	}
	if begin, end = extent(source, at, size); begin == at {
		return begin, end, nil
	}
	for grown := at; err == nil && grown < begin; {
		if err := servers.Ended(m.ctx); err != nil {
			return 0, 0, err
		}
		grown = min(grown+holeStep, begin)
		err = f.Truncate(grown)
	}
	if err == nil {
		_, err = f.Seek(begin, io.SeekStart)
	}
	if err != nil {
		err = &opError{"write", to, err}
	}
	return begin, end, err
}

func write(f *os.File, data []byte) error {
	if onWrite != nil {
		if err := onWrite(); err != nil {
			return err
		}
	}
	_, err := f.Write(data)
	return err
}

// same reports whether a file has not changed.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func changed(p place) error {
	return mcp.Errorf("another program has changed %s meanwhile", valid(p.abs))
}

// remove removes what was copied, unless it has changed since, and returns how many entries it removed.
func (m *mover) remove() (n int, err error) {
	for _, c := range m.copied {
		root := c.dir.root
		info, err := root.Lstat(c.rel)
		if err == nil && !info.IsDir() && !same(c.info, info) {
			return n, changed(c.place)
		}
		if err == nil {
			err = root.Remove(c.rel)
		}
		if err != nil {
			return n, &opError{"unlink", c.place, err}
		}
		n++
		_ = m.step("%d of %d entries of the source removed", n, len(m.copied)) // no reason to stop here
	}
	return n, nil
}

// syncDir has the directory of a place on the disk, as far as the system can do that.
func syncDir(p place) {
	if f, err := p.dir.root.Open(filepath.Dir(p.rel)); err == nil {
		_ = errors.Join(f.Sync(), f.Close()) // not all file systems can
	}
}

// syncFile has a file on the disk. A directory need not be one that can be.
func syncFile(f *os.File) error {
	err := f.Sync()
	if info, failed := f.Stat(); failed == nil && info.IsDir() {
		return nil
	}
	return err
}

// onKeep is called by tests before the permissions and the times of a copy are set; an error is that of the
// file system.
var onKeep func() error

// keep gives a copy the owner, the permissions and the times of what it is a copy of. As mv does, it notes
// those that a file system does not keep, such as vfat, and continues.
func (m *mover) keep(f *os.File, p place, info fs.FileInfo) {
	mode := info.Mode().Perm()
	if keepOwner(f, info) { // else it would be run as another user
		mode |= info.Mode() & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	}
	for _, set := range []struct {
		op string
		do func() error
	}{
		{"chmod", func() error { return f.Chmod(mode) }},
		{"utime", func() error { return p.dir.root.Chtimes(p.rel, accessed(info), info.ModTime()) }},
	} {
		err := error(nil)
		if onKeep != nil {
			err = onKeep()
		}
		if err == nil {
			err = set.do()
		}
		if err != nil {
			m.lost.add(m.explain(&opError{set.op, p, err}))
		}
	}
}
