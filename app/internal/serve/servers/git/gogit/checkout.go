package gogit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// CreateBranch makes a branch at what base names, or at the current branch.
func (r *Repository) CreateBranch(name, base string, now time.Time) (from string, err error) {
	branch, at, err := r.head()
	switch {
	case err != nil:
		return "", err
	case base != "":
		c, err := r.Find(base)
		if err != nil {
			return "", err
		}
		from, at = base, c.Hash
	case at.IsZero():
		return "", mcp.Errorf("the current branch has no commits yet, so no branch can start there")
	default:
		from = cmp.Or(branch.Short(), "HEAD")
	}
	names, _, err := r.follow(plumbing.NewBranchReferenceName(name))
	if err == nil {
		return "", mcp.Errorf("a branch named '%s' already exists", name)
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", err
	}
	ref := names[len(names)-1]
	refs, _, err := r.references()
	if err != nil {
		return "", err
	}
	for _, other := range refs {
		if o := string(other.Name()); strings.HasPrefix(o, string(ref)+"/") || strings.HasPrefix(string(ref), o+"/") {
			return "", mcp.Errorf("'%s' exists; cannot create '%s'", other.Name(), ref)
		}
	}
	return from, r.setReference(names[0], false, plumbing.ZeroHash, at, "branch: Created from "+from, now)
}

// Checkout switches to a branch, or to the commit that a revision names. Local changes stay; where
// they would be lost nothing is done. It returns the branch, or "" if HEAD is detached, and the short
// name of the commit.
func (r *Repository) Checkout(rev string, now time.Time) (name, at string, err error) {
	w, err := r.lockTree()
	if err != nil {
		return "", "", err
	}
	defer w.lock.release()
	if err := w.switches(); err != nil {
		return "", "", err
	}
	branch, target, err := r.target(rev)
	if err != nil {
		return "", "", err
	}
	oldBranch, oldHead, err := r.head()
	if err != nil {
		return "", "", err
	}
	stays := rev == "HEAD" || rev == "@"
	if stays {
		branch = oldBranch
	}
	if branch != oldBranch {
		if err := r.notElsewhere(branch); err != nil {
			return "", "", err
		}
	}
	s := &switcher{workTree: w}
	s.entries, _ = w.byName()
	oldTree, err := r.headTree()
	if err != nil {
		return "", "", err
	}
	if err := s.plan(oldTree, target.TreeHash); err != nil {
		return "", "", err
	}
	head, err := lock(r.dir, "HEAD") // before anything is changed
	if err != nil {
		return "", "", err
	}
	defer head.release()
	if err := s.carryOut(); err != nil {
		return "", "", err
	}
	if !stays {
		if err := r.moveHead(head, oldBranch, oldHead, branch, target.Hash, rev, now); err != nil {
			return "", "", err
		}
	}
	r.endMerge(now)
	return branch.Short(), r.shorten(target.Hash), nil
}

// switches refuses a checkout in a working tree that the server cannot switch.
func (w *workTree) switches() error {
	if err := w.keepsMarks(); err != nil {
		return err
	}
	sparse := w.conf.is("core.sparsecheckout", false)
	for _, e := range w.idx.Entries {
		if e.Stage != notConflicted {
			return mcp.Errorf("you need to resolve your current index first: '%s' has a conflict", e.Name)
		}
		sparse = sparse || e.SkipWorktree
	}
	if sparse {
		return unsupported("a checkout in a sparse working tree")
	}
	return nil
}

// target returns the commit that rev names for a checkout, and its branch, which takes precedence over a tag
// of the same name. The branch is "" if rev names none.
func (r *Repository) target(rev string) (plumbing.ReferenceName, *Commit, error) {
	branch := plumbing.NewBranchReferenceName(rev)
	at, err := r.reference(branch)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		c, err := r.Find(rev)
		return "", c, err
	}
	if err != nil {
		return "", nil, err
	}
	c, err := r.peel(rev, at)
	return branch, c, err
}

// notElsewhere refuses a branch that another working tree of the repository has checked out.
func (r *Repository) notElsewhere(branch plumbing.ReferenceName) error {
	if branch == "" {
		return nil
	}
	others, err := r.elsewhere()
	if err != nil {
		return err
	}
	names, _, _ := r.follow(branch)
	if at, ok := others[names[len(names)-1]]; ok {
		return mcp.Errorf("'%s' is already checked out at '%s'", branch.Short(), at)
	}
	return nil
}

