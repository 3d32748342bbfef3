package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// target finds the schema that a reference leads to, or nil.
func (r *reader) target(ref string) *constraint {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.ContainsFunc(pointer, isUnusual) {
		return nil
	}
	at := r.all[0].at
	for pointer != "" && at >= 0 {
		token, rest, more := strings.Cut(pointer[1:], "/")
		if pointer = ""; more {
			pointer = "/" + rest
		}
		at = r.memberAt(at, token)
	}
	i, found := slices.BinarySearchFunc(r.all, at, func(s *constraint, at int) int { return s.at - at })
	if !found {
		return nil
	}
	return r.all[i]
}

// isUnusual says whether a reference with that character, which may be an
// escape, is better left to the library.
func isUnusual(c rune) bool {
	return !isAlphanumeric(c) && !strings.ContainsRune("/_-.$", c)
}

// memberAt returns where the member or element of that name is in the value at
// i, or -1. What is in a value is looked up once: there may be as many
// references as there are places.
func (r *reader) memberAt(i int, token string) int {
	places, known := r.places[i]
	if !known {
		places = map[string]int{}
		switch wire.At(r.raw, i) {
		case '{':
			wire.EachMember(r.raw, i, func(name string, at int) int {
				places[name] = at
				return wire.SkipValue(r.raw, at)
			})
		case '[':
			wire.EachElement(r.raw, i, func(at int) int {
				places[strconv.Itoa(len(places))] = at
				return wire.SkipValue(r.raw, at)
			})
		}
		if r.places == nil {
			r.places = map[int]map[string]int{}
		}
		r.places[i] = places
	}
	if at, ok := places[token]; ok {
		return at
	}
	return -1
}
