// Package gogit reads and writes Git repositories in this process, with the formats of go-git. It starts
// no program, whatever a repository says. It writes what git does, byte for byte.
package gogit

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/parley-mcp/parley/mcp"
)

// A Repository reads and writes a repository in this process. It starts no program: no hook, filter,
// pager, monitor or other command that the repository names. It is for one call and one
// goroutine.
type Repository struct{ base }

// A base is the objects, references and settings of a repository. Repository adds the index and the working
// tree.
type base struct {
	ctx   context.Context //nolint:containedctx // of the one call
	place *Place

	limits   Limits
	progress Progress
	objects  *objects
	refs     map[plumbing.ReferenceName]*plumbing.Reference // of packed-refs; nil until it is read
	conf     settings                                       // of the repository
	own      settings                                       // of the person
	// The folders, which nothing is read or written outside of. tree is nil for a bare repository.
	tree, dir, shared *os.Root

	commits int    // how many commits were read
	files   int    // how many entries of trees and folders
	assumed string // a path of the index that is marked as unchanged, or ""
	abbrev  int    // how long an abbreviated object name is at least
	steps   int    // how many things were looked at
	notes   []string
}

// Progress is called now and then with how many things were looked at. Its error ends the work.
type Progress func(ctx context.Context, done int, what string) error

// Open opens the repository at a place for a call, which ends with ctx. The caller closes it.
func Open(ctx context.Context, p *Place, limits Limits, progress Progress) (*Repository, error) {
	r := &Repository{base{ctx: ctx, place: p, limits: limits, progress: progress, own: ownSettings()}}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *base) open() (err error) {
	p, limits := r.place, r.limits
	if r.conf, err = p.readConfig(); err != nil {
		return err
	}
	if err := p.checkSettings(r.conf); err != nil {
		return err
	}
	if r.dir, err = os.OpenRoot(p.GitDir); err != nil {
		return err
	}
	if r.shared, err = os.OpenRoot(p.Common); err != nil {
		return err
	}
	if p.Work != "" {
		if r.tree, err = os.OpenRoot(p.Work); err != nil {
			return err
		}
	}
	// Objects and references are shared between linked working trees; HEAD and the index are not.
	r.objects = &objects{ctx: r.ctx, dir: r.shared, limit: limits.Object}
	return nil
}

// Tracks reports whether a repository has files of dir, a folder beneath its own, in its index.
func Tracks(root, dir string) bool {
	place, err := Locate(root, nil, []string{root})
	if err != nil {
		return false
	}
	r, err := Open(context.Background(), place, Limits{}.Defaults(), nil)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, dir)
	idx, readErr := r.readIndex()
	if errors.Join(err, readErr, r.Close()) != nil {
		return false
	}
	below := filepath.ToSlash(rel) + "/"
	return slices.ContainsFunc(idx.Entries, func(e *index.Entry) bool { return strings.HasPrefix(e.Name, below) })
}

// Close ends the use of the repository.
func (r *base) Close() error {
	var errs []error
	if r.objects != nil {
		errs = append(errs, r.objects.close())
	}
	for _, root := range []*os.Root{r.tree, r.dir, r.shared} {
		if root != nil {
			errs = append(errs, root.Close())
		}
	}
	return errors.Join(errs...)
}

// ended is the cause why the call is over, or nil.
func (r *base) ended() error { return context.Cause(r.ctx) }

// step counts one step of the work, and ends it when the call ends. It reports progress now and then.
func (r *base) step(what string) error {
	const every = 2000
	if err := r.ended(); err != nil {
		return err
	}
	if r.steps++; r.steps%every != 0 || r.progress == nil {
		return nil
	}
	return r.progress(r.ctx, r.steps, what)
}

