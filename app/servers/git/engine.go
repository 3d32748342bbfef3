package git

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/parley-mcp/parley/mcp"
)

// An engine does the work on one repository for one call: in this process (native), or with the
// git program (program). Texts are as git writes them, without the last line feed.
type engine interface {
	status(ctx context.Context) (string, error)
	// diff writes a diff of what; target is a revision for diffTarget.
	diff(ctx context.Context, what diffKind, target string, context int, out io.Writer) error
	// record makes a commit and returns its name.
	record(ctx context.Context, message string, now time.Time) (string, error)
	add(ctx context.Context, files []string) error
	reset(ctx context.Context) error
	log(ctx context.Context, q logQuery) ([]*object.Commit, error)
	// createBranch returns the name of what the branch starts from; base may be "".
	createBranch(ctx context.Context, name, base string, now time.Time) (string, error)
	checkout(ctx context.Context, rev string, now time.Time) error
	// show writes what a commit changed, as a diff, and returns it.
	show(ctx context.Context, rev string, out func(*object.Commit) io.Writer) error
	branches(ctx context.Context, q branchQuery) (string, error)
	// refNames lists branches and tags, for completion.
	refNames(ctx context.Context) ([]string, error)
	// contents reads the file at a path of a commit, or nil and the names in the folder there.
	contents(ctx context.Context, rev, path string) (content []byte, names []string, err error)
	close() error
}

// A diffKind says what is compared.
type diffKind int

const (
	diffUnstaged diffKind = iota // the index with the working tree
	diffStaged                   // the current commit with the index
	diffTarget                   // a commit with the working tree
)

func (r *native) diff(ctx context.Context, what diffKind, target string, context int, out io.Writer) error {
	w, err := r.openTree(ctx)
	if err != nil {
		return err
	}
	p := &patcher{native: r, out: out, context: context, rules: w.rules}
	var list []*change
	switch what {
	case diffStaged:
		list, err = r.staged(ctx, w.idx)
		list = findRenames(list)
	case diffTarget:
		list, err = w.since(ctx, target)
		list = findRenames(list)
	default:
		var conflicts map[string]int
		if list, conflicts, err = w.unstaged(ctx); err == nil {
			for _, name := range sortedKeys(conflicts) {
				if _, err := io.WriteString(out, "* Unmerged path "+quotePath(name)+"\n"); err != nil {
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

func (r *native) show(ctx context.Context, rev string, out func(*object.Commit) io.Writer) error {
	c, err := r.resolve(ctx, rev)
	if err != nil {
		return err
	}
	parent := plumbing.ZeroHash
	if len(c.ParentHashes) > 0 && !r.grafts()[c.Hash] {
		p, err := r.commit(ctx, c.ParentHashes[0])
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
	p := &patcher{native: r, out: out(c), context: defaultContext, full: true}
	return p.writeAll(ctx, findRenames(list))
}

func (r *native) contents(ctx context.Context, rev, name string) ([]byte, []string, error) {
	c, err := r.resolve(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	at := c.TreeHash
	for part, rest := splitFirst(name); part != ""; part, rest = splitFirst(rest) {
		list, err := r.entries(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		e := entryOf(list, part)
		switch {
		case e == nil:
			return nil, nil, mcp.Errorf("there is no %q in %s", name, rev)
		case e.Mode.IsFile() && rest == "":
			content, err := r.blob(e.Hash)
			return content, nil, err
		case !isTree(e):
			return nil, nil, mcp.Errorf("%q of %s is no file", name, rev)
		}
		at = e.Hash
	}
	list, err := r.entries(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		if isTree(&e) {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	return nil, names, nil
}

// splitFirst cuts a path after its first part.
func splitFirst(name string) (part, rest string) {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

func entryOf(list []object.TreeEntry, name string) *object.TreeEntry {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func isTree(e *object.TreeEntry) bool { return e.Mode == filemode.Dir }
