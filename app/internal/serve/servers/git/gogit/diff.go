package gogit

import (
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// DiffUnstaged writes how the working tree differs from the index, as git diff does, with so many unchanged
// lines around each change.
func (r *Repository) DiffUnstaged(lines int, out io.Writer) error {
	w, err := r.openTree()
	if err != nil {
		return err
	}
	list, conflicts, err := w.unstaged()
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(conflicts) {
		if _, err := io.WriteString(out, "* Unmerged path "+QuotePath(name)+"\n"); err != nil {
			return err
		}
	}
	return w.patch(list, lines, out)
}

// DiffStaged writes how the index differs from the current commit.
func (r *Repository) DiffStaged(lines int, out io.Writer) error {
	w, err := r.openTree()
	if err != nil {
		return err
	}
	list, err := r.staged(w.idx)
	if err != nil {
		return err
	}
	return w.patch(list, lines, out)
}

// DiffTarget writes how the working tree differs from a commit, or one commit from another.
func (r *Repository) DiffTarget(t Target, lines int, out io.Writer) error {
	w := &workTree{Repository: r}
	if r.tree != nil || t.To == "" { // attributes of the working tree say which files are binary
		var err error
		if w, err = r.openTree(); err != nil {
			return err
		}
	}
	list, err := w.target(t)
	if err != nil {
		return err
	}
	return w.patch(list, lines, out)
}

// patch writes changes as git diff does.
func (w *workTree) patch(list []*change, lines int, out io.Writer) error {
	p := &patcher{Repository: w.Repository, out: out, context: lines, rules: w.rules}
	return p.writeAll(list)
}

// target lists what a target compares.
func (w *workTree) target(t Target) ([]*change, error) {
	from, err := w.Find(t.From)
	if err != nil {
		return nil, err
	}
	if t.To == "" {
		return w.since(from.TreeHash, w.idx.Entries, w.present)
	}
	to, err := w.Find(t.To)
	if err != nil {
		return nil, err
	}
	if t.Base {
		if from, err = w.mergeBase(from, to); err != nil {
			return nil, err
		}
	}
	return w.between(from.TreeHash, to.TreeHash)
}

// since lists what the files of index entries, which now returns or nil, have changed since a tree.
func (r *Repository) since(tree plumbing.Hash, entries []*index.Entry, now func(*index.Entry) (*side, error)) ([]*change, error) {
	old, err := r.flatten(tree)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*change, len(old))
	for name, f := range old {
		all[name] = &change{from: r.stored(name, &f)}
	}
	for i, e := range entries {
		if i > 0 && e.Name == entries[i-1].Name { // a conflict has several entries for one file
			continue
		}
		if err := r.step("comparing files"); err != nil {
			return nil, err
		}
		file, err := now(e)
		if err != nil {
			return nil, err
		}
		c := all[e.Name]
		switch {
		case file == nil:
		case c == nil:
			all[e.Name] = &change{to: file}
		case c.from != nil && c.from.file == file.file:
			delete(all, e.Name)
		default:
			c.to = file
		}
	}
	return sortedValues(all), nil
}

// between lists what is different between two trees.
func (r *Repository) between(from, to plumbing.Hash) ([]*change, error) {
	var list []*change
	err := r.compareTrees(from, to, "", func(path string, from, to *file) error {
		list = append(list, &change{from: r.stored(path, from), to: r.stored(path, to)})
		return nil
	})
	// Trees have folders in another order than paths have.
	slices.SortFunc(list, func(a, b *change) int { return strings.Compare(a.path(), b.path()) })
	return list, err
}

// mergeBase is the newest commit that both can reach, and no other such commit.
func (r *Repository) mergeBase(a, b *Commit) (*Commit, error) {
	ours, err := r.reach(a.Hash)
	if err != nil {
		return nil, err
	}
	var common []*Commit
	older := make(map[plumbing.Hash]bool)
	err = r.history(b.Hash, func(c *Commit) bool {
		if ours[c.Hash] {
			common = append(common, c)
			for _, parent := range c.ParentHashes {
				older[parent] = true
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, c := range common {
		if !older[c.Hash] {
			return c, nil
		}
	}
	return nil, mcp.Errorf("%s and %s have no common commit; compare them with '..' instead of '...'", a.Hash, b.Hash)
}

// Show writes what a commit changed: for each file its paths before and after, and the parts that differ.
func (r *Repository) Show(c *Commit, out io.Writer) error {
	parent := plumbing.ZeroHash
	if len(c.ParentHashes) > 0 && !r.grafts()[c.Hash] {
		p, err := r.readCommit(c.ParentHashes[0])
		if err != nil {
			return err
		}
		parent = p.TreeHash
	}
	list, err := r.between(parent, c.TreeHash)
	if err != nil {
		return err
	}
	p := &patcher{Repository: r, out: out, context: 3, show: true}
	return p.writeAll(list)
}
