package glob

import (
	"slices"
	"strings"
	"unicode"
)

// A node is a part of an element.
type node struct {
	kind kind
	r    rune            // of oneRune
	set  func(rune) bool // of class
	// alternatives of a group.
	alternatives [][]node
}

type kind byte

// Kinds of nodes. Those of groups are the characters before their parenthesis.
const (
	oneRune kind = iota
	anyRune
	anyRunes
	class
	never
	groupOne  kind = '@'
	groupMay  kind = '?'
	groupMany kind = '*'
	groupSome kind = '+'
	groupNot  kind = '!'
)

// parse reads an element.
func parse(s []rune) []node {
	var nodes []node
	for i := 0; i < len(s); {
		n, size := parseNode(s[i:])
		if n.kind != anyRunes || len(nodes) == 0 || nodes[len(nodes)-1].kind != anyRunes {
			nodes = append(nodes, n)
		}
		i += size
	}
	return nodes
}

// parseNode reads the node at the beginning of s.
func parseNode(s []rune) (n node, size int) {
	if len(s) > 1 && s[1] == '(' && strings.ContainsRune("?*+@!", s[0]) {
		if n, size := parseGroup(s); size > 0 {
			return n, size
		}
	}
	switch {
	case s[0] == '\\' && len(s) > 1:
		return node{r: s[1]}, 2
	case s[0] == '*':
		return node{kind: anyRunes}, 1
	case s[0] == '?':
		return node{kind: anyRune}, 1
	case s[0] == '[':
		if n, size := parseClass(s); size > 0 {
			return n, size
		}
	}
	return node{r: s[0]}, 1
}

// parseGroup reads a group, such as @(a|b). Its size is 0 if it is not closed.
func parseGroup(s []rune) (n node, size int) {
	n = node{kind: kind(s[0])}
	depth, begin := 0, 2
	for i := 2; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			if _, size := parseClass(s[i:]); size > 0 {
				i += size - 1
			}
		case '(':
			if strings.ContainsRune("?*+@!", s[i-1]) {
				depth++
			}
		case '|', ')':
			if depth > 0 {
				if s[i] == ')' {
					depth--
				}
				continue
			}
			n.alternatives = append(n.alternatives, parse(s[begin:i]))
			if begin = i + 1; s[i] == ')' {
				return n, begin
			}
		}
	}
	return node{}, 0
}

// parseClass reads a class, such as [a-z]. Its size is 0 if it is not closed.
func parseClass(s []rune) (n node, size int) {
	var ranges [][2]rune
	var named []func(rune) bool
	negate, i := false, 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		negate, i = true, 2
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return node{}, 0
		}
		if s[i] == ']' && !first {
			break
		}
		if f, size := parseNamed(s[i:]); size > 0 {
			named, i = append(named, f), i+size
			continue
		}
		low, size := classRune(s[i:])
		if i += size; i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			high, size := classRune(s[i+1:])
			ranges, i = append(ranges, [2]rune{low, high}), i+1+size
			continue
		}
		ranges = append(ranges, [2]rune{low, low})
	}
	ranges = slices.DeleteFunc(ranges, func(r [2]rune) bool { return r[1] < r[0] })
	if len(ranges)+len(named) == 0 {
		return node{kind: never}, len(s)
	}
	return node{kind: class, set: func(r rune) bool {
		in := slices.ContainsFunc(ranges, func(b [2]rune) bool { return b[0] <= r && r <= b[1] }) ||
			slices.ContainsFunc(named, func(f func(rune) bool) bool { return f(r) })
		return in != negate
	}}, i + 1
}

func classRune(s []rune) (r rune, size int) {
	if s[0] == '\\' && len(s) > 1 {
		return s[1], 2
	}
	return s[0], 1
}

// classes are those that have names, as in [[:digit:]].
var classes = map[string]func(rune) bool{
	"alnum":  func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) },
	"alpha":  unicode.IsLetter,
	"ascii":  func(r rune) bool { return r < 0x80 },
	"blank":  func(r rune) bool { return r == '\t' || unicode.Is(unicode.Zs, r) },
	"cntrl":  unicode.IsControl,
	"digit":  unicode.IsDigit,
	"graph":  func(r rune) bool { return unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r) },
	"lower":  unicode.IsLower,
	"print":  unicode.IsGraphic,
	"punct":  unicode.IsPunct,
	"space":  func(r rune) bool { return r >= '\t' && r <= '\r' || unicode.Is(unicode.Z, r) },
	"upper":  unicode.IsUpper,
	"word":   func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Pc, r) },
	"xdigit": func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) },
}

func parseNamed(s []rune) (f func(rune) bool, size int) {
	const longest = len("[:xdigit:]")
	name, _, closed := strings.Cut(string(s[:min(len(s), longest)]), ":]")
	name, opened := strings.CutPrefix(name, "[:")
	if f = classes[name]; !closed || !opened || f == nil {
		return nil, 0
	}
	return f, len(name) + len("[::]")
}

// match reports whether nodes are all of s. It goes from the last node to the first;
// fits[j] says whether the nodes from the present one on match s from j on.
func match(nodes []node, s []rune) bool {
	fits := make([]bool, len(s)+1)
	fits[len(s)] = true
	for _, n := range slices.Backward(nodes) {
		next := slices.Clone(fits)
		for j := range slices.Backward(fits) {
			fits[j] = n.fits(s, j, next)
		}
	}
	return fits[0]
}

// fits reports whether the node, from j on, can be followed by what fits.
func (n *node) fits(s []rune, j int, next []bool) bool {
	later := func() bool { return slices.Contains(next[j:], true) }
	group := func() bool {
		for e, ok := range n.ends(s, j) {
			if ok && next[e] {
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
		return j < len(s) && n.one(s[j]) && next[j+1]
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

// ends are where a group can end that begins at j.
func (n *node) ends(s []rune, j int) []bool {
	from := make([]bool, len(s)+1)
	from[j] = true
	out := n.once(s, from)
	switch n.kind {
	case groupMay:
		out[j] = true
	case groupMany, groupSome:
		for last := 0; ; {
			more := n.once(s, out)
			count := 0
			for i := range out {
				if out[i] = out[i] || more[i]; out[i] {
					count++
				}
			}
			if count == last {
				break
			}
			last = count
		}
		if n.kind == groupMany {
			out[j] = true
		}
	default: // exactly once
	}
	return out
}

// once is where one of the alternatives can end that begins at one of the places from.
func (n *node) once(s []rune, from []bool) []bool {
	out := make([]bool, len(from))
	for _, nodes := range n.alternatives {
		at := slices.Clone(from)
		for i := range nodes {
			at = nodes[i].forward(s, at)
		}
		for i, ok := range at {
			out[i] = out[i] || ok
		}
	}
	return out
}

// forward is where the node can end that begins at one of the places from.
func (n *node) forward(s []rune, from []bool) []bool {
	out := make([]bool, len(from))
	for j, ok := range from {
		if !ok {
			continue
		}
		switch n.kind {
		case anyRunes:
			for k := j; k < len(out); k++ {
				out[k] = true
			}
		case groupOne, groupMay, groupMany, groupSome, groupNot:
			for k, end := range n.ends(s, j) {
				out[k] = out[k] || end != (n.kind == groupNot) && k >= j
			}
		default:
			if j < len(s) && n.one(s[j]) {
				out[j+1] = true
			}
		}
	}
	return out
}
