package gogit

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/app/servers/git/repo"
)

// Diff writes what git diff does.
func (r *Repository) Diff(ctx context.Context, what repo.DiffKind, target string, context int, out io.Writer) error {
	w, err := r.openTree(ctx)
	if err != nil {
		return err
	}
	p := &patcher{Repository: r, out: out, context: context, rules: w.rules}
	var list []*change
	switch what {
	case repo.DiffStaged:
		if list, err = r.staged(ctx, w.idx); err == nil {
			list, err = findRenames(ctx, list)
		}
	case repo.DiffTarget:
		if list, err = w.since(ctx, target); err == nil {
			list, err = findRenames(ctx, list)
		}
	default:
		var conflicts map[string]int
		if list, conflicts, err = w.unstaged(ctx); err == nil {
			for _, name := range sortedKeys(conflicts) {
				if _, err := io.WriteString(out, "* Unmerged path "+repo.QuotePath(name)+"\n"); err != nil {
					return err
				}
			}
		}
	}
	if err != nil {
		return err
	}
	return p.writeAll(ctx, list)
}

// since lists what is different in the working tree from a commit.
func (w *workTree) since(ctx context.Context, target string) ([]*change, error) {
	c, err := w.resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	old, err := w.flatten(ctx, c.TreeHash)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*change, len(old))
	for name, f := range old {
		all[name] = &change{from: w.stored(name, &f)}
	}
	for _, e := range w.idx.Entries {
		if err := w.step(ctx, "comparing files"); err != nil {
			return nil, err
		}
		now, err := w.present(ctx, e)
		if err != nil {
			return nil, err
		}
		c := all[e.Name]
		switch {
		case now == nil:
		case c == nil:
			all[e.Name] = &change{to: now}
		case c.from != nil && c.from.file == now.file:
			delete(all, e.Name)
		default:
			c.to = now
		}
	}
	list := make([]*change, 0, len(all))
	for _, name := range sortedKeys(all) {
		list = append(list, all[name])
	}
	return list, nil
}

// Find returns the commit that a revision names.
func (r *Repository) Find(ctx context.Context, rev string) (*repo.Commit, error) {
	c, err := r.resolve(ctx, rev)
	if err != nil {
		return nil, err
	}
	return commitOf(c), nil
}

// commitOf is what a commit says about itself.
func commitOf(c *object.Commit) *repo.Commit {
	return &repo.Commit{
		Hash: c.Hash.String(), Message: c.Message,
		Author: repo.Signature{Name: c.Author.Name, Email: c.Author.Email, When: c.Author.When},
	}
}

// Show writes what a commit changed.
func (r *Repository) Show(ctx context.Context, shown *repo.Commit, out io.Writer) error {
	c, err := r.readCommit(ctx, plumbing.NewHash(shown.Hash))
	if err != nil {
		return err
	}
	parent := plumbing.ZeroHash
	if len(c.ParentHashes) > 0 && !r.grafts()[c.Hash] {
		p, err := r.readCommit(ctx, c.ParentHashes[0])
		if err != nil {
			return err
		}
		parent = p.TreeHash
	}
	var list []*change
	err = r.compareTrees(ctx, parent, c.TreeHash, "", func(path string, from, to *file) error {
		list = append(list, &change{from: r.stored(path, from), to: r.stored(path, to)})
		return nil
	})
	if err != nil {
		return err
	}
	// Trees have folders in another order than paths have.
	slices.SortFunc(list, func(a, b *change) int { return strings.Compare(a.path(), b.path()) })
	if list, err = findRenames(ctx, list); err != nil {
		return err
	}
	p := &patcher{Repository: r, out: out, context: repo.DefaultContext, full: true}
	return p.writeAll(ctx, list)
}