// readCommit reads a commit.
func (r *base) readCommit(h plumbing.Hash) (*Commit, error) {
	if r.commits++; r.commits > r.limits.Commits {
		return nil, mcp.Errorf("more than %d commits would have to be read; ask for less, or raise --max-commits", r.limits.Commits)
	}
	if err := r.step("reading commits"); err != nil {
		return nil, err
	}
	_, content, err := r.read(plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	c, err := decodeCommit(h, content)
	if err != nil {
		return nil, mcp.Errorf("the commit %s cannot be read: %v", h, err)
	}
	return c, nil
}

// read reads an object that is not larger than the limit, of one type or any.
func (r *base) read(want plumbing.ObjectType, h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	t, content, err := r.objects.read(h)
	var large *tooLargeError
	switch {
	case r.ended() != nil:
		err = r.ended()
	case errors.As(err, &large):
		err = large
	case errors.Is(err, plumbing.ErrObjectNotFound):
		err = mcp.Errorf("the object %s is not in the repository, which may be a shallow or partial clone, or damaged", h)
	case err != nil:
		err = mcp.Errorf("the object %s cannot be read: %v", h, err)
	case want != plumbing.AnyObject && t != want:
		err = mcp.Errorf("the object %s is a %s, not a %s", h, t, want)
	}
	return t, content, err
}

// blob reads the contents of a file in the repository.
func (r *base) blob(h plumbing.Hash) ([]byte, error) {
	_, content, err := r.read(plumbing.BlobObject, h)
	return content, err
}

// hash is the name of a file with these contents.
func (r *base) hash(content []byte) plumbing.Hash {
	return r.objects.hash(plumbing.BlobObject, content)
}

// A file is what a tree or the index has at a path.
type file struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

// entries reads a tree of the repository. The zero hash is an empty one.
func (r *base) entries(h plumbing.Hash) ([]treeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	_, content, err := r.read(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	list, err := decodeTree(content)
	if err != nil {
		return nil, mcp.Errorf("the tree %s cannot be read: %v", h, err)
	}
	if err := r.count(len(list)); err != nil {
		return nil, err
	}
	return list, nil
}

// count counts entries of trees and folders against the limit.
func (r *base) count(n int) error {
	if r.files += n; r.files > r.limits.Files {
		return mcp.Errorf("more than %d files would have to be looked at; raise --max-files if that is what you want", r.limits.Files)
	}
	return r.step("reading files")
}

// flatten gives all files of a tree by their paths.
func (r *base) flatten(tree plumbing.Hash) (map[string]file, error) {
	out := make(map[string]file)
	err := r.compareTrees(plumbing.ZeroHash, tree, "", func(path string, _, to *file) error {
		out[path] = *to
		return nil
	})
	return out, err
}

// compareTrees calls f for each file that differs, nil standing for none.
func (r *base) compareTrees(a, b plumbing.Hash, dir string, f func(path string, from, to *file) error) error {
	if a == b {
		return nil
	}
	from, err := r.entries(a)
	if err != nil {
		return err
	}
	to, err := r.entries(b)
	if err != nil {
		return err
	}
	if strings.Count(dir, "/") > maxDepth {
		return mcp.Errorf("the folders of a commit are nested more than %d deep", maxDepth)
	}
	names := make(map[string][2]*file, len(from))
	for side, list := range [][]treeEntry{from, to} {
		for _, e := range list {
			if err := errors.Join(r.step("reading files"), checkEntry(dir, e)); err != nil {
				return err
			}
			pair := names[e.Name]
			pair[side] = &file{e.Mode, e.Hash}
			names[e.Name] = pair
		}
	}
	for _, name := range sortedKeys(names) {
		if err := r.step("comparing files"); err != nil {
			return err
		}
		if err := r.compareEntries(names[name][0], names[name][1], path.Join(dir, name), f); err != nil {
			return err
		}
	}
	return nil
}

// maxDepth is how deep folders may be nested.
const maxDepth = 500

// checkEntry refuses names in trees that would lead elsewhere when they are written to a disk.
func checkEntry(dir string, e treeEntry) error {
	if !ValidName(e.Name, false) {
		return mcp.Errorf("a commit of the repository has an entry %q, which is refused", path.Join(dir, e.Name))
	}
	return nil
}

// compareEntries compares what two trees have under one name.
func (r *base) compareEntries(from, to *file, path string, f func(path string, from, to *file) error) error {
	if from != nil && to != nil && *from == *to {
		return nil
	}
	dirs := [2]plumbing.Hash{}
	files := [2]*file{from, to}
	for i, e := range files {
		if e != nil && e.mode == filemode.Dir {
			dirs[i], files[i] = e.hash, nil
		}
	}
	if files[0] != nil || files[1] != nil {
		if err := f(path, files[0], files[1]); err != nil {
			return err
		}
	}
	return r.compareTrees(dirs[0], dirs[1], path, f)
}

// sortedValues lists the values in the order of their keys.
func sortedValues[V any](m map[string]V) []V {
	values := make([]V, 0, len(m))
	for _, k := range sortedKeys(m) {
		values = append(values, m[k])
	}
	return values
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// headTree is the tree of the current commit, or the zero hash.
func (r *base) headTree() (plumbing.Hash, error) {
	_, h, err := r.head()
	if err != nil || h.IsZero() {
		return plumbing.ZeroHash, err
	}
	c, err := r.readCommit(h)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return c.TreeHash, nil
}

// readIndex reads what is staged, sorted by path.
func (r *base) readIndex() (*index.Index, error) {
	const entry = 64 // bytes that an entry has at least
	idx := &index.Index{Version: 2}
	f, info, err := openRegular(r.dir, "index")
	if errors.Is(err, fs.ErrNotExist) {
		return idx, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	var head [12]byte                // a signature, the version and how many entries there are
	if _, err := f.ReadAt(head[:], 0); err == nil && int64(binary.BigEndian.Uint32(head[8:])) > int64(r.limits.Files) || info.Size()/entry > int64(r.limits.Files)*8 {
		return nil, mcp.Errorf("the index of the repository has more than %d files; raise --max-files if that is what you want", r.limits.Files)
	}
	if v := binary.BigEndian.Uint32(head[4:]); v >= 2 && v <= 4 { // before go-git holds all names
		most := int64(r.limits.Files) * 8 * entry
		r.assumed, err = assumedUnchanged(bufio.NewReader(pollReader{r.ctx, io.NewSectionReader(f, 0, info.Size())}), most)
		if err != nil {
			return nil, cmp.Or(r.ended(), mcp.Errorf("the index of the repository cannot be read: %v", err))
		}
	}
	if err := index.NewDecoder(pollReader{r.ctx, f}).Decode(idx); err != nil {
		switch {
		case r.ended() != nil:
			return nil, r.ended()
		case errors.Is(err, index.ErrUnknownExtension), errors.Is(err, index.ErrUnsupportedVersion):
			return nil, unsupported("an index that is split, sparse or of a newer version (%v)", err)
		case errors.Is(err, index.ErrInvalidChecksum) && noChecksum(f, info.Size()):
			return nil, unsupported("an index without a checksum (index.skipHash)")
		}
		return nil, mcp.Errorf("the index of the repository cannot be read: %v", err)
	}
	idx.ModTime = info.ModTime()
	for _, e := range idx.Entries {
		if err := r.step("reading the index"); err != nil {
			return nil, err
		}
		if !validPath(e.Name) {
			return nil, mcp.Errorf("the index of the repository has an entry %q, which is refused", e.Name)
		}
		if e.Mode == filemode.Dir {
			return nil, unsupported("a sparse index")
		}
	}
	return idx, r.count(len(idx.Entries))
}

// assumedUnchanged returns the first path that is marked with git update-index --assume-unchanged, or "". The
// decoder of go-git passes over the mark. It reads all names, which have most bytes together: in version 4
// each begins with a part of the one before it, so that a small index can have gigabytes of them.
func assumedUnchanged(in *bufio.Reader, most int64) (marked string, err error) {
	var head [12]byte // a signature, the version and how many entries there are
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return "", err
	}
	compressed := binary.BigEndian.Uint32(head[4:]) == 4
	var name []byte
	for range binary.BigEndian.Uint32(head[8:]) {
		var fixed [62]byte // times, numbers, the object and flags
		if _, err := io.ReadFull(in, fixed[:]); err != nil {
			return "", err
		}
		flags, size := binary.BigEndian.Uint16(fixed[60:]), len(fixed)
		if flags&0x4000 != 0 { // more flags follow
			if _, err := in.Discard(2); err != nil {
				return "", err
			}
			size += 2
		}
		if name, err = nextName(in, name, compressed); err != nil {
			return "", err
		}
		if most -= int64(len(name)); most < 0 || len(name) > maxName {
			return "", mcp.Errorf("its paths are longer than this server reads")
		}
		if flags&0x8000 != 0 && marked == "" {
			marked = string(name)
		}
		if padding := (size + len(name) + 1) % 8; padding != 0 && !compressed {
			if _, err := in.Discard(8 - padding); err != nil {
				return "", err
			}
		}
	}
	return marked, nil
}

// nextName reads the name of an entry of an index after the one with the name last, which it overwrites.
func nextName(in *bufio.Reader, last []byte, compressed bool) ([]byte, error) {
	keep := 0
	if compressed { // the name begins like the one before it, without so many bytes at its end
		drop, err := backwards(in)
		if err != nil || drop > int64(len(last)) {
			return nil, cmp.Or(err, errDamaged)
		}
		keep = len(last) - int(drop)
	}
	rest, err := in.ReadBytes(0)
	if err != nil {
		return nil, err
	}
	return append(last[:keep], rest[:len(rest)-1]...), nil
}

// keepsMarks refuses to change an index that has a mark which would be lost.
func (r *base) keepsMarks() error {
	if r.assumed == "" {
		return nil
	}
	return mcp.Errorf("the index marks %q as assumed unchanged, which this server cannot keep when it writes the index; "+
		"remove the mark with 'git update-index --no-assume-unchanged %s'", r.assumed, QuotePath(r.assumed))
}

// noChecksum reports whether an index ends with zeros instead of a checksum.
func noChecksum(f io.ReaderAt, size int64) bool {
	var sum plumbing.Hash
	_, err := f.ReadAt(sum[:], size-int64(len(sum)))
	return err == nil && sum.IsZero()
}

// shorten abbreviates an object name to where it is unique, as git does.
func (r *base) shorten(h plumbing.Hash) string {
	if h.IsZero() {
		return strings.Repeat("0", r.shortest())
	}
	text := h.String()
	for n := r.shortest(); n < len(text); n++ {
		found, err := r.objects.withPrefix(text[:n])
		if err != nil || len(found) < 1 || len(found) == 1 && found[0] == h {
			return text[:n]
		}
	}
	return text
}

// shortest is how long abbreviations are at least: longer the more objects are packed.
func (r *base) shortest() int {
	if r.abbrev != 0 {
		return r.abbrev
	}
	r.abbrev = max(7, (bits.Len64(uint64(max(0, r.objects.count())))+1)/2)
	return r.abbrev
}
