package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The tokens of a glob are characters and these. A byte that is not valid UTF-8 is a character of
// its own, beyond those of Unicode.
const (
	anyRun   rune = -1 // "*"
	anyOne   rune = -2 // "?"
	fresh    rune = -3 // a character that stands in no glob
	badBytes rune = utf8.MaxRune + 1
)

// maxGlob is the largest number of bytes in a glob.
const maxGlob = 4096

// globForm says how a glob is matched.
type globForm uint8

const (
	globTokens globForm = iota // token by token
	globAny                    // everything matches
	globExact                  // text alone
	globPrefix                 // what begins with text
	globSuffix                 // what ends with text
)

// A glob is a compiled pattern, see [Rule].
type glob struct {
	form   globForm
	text   string
	tokens []rune
	// least is the shortest text that matches, with fresh for each "?".
	least []rune
}

// Quote returns a glob that matches s alone, for names that strangers chose: a tool may be called "*".
func Quote(s string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]").Replace(s)
}

func compileGlob(pattern string) (glob, error) {
	if len(pattern) > maxGlob {
		return glob{}, fmt.Errorf("a pattern has %d bytes; write one with at most %d", len(pattern), maxGlob)
	}
	if !utf8.ValidString(pattern) {
		return glob{}, errors.New("a pattern is not valid UTF-8; write it in UTF-8")
	}
	g := glob{tokens: tokensOf(pattern)}
	for _, token := range g.tokens {
		switch token {
		case anyRun:
		case anyOne:
			g.least = append(g.least, fresh)
		default:
			g.least = append(g.least, token)
		}
	}
	first := slices.IndexFunc(g.tokens, func(t rune) bool { return t < 0 })
	last := len(g.tokens) - 1
	switch {
	case first < 0:
		g.form, g.text = globExact, string(g.tokens)
	case g.tokens[first] != anyRun:
	case first == last && first == 0:
		g.form = globAny
	case first == last:
		g.form, g.text = globPrefix, string(g.tokens[:first])
	case first == 0 && !slices.ContainsFunc(g.tokens[1:], func(t rune) bool { return t < 0 }):
		g.form, g.text = globSuffix, string(g.tokens[1:])
	}
	return g, nil
}

// tokensOf returns the tokens of a pattern, with one anyRun where several stand side by side.
func tokensOf(pattern string) []rune {
	tokens := make([]rune, 0, len(pattern))
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		token, size := utf8.DecodeRuneInString(rest)
		switch {
		case strings.HasPrefix(rest, "[*]") || strings.HasPrefix(rest, "[?]"):
			token, size = rune(rest[1]), 3
		case token == '*':
			token = anyRun
		case token == '?':
			token = anyOne
		}
		if token != anyRun || len(tokens) == 0 || tokens[len(tokens)-1] != anyRun {
			tokens = append(tokens, token)
		}
		i += size
	}
	return tokens
}

// match reports whether the glob matches all of s.
func (g *glob) match(s string) bool {
	switch g.form {
	case globAny:
		return true
	case globExact:
		return s == g.text
	case globPrefix:
		return strings.HasPrefix(s, g.text)
	case globSuffix:
		return strings.HasSuffix(s, g.text)
	default:
		return matchTokens(g.tokens, s)
	}
}

// matchTokens takes time in proportion to the product of both lengths at most: it never needs to go
// back further than to the last anyRun.
func matchTokens(tokens []rune, s string) bool {
	t, n, run, mark := 0, 0, -1, 0
	for n < len(s) {
		c, size := runeAt(s, n)
		switch {
		case t < len(tokens) && tokens[t] == anyRun:
			run, mark = t, n
			t++
		case t < len(tokens) && (tokens[t] == anyOne || tokens[t] == c):
			t++
			n += size
		case run >= 0:
			_, size = runeAt(s, mark)
			mark += size
			t, n = run+1, mark
		default:
			return false
		}
	}
	return t == len(tokens) || t == len(tokens)-1 && tokens[t] == anyRun
}

