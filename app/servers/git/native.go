package git

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // for its size: it is how git names objects
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A native repository is read and written by this process. It starts no program: no hook, filter,
// pager, monitor or command of any kind that a repository names. It is for one call and one
// goroutine.
type native struct {
	*place

	limits Limits
	store  *filesystem.Storage
	conf   settings // of the repository
	own    settings // of the person
	// The folders, which nothing is read or written outside of. tree is nil for a bare repository.
	tree, dir, shared *os.Root

	commits int // how many commits were read
	files   int // how many entries of trees and folders
	abbrev  int // how long an abbreviated object name is at least
	pace    pace
	names   [][]byte            // see packedNames
	loose   map[string][]string // names of loose objects by their first two digits
}

// openNative opens the repository at a place. The caller closes it.
func openNative(p *place, limits Limits) (*native, error) {
	r := &native{place: p, limits: limits, own: ownSettings()}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *native) open() (err error) {
	p, limits := r.place, r.limits
	if r.conf, err = readSettings(filepath.Join(p.common, "config")); err != nil {
		return err
	}
	if err := p.checkSettings(r.conf, false); err != nil {
		return err
	}
	if r.dir, err = os.OpenRoot(p.gitDir); err != nil {
		return err
	}
	if r.shared, err = os.OpenRoot(p.common); err != nil {
		return err
	}
	if p.work != "" {
		if r.tree, err = os.OpenRoot(p.work); err != nil {
			return err
		}
	}
	const cached = 32 * cache.MiByte
	// Objects and references are shared between linked working trees; HEAD and the index, which are
	// not, are read and written here.
	dot := osfs.New(p.common, osfs.WithBoundOS())
	r.store = filesystem.NewStorageWithOptions(dot, cache.NewObjectLRU(cached), filesystem.Options{
		KeepDescriptors: true, LargeObjectThreshold: limits.Object,
	})
	return nil
}

func (r *native) close() error {
	var errs []error
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	for _, root := range []*os.Root{r.tree, r.dir, r.shared} {
		if root != nil {
			errs = append(errs, root.Close())
		}
	}
	return errors.Join(errs...)
}

// needTree refuses what a bare repository cannot do.
func (r *native) needTree() error {
	if r.tree == nil {
		return mcp.Errorf("this operation must be run in a work tree, and this is a bare repository")
	}
	return nil
}

// pace reports progress of a call now and then. It is not told how much there is.
type pace struct{ done int }

