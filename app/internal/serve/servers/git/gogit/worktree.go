package gogit

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// A side is a file before or after a change.
type side struct {
	path string
	file
	// read gives the contents, as they are in the repository.
	read func() ([]byte, error)
}

// A change is what happened to a file; a side that is nil has none.
type change struct {
	from, to *side
	score    int // of a rename, in percent of what stayed
}

func (c *change) path() string {
	if c.to != nil {
		return c.to.path
	}
	return c.from.path
}

// stored is a side whose contents are in the repository.
func (r *Repository) stored(path string, f *file) *side {
	if f == nil {
		return nil
	}
	return &side{path: path, file: *f, read: func() ([]byte, error) {
		if f.mode == filemode.Submodule {
			return []byte("Subproject commit " + f.hash.String() + "\n"), nil
		}
		return r.blob(f.hash)
	}}
}

// parents remembers which folders of the working tree are folders and no links.
type parents map[string]bool

// real reports whether all folders above path are there, and none of them is a link.
func (p parents) real(tree *os.Root, name string) bool {
	dir := path.Dir(name)
	if dir == "." {
		return true
	}
	if known, ok := p[dir]; ok {
		return known
	}
	ok := p.real(tree, dir)
	if ok {
		info, err := tree.Lstat(dir)
		ok = err == nil && info.IsDir()
	}
	p[dir] = ok
	return ok
}

// A workTree looks at the files beside the repository.
type workTree struct {
	*Repository

	idx     *index.Index
	parents parents
	rules   *conversion
	lock    *lockFile // of the index; nil for a call that changes nothing
}

func (r *Repository) openTree() (*workTree, error) {
	if err := r.place.needTree(); err != nil {
		return nil, err
	}
	idx, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	rules, err := r.conversion(idx)
	return &workTree{Repository: r, idx: idx, parents: make(parents), rules: rules}, err
}

// lockTree is openTree for a change: git does not change the index until its lock is released.
func (r *Repository) lockTree() (w *workTree, err error) {
	if err := r.place.needTree(); err != nil {
		return nil, err
	}
	l, err := lock(r.dir, "index")
	if err != nil {
		return nil, err
	}
	defer func() {
		if w == nil || err != nil { // or a parser has panicked
			l.release()
		}
	}()
	if w, err = r.openTree(); err != nil {
		return nil, err
	}
	w.lock = l
	return w, nil
}

// saveIndex replaces the index, which is locked. Entries that may have been changed after their time was
// taken are marked, so that they are read the next time.
func (w *workTree) saveIndex() error {
	idx := w.idx
	idx.Version = 2
	for _, e := range idx.Entries {
		if !idx.ModTime.IsZero() && !e.ModifiedAt.Before(idx.ModTime) && e.Mode != filemode.Submodule {
			e.ModifiedAt, e.Size = time.Time{}, 0
		}
		if e.IntentToAdd || e.SkipWorktree {
			idx.Version = 3
		}
	}
	// What the index keeps about trees no longer holds.
	idx.Cache, idx.ResolveUndo, idx.EndOfIndexEntry = nil, nil, nil
	// The encoder sorts by name alone, and not stably: what is sorted stays as it is.
	slices.SortFunc(idx.Entries, func(a, b *index.Entry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Stage, b.Stage))
	})
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(idx); err != nil {
		return err
	}
	return w.lock.replace(b.Bytes())
}