// elsewhere returns the branches that other working trees of the repository have checked out, and where. A
// branch that is a symbolic reference is the one that it leads to.
func (r *base) elsewhere() (map[plumbing.ReferenceName]string, error) {
	own, err := filepath.Rel(r.place.Common, r.place.GitDir)
	if err != nil {
		return nil, err
	}
	dirs, err := fs.Glob(r.shared.FS(), "worktrees/*")
	if err != nil {
		return nil, err
	}
	if !r.conf.is("core.bare", false) {
		dirs = append(dirs, ".")
	}
	others := make(map[plumbing.ReferenceName]string)
	for _, dir := range dirs {
		if err := r.step("reading working trees"); err != nil {
			return nil, err
		}
		text, err := readInRoot(r.shared, path.Join(dir, "HEAD"))
		if err != nil || dir == filepath.ToSlash(own) {
			continue // it is being made or removed
		}
		ref := parseReference("HEAD", text)
		if ref == nil || ref.Target() == "" {
			continue
		}
		at := r.place.Common
		if link, err := readInRoot(r.shared, path.Join(dir, "gitdir")); err == nil && dir != "." {
			at = strings.TrimSpace(string(link))
		}
		names, _, _ := r.follow(ref.Target())
		others[names[len(names)-1]] = strings.TrimSuffix(filepath.ToSlash(at), "/.git")
	}
	return others, nil
}

// A switcher changes the working tree and the index from one tree to another.
type switcher struct {
	*workTree

	entries map[string]*index.Entry
	remove  []string
	write   []*side
	lost    []string // files with changes that would be lost
	covered []string // files that are not tracked and would be overwritten
}

// plan finds what has to be done, and refuses if something would be lost.
func (s *switcher) plan(from, to plumbing.Hash) error {
	if err := s.compareTrees(from, to, "", s.decide); err != nil {
		return err
	}
	s.keepStaged()
	list := func(names []string) string { return "\n\t" + strings.Join(names[:min(len(names), 20)], "\n\t") }
	if len(s.lost) > 0 {
		return mcp.Errorf("Your local changes to the following files would be overwritten by checkout:%s\n"+
			"Please commit your changes or stash them before you switch branches.\nAborting", list(s.lost))
	}
	if len(s.covered) > 0 {
		return mcp.Errorf("The following untracked working tree files would be overwritten by checkout:%s\n"+
			"Please move or remove them before you switch branches.\nAborting", list(s.covered))
	}
	var kept int64
	attributes := len(s.rules.stack) // with those that will be written: what is too long must not end it, either
	for _, to := range s.write {
		if err := s.step("checking files"); err != nil {
			return err
		}
		if err := s.rules.unsupported(to.path); err != nil {
			return err
		}
		if err := checkFile(to.path, to.mode); err != nil {
			return err
		}
		text, err := to.read() // a file that is too large or damaged must not end a checkout halfway
		if err != nil {
			return mcp.Errorf("%q cannot be checked out: %w", to.path, err)
		}
		if path.Base(to.path) == ".gitattributes" {
			attributes += bytes.Count(text, []byte("\n")) + 1
			if len(text) > maxSmallFile || attributes > maxAttributes {
				return mcp.Errorf("%q cannot be checked out: it is longer than this server reads; use git yourself for it", to.path)
			}
		}
		if kept += int64(len(text)); kept <= s.limits.Object { // the others are read again
			to.read = func() ([]byte, error) { return text, nil }
		}
	}
	return nil
}

// keepStaged finds files of the index that no commit has, in the place of a folder or beneath a file that
// would be written.
func (s *switcher) keepStaged() {
	going, coming := make(map[string]bool), make(map[string]bool)
	for _, name := range s.remove {
		going[name] = true
	}
	for _, to := range s.write {
		coming[to.path] = true
	}
	excluded := excludedBy(coming)
	for _, name := range sortedKeys(s.entries) {
		if !going[name] && !coming[name] && excluded(name) {
			s.lost = append(s.lost, name)
		}
	}
}

// decide says what happens to one file that differs between the trees.
func (s *switcher) decide(name string, old, now *file) error {
	e := s.entries[name]
	is := func(f *file) bool { return f != nil && *f == file{e.Mode, e.Hash} }
	switch {
	case e == nil && now == nil, e != nil && is(now):
		return nil // what is staged is what is wanted
	case e == nil && old == nil:
		return s.arrive(name, now)
	case e == nil || !is(old):
		s.lost = append(s.lost, name)
		return nil
	}
	here, err := s.present(e)
	if err != nil {
		return err
	}
	if at, _, _ := s.occupant(name); here == nil && at != "" || here != nil && here.file != *old {
		s.lost = append(s.lost, name)
	} else if now == nil {
		s.remove = append(s.remove, name)
	} else {
		s.write = append(s.write, s.stored(name, now))
	}
	return nil
}

