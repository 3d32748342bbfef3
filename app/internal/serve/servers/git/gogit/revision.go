package gogit

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/parley-mcp/parley/mcp"
)

// revisionStep is what may follow a name: ^{} and ^{commit}, which stay at the commit, or ~N or ^N.
var revisionStep = regexp.MustCompile(`^(?:\^\{(?:commit)?\}|([~^])([0-9]*))`)

// Find finds the commit that a revision names: a branch, tag, remote branch or object name, followed
// by any of ~N, ^N, ^0 and ^{commit}.
func (r *base) Find(rev string) (*Commit, error) {
	base, steps := rev, ""
	if at := strings.IndexAny(rev, "~^"); at >= 0 {
		base, steps = rev[:at], rev[at:]
	}
	h, err := r.lookUp(base)
	if err != nil {
		return nil, err
	}
	c, err := r.peel(rev, h)
	for steps != "" && err == nil {
		step := revisionStep.FindStringSubmatch(steps)
		if step == nil {
			return nil, badName(rev)
		}
		steps = steps[len(step[0]):]
		n, err := strconv.Atoi(cmp.Or(step[2], "1"))
		switch {
		case err != nil:
			return nil, badName(rev)
		case step[1] == "^" && n > 0:
			c, err = r.parent(rev, c, n)
		case step[1] == "~":
			for ; n > 0 && err == nil; n-- {
				c, err = r.parent(rev, c, 1)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return c, err
}

// parent is the nth parent of a commit.
func (r *base) parent(rev string, c *Commit, n int) (*Commit, error) {
	if n > len(c.ParentHashes) {
		return nil, badName(rev)
	}
	return r.readCommit(c.ParentHashes[n-1])
}

// lookUp finds what a name stands for, in the order of gitrevisions(7).
func (r *base) lookUp(name string) (plumbing.Hash, error) {
	if name == "@" {
		name = "HEAD"
	}
	if len(name) == 40 && plumbing.IsHash(name) {
		h := plumbing.NewHash(name)
		if !r.objects.has(h) {
			return h, badName(name)
		}
		return h, nil
	}
	if at, err := r.named(name); !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return at, err
	}
	const fewest = 4
	if len(name) < fewest || len(name) > 40 || strings.Trim(name, "0123456789abcdefABCDEF") != "" {
		return plumbing.ZeroHash, badName(name)
	}
	found, err := r.objects.withPrefix(strings.ToLower(name))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if len(found) > 1 {
		found = r.commitsOf(found)
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, badName(name)
	case 1:
		return found[0], nil
	}
	return plumbing.ZeroHash, mcp.Errorf("the object name %q is ambiguous; give more of it", name)
}

// named finds what a reference stands for. Its error is plumbing.ErrReferenceNotFound if none has the name.
func (r *base) named(name string) (plumbing.Hash, error) {
	for _, pattern := range []string{"%", "refs/%", "refs/tags/%", "refs/heads/%", "refs/remotes/%", "refs/remotes/%/HEAD"} {
		full := plumbing.ReferenceName(strings.Replace(pattern, "%", name, 1))
		if pseudoRef(string(full)) {
			target, at, err := r.pseudo(string(full))
			if err == nil && target == "" {
				return at, nil
			}
			full = target
		}
		if !strings.HasPrefix(string(full), "refs/") {
			continue
		}
		if h, err := r.reference(full); !errors.Is(err, plumbing.ErrReferenceNotFound) {
			return h, err
		}
	}
	return plumbing.ZeroHash, plumbing.ErrReferenceNotFound
}

// pseudoRef reports whether a name is one of those beside refs/, such as HEAD or MERGE_HEAD.
func pseudoRef(name string) bool {
	return name == "HEAD" || strings.HasSuffix(name, "_HEAD") && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// commitsOf are those of the objects that are commits or tags.
func (r *base) commitsOf(list []plumbing.Hash) []plumbing.Hash {
	var out []plumbing.Hash
	for _, h := range list {
		if t, _, err := r.read(plumbing.AnyObject, h); err == nil && (t == plumbing.CommitObject || t == plumbing.TagObject) {
			out = append(out, h)
		}
	}
	return out
}

// peel follows tags to the commit that they are of.
func (r *base) peel(rev string, h plumbing.Hash) (*Commit, error) {
	for range 10 {
		t, content, err := r.read(plumbing.AnyObject, h)
		if err != nil {
			return nil, err
		}
		switch t {
		case plumbing.CommitObject:
			return r.readCommit(h)
		case plumbing.TagObject:
			if h, err = tagged(content); err != nil {
				return nil, mcp.Errorf("the tag %q cannot be read: %v", rev, err)
			}
		default:
			return nil, mcp.Errorf("%q is a %s, not a commit", rev, t)
		}
	}
	return nil, mcp.Errorf("the tag %q leads through too many others", rev)
}