// matchRunes is matchTokens for characters, of which some may be fresh.
func matchRunes(tokens, s []rune) bool {
	t, n, run, mark := 0, 0, -1, 0
	for n < len(s) {
		switch {
		case t < len(tokens) && tokens[t] == anyRun:
			run, mark = t, n
			t++
		case t < len(tokens) && (tokens[t] == anyOne || tokens[t] == s[n]):
			t++
			n++
		case run >= 0:
			mark++
			t, n = run+1, mark
		default:
			return false
		}
	}
	return t == len(tokens) || t == len(tokens)-1 && tokens[t] == anyRun
}

func runeAt(s string, i int) (c rune, size int) {
	c, size = utf8.DecodeRuneInString(s[i:])
	if c == utf8.RuneError && size == 1 {
		c = badBytes + rune(s[i])
	}
	return c, size
}

func matchesOne(globs []glob, s string) bool {
	for i := range globs {
		if globs[i].match(s) {
			return true
		}
	}
	return false
}

// maxWork bounds the work of contains: the number of places in all sets.
const maxWork = 100_000

// contains reports whether g matches every string that h matches. It never reports true without a
// proof; it may report false for two globs with so many wildcards that the proof would take more than
// maxWork.
func (g *glob) contains(h *glob) bool {
	switch {
	case g.form == globAny:
		return true
	case h.form == globExact:
		return g.match(h.text)
	case g.form == globExact:
		return false
	case g.form == globPrefix && h.form == globPrefix:
		return strings.HasPrefix(h.text, g.text)
	case g.form == globSuffix && h.form == globSuffix:
		return strings.HasSuffix(h.text, g.text)
	case !matchRunes(g.tokens, h.least):
		return false
	}
	return containsTokens(g.tokens, h.tokens)
}

// containsTokens looks for a string that h matches and g does not. It reads all strings that h
// matches at once, with the set of places in g that each leads to, and every set at a place in h
// once. A fresh character stands for what "?" and "*" of h match: what g matches with it, it matches
// with every other character.
func containsTokens(g, h []rune) bool {
	type state struct {
		place int
		set   []int
	}
	seen := make(map[string]struct{})
	var todo []state
	work := 0
	visit := func(place int, set []int) {
		key := make([]byte, 0, 2*len(set)+2)
		key = append(key, byte(place), byte(place>>8))
		for _, p := range set {
			key = append(key, byte(p), byte(p>>8))
		}
		if _, ok := seen[string(key)]; !ok {
			seen[string(key)] = struct{}{}
			work += len(set) + 1
			todo = append(todo, state{place, set})
		}
	}
	visit(0, closed(g, []int{0}))
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case len(s.set) == 0 || work > maxWork:
			return false
		case s.set[0] == len(g)-1 && g[s.set[0]] == anyRun:
			// All that may follow is matched.
		case s.place == len(h):
			if s.set[len(s.set)-1] != len(g) {
				return false
			}
		case h[s.place] == anyRun:
			visit(s.place+1, s.set)
			visit(s.place, step(g, s.set, fresh))
		case h[s.place] == anyOne:
			visit(s.place+1, step(g, s.set, fresh))
		default:
			visit(s.place+1, step(g, s.set, h[s.place]))
		}
	}
	return true
}

// step returns the places in g that c leads to from those of set.
func step(g []rune, set []int, c rune) []int {
	next := make([]int, 0, len(set)+1)
	for _, p := range set {
		switch {
		case p == len(g):
		case g[p] == anyRun:
			next = append(next, p)
		case g[p] == anyOne || g[p] == c:
			next = append(next, p+1)
		}
	}
	return closed(g, next)
}

// closed adds the places behind each anyRun to an ascending set, and leaves out those before the last
// anyRun of the set: it matches whatever they do.
func closed(g []rune, set []int) []int {
	closed := make([]int, 0, len(set)+1)
	for _, p := range set {
		if p < len(g) && g[p] == anyRun {
			closed = append(closed[:0], p)
			p++
		}
		if len(closed) == 0 || closed[len(closed)-1] != p {
			closed = append(closed, p)
		}
	}
	return closed
}

// containsAll reports whether each of hs is contained in one of gs.
func containsAll(gs, hs []glob) bool {
	for i := range hs {
		if !slices.ContainsFunc(gs, func(g glob) bool { return g.contains(&hs[i]) }) {
			return false
		}
	}
	return true
}
