// Package glob matches paths with patterns, as the package minimatch of npm does with its
// option dot: "*" within a name, "**" over directories, "?", "[a-z]", "{a,b}", "{1..9}",
// "@(a|b)" and its like, and a "!" at the beginning, which turns the answer round. Names
// that begin with a dot are as good as others.
//
// The time that a match takes grows with the length of pattern and path, and never faster
// than with the product of their squares, whatever the pattern is.
package glob

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of patterns.
const (
	// MaxLength is the most bytes of a pattern.
	MaxLength = 4096
	// MaxAlternatives is the most patterns without braces that one with braces stands for.
	MaxAlternatives = 1000
)

// A Pattern is a compiled pattern. It may be used by many goroutines at once.
type Pattern struct {
	negate bool
	// alternatives are what the braces of the pattern stand for, element by element.
	alternatives [][]element
}

// An element is a part of a pattern between slashes.
type element struct {
	any     bool   // "**": any number of directories
	literal string // what it is, if nodes is nil
	nodes   []node
}

// Compile reads a pattern. It fails if the pattern is longer than MaxLength or stands for
// more than MaxAlternatives; brackets that are not closed stand for themselves.
func Compile(pattern string) (*Pattern, error) {
	if len(pattern) > MaxLength {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(pattern), MaxLength)
	}
	p := &Pattern{}
	if pattern == "" || pattern[0] == '#' { // a comment
		return p, nil
	}
	for strings.HasPrefix(pattern, "!") {
		p.negate, pattern = !p.negate, pattern[1:]
	}
	list, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	for _, text := range list {
		p.alternatives = append(p.alternatives, split(text))
	}
	return p, nil
}

// slashes are what stands between elements.
var slashes = regexp.MustCompile("/+")

var errAlternatives = errors.New("its braces stand for too many patterns, more than 1000")

// split makes the elements of a pattern without braces.
func split(pattern string) []element {
	var parts []string
	for _, part := range slashes.Split(pattern, -1) {
		last := ""
		if len(parts) > 0 {
			last = parts[len(parts)-1]
		}
		switch {
		case part == "**" && last == "**":
		case part == ".." && last != "" && last != "." && last != ".." && last != "**":
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, part)
		}
	}
	elements := make([]element, 0, len(parts))
	for _, part := range parts {
		elements = append(elements, parseElement(part))
	}
	return elements
}

func parseElement(part string) element {
	if part == "**" {
		return element{any: true}
	}
	nodes := parse([]rune(part))
	var literal strings.Builder
	for _, n := range nodes {
		if n.kind != oneRune {
			return element{nodes: nodes}
		}
		literal.WriteRune(n.r)
	}
	return element{literal: literal.String()}
}

// Alternatives returns the number of patterns without braces that the pattern stands for.
func (p *Pattern) Alternatives() int { return len(p.alternatives) }

// Match reports whether the pattern matches a path: relative, with slashes, without empty
// elements. Once ctx ends, it returns the cause.
func (p *Pattern) Match(ctx context.Context, path string) (bool, error) {
	if len(p.alternatives) == 0 {
		return p.negate && path != "", nil
	}
	w := &watch{ctx: ctx}
	names := strings.Split(path, "/")
	for _, elements := range p.alternatives {
		matches := !w.ended() && matchPath(w, elements, names)
		if w.err != nil {
			return false, w.err
		}
		if matches {
			return !p.negate, nil
		}
	}
	return p.negate, nil
}

// A watch ends a comparison when its context ends.
type watch struct {
	ctx context.Context //nolint:containedctx // a watch is one comparison
	err error
}

// ended reports whether the context has ended. All that is compared after that means nothing.
func (w *watch) ended() bool {
	if w.err == nil && w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
	}
	return w.err != nil
}

// matchPath compares element by element; fits[i] says whether the elements from the
// present one on match the names from i on.
func matchPath(w *watch, elements []element, names []string) bool {
	if !slices.ContainsFunc(elements, func(e element) bool { return e.any }) && len(elements) != len(names) {
		return false
	}
	fits := make([]bool, len(names)+1)
	fits[len(names)] = true
	for i, e := range slices.Backward(elements) {
		switch {
		case e.any && i == len(elements)-1: // at the end it is at least one name
			for j := range names {
				fits[j] = true
			}
			fits[len(names)] = false
		case e.any:
			for j := range slices.Backward(names) {
				fits[j] = fits[j] || fits[j+1]
			}
		default:
			for j, name := range names {
				fits[j] = fits[j+1] && e.match(w, name)
			}
			fits[len(names)] = false
		}
		if i%rows == rows-1 && w.ended() {
			return false
		}
	}
	return fits[0]
}

// rows is how many elements are compared with all names between two looks at the context.
const rows = 64

func (e *element) match(w *watch, name string) bool {
	if e.nodes == nil {
		return e.literal == name
	}
	return match(w, e.nodes, []rune(name))
}