// arrive takes in a file that is new. Something that is not tracked must not be in its way.
func (s *switcher) arrive(name string, now *file) error {
	at, info, err := s.occupant(name)
	covered := false
	switch {
	case err != nil:
		return err
	case at == "":
	case at != name: // it goes if it is tracked
		covered = s.entries[at] == nil && !s.ignored(at, false)
	case info.IsDir():
		covered = now.mode != filemode.Submodule && s.strangers(name)
	default:
		text, err := s.clean(name, now.hash)
		if err != nil {
			return err
		}
		covered = s.hash(text) != now.hash && !s.ignored(name, false)
	}
	if covered {
		s.covered = append(s.covered, at)
	} else {
		s.write = append(s.write, s.stored(name, now))
	}
	return nil
}

// occupant is what takes the place of a file: a file or link above it, or what is at its path; "" if nothing
// is.
func (s *switcher) occupant(name string) (at string, info fs.FileInfo, err error) {
	for dir := range above(name) {
		if info, err := s.tree.Lstat(dir); err == nil && !info.IsDir() {
			return dir, info, nil
		}
	}
	info, err = s.tree.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	return name, info, err
}

// strangers reports whether a folder has files that are not tracked.
func (s *switcher) strangers(dir string) bool {
	err := fs.WalkDir(s.tree.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, s.ended()); err == nil && !e.IsDir() && s.entries[name] == nil {
			err = fs.ErrExist
		}
		return err
	})
	return err != nil
}

// carryOut removes and writes the files, and then the index: of what was done, if there is an error.
func (s *switcher) carryOut() error {
	if len(s.remove)+len(s.write) == 0 {
		return nil
	}
	err := s.changeFiles()
	s.idx.Entries = sortedValues(s.entries)
	return errors.Join(err, s.saveIndex())
}

func (s *switcher) changeFiles() (err error) {
	for _, name := range s.remove {
		if err := s.step("removing files"); err != nil {
			return err
		}
		if err := s.take(name); err != nil {
			return err
		}
		delete(s.entries, name)
	}
	// Attributes say how other files are written, and so they are written before.
	attributes := func(to *side) bool { return path.Base(to.path) == ".gitattributes" }
	others := slices.DeleteFunc(slices.Clone(s.write), attributes)
	if err := s.writeFiles(slices.DeleteFunc(s.write, func(to *side) bool { return !attributes(to) })); err != nil {
		return err
	}
	s.idx.Entries = sortedValues(s.entries)
	if s.rules, err = s.conversion(s.idx); err != nil {
		return err
	}
	return s.writeFiles(others)
}

func (s *switcher) writeFiles(list []*side) error {
	for _, to := range list {
		if err := s.step("writing files"); err != nil {
			return err
		}
		e, err := s.put(to)
		if err != nil {
			return err
		}
		s.entries[to.path] = e
	}
	return nil
}

