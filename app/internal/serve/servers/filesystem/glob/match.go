package glob

import (
	"math/bits"
	"slices"
)

// match reports whether nodes are all of s. It goes from the last node to the first;
// fits[j] says whether the nodes from the present one on match s from j on.
func match(w *watch, nodes []node, s []rune) bool {
	m := &matcher{watch: w, s: s}
	fits := make([]bool, len(s)+1)
	fits[len(s)] = true
	for i := range slices.Backward(nodes) {
		next := slices.Clone(fits)
		for j := range slices.Backward(fits) {
			fits[j] = m.fits(&nodes[i], j, next)
		}
		if i%rows == rows-1 && m.ended() {
			return false
		}
	}
	return fits[0]
}

// A matcher compares groups with one name. It finds where a group can end once for each
// place where it can begin, so groups in groups take no more time than others.
type matcher struct {
	*watch

	s    []rune
	memo map[*node]*groupEnds
}

// groupEnds are where a group can end, by the place where it begins; nil: not known yet.
type groupEnds struct {
	once []places // where one of the alternatives can end
	all  []places // where the group can end
}

// places are places in a name, one bit for each.
type places []uint64

func (m *matcher) places() places { return make(places, len(m.s)/64+1) }

func (p places) has(i int) bool { return p[i/64]>>(i%64)&1 != 0 }

func (p places) add(i int) { p[i/64] |= 1 << (i % 64) }

func (p places) addAll(q places) {
	for i := range p {
		p[i] |= q[i]
	}
}

// next is the first place from i on, or -1.
func (p places) next(i int) int {
	for word := i / 64; word < len(p); word++ {
		rest := p[word]
		if word == i/64 {
			rest &= ^uint64(0) << (i % 64)
		}
		if rest != 0 {
			return word*64 + bits.TrailingZeros64(rest)
		}
	}
	return -1
}

// fits reports whether the node, from j on, can be followed by what fits.
func (m *matcher) fits(n *node, j int, next []bool) bool {
	later := func() bool { return slices.Contains(next[j:], true) }
	group := func() bool {
		ends := m.ends(n, j)
		for e := ends.next(0); e >= 0; e = ends.next(e + 1) {
			if next[e] {
				return true
			}
		}
		return false
	}
	switch n.kind {
	case anyRunes:
		return later()
	case groupNot: // what it excludes is excluded together with what follows
		return !group() && later()
	case groupOne, groupMay, groupMany, groupSome:
		return group()
	default:
		return j < len(m.s) && n.one(m.s[j]) && next[j+1]
	}
}

// one reports whether a node of one character is r.
func (n *node) one(r rune) bool {
	switch n.kind {
	case oneRune:
		return n.r == r
	case anyRune:
		return true
	case class:
		return n.set(r)
	default:
		return false
	}
}

// known is what is known of a group.
func (m *matcher) known(n *node) *groupEnds {
	k := m.memo[n]
	if k == nil {
		k = &groupEnds{once: make([]places, len(m.s)+1), all: make([]places, len(m.s)+1)}
		if m.memo == nil {
			m.memo = make(map[*node]*groupEnds)
		}
		m.memo[n] = k
	}
	return k
}

// ends are where a group can end that begins at j. The caller must not change them.
func (m *matcher) ends(n *node, j int) places {
	k := m.known(n)
	if k.all[j] != nil {
		return k.all[j]
	}
	out := m.places()
	out.addAll(m.once(n, j))
	switch n.kind {
	case groupMay:
		out.add(j)
	case groupMany, groupSome:
		for e := out.next(j); e >= 0; e = out.next(e + 1) { // no end is before its beginning
			out.addAll(m.once(n, e))
		}
		if n.kind == groupMany {
			out.add(j)
		}
	default: // exactly once
	}
	k.all[j] = out
	return out
}

// once is where one of the alternatives of a group can end that begins at j. The caller
// must not change it.
func (m *matcher) once(n *node, j int) places {
	k := m.known(n)
	if k.once[j] != nil {
		return k.once[j]
	}
	out := m.places()
	for _, nodes := range n.alternatives {
		at := m.places()
		at.add(j)
		for i := range nodes {
			if m.ended() {
				return out
			}
			at = m.forward(&nodes[i], at)
		}
		out.addAll(at)
	}
	k.once[j] = out
	return out
}

// forward is where the node can end that begins at one of the places from.
func (m *matcher) forward(n *node, from places) places {
	out := m.places()
	for j := from.next(0); j >= 0; j = from.next(j + 1) {
		switch n.kind {
		case anyRunes:
			for k := j; k <= len(m.s); k++ {
				out.add(k)
			}
			return out
		case groupNot:
			ends := m.ends(n, j)
			for k := j; k <= len(m.s); k++ {
				if !ends.has(k) {
					out.add(k)
				}
			}
		case groupOne, groupMay, groupMany, groupSome:
			out.addAll(m.ends(n, j))
		default:
			if j < len(m.s) && n.one(m.s[j]) {
				out.add(j + 1)
			}
		}
	}
	return out
}