// present is the file of the working tree at an entry of the index, or nil. If nothing says that it
// was changed since it was staged it is not read.
func (w *workTree) present(e *index.Entry) (*side, error) {
	staged := w.stored(e.Name, &file{e.Mode, e.Hash})
	if e.SkipWorktree {
		return staged, nil
	}
	if !w.parents.real(w.tree, e.Name) {
		return nil, nil
	}
	info, err := w.tree.Lstat(e.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if e.Mode == filemode.Submodule {
		return w.submodule(e, info)
	}
	if info.IsDir() {
		return nil, nil
	}
	mode := w.mode(info, e.Mode)
	if mode == e.Mode && w.untouched(info, e) {
		return staged, nil
	}
	s := &side{path: e.Name}
	s.mode = mode
	s.read = func() ([]byte, error) { return w.clean(e.Name, e.Hash) }
	text, err := s.read()
	if err != nil {
		var large *tooLargeError
		if errors.As(err, &large) {
			return s, nil // its hash stays zero, which is like no other
		}
		return nil, err
	}
	s.hash = w.hash(text)
	return s, w.ended()
}

// untouched reports whether a file is as it was when it was staged, as far as its size and time tell.
func (w *workTree) untouched(info fs.FileInfo, e *index.Entry) bool {
	at := info.ModTime()
	if e.ModifiedAt.Nanosecond() == 0 {
		at = at.Truncate(1e9)
	}
	return !e.ModifiedAt.IsZero() && e.Size == uint32(info.Size()) && at.Equal(e.ModifiedAt) && e.ModifiedAt.Before(w.idx.ModTime) // the index has the lower bits
}

// mode is the mode of a file as git has it. Where a file system has no such modes, that of the
// index holds.
func (r *Repository) mode(info fs.FileInfo, staged filemode.FileMode) filemode.FileMode {
	if info.Mode()&fs.ModeSymlink != 0 {
		return filemode.Symlink
	}
	if staged == filemode.Symlink && !r.conf.is("core.symlinks", runtime.GOOS != "windows") {
		return staged
	}
	if !r.conf.is("core.filemode", runtime.GOOS != "windows") && staged != filemode.Symlink && staged != filemode.Empty {
		return staged
	}
	if info.Mode()&0o100 != 0 {
		return filemode.Executable
	}
	return filemode.Regular
}

// content reads a file of the working tree, or where a link points.
func (r *Repository) content(name string) ([]byte, error) {
	dir, err := openFolder(r.tree, path.Dir(name), false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // it is only read
	base := path.Base(name)
	info, err := dir.Lstat(base)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := dir.Readlink(base)
		return []byte(filepath.ToSlash(to)), err
	}
	f, opened, err := openRegular(dir, base)
	if err != nil || !info.Mode().IsRegular() {
		return nil, mcp.Errorf("%q is no regular file", name)
	}
	defer func() { _ = f.Close() }() // it is only read
	if !os.SameFile(info, opened) {  // a link may have taken its place, to a file of git's own
		return nil, mcp.Errorf("%q was changed while it was read", name)
	}
	text, err := io.ReadAll(io.LimitReader(pollReader{r.ctx, f}, r.limits.Object+1))
	if err == nil && int64(len(text)) > r.limits.Object {
		return nil, &tooLargeError{Size: info.Size(), Limit: r.limits.Object}
	}
	return text, err
}

// clean is the content of a file as it would be staged.
func (w *workTree) clean(name string, staged plumbing.Hash) ([]byte, error) {
	text, err := w.content(name)
	if err != nil {
		return nil, err
	}
	if info, err := w.tree.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return text, nil
	}
	return w.rules.staged(name, text, func() bool {
		old, err := w.blob(staged)
		return err == nil && bytes.Contains(old, []byte("\r\n"))
	}), nil
}

// submodule is the commit that a submodule is at. It is opened only if all of it lies within
// this repository, and nothing in it is looked at but what HEAD says.
func (w *workTree) submodule(e *index.Entry, info fs.FileInfo) (*side, error) {
	staged := w.stored(e.Name, &file{e.Mode, e.Hash})
	if !info.IsDir() {
		return nil, nil
	}
	p, err := w.place.submodule(e.Name)
	if err != nil {
		return staged, nil //nolint:nilerr // what it is at is not known
	}
	sub, err := Open(w.ctx, p, w.limits, nil)
	if err != nil {
		return staged, nil //nolint:nilerr // what it is at is not known
	}
	_, at, err := sub.head()
	if err = errors.Join(err, sub.Close()); err != nil || at.IsZero() {
		return staged, w.ended()
	}
	return w.stored(e.Name, &file{e.Mode, at}), nil
}

// unstaged lists what was changed since it was staged. Files with conflicts are in neither list of
// changes; they are the paths of conflicts.
func (w *workTree) unstaged() (list []*change, conflicts map[string]int, err error) {
	conflicts = make(map[string]int)
	for _, e := range w.idx.Entries {
		if err := w.step("comparing files"); err != nil {
			return nil, nil, err
		}
		if e.Stage != notConflicted {
			conflicts[e.Name] |= 1 << (e.Stage - 1)
			continue
		}
		now, err := w.present(e)
		if err != nil {
			return nil, nil, err
		}
		was := w.stored(e.Name, &file{e.Mode, e.Hash})
		if e.IntentToAdd {
			was = nil
		}
		if was == nil && now == nil || was != nil && now != nil && was.file == now.file {
			continue
		}
		list = append(list, &change{from: was, to: now})
	}
	return list, conflicts, nil
}

