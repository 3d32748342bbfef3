package git

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/mcp"
)

// cleanPaths resolves the paths that a caller wants to stage, relative to the working tree. Those
// that lie outside are refused, also where links lead there.
func (p *place) cleanPaths(files []string) ([]string, error) {
	if p.work == "" {
		return nil, mcp.Errorf("this operation must be run in a work tree, and this is a bare repository")
	}
	out := make([]string, 0, len(files))
	for _, name := range files {
		if name == "" || len(name) > maxName || strings.ContainsRune(name, 0) {
			return nil, mcp.Errorf("Invalid path: %q", name)
		}
		full := joinIn(p.work, name)
		rel, err := filepath.Rel(p.work, full)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, p.outside(name)
		}
		real, err := filepath.EvalSymlinks(full)
		if err == nil && !within(real, p.work) {
			return nil, p.outside(name)
		}
		if parent, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil && rel != "." && !within(parent, p.work) {
			return nil, p.outside(name)
		}
		rel = filepath.ToSlash(rel)
		if slices.ContainsFunc(strings.Split(rel, "/"), isDotGit) {
			return nil, mcp.Errorf("Invalid path: %q is of git's own files", name)
		}
		out = append(out, rel)
	}
	return out, nil
}

func (p *place) outside(name string) error {
	return mcp.Errorf("Path '%s' is outside the repository '%s'", name, p.work)
}

// add stages files, folders and what patterns match; of files that are gone, that they are.
func (r *native) add(ctx context.Context, files []string) error {
	w, err := r.openTree(ctx)
	if err != nil {
		return err
	}
	names, err := r.cleanPaths(files)
	if err != nil {
		return err
	}
	chosen := make(map[string]bool)
	for i, name := range names {
		if strings.HasPrefix(files[i], ":") {
			return needGit("the path %q, which begins with ':',", files[i])
		}
		found, err := w.match(ctx, name)
		if err != nil {
			return err
		}
		if len(found) == 0 && name != "." {
			return mcp.Errorf("pathspec '%s' did not match any files", files[i])
		}
		for _, f := range found {
			chosen[f] = true
		}
	}
	entries := make(map[string]*index.Entry, len(w.idx.Entries))
	for _, e := range w.idx.Entries {
		if e.Stage == notConflicted {
			entries[e.Name] = e
		}
	}
	for _, name := range sortedKeys(chosen) {
		if err := w.stage(ctx, name, entries); err != nil {
			return err
		}
	}
	w.idx.Entries = slices.DeleteFunc(w.idx.Entries, func(e *index.Entry) bool { return chosen[e.Name] })
	for _, name := range sortedKeys(chosen) {
		if e := entries[name]; e != nil {
			w.idx.Entries = append(w.idx.Entries, e)
		}
	}
	w.dropCovered(entries, chosen)
	return r.saveIndex(w.idx)
}

// dropCovered removes entries beneath a path that is a file now, and files that are folders now.
func (w *workTree) dropCovered(entries map[string]*index.Entry, chosen map[string]bool) {
	w.idx.Entries = slices.DeleteFunc(w.idx.Entries, func(e *index.Entry) bool {
		for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
			if chosen[dir] && entries[dir] != nil {
				return true
			}
		}
		return false
	})
	dirs := make(map[string]bool)
	for name := range chosen {
		if entries[name] != nil {
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				dirs[dir] = true
			}
		}
	}
	w.idx.Entries = slices.DeleteFunc(w.idx.Entries, func(e *index.Entry) bool { return dirs[e.Name] })
}

