package gogit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/parley-mcp/parley/mcp"
)

// head is what HEAD is: a branch, which may have no commit yet, or a commit. If the branch is a symbolic
// reference, it is the one that it leads to.
func (r *base) head() (branch plumbing.ReferenceName, commit plumbing.Hash, err error) {
	name, commit, err := r.headName()
	if err != nil || name == "" {
		return "", commit, err
	}
	names, commit, err := r.follow(name)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		err = nil
	}
	return names[len(names)-1], commit, err
}

// headName returns the branch that HEAD names, or without one the commit.
func (r *base) headName() (plumbing.ReferenceName, plumbing.Hash, error) {
	name, commit, err := r.pseudo("HEAD")
	if err != nil {
		return "", plumbing.ZeroHash, mcp.Errorf("HEAD cannot be read: it names neither a branch nor a commit")
	}
	if name != "" && CheckBranchName(string(name)) != nil {
		return "", plumbing.ZeroHash, mcp.Errorf("HEAD is damaged: it names %q, which is not a valid name of a reference", name)
	}
	return name, commit, nil
}

// pseudo reads a reference beside refs/, such as HEAD or MERGE_HEAD: it names another one, or an
// object.
func (r *base) pseudo(name string) (target plumbing.ReferenceName, at plumbing.Hash, err error) {
	text, err := readInRoot(r.dir, name)
	if err != nil {
		return "", plumbing.ZeroHash, plumbing.ErrReferenceNotFound
	}
	ref := parseReference(plumbing.ReferenceName(name), text)
	if ref == nil {
		return "", plumbing.ZeroHash, plumbing.ErrReferenceNotFound
	}
	return ref.Target(), ref.Hash(), nil
}

// parseReference parses the file of a reference. It returns nil if the file names neither a reference nor an
// object.
func parseReference(name plumbing.ReferenceName, text []byte) *plumbing.Reference {
	line, _, _ := strings.Cut(string(text), "\n")
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "ref:"); ok && strings.HasPrefix(strings.TrimSpace(rest), "refs/") {
		return plumbing.NewSymbolicReference(name, plumbing.ReferenceName(strings.TrimSpace(rest)))
	}
	if hash, _, _ := strings.Cut(line, "\t"); plumbing.IsHash(hash) { // FETCH_HEAD has more fields
		return plumbing.NewHashReference(name, plumbing.NewHash(hash))
	}
	return nil
}

// reference returns the object that a reference stands for, through a few others. If the reference does not
// exist, its error is plumbing.ErrReferenceNotFound. A damaged reference is another error.
func (r *base) reference(name plumbing.ReferenceName) (plumbing.Hash, error) {
	_, at, err := r.follow(name)
	return at, err
}

// follow is reference that also returns the names on the way. The last one is where the object's name is, or
// belongs if the reference does not exist.
func (r *base) follow(name plumbing.ReferenceName) (names []plumbing.ReferenceName, at plumbing.Hash, err error) {
	for len(names) < 5 {
		names = append(names, name)
		ref, err := r.loose(name)
		if errors.Is(err, plumbing.ErrReferenceNotFound) {
			ref, err = r.packed(name)
		}
		if err != nil {
			return names, at, cmp.Or(r.ended(), err)
		}
		if ref.Type() == plumbing.HashReference {
			return names, ref.Hash(), nil
		}
		name = ref.Target()
	}
	return names, at, mcp.Errorf("the reference %s leads through too many others, or in a circle", names[0])
}

// loose reads a reference that is in a separate file.
func (r *base) loose(name plumbing.ReferenceName) (*plumbing.Reference, error) {
	if !fs.ValidPath(string(name)) {
		return nil, plumbing.ErrReferenceNotFound
	}
	text, err := readInRoot(r.shared, string(name))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return nil, plumbing.ErrReferenceNotFound
	case err != nil:
		return nil, mcp.Errorf("the reference %s cannot be read: %w", name, err)
	}
	if ref := parseReference(name, text); ref != nil {
		return ref, nil
	}
	return nil, mcp.Errorf("the reference %s is damaged: .git/%s must contain an object name; "+
		"find the last one in .git/logs/%s and write it into the file", name, name, name)
}