// take removes a file, and the folders that become empty.
func (s *switcher) take(name string) error {
	if !s.parents.real(s.tree, name) {
		return nil
	}
	if e := s.entries[name]; e != nil && e.Mode == filemode.Submodule {
		return nil // its folder stays, as with git
	}
	if err := remove(s.tree, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := range above(name) {
		if remove(s.tree, dir) != nil {
			break // it has other files
		}
		delete(s.parents, dir)
	}
	return nil
}

// put writes a file and makes its entry.
func (s *switcher) put(to *side) (*index.Entry, error) {
	e := &index.Entry{Name: to.path, Mode: to.mode, Hash: to.hash}
	clear(s.parents)
	dir, err := openFolder(s.tree, path.Dir(to.path), true) // a tracked file may be a folder now
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // nothing is written to it
	base := path.Base(to.path)
	if to.mode == filemode.Submodule {
		return e, makeFolder(dir, base)
	}
	text, err := to.read() // before the file that is there is removed
	if err != nil {
		return nil, err
	}
	if info, err := dir.Lstat(base); err == nil {
		if info.IsDir() {
			err = removeEmpty(dir, base)
		} else {
			err = dir.Remove(base)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.create(dir, to, text); err != nil {
		return nil, err
	}
	info, err := dir.Lstat(base)
	if err != nil {
		return nil, err
	}
	e.ModifiedAt, e.Size = info.ModTime(), uint32(info.Size()) // the index has the lower bits
	return e, nil
}

// create writes a file that is not there in its folder.
func (s *switcher) create(dir *os.Root, to *side, text []byte) error {
	if to.mode == filemode.Symlink && s.conf.is("core.symlinks", true) {
		return dir.Symlink(string(text), path.Base(to.path))
	}
	perm := fs.FileMode(0o666)
	if to.mode == filemode.Executable {
		perm = 0o777
	}
	if to.mode != filemode.Symlink {
		text = s.rules.written(to.path, text)
	}
	f, err := dir.OpenFile(path.Base(to.path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// moveHead makes HEAD, which is locked, the branch, or without one the commit.
func (r *Repository) moveHead(head *lockFile, oldBranch plumbing.ReferenceName, old plumbing.Hash, branch plumbing.ReferenceName, now plumbing.Hash, rev string, when time.Time) error {
	text := now.String() + "\n"
	if branch != "" {
		text = "ref: " + string(branch) + "\n"
	}
	if err := head.replace([]byte(text)); err != nil {
		return err
	}
	from := old.String()
	if oldBranch != "" {
		from = oldBranch.Short()
	}
	if err := r.reflog(r.dir, "HEAD", old, now, fmt.Sprintf("checkout: moving from %s to %s", from, rev), when); err != nil {
		r.notes = append(r.notes, "The log of HEAD was not written: "+err.Error()) // the files are switched already
	}
	return nil
}

// move sets the current branch, or HEAD without one, to a commit.
func (r *Repository) move(old, now plumbing.Hash, why string, when time.Time) error {
	branch, _, err := r.headName()
	if err != nil {
		return err
	}
	if branch != "" {
		return r.setReference(branch, true, old, now, why, when)
	}
	l, err := lock(r.dir, "HEAD")
	if err != nil {
		return err
	}
	defer l.release()
	if err := r.reflog(r.dir, "HEAD", old, now, why, when); err != nil {
		return err
	}
	return l.replace([]byte(now.String() + "\n"))
}

// setReference sets a reference to a commit, if it still is where it was. One that is symbolic stays so: the
// reference that it leads to is set. As with git, the logs come first: without them nothing is set. head
// says that it is the current branch, so that HEAD has a log of it, too.
func (r *Repository) setReference(name plumbing.ReferenceName, head bool, old, now plumbing.Hash, why string, when time.Time) error {
	names, _, _ := r.follow(name) // whether it is damaged is looked at under the lock
	last := names[len(names)-1]
	if CheckBranchName(string(last)) != nil {
		return mcp.Errorf("the reference %s leads to %q, which is not a valid name of a reference", name, last)
	}
	if err := r.shared.MkdirAll(path.Dir(string(last)), 0o777); err != nil {
		return err
	}
	l, err := lock(r.shared, string(last))
	if err != nil {
		return err
	}
	defer l.release()
	names, at, err := r.follow(name)
	if err != nil && !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return err
	}
	if at != old || names[len(names)-1] != last {
		return mcp.Errorf("'%s' was changed by something else in the meantime", name)
	}
	for _, name := range names {
		if err := r.reflog(r.shared, string(name), old, now, why, when); err != nil {
			return err
		}
	}
	if head {
		if err := r.reflog(r.dir, "HEAD", old, now, why, when); err != nil {
			return err
		}
	}
	return l.replace([]byte(now.String() + "\n"))
}

// reflog notes where a reference was, if the repository has or keeps such a log.
func (r *Repository) reflog(dir *os.Root, name string, old, now plumbing.Hash, why string, when time.Time) (err error) {
	defer func() {
		if err != nil {
			err = mcp.Errorf("the log of %s cannot be written: %w", name, err)
		}
	}()
	const key = "core.logallrefupdates"
	begin := name == stash || r.conf.is(key, r.place.Work != "") || strings.EqualFold(r.conf.get(key), "always")
	file, flags := "logs/"+name, os.O_WRONLY|os.O_APPEND|nonblock
	if begin {
		if err := dir.MkdirAll(path.Dir(file), 0o777); err != nil {
			return err
		}
		flags |= os.O_CREATE
	}
	f, err := dir.OpenFile(file, flags, 0o666)
	if !begin && errors.Is(err, fs.ErrNotExist) {
		return nil // a log that is there goes on, but none begins
	}
	if err != nil {
		return err
	}
	by := r.signature("committer", when)
	_, err = fmt.Fprintf(f, "%s %s %s <%s> %d %s\t%s\n", old, now, by.Name, by.Email, when.Unix(), when.Format("-0700"), why)
	return errors.Join(err, f.Close())
}