// match finds what a path stands for: tracked files and new ones that are not ignored.
func (w *workTree) match(ctx context.Context, name string) ([]string, error) {
	pattern := strings.ContainsAny(name, "*?[")
	hit := func(file string) bool {
		if name == "." || file == name || strings.HasPrefix(file, name+"/") {
			return true
		}
		return pattern && globMatch(name, file)
	}
	var out []string
	s := &search{workTree: w, files: make(map[string]bool), dirs: make(map[string]bool), whole: true}
	for _, e := range w.idx.Entries {
		s.files[e.Name] = true
		for dir := path.Dir(e.Name); dir != "." && !s.dirs[dir]; dir = path.Dir(dir) {
			s.dirs[dir] = true
		}
		if hit(e.Name) {
			out = append(out, e.Name)
		}
	}
	info, err := w.tree.Lstat(name)
	exists := err == nil
	if exists && !info.IsDir() && s.files[name] {
		return out, nil // the common case: no need to look further
	}
	if exists && !w.parents.real(w.tree, name) {
		return nil, mcp.Errorf("pathspec '%s' is beyond a symbolic link", name)
	}
	before := len(out)
	err = s.walk(ctx, "", w.excludes(), false, func(found string) error {
		if strings.HasSuffix(found, "/") && hit(strings.TrimSuffix(found, "/")) {
			return needGit("%q is a repository of its own; to add it as a submodule", strings.TrimSuffix(found, "/"))
		}
		if hit(found) {
			out = append(out, found)
		}
		return nil
	})
	if err == nil && exists && len(out) == before && before == 0 && name != "." && w.ignored(name, info.IsDir()) {
		return nil, mcp.Errorf("The following paths are ignored by one of your .gitignore files:\n%s", name)
	}
	if err == nil && exists && info.IsDir() && len(out) == 0 {
		return nil, nil
	}
	return out, err
}

// ignored reports whether a path that exists is ignored.
func (w *workTree) ignored(name string, dir bool) bool {
	patterns := w.excludes()
	parts := strings.Split(name, "/")
	for i := range parts {
		file := path.Join(path.Join(parts[:i]...), ".gitignore")
		if text, err := readInRoot(w.tree, file); err == nil {
			patterns = append(patterns, ignorePatterns(text, parts[:i])...)
		}
		if gitignore.NewMatcher(patterns).Match(parts[:i+1], dir || i < len(parts)-1) {
			return true
		}
	}
	return false
}

// globMatch matches a pattern as git does for paths: '*' matches '/' too.
func globMatch(pattern, name string) bool {
	slash := func(s string) string { return strings.ReplaceAll(s, "/", "\x01") }
	ok, err := path.Match(slash(pattern), slash(name))
	return err == nil && ok
}

