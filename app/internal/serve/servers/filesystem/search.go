package filesystem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem/glob"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type treeIn struct {
	Path    string   `json:"path" desc:"The directory." maxlen:"32768"`
	Exclude []string `json:"excludePatterns,omitempty" desc:"Patterns or names of what is left out, as node_modules or **/*.log." maxlen:"100"`
}

type searchIn struct {
	Path    string   `json:"path" desc:"The directory to search in." maxlen:"32768"`
	Pattern string   `json:"pattern" desc:"The pattern, as **/*.go; it is compared with paths from the directory on." maxlen:"4096"`
	Exclude []string `json:"excludePatterns,omitempty" desc:"Patterns of what is left out, with all below it." maxlen:"100"`
}

// tour goes through a directory and all below it.
type tour struct {
	ctx     context.Context //nolint:containedctx // a tour is one call
	d       *directories
	top     place
	most    int // how many entries are looked at
	visited int
	// visit is called for each entry with its path from top on, with slashes. It tells
	// whether the tour goes into a directory, or ends.
	visit func(p place, rel string, e entry) (enter bool, err error)
	// failed is called if a directory below top cannot be read, with its path from top on.
	failed func(rel string, err error)
}

// errCut ends a tour that has shown enough.
var errCut = errors.New("enough")

// progressEvery is how many entries are looked at between two notices of progress.
const progressEvery = 2_000

func (t *tour) run() error {
	list, more, err := t.top.entries(t.ctx, t.most)
	if err != nil {
		return t.d.explain(t.ctx, "scandir", t.top.abs, err)
	}
	return t.through(t.top, "", list, more)
}

// through visits the entries of one directory. There are more of them if more is true.
func (t *tour) through(at place, prefix string, list []entry, more bool) error {
	for _, e := range list {
		if err := t.count(); err != nil {
			return err
		}
		p, rel := at.child(e.name), prefix+e.name
		enter, err := t.visit(p, rel, e)
		if err != nil {
			return err
		}
		if !enter || !e.isDir() {
			continue
		}
		below, more, err := t.enter(p)
		switch {
		case t.ctx.Err() != nil:
			return context.Cause(t.ctx)
		case errors.Is(err, fs.ErrNotExist): // it went away meanwhile
			continue
		case err != nil:
			t.failed(rel, t.d.explain(t.ctx, "scandir", p.abs, err))
			continue
		}
		if err := t.through(p, rel+"/", below, more); err != nil {
			return err
		}
	}
	if more {
		return errCut
	}
	return nil
}

// enter reads the entries of a directory. One whose path is longer than that of a call may be is not
// read, as no call could name it.
func (t *tour) enter(p place) (list []entry, more bool, err error) {
	if len(p.abs) > t.d.maxPath {
		return nil, false, syscall.ENAMETOOLONG
	}
	return p.entries(t.ctx, t.most-t.visited)
}

func (t *tour) count() error {
	if err := servers.Ended(t.ctx); err != nil {
		return err
	}
	if t.visited++; t.visited > t.most {
		return errCut
	}
	if t.visited%progressEvery != 0 {
		return nil
	}
	return server.Progress(t.ctx, float64(t.visited), 0, fmt.Sprintf("%d entries", t.visited))
}

// patterns compiles patterns for paths. Each entry that a call visits is compared with all of them, so
// their alternatives are bounded together.
func patterns(ctx context.Context, list []string) ([]*glob.Pattern, error) {
	out, alternatives := make([]*glob.Pattern, 0, len(list)), 0
	for _, text := range list {
		if err := servers.Ended(ctx); err != nil {
			return nil, err
		}
		p, err := glob.Compile(text)
		if err != nil {
			return nil, mcp.Errorf("the pattern %q: %v", text, err)
		}
		if alternatives += p.Alternatives(); alternatives > glob.MaxAlternatives {
			return nil, mcp.Errorf("the braces of the patterns stand for more than %d patterns together; use fewer", glob.MaxAlternatives)
		}
		out = append(out, p)
	}
	return out, nil
}

