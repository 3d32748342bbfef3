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
