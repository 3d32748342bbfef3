package filesystem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

type pathIn struct {
	Path string `json:"path" desc:"The directory, as an absolute path or one below the first allowed directory." maxlen:"32768"`
}

type sizesIn struct {
	Path   string `json:"path" desc:"The directory." maxlen:"32768"`
	SortBy string `json:"sortBy" desc:"The order of the entries: by name, or the largest first." enum:"name,size" default:"name"`
}

type infoIn struct {
	Path string `json:"path" desc:"The file or directory." maxlen:"32768"`
}

// listingTools are the tools that tell what there is.
func (s *service) listingTools() []server.Feature {
	o := func(title string) server.ToolOptions { return server.ToolOptions{Title: title, Annotations: readOnly} }
	return []server.Feature{
		noted(s, "list_directory", "Lists a directory: a line for each entry, which begins with [DIR] or [FILE].", s.list).
			With(o("List Directory")),
		noted(s, "list_directory_with_sizes", "Lists a directory with the size of each file, and how many there are in all.", s.listSizes).
			With(o("List Directory with Sizes")),
		noted(s, "directory_tree", "Gives a directory with all below it as JSON: each entry has a name, a type "+
			"(file or directory), and directories have children. Leave out what is not wanted with excludePatterns, such as node_modules.", s.tree).
			With(o("Directory Tree")),
		noted(s, "search_files", "Finds files and directories below a directory whose path from there matches a pattern: "+
			"*.txt in the directory itself, **/*.txt at any depth. The result is a full path in each line.", s.search).
			With(o("Search Files")),
		tool(s, "get_file_info", "Tells size, times, kind and permissions of a file or directory.", s.info).With(o("Get File Info")),
		tool(s, "list_allowed_directories", "Names the directories that may be used, with all below them.",
			func(_ context.Context, d *directories, _ mcp.None) (string, error) {
				return "Allowed directories:\n" + d.names("\n"), nil
			}).With(o("List Allowed Directories")),
	}
}

// An entry is a name in a directory, and what kind of thing it names.
type entry struct {
	name string
	kind fs.FileMode // the bits of fs.ModeType
}

func (e entry) isDir() bool  { return e.kind.IsDir() }
func (e entry) isLink() bool { return e.kind&fs.ModeSymlink != 0 }