// stage makes the entry of a file, or takes it away if the file is gone.
func (w *workTree) stage(ctx context.Context, name string, entries map[string]*index.Entry) error {
	if err := w.step(ctx, "staging files"); err != nil {
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
		now, err := w.submodule(ctx, old, info)
		if err == nil && now != nil {
			old.Hash = now.hash
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
	e := &index.Entry{Name: name, ModifiedAt: info.ModTime(), Size: uint32(info.Size())} //nolint:gosec // the index has the lower bits
	was := plumbing.ZeroHash
	if old != nil {
		e.Mode, was = old.Mode, old.Hash
	}
	e.Mode = w.mode(info, e.Mode)
	text, err := w.clean(name, was)
	if err != nil {
		return err
	}
	if e.Hash, err = w.save(plumbing.BlobObject, text); err != nil {
		return err
	}
	entries[name] = e
	return nil
}

// save writes an object unless it is there.
func (r *native) save(t plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := plumbing.ComputeHash(t, content)
	if r.store.HasEncodedObject(h) == nil {
		return h, nil
	}
	o := &plumbing.MemoryObject{}
	o.SetType(t)
	if _, err := o.Write(content); err != nil {
		return h, err
	}
	return r.store.SetEncodedObject(o)
}

// saveIndex writes the index. Entries that may have been changed after their time was taken are
// marked, so that they are read the next time.
func (r *native) saveIndex(idx *index.Index) error {
	for _, e := range idx.Entries {
		if !idx.ModTime.IsZero() && !e.ModifiedAt.Before(idx.ModTime) && e.Mode != filemode.Submodule {
			e.ModifiedAt, e.Size = time.Time{}, 0
		}
	}
	// What the index keeps about trees no longer holds.
	idx.Cache, idx.ResolveUndo, idx.EndOfIndexEntry = nil, nil, nil
	return r.writeIndex(idx)
}

// reset makes the index that of the current commit.
func (r *native) reset(ctx context.Context) error {
	if err := r.needTree(); err != nil {
		return err
	}
	_, head, err := r.head()
	if err != nil {
		return err
	}
	if head.IsZero() {
		return mcp.Errorf("the current branch has no commits yet, so there is nothing to reset to")
	}
	idx, err := r.readIndex(ctx)
	if err != nil {
		return err
	}
	tree, err := r.headTree(ctx)
	if err != nil {
		return err
	}
	files, err := r.flatten(ctx, tree)
	if err != nil {
		return err
	}
	kept := make(map[string]*index.Entry)
	for _, e := range idx.Entries {
		if e.Stage == notConflicted && !e.IntentToAdd {
			kept[e.Name] = e
		}
	}
	idx.Entries = idx.Entries[:0:0]
	for _, name := range sortedKeys(files) {
		e := kept[name]
		if e == nil || e.Hash != files[name].hash || e.Mode != files[name].mode {
			e = &index.Entry{Name: name, Mode: files[name].mode, Hash: files[name].hash}
		}
		idx.Entries = append(idx.Entries, e)
	}
	return r.saveIndex(idx)
}

// record makes a commit of what is staged.
func (r *native) record(ctx context.Context, message string, now time.Time) (string, error) {
	if err := r.needTree(); err != nil {
		return "", err
	}
	idx, err := r.readIndex(ctx)
	if err != nil {
		return "", err
	}
	for _, e := range idx.Entries {
		if e.Stage != notConflicted {
			return "", mcp.Errorf("there are unmerged paths, such as '%s': resolve the conflicts and stage the files first", e.Name)
		}
	}
	tree, err := r.writeTree(idx.Entries)
	if err != nil {
		return "", err
	}
	branch, head, err := r.head()
	if err != nil {
		return "", err
	}
	c := &object.Commit{TreeHash: tree, Message: message}
	c.Author, c.Committer = r.signature("author", now), r.signature("committer", now)
	if !head.IsZero() {
		c.ParentHashes = append(c.ParentHashes, head)
	}
	merged, err := readInRoot(r.dir, "MERGE_HEAD")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(string(merged)) {
		c.ParentHashes = append(c.ParentHashes, plumbing.NewHash(strings.TrimSpace(line)))
	}
	o := &plumbing.MemoryObject{}
	if err := c.Encode(o); err != nil {
		return "", err
	}
	h, err := r.store.SetEncodedObject(o)
	if err != nil {
		return "", err
	}
	what := "commit"
	switch {
	case head.IsZero():
		what = "commit (initial)"
	case len(merged) > 0:
		what = "commit (merge)"
	}
	if err := r.move(branch, head, h, what+": "+subject(message), now); err != nil {
		return "", err
	}
	for _, name := range []string{"MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if err := r.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return h.String(), nil
}

func (r *native) signature(kind string, now time.Time) object.Signature {
	name, email := identity(kind, r.conf, r.own)
	return object.Signature{Name: name, Email: email, When: now}
}

// writeTree writes the trees of the index, which is sorted by path, and returns the topmost.
func (r *native) writeTree(entries []*index.Entry) (plumbing.Hash, error) {
	type node struct {
		object.Tree

		dirs map[string]*node
	}
	top := &node{}
	for _, e := range entries {
		if e.IntentToAdd {
			continue
		}
		at := top
		parts := strings.Split(e.Name, "/")
		for _, dir := range parts[:len(parts)-1] {
			if at.dirs == nil {
				at.dirs = make(map[string]*node)
			}
			if at.dirs[dir] == nil {
				at.dirs[dir] = &node{}
			}
			at = at.dirs[dir]
		}
		at.Entries = append(at.Entries, object.TreeEntry{Name: parts[len(parts)-1], Mode: e.Mode, Hash: e.Hash})
	}
	var write func(n *node) (plumbing.Hash, error)
	write = func(n *node) (plumbing.Hash, error) {
		for name, dir := range n.dirs {
			h, err := write(dir)
			if err != nil {
				return h, err
			}
			n.Entries = append(n.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: h})
		}
		slices.SortFunc(n.Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
		o := &plumbing.MemoryObject{}
		if err := n.Encode(o); err != nil {
			return plumbing.ZeroHash, err
		}
		if r.store.HasEncodedObject(o.Hash()) == nil {
			return o.Hash(), nil
		}
		return r.store.SetEncodedObject(o)
	}
	return write(top)
}

// sortName is what a tree is sorted by: folders as if their names ended with a slash.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}
