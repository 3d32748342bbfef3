package gogit

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// Added says what Add did.
type Added struct {
	Staged    []string // a line for each file, such as "new file: a.txt"
	Unchanged []string // those of the paths where nothing was staged
}

// Add stages files, folders and what patterns match; of files that are gone, that they are.
func (r *Repository) Add(files []string) (*Added, error) {
	names, err := r.place.cleanPaths(r.ctx, files)
	if err != nil {
		return nil, err
	}
	w, err := r.lockTree()
	if err != nil {
		return nil, err
	}
	defer w.lock.release()
	if err := r.keepsMarks(); err != nil {
		return nil, err
	}
	spec := newPathspec(names)
	chosen, err := w.choose(names, spec)
	if err != nil {
		return nil, err
	}
	entries, conflicts := w.byName()
	for _, e := range w.idx.Entries {
		if e.Stage != notConflicted && e.Mode == filemode.Submodule && chosen[e.Name] {
			return nil, unsupported("adding the submodule %q, which has a conflict,", e.Name)
		}
	}
	done, changed := &Added{}, make(map[string]bool)
	for _, name := range sortedKeys(chosen) {
		old := entries[name]
		if err := w.stage(name, entries); err != nil {
			return nil, err
		}
		if what := stagedAs(old, entries[name], conflicts[name]); what != "" {
			done.Staged = append(done.Staged, what+": "+QuotePath(name))
			if _, err := spec.match(r.ctx, name, changed); err != nil {
				return nil, err
			}
		}
	}
	for i, name := range files {
		if !changed[names[i]] {
			done.Unchanged = append(done.Unchanged, QuotePath(name))
		}
	}
	// Entries beneath a path that is a file now, and files that are folders now, go.
	for name := range chosen {
		chosen[name] = entries[name] != nil
	}
	excluded := excludedBy(chosen)
	w.idx.Entries = slices.DeleteFunc(w.idx.Entries, func(e *index.Entry) bool {
		_, replaced := chosen[e.Name]
		return replaced || excluded(e.Name)
	})
	for _, name := range sortedKeys(chosen) {
		if e := entries[name]; e != nil && !excluded(name) {
			w.idx.Entries = append(w.idx.Entries, e)
		}
	}
	return done, w.saveIndex()
}

// byName returns the entries of the index without a conflict by their paths, and the paths with one.
func (w *workTree) byName() (entries map[string]*index.Entry, conflicts map[string]bool) {
	entries, conflicts = make(map[string]*index.Entry, len(w.idx.Entries)), make(map[string]bool)
	for _, e := range w.idx.Entries {
		if e.Stage == notConflicted {
			entries[e.Name] = e
		} else {
			conflicts[e.Name] = true
		}
	}
	return entries, conflicts
}

// stagedAs is what happened to an entry of the index, or "".
func stagedAs(old, now *index.Entry, conflict bool) string {
	switch {
	case conflict:
		return "resolved"
	case now == nil && old == nil:
		return ""
	case now == nil:
		return "deleted"
	case old == nil || old.IntentToAdd && !now.IntentToAdd:
		return "new file"
	case old.Hash != now.Hash || old.Mode != now.Mode:
		return "modified"
	}
	return ""
}

// excludedBy returns a test of paths: whether one cannot be a file beside files, because it is beneath one of
// them or a folder above one.
func excludedBy(files map[string]bool) func(name string) bool {
	folders := make(map[string]bool)
	for name, is := range files {
		for dir := range above(name) {
			if !is || folders[dir] {
				break // and so are those above it
			}
			folders[dir] = true
		}
	}
	return func(name string) bool {
		for dir := range above(name) {
			if files[dir] {
				return true
			}
		}
		return folders[name]
	}
}

// above yields the folders that a path is in, the topmost one last.
func above(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := path.Dir(name); dir != "." && yield(dir); dir = path.Dir(dir) {
		}
	}
}

// A pathspec is paths and patterns that choose files.
type pathspec struct {
	exact    map[string]bool // files and folders
	patterns []string
	globs    []string // of the patterns, for path.Match
}

func newPathspec(names []string) *pathspec {
	p := &pathspec{exact: make(map[string]bool, len(names))}
	for _, name := range names {
		if !p.exact[name] && strings.ContainsAny(name, "*?[") {
			p.patterns = append(p.patterns, name)
			p.globs = append(p.globs, slashFree(classes(name)))
		}
		p.exact[name] = true
	}
	return p
}

// match reports whether a file is chosen, and marks the paths and patterns that choose it.
func (p *pathspec) match(ctx context.Context, file string, marks map[string]bool) (chosen bool, err error) {
	hit := func(name string) { marks[name], chosen = true, true }
	for at := file; ; at = path.Dir(at) {
		if p.exact[at] {
			hit(at)
		}
		if at == "." {
			break
		}
	}
	plain := slashFree(file)
	for i, name := range p.patterns {
		if i%16 == 0 {
			if err := context.Cause(ctx); err != nil {
				return false, err
			}
		}
		if ok, err := path.Match(p.globs[i], plain); ok && err == nil {
			hit(name)
		}
	}
	return chosen, nil
}