// packed finds a reference among those in packed-refs.
func (r *base) packed(name plumbing.ReferenceName) (*plumbing.Reference, error) {
	all, err := r.packedRefs()
	if err != nil {
		return nil, err
	}
	if ref := all[name]; ref != nil {
		return ref, nil
	}
	return nil, plumbing.ErrReferenceNotFound
}

// packedRefs reads packed-refs, once in a call.
func (r *base) packedRefs() (map[plumbing.ReferenceName]*plumbing.Reference, error) {
	if r.refs != nil {
		return r.refs, nil
	}
	all := make(map[plumbing.ReferenceName]*plumbing.Reference)
	f, _, err := openRegular(r.shared, "packed-refs")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, mcp.Errorf(".git/packed-refs cannot be read: %w", err)
	}
	if err == nil {
		defer func() { _ = f.Close() }() // it is only read
		lines := bufio.NewScanner(pollReader{r.ctx, f})
		for n := 1; lines.Scan(); n++ {
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 || line[0] == '#' || line[0] == '^' { // a tag's commit follows '^'
				continue
			}
			hash, name, _ := strings.Cut(string(line), " ")
			if !plumbing.IsHash(hash) || !strings.HasPrefix(name, "refs/") {
				return nil, mcp.Errorf(".git/packed-refs is damaged: line %d must be an object name and a reference", n)
			}
			if len(all) == r.limits.Files {
				return nil, r.manyReferences()
			}
			all[plumbing.ReferenceName(name)] = plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.NewHash(hash))
		}
		if err := lines.Err(); err != nil {
			return nil, cmp.Or(r.ended(), error(mcp.Errorf(".git/packed-refs cannot be read: %w", err)))
		}
	}
	r.refs = all
	return all, nil
}

func (r *base) manyReferences() error {
	return mcp.Errorf("the repository has more than %d references; raise --max-files if that is what you want", r.limits.Files)
}

// references lists all references by name, and the names of those that are damaged.
func (r *base) references() (refs []*plumbing.Reference, broken []plumbing.ReferenceName, err error) {
	packed, err := r.packedRefs()
	if err != nil {
		return nil, nil, err
	}
	all := maps.Clone(packed)
	err = fs.WalkDir(r.shared.FS(), "refs", func(file string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, r.ended()); err != nil || e.IsDir() || strings.HasSuffix(file, ".lock") {
			return err // a lock is a reference that is being written
		}
		name := plumbing.ReferenceName(file)
		ref, err := r.loose(name)
		switch {
		case errors.Is(err, plumbing.ErrReferenceNotFound): // it is a pipe, or was removed in the meantime
		case err != nil:
			delete(all, name) // the packed one is out of date
			broken = append(broken, name)
		case len(all)+len(broken) >= r.limits.Files:
			return r.manyReferences()
		default:
			all[name] = ref
		}
		return nil
	})
	if err != nil {
		return nil, nil, cmp.Or(r.ended(), error(mcp.Errorf("the references of the repository cannot be read: %w", err)))
	}
	refs = slices.SortedFunc(maps.Values(all), func(a, b *plumbing.Reference) int { return cmp.Compare(a.Name(), b.Name()) })
	return refs, broken, nil
}

// Refs lists what can be named as a revision, for completion.
func (r *base) Refs() ([]string, error) {
	refs, _, err := r.references()
	if err != nil {
		return nil, err
	}
	names := []string{"HEAD"}
	for _, ref := range refs {
		if n := ref.Name(); n.IsBranch() || n.IsTag() || n.IsRemote() && !strings.HasSuffix(string(n), "/HEAD") {
			names = append(names, n.Short())
		}
	}
	return slices.Compact(names), nil
}