func matchAny(ctx context.Context, list []*glob.Pattern, path string) (bool, error) {
	for _, p := range list {
		if ok, err := p.Match(ctx, path); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (s *service) tree(ctx context.Context, d *directories, in treeIn) (out, note string, err error) {
	exclude := slices.Clone(in.Exclude)
	for _, text := range in.Exclude {
		if !strings.Contains(text, "*") { // a name is left out wherever it is
			exclude = append(exclude, "**/"+text, "**/"+text+"/**")
		}
	}
	leave, err := patterns(ctx, exclude)
	if err != nil {
		return "", "", err
	}
	top, err := d.existing(ctx, "scandir", in.Path)
	if err != nil {
		return "", "", err
	}
	root := &treeEntry{Children: &[]*treeEntry{}}
	dirs := map[string]*treeEntry{".": root}
	shown, size := 0, int64(0)
	t := &tour{ctx: ctx, d: d, top: top, most: s.opts.MaxVisited}
	t.visit = func(_ place, rel string, e entry) (bool, error) {
		if excluded, err := matchAny(ctx, leave, rel); excluded || err != nil {
			return false, err
		}
		shown++
		if size += treeSize(rel, e); shown > s.opts.MaxEntries || size > s.opts.MaxRead {
			shown--
			return false, errCut
		}
		shownEntry := &treeEntry{Name: valid(e.name), Type: "file"}
		if e.isDir() {
			shownEntry.Type, shownEntry.Children = "directory", &[]*treeEntry{}
			dirs[rel] = shownEntry
		}
		parent := dirs[filepath.ToSlash(filepath.Dir(rel))]
		*parent.Children = append(*parent.Children, shownEntry)
		return true, nil
	}
	t.failed = func(rel string, err error) { dirs[rel].Error = err.Error() }
	if err = t.run(); errors.Is(err, errCut) {
		note = fmt.Sprintf("The tree is cut after %d entries. Look at directories of it one by one, or leave out more with excludePatterns.", shown)
		err = nil
	}
	if err != nil {
		return "", "", err
	}
	out, err = treeJSON(*root.Children)
	return out, note, err
}

// treeSize is about how many bytes of JSON an entry of a tree has, which is indented by its depth.
func treeSize(rel string, e entry) int64 {
	const line, lines = 20, 6
	return int64(lines*(line+4*strings.Count(rel, "/")) + 2*len(e.name))
}

// problems are errors that do not end a call, of which one is shown.
type problems struct {
	count int
	first error
}

func (p *problems) add(err error) {
	if p.count++; p.first == nil {
		p.first = err
	}
}

// note adds to a note, in a format for the number of problems and the first one.
func (p *problems) note(note, format string) string {
	if p.count == 0 {
		return note
	}
	return strings.TrimSpace(note + " " + fmt.Sprintf(format, p.count, p.first))
}

func (s *service) search(ctx context.Context, d *directories, in searchIn) (out, note string, err error) {
	wanted, err := patterns(ctx, []string{in.Pattern})
	if err != nil {
		return "", "", err
	}
	leave, err := patterns(ctx, in.Exclude)
	if err != nil {
		return "", "", err
	}
	top, err := d.existing(ctx, "scandir", in.Path)
	if err != nil {
		return "", "", err
	}
	var found []string
	size := int64(0)
	t := &tour{ctx: ctx, d: d, top: top, most: s.opts.MaxVisited}
	t.visit = func(p place, rel string, e entry) (bool, error) {
		if excluded, err := matchAny(ctx, leave, rel); excluded || err != nil {
			return false, err
		}
		if e.isLink() {
			if _, _, err := d.locate(ctx, p.abs); err != nil {
				return false, nil //nolint:nilerr // it leads out, or nowhere
			}
		}
		match, err := matchAny(ctx, wanted, rel)
		if err != nil {
			return false, err
		}
		if match {
			if size += int64(len(p.abs)) + 1; len(found) == s.opts.MaxEntries || size > s.opts.MaxRead {
				return false, errCut
			}
			found = append(found, valid(p.abs))
		}
		return true, nil
	}
	var unread problems
	t.failed = func(_ string, err error) { unread.add(err) }
	if err = t.run(); errors.Is(err, errCut) {
		note = fmt.Sprintf("The search ended early, after %d entries with %d matches. Search in a directory below, or for less.", min(t.visited, s.opts.MaxVisited), len(found))
		err = nil
	}
	note = unread.note(note, "%d directories below could not be searched, such as: %v.")
	if len(found) == 0 {
		return "No matches found", note, err
	}
	return strings.Join(found, "\n"), note, err
}
