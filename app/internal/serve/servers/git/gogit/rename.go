package gogit

import (
	"cmp"
	"context"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

const (
	// renamesCompared is the most files on either side whose contents are compared to find renames.
	renamesCompared = 200
	// leastAlike is how much of a file must have stayed, in 60,000ths, as git counts.
	leastAlike = 30000
	whole      = 60000
)

// findRenames makes renames of files that went away and files that came, where enough of their
// contents is the same. Once ctx ends, it returns the cause.
func findRenames(ctx context.Context, list []*change) ([]*change, error) {
	var gone, came []*change
	for _, c := range list {
		switch {
		case c.to == nil && c.from.mode != filemode.Submodule:
			gone = append(gone, c)
		case c.from == nil && c.to.mode != filemode.Submodule:
			came = append(came, c)
		}
	}
	if len(gone) == 0 || len(came) == 0 {
		return list, nil
	}
	r := &renames{ctx: ctx, used: make(map[*change]bool), texts: make(map[*change]map[uint64]int)}
	r.exact(gone, came)
	if gone, came = r.left(gone), r.left(came); len(gone) <= renamesCompared && len(came) <= renamesCompared {
		r.sameName(gone, came)
		r.alike(r.left(gone), r.left(came))
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(c *change) bool { return c.to == nil && r.used[c] }), nil
}

// renames is one search for renames. When ctx ends, no more files are compared.
type renames struct {
	ctx   context.Context //nolint:containedctx // of the one search
	used  map[*change]bool
	texts map[*change]map[uint64]int // how many bytes of each chunk a file has
}

func (r *renames) left(list []*change) []*change {
	return slices.DeleteFunc(slices.Clone(list), func(c *change) bool { return r.used[c] })
}

// join makes one change of two. The change that came is the one that stays.
func (r *renames) join(from, to *change, score int) {
	r.used[from], r.used[to] = true, true
	to.from, to.score = from.from, score*100/whole
}

// exact joins files with the same contents, those of the same base name first.
func (r *renames) exact(gone, came []*change) {
	type same struct {
		hash plumbing.Hash
		link bool
		base string // or "" for any
	}
	left := make(map[same][]*change)
	for _, c := range gone {
		key := same{c.from.hash, c.from.mode == filemode.Symlink, path.Base(c.from.path)}
		left[key] = append(left[key], c)
		key.base = ""
		left[key] = append(left[key], c)
	}
	for _, to := range came {
		if r.ctx.Err() != nil {
			return
		}
		for _, base := range []string{path.Base(to.to.path), ""} {
			key := same{to.to.hash, to.to.mode == filemode.Symlink, base}
			for len(left[key]) > 0 && r.used[left[key][0]] {
				left[key] = left[key][1:]
			}
			if len(left[key]) > 0 {
				r.join(left[key][0], to, whole)
				break
			}
		}
	}
}

// sameName joins files that are alike and the only ones of their base name on both sides.
func (r *renames) sameName(gone, came []*change) {
	const enough = 45000
	only := func(list []*change, p func(*change) string) map[string]*change {
		m := make(map[string]*change)
		for _, c := range list {
			base := path.Base(p(c))
			if _, twice := m[base]; twice {
				m[base] = nil
			} else {
				m[base] = c
			}
		}
		return m
	}
	from := only(gone, func(c *change) string { return c.from.path })
	to := only(came, func(c *change) string { return c.to.path })
	for _, base := range sortedKeys(to) {
		if r.ctx.Err() != nil {
			return
		}
		if f, t := from[base], to[base]; f != nil && t != nil {
			if score := r.score(f, t); score >= enough {
				r.join(f, t, score)
			}
		}
	}
}

// alike joins the other files that are alike, the most alike first.
func (r *renames) alike(gone, came []*change) {
	type pair struct {
		from, to    *change
		score, name int // name is 1 for the same base name
	}
	var pairs []pair
	for _, to := range came {
		for _, from := range gone {
			if r.ctx.Err() != nil {
				return
			}
			p := pair{from: from, to: to, score: r.score(from, to)}
			if path.Base(from.from.path) == path.Base(to.to.path) {
				p.name = 1
			}
			if p.score >= leastAlike {
				pairs = append(pairs, p)
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.name, a.name))
	})
	for _, p := range pairs {
		if !r.used[p.from] && !r.used[p.to] {
			r.join(p.from, p.to, p.score)
		}
	}
}

// score is how much of a file is in another one, of whole.
func (r *renames) score(from, to *change) int {
	if from.from.mode == filemode.Symlink || to.to.mode == filemode.Symlink {
		return 0
	}
	a, b := r.chunks(from, from.from), r.chunks(to, to.to)
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	size := func(m map[uint64]int) (n int) {
		for _, bytes := range m {
			n += bytes
		}
		return n
	}
	sizeA, sizeB := size(a), size(b)
	if most := max(sizeA, sizeB); most-min(sizeA, sizeB) > most*(whole-leastAlike)/whole {
		return 0
	}
	common := 0
	for chunk, n := range a {
		common += min(n, b[chunk])
	}
	return common * whole / max(sizeA, sizeB)
}

// chunks counts the bytes of each line of a file, long lines being cut.
func (r *renames) chunks(c *change, s *side) map[uint64]int {
	if m, ok := r.texts[c]; ok {
		return m
	}
	m := make(map[uint64]int)
	r.texts[c] = m
	content, err := s.read()
	if err != nil {
		return m // what cannot be read is like nothing
	}
	const longest = 64
	text := !IsBinary(content)
	hash, n := uint64(14695981039346656037), 0
	flush := func() {
		if n > 0 {
			m[hash] += n
		}
		hash, n = 14695981039346656037, 0
	}
	for i, b := range content {
		if i%(1<<16) == 0 && r.ctx.Err() != nil {
			return m
		}
		if text && b == '\r' && i+1 < len(content) && content[i+1] == '\n' {
			continue
		}
		hash = (hash ^ uint64(b)) * 1099511628211
		if n++; n == longest || b == '\n' {
			flush()
		}
	}
	flush()
	return m
}