// entries are those of a directory, in the order of their bytes, and at most so many.
// There are more if more is true; which of them are left out is then for the system to say.
func (p place) entries(ctx context.Context, most int) (list []entry, more bool, err error) {
	f, err := p.openDir()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if list, err = readEntries(ctx, f, most+1); err != nil {
		return nil, false, err
	}
	if more = len(list) > most; more {
		list = list[:most]
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, more, nil
}

// openDir opens a directory, and nothing else.
func (p place) openDir() (*os.File, error) {
	f, err := p.dir.root.OpenFile(p.rel, os.O_RDONLY|directoryOnly|nonblock, 0)
	if err != nil || directoryOnly != 0 {
		return f, err
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "scandir", Path: p.rel, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readDir is entries of a path.
func (s *service) readDir(ctx context.Context, d *directories, path string) (p place, list []entry, note string, err error) {
	if p, err = d.place(path); err != nil {
		return p, nil, "", err
	}
	// Links that stay in the directory are followed by the system, which is quicker.
	list, more, err := p.entries(ctx, s.opts.MaxEntries)
	if err != nil {
		if p, err = d.existing(ctx, "scandir", path); err != nil {
			return p, nil, "", err
		}
		list, more, err = p.entries(ctx, s.opts.MaxEntries)
	}
	if more {
		note = fmt.Sprintf("Only %d entries are shown, and there are more. Look for the others with search_files.", len(list))
	}
	return p, list, note, d.explain(ctx, "scandir", p.abs, err)
}

func (s *service) list(ctx context.Context, d *directories, in pathIn) (out, note string, err error) {
	_, list, note, err := s.readDir(ctx, d, in.Path)
	var b strings.Builder
	size := 0
	for _, e := range list {
		size += len("[FILE] \n") + len(e.name)
	}
	b.Grow(size)
	for i, e := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(mark(e))
		b.WriteByte(' ')
		b.WriteString(e.name)
	}
	return valid(b.String()), note, err
}

func mark(e entry) string {
	if e.isDir() {
		return "[DIR]"
	}
	return "[FILE]"
}

func (s *service) listSizes(ctx context.Context, d *directories, in sizesIn) (out, note string, err error) {
	p, list, note, err := s.readDir(ctx, d, in.Path)
	if err != nil {
		return "", "", err
	}
	sizes := make(map[string]int64, len(list))
	var files, total int64
	var unread problems
	for _, e := range list {
		if err := servers.Ended(ctx); err != nil {
			return "", "", err
		}
		size, err := d.size(ctx, p.child(e.name), e)
		if err != nil {
			unread.add(err)
		}
		sizes[e.name] = size
		if !e.isDir() {
			files, total = files+1, total+size
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		if in.SortBy == "size" {
			return cmp.Compare(sizes[b.name], sizes[a.name])
		}
		return compareNames(a.name, b.name)
	})
	var b strings.Builder
	for _, e := range list {
		size := ""
		if !e.isDir() {
			size = formatSize(sizes[e.name])
			size = strings.Repeat(" ", max(0, 10-len(size))) + size
		}
		b.WriteString(mark(e) + " " + pad(valid(e.name), 30) + " " + size + "\n")
	}
	fmt.Fprintf(&b, "\nTotal: %d files, %d directories\nCombined size: %s", files, int64(len(list))-files, formatSize(total))
	return b.String(), unread.note(note, "The sizes of %d entries are shown as 0 B, since they could not be read, such as: %v."), nil
}

// size is that of an entry, or of what a link leads to; 0 if that is nothing, or not allowed.
func (d *directories) size(ctx context.Context, p place, e entry) (int64, error) {
	if e.isLink() {
		to, exists, err := d.locate(ctx, p.abs)
		if err != nil || !exists {
			return 0, nil //nolint:nilerr // it leads out, or nowhere
		}
		p = to
	}
	info, err := p.dir.root.Lstat(p.rel)
	if errors.Is(err, fs.ErrNotExist) { // it went away meanwhile
		return 0, nil
	}
	if err != nil {
		return 0, d.explain(ctx, "stat", p.abs, err)
	}
	return info.Size(), nil
}

func (s *service) info(ctx context.Context, d *directories, in infoIn) (string, error) {
	p, err := d.existing(ctx, "stat", in.Path)
	if err != nil {
		return "", err
	}
	info, err := p.dir.root.Lstat(p.rel)
	if err != nil {
		return "", d.explain(ctx, "stat", p.abs, err)
	}
	return fmt.Sprintf("size: %d\ncreated: %s\nmodified: %s\naccessed: %s\nisDirectory: %t\nisFile: %t\npermissions: %03o",
		info.Size(), date(created(p, info)), date(info.ModTime()), date(accessed(info)), info.IsDir(), info.Mode().IsRegular(), info.Mode().Perm()), nil
}

// date shows a time as JavaScript does.
func date(t time.Time) string {
	zone := t.Format("MST")
	if zone == "UTC" {
		zone = "Coordinated Universal Time"
	}
	return t.Format("Mon Jan 02 2006 15:04:05 GMT-0700") + " (" + zone + ")"
}

// A treeEntry is an entry of directory_tree.
type treeEntry struct {
	Name     string        `json:"name"`
	Type     string        `json:"type"`
	Children *[]*treeEntry `json:"children,omitempty"`
	Error    string        `json:"error,omitempty"` // why its entries are not there
}

// treeJSON is a tree as the original server writes it.
func treeJSON(tree []*treeEntry) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(tree); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