// choose finds the files that paths stand for: tracked files that git does not leave alone, and new ones
// that are not ignored.
func (w *workTree) choose(names []string, p *pathspec) (map[string]bool, error) {
	s, chosen := w.search(), make(map[string]bool)
	used, skipped := make(map[string]bool), make(map[string]bool)
	take := func(file string) error {
		if err := w.step("matching files"); err != nil {
			return err
		}
		ok, err := p.match(w.ctx, strings.TrimSuffix(file, "/"), used)
		if err != nil || !ok {
			return err
		}
		if strings.HasSuffix(file, "/") {
			return unsupported("adding the submodule %q, which is a separate repository,", strings.TrimSuffix(file, "/"))
		}
		chosen[file] = true
		return nil
	}
	for _, e := range w.idx.Entries {
		var err error
		if e.SkipWorktree {
			_, err = p.match(w.ctx, e.Name, skipped)
		} else {
			err = take(e.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	known, err := s.knows(names)
	if err == nil && !known {
		s.whole = true
		err = s.all(take)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if used[name] {
			continue
		}
		if err := w.unmatched(name, skipped[name]); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// knows reports whether the index has every one of the paths, and each is a file.
func (s *search) knows(names []string) (bool, error) {
	all := true
	for _, name := range names {
		if err := s.step("matching files"); err != nil {
			return false, err
		}
		info, err := s.tree.Lstat(name)
		if err == nil && !s.parents.real(s.tree, name) {
			return false, mcp.Errorf("pathspec '%s' is beyond a symbolic link", name)
		}
		all = all && err == nil && !info.IsDir() && s.files[name] != filemode.Empty
	}
	return all, nil
}

// unmatched is the error of a path that no file matches, except files that are skipped. An empty folder has
// none: it is nothing to stage.
func (w *workTree) unmatched(name string, skipped bool) error {
	info, err := w.tree.Lstat(name)
	switch {
	case w.ended() != nil:
		return w.ended()
	case name == ".":
		return nil
	case skipped:
		return mcp.Errorf("pathspec '%s' only matches files that git leaves alone, because they are outside of the "+
			"sparse checkout or marked; 'git update-index --no-skip-worktree' removes the mark of a file", name)
	case err == nil && w.ignored(name, info.IsDir()):
		return mcp.Errorf("The following paths are ignored by one of your .gitignore files:\n%s", name)
	case err != nil || !info.IsDir():
		return mcp.Errorf("pathspec '%s' did not match any files; paths start at %q", name, w.place.Work)
	}
	return nil
}

// ignored reports whether a path that exists is ignored.
func (w *workTree) ignored(name string, dir bool) bool {
	patterns, err := w.excludes()
	if err != nil {
		return false // a walk fails because of it, and a checkout keeps the file
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		if patterns, err = w.ignoredIn(path.Join(parts[:i]...), patterns); err != nil {
			return false // a walk fails because of it, and a checkout keeps the file
		}
		if skip, err := w.ignores(patterns, parts[:i+1], dir || i < len(parts)-1); skip || err != nil {
			return skip // the next step ends an ended call
		}
	}
	return false
}

// slashFree has path.Match match as git does for paths: '*' matches '/' too.
func slashFree(s string) string { return strings.ReplaceAll(s, "/", "\x01") }

// classes writes the classes of a pattern as path.Match reads them: "[^a]" for git's "[!a]".
func classes(pattern string) string {
	return strings.NewReplacer(`\\`, `\\`, `\[`, `\[`, `[!`, `[^`).Replace(pattern)
}

// stage makes the entry of a file, or takes it away if the file is gone.
func (w *workTree) stage(name string, entries map[string]*index.Entry) error {
	if err := w.step("staging files"); err != nil {
		return err
	}
	old := entries[name]
	info, err := w.tree.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || !w.parents.real(w.tree, name) {
		delete(entries, name)
		return nil
	}
	if err != nil {
		return err
	}
	if old != nil && old.Mode == filemode.Submodule {
		now, err := w.submodule(old, info)
		if err == nil && now != nil {
			moved := *old
			moved.Hash = now.hash
			entries[name] = &moved
		}
		return err
	}
	if info.IsDir() {
		delete(entries, name) // a folder took its place
		return nil
	}
	if err := w.rules.unsupported(name); err != nil {
		return err
	}
	if old != nil && !old.IntentToAdd && old.Mode == w.mode(info, old.Mode) && w.untouched(info, old) {
		return nil
	}
	e := &index.Entry{Name: name, ModifiedAt: info.ModTime(), Size: uint32(info.Size())} // the index has the lower bits
	was := plumbing.ZeroHash
	if old != nil {
		e.Mode, was = old.Mode, old.Hash
	}
	e.Mode = w.mode(info, e.Mode)
	if err := checkFile(name, e.Mode); err != nil {
		return err
	}
	text, err := w.clean(name, was)
	if err != nil {
		return err
	}
	if e.Hash, err = w.objects.write(plumbing.BlobObject, text); err != nil {
		return err
	}
	entries[name] = e
	return nil
}

// Reset makes the index that of the current commit, or empty before the first one, and ends a merge.
func (r *Repository) Reset(now time.Time) error {
	w, err := r.lockTree()
	if err != nil {
		return err
	}
	defer w.lock.release()
	if err := r.keepsMarks(); err != nil {
		return err
	}
	tree, err := r.headTree()
	if err != nil {
		return err
	}
	files, err := r.flatten(tree)
	if err != nil {
		return err
	}
	kept, _ := w.byName()
	w.idx.Entries = w.idx.Entries[:0:0]
	for _, name := range sortedKeys(files) {
		if err := r.step("unstaging files"); err != nil {
			return err
		}
		f, e := files[name], kept[name]
		if err := checkFile(name, f.mode); err != nil {
			return err
		}
		if e == nil || e.IntentToAdd || f != (file{e.Mode, e.Hash}) {
			e = &index.Entry{Name: name, Mode: f.mode, Hash: f.hash, SkipWorktree: e != nil && e.SkipWorktree}
		}
		w.idx.Entries = append(w.idx.Entries, e)
	}
	if err := w.saveIndex(); err != nil {
		return err
	}
	r.endMerge(now)
	return nil
}