// step counts one thing that was looked at, and ends when the call was cancelled.
func (r *native) step(ctx context.Context, what string) error {
	const every = 2000
	if r.pace.done++; r.pace.done%every != 0 {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return server.Progress(ctx, float64(r.pace.done), 0, what)
}

// commit reads a commit.
func (r *native) commit(ctx context.Context, h plumbing.Hash) (*object.Commit, error) {
	if r.commits++; r.commits > r.limits.Commits {
		return nil, mcp.Errorf("more than %d commits would have to be read; ask for less, or raise --max-commits", r.limits.Commits)
	}
	if err := r.step(ctx, "reading commits"); err != nil {
		return nil, err
	}
	o, err := r.object(plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	return object.DecodeCommit(r.store, o)
}

// object reads an object that is not larger than the limit.
func (r *native) object(t plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	size, err := r.store.EncodedObjectSize(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, mcp.Errorf("the object %s is not in the repository, which may be a shallow or partial clone, or damaged", h)
	}
	if err != nil {
		return nil, mcp.Errorf("the object %s cannot be read: %v", h, err)
	}
	if size > r.limits.Object {
		return nil, &tooLargeError{size: size, limit: r.limits.Object}
	}
	o, err := r.store.EncodedObject(t, h)
	if err != nil {
		return nil, mcp.Errorf("the object %s cannot be read: %v", h, err)
	}
	return o, nil
}

// blob reads the contents of a file in the repository.
func (r *native) blob(h plumbing.Hash) ([]byte, error) {
	o, err := r.object(plumbing.BlobObject, h)
	if err != nil {
		return nil, err
	}
	in, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it is only read
	text, err := io.ReadAll(io.LimitReader(in, r.limits.Object+1))
	if err == nil && int64(len(text)) > r.limits.Object {
		err = &tooLargeError{size: int64(len(text)), limit: r.limits.Object}
	}
	return text, err
}

// A file is what a tree or the index has at a path.
type file struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

// entries reads a tree of the repository. The zero hash is an empty one.
func (r *native) entries(ctx context.Context, h plumbing.Hash) ([]object.TreeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	o, err := r.object(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	var tree object.Tree
	if err := tree.Decode(o); err != nil {
		return nil, mcp.Errorf("the tree %s cannot be read: %v", h, err)
	}
	if err := r.count(ctx, len(tree.Entries)); err != nil {
		return nil, err
	}
	return tree.Entries, nil
}

// count counts entries of trees and folders against the limit.
func (r *native) count(ctx context.Context, n int) error {
	if r.files += n; r.files > r.limits.Files {
		return mcp.Errorf("more than %d files would have to be looked at; raise --max-files if that is what you want", r.limits.Files)
	}
	return r.step(ctx, "reading files")
}

// flatten gives all files of a tree by their paths.
func (r *native) flatten(ctx context.Context, tree plumbing.Hash) (map[string]file, error) {
	out := make(map[string]file)
	err := r.compareTrees(ctx, plumbing.ZeroHash, tree, "", func(path string, _, to *file) error {
		out[path] = *to
		return nil
	})
	return out, err
}

// compareTrees calls f for each file that differs, nil standing for none.
func (r *native) compareTrees(ctx context.Context, a, b plumbing.Hash, dir string, f func(path string, from, to *file) error) error {
	if a == b {
		return nil
	}
	from, err := r.entries(ctx, a)
	if err != nil {
		return err
	}
	to, err := r.entries(ctx, b)
	if err != nil {
		return err
	}
	if strings.Count(dir, "/") > maxDepth {
		return mcp.Errorf("the folders of a commit are nested more than %d deep", maxDepth)
	}
	names := make(map[string][2]*file, len(from))
	for side, list := range [][]object.TreeEntry{from, to} {
		for _, e := range list {
			if err := checkEntry(dir, e); err != nil {
				return err
			}
			pair := names[e.Name]
			pair[side] = &file{e.Mode, e.Hash}
			names[e.Name] = pair
		}
	}
	for _, name := range sortedKeys(names) {
		if err := r.compareEntries(ctx, names[name][0], names[name][1], path.Join(dir, name), f); err != nil {
			return err
		}
	}
	return nil
}

// maxDepth is how deep folders may be nested.
const maxDepth = 500

// checkEntry refuses names in trees that would lead elsewhere when they are written to a disk.
func checkEntry(dir string, e object.TreeEntry) error {
	if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || isDotGit(e.Name) {
		return mcp.Errorf("a commit of the repository has an entry %q, which is refused", path.Join(dir, e.Name))
	}
	return nil
}

// isDotGit reports whether some file system takes name for .git.
func isDotGit(name string) bool {
	plain := strings.Map(func(r rune) rune {
		switch { // characters that HFS+ ignores
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(name))
	plain, _, _ = strings.Cut(plain, ":")
	plain = strings.TrimRight(plain, " .")
	return plain == ".git" || plain == "git~1"
}

// compareEntries compares what two trees have under one name.
func (r *native) compareEntries(ctx context.Context, from, to *file, path string, f func(path string, from, to *file) error) error {
	if from != nil && to != nil && *from == *to {
		return nil
	}
	dirs := [2]plumbing.Hash{}
	files := [2]*file{from, to}
	anyDir := false
	for i, e := range files {
		if e != nil && e.mode == filemode.Dir {
			dirs[i], files[i], anyDir = e.hash, nil, true
		}
	}
	if files[0] != nil || files[1] != nil {
		if err := f(path, files[0], files[1]); err != nil {
			return err
		}
	}
	if anyDir {
		return r.compareTrees(ctx, dirs[0], dirs[1], path, f)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// head is what HEAD is: a branch, which may have no commit yet, or a commit.
func (r *native) head() (branch plumbing.ReferenceName, commit plumbing.Hash, err error) {
	name, commit, err := r.pseudo("HEAD")
	if err != nil {
		return "", plumbing.ZeroHash, mcp.Errorf("HEAD cannot be read: it names neither a branch nor a commit")
	}
	if name == "" {
		return "", commit, nil
	}
	commit, err = r.reference(name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return name, plumbing.ZeroHash, nil
	}
	return name, commit, err
}

// pseudo reads a reference beside refs/, such as HEAD or MERGE_HEAD: it names another one, or an
// object.
func (r *native) pseudo(name string) (target plumbing.ReferenceName, at plumbing.Hash, err error) {
	text, err := readInRoot(r.dir, name)
	if err != nil {
		return "", plumbing.ZeroHash, plumbing.ErrReferenceNotFound
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "ref:"); ok && strings.HasPrefix(strings.TrimSpace(rest), "refs/") {
		return plumbing.ReferenceName(strings.TrimSpace(rest)), plumbing.ZeroHash, nil
	}
	if hash, _, _ := strings.Cut(line, "\t"); plumbing.IsHash(hash) { // FETCH_HEAD says more
		return "", plumbing.NewHash(hash), nil
	}
	return "", plumbing.ZeroHash, plumbing.ErrReferenceNotFound
}

// reference is the object that a reference stands for, through a few others.
func (r *native) reference(name plumbing.ReferenceName) (plumbing.Hash, error) {
	for range 5 {
		ref, err := r.store.Reference(name)
		if err != nil {
			return plumbing.ZeroHash, plumbing.ErrReferenceNotFound
		}
		if ref.Type() == plumbing.HashReference {
			return ref.Hash(), nil
		}
		name = ref.Target()
	}
	return plumbing.ZeroHash, plumbing.ErrReferenceNotFound
}

// headTree is the tree of the current commit, or the zero hash.
func (r *native) headTree(ctx context.Context) (plumbing.Hash, error) {
	_, h, err := r.head()
	if err != nil || h.IsZero() {
		return plumbing.ZeroHash, err
	}
	c, err := r.commit(ctx, h)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return c.TreeHash, nil
}

// readIndex reads what is staged, sorted by path.
func (r *native) readIndex(ctx context.Context) (*index.Index, error) {
	const entry = 64 // bytes that an entry has at least
	idx := &index.Index{Version: 2}
	f, err := r.dir.Open("index")
	if errors.Is(err, fs.ErrNotExist) {
		return idx, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size()/entry > int64(r.limits.Files)*8 {
		return nil, mcp.Errorf("the index of the repository is too large; raise --max-files if that is what you want")
	}
	if err := index.NewDecoder(f).Decode(idx); err != nil {
		if errors.Is(err, index.ErrUnknownExtension) || errors.Is(err, index.ErrUnsupportedVersion) {
			return nil, needGit("an index of this kind (%v)", err)
		}
		return nil, mcp.Errorf("the index of the repository cannot be read: %v", err)
	}
	idx.ModTime = info.ModTime()
	for _, e := range idx.Entries {
		if !filepath.IsLocal(filepath.FromSlash(e.Name)) || strings.ContainsRune(e.Name, 0) || isDotGit(strings.Split(e.Name, "/")[0]) {
			return nil, mcp.Errorf("the index of the repository has an entry %q, which is refused", e.Name)
		}
		if e.Mode == filemode.Dir {
			return nil, needGit("a sparse index")
		}
	}
	return idx, r.count(ctx, len(idx.Entries))
}

// writeIndex replaces the index. It holds the lock that git respects while it writes.
func (r *native) writeIndex(idx *index.Index) error {
	idx.Version = 2
	for _, e := range idx.Entries {
		if e.IntentToAdd || e.SkipWorktree {
			idx.Version = 3
		}
	}
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(idx); err != nil {
		return err
	}
	return replace(r.dir, "index", b.Bytes())
}

// replace writes a file by way of its lock, as git does: a file beside it that must not exist.
func replace(dir *os.Root, name string, text []byte) error {
	lock := name + ".lock"
	f, err := dir.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return mcp.Errorf("another git process seems to be at work in this repository: there is .git/%s; if there is none, remove the file", lock)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = dir.Rename(lock, name)
	}
	if err != nil {
		err = errors.Join(err, dir.Remove(lock))
	}
	return err
}

// shorten abbreviates an object name to where it is unique, as git does.
func (r *native) shorten(h plumbing.Hash) string {
	if h.IsZero() {
		return strings.Repeat("0", r.shortest())
	}
	text := h.String()
	for n := r.shortest(); n < len(text); n++ {
		found, err := r.withPrefix(text[:n])
		if err != nil || len(found) < 1 || len(found) == 1 && found[0] == h {
			return text[:n]
		}
	}
	return text
}

// shortest is how long abbreviations are at least: longer the more objects are packed.
func (r *native) shortest() int {
	if r.abbrev != 0 {
		return r.abbrev
	}
	r.abbrev = 7
	packs, err := r.store.ObjectPacks()
	if err != nil {
		return r.abbrev
	}
	var objects uint32
	for _, pack := range packs {
		objects += r.packed(pack)
	}
	r.abbrev = max(7, (bits.Len32(objects)+1)/2)
	return r.abbrev
}

// packed is how many objects a pack has: the last number of the first table of its index.
func (r *native) packed(pack plumbing.Hash) uint32 {
	f, err := r.shared.Open("objects/pack/pack-" + pack.String() + ".idx")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }() // it is only read
	var n [4]byte
	if _, err := f.ReadAt(n[:], packHeader+packTable-4); err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(n[:])
}

// The index of a pack has a header, a table of 256 numbers, and then the names of all objects.
const packHeader, packTable = 8, 256 * 4

// packedNames are the names of the objects of each pack, in order, one behind the other.
func (r *native) packedNames() ([][]byte, error) {
	if r.names != nil {
		return r.names, nil
	}
	packs, err := r.store.ObjectPacks()
	if err != nil {
		return nil, err
	}
	r.names = [][]byte{}
	for _, pack := range packs {
		n := int64(r.packed(pack))
		f, err := r.shared.Open("objects/pack/pack-" + pack.String() + ".idx")
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && info.Size() < packHeader+packTable+n*sha1.Size {
			err = mcp.Errorf("the index of a pack is damaged")
		}
		var names []byte
		if err == nil {
			names = make([]byte, n*sha1.Size)
			_, err = f.ReadAt(names, packHeader+packTable)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		r.names = append(r.names, names)
	}
	return r.names, nil
}

// withPrefix finds the objects whose names begin so, with at least two digits.
func (r *native) withPrefix(prefix string) ([]plumbing.Hash, error) {
	low, err := hex.DecodeString(prefix + strings.Repeat("0", 2*sha1.Size-len(prefix)))
	if err != nil {
		return nil, err
	}
	all, err := r.packedNames()
	if err != nil {
		return nil, mcp.Errorf("the objects of the repository cannot be read: %v", err)
	}
	found := make(map[plumbing.Hash]bool)
	for _, names := range all {
		at := func(i int) []byte { return names[i*sha1.Size : (i+1)*sha1.Size] }
		n := len(names) / sha1.Size
		for i := sort.Search(n, func(i int) bool { return bytes.Compare(at(i), low) >= 0 }); i < n && strings.HasPrefix(hex.EncodeToString(at(i)), prefix); i++ {
			found[plumbing.Hash(at(i))] = true
		}
	}
	if r.loose == nil {
		r.loose = make(map[string][]string)
	}
	list, known := r.loose[prefix[:2]]
	if !known {
		entries, err := fs.ReadDir(r.shared.FS(), "objects/"+prefix[:2])
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			list = append(list, prefix[:2]+e.Name())
		}
		r.loose[prefix[:2]] = list
	}
	for _, name := range list {
		if strings.HasPrefix(name, prefix) && plumbing.IsHash(name) {
			found[plumbing.NewHash(name)] = true
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}