// staged lists what the next commit would change. Files with conflicts are not in it.
func (r *Repository) staged(idx *index.Index) ([]*change, error) {
	tree, err := r.headTree()
	if err != nil {
		return nil, err
	}
	conflicts := make(map[string]bool)
	list, err := r.since(tree, idx.Entries, func(e *index.Entry) (*side, error) {
		if e.Stage != notConflicted {
			conflicts[e.Name] = true
		}
		if conflicts[e.Name] || e.IntentToAdd {
			return nil, nil
		}
		return r.stored(e.Name, &file{e.Mode, e.Hash}), nil
	})
	return slices.DeleteFunc(list, func(c *change) bool { return conflicts[c.path()] }), err
}

// untracked lists files and folders that git does not know and is not told to ignore.
func (w *workTree) untracked() ([]string, error) {
	var list []string
	err := w.search().all(func(name string) error {
		list = append(list, name)
		return nil
	})
	return list, err
}

// A search finds files that are not in the index.
type search struct {
	*workTree

	files map[string]filemode.FileMode // of the index
	dirs  map[string]bool              // that these are in
	whole bool                         // go into folders that the index has nothing of
}

// search makes a search.
func (w *workTree) search() *search {
	s := &search{workTree: w, files: make(map[string]filemode.FileMode), dirs: make(map[string]bool)}
	for _, e := range w.idx.Entries {
		s.files[e.Name] = e.Mode
		for dir := range above(e.Name) {
			if s.dirs[dir] {
				break // and so are those above it
			}
			s.dirs[dir] = true
		}
	}
	return s
}

// all calls found for each file or folder of the working tree that is not ignored.
func (s *search) all(found func(string) error) error {
	patterns, err := s.excludes()
	if err != nil {
		return err
	}
	return s.walk("", patterns, false, found)
}

// walk calls found for each file or folder of dir that is not ignored.
func (s *search) walk(dir string, patterns []ignorePattern, ignored bool, found func(string) error) error {
	list, err := s.readDir(cmp.Or(dir, "."))
	if err != nil {
		return err
	}
	if strings.Count(dir, "/") > maxDepth {
		return mcp.Errorf("the folders are nested more than %d deep", maxDepth)
	}
	if patterns, err = s.ignoredIn(dir, patterns); err != nil {
		return err
	}
	for _, e := range list {
		if err := s.step("looking for new files"); err != nil {
			return err
		}
		if isDotGit(e.Name()) {
			continue
		}
		name := path.Join(dir, e.Name())
		skip, err := s.ignores(patterns, strings.Split(name, "/"), e.IsDir())
		if err != nil {
			return err
		}
		if err := s.visit(name, e, patterns, skip || ignored, found); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) visit(name string, e fs.DirEntry, patterns []ignorePattern, skip bool, found func(string) error) error {
	switch {
	case s.files[name] != filemode.Empty && (!e.IsDir() || s.files[name] == filemode.Submodule):
		return nil
	case !e.IsDir():
		if skip || e.Type()&^fs.ModeSymlink != 0 { // a pipe or a socket is nothing to git
			return nil
		}
		return found(name)
	case s.dirs[name]:
		return s.walk(name, patterns, skip, found)
	case skip:
		return nil
	}
	if _, err := s.tree.Lstat(path.Join(name, ".git")); err == nil { // a repository of its own
		return found(name + "/")
	}
	if s.whole {
		return s.walk(name, patterns, false, found)
	}
	any := errors.New("found")
	err := s.walk(name, patterns, false, func(string) error { return any })
	if errors.Is(err, any) {
		return found(name + "/")
	}
	return err
}

// readDir lists a folder of the working tree by name.
func (r *Repository) readDir(dir string) ([]fs.DirEntry, error) {
	const some = 1000
	f, err := r.tree.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	var list []fs.DirEntry
	for {
		more, err := f.ReadDir(some)
		list = append(list, more...)
		if err := r.count(len(more)); err != nil {
			return nil, err
		}
		if errors.Is(err, io.EOF) {
			slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return list, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// notConflicted is the stage of an entry without conflict.
const notConflicted index.Stage = 0
