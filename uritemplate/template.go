// Package uritemplate matches URIs against URI templates (RFC 6570) and binds
// their variables to typed structs. A template is compiled once; variables are
// percent-decoded exactly once, and values that could lead out of a folder are
// refused.
//
// # What a variable may hold
//
// A variable never holds control characters, invalid UTF-8, a segment made of
// dots alone, or a character that looks like a slash, backslash or run of
// dots. Slashes and backslashes are allowed in {+x} and {#x} alone; a path is
// best taken as {/path*}, element by element. A value that would break these
// rules if it were decoded once more is refused as well.
package uritemplate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	rfc6570 "github.com/yosida95/uritemplate/v3"
)

// MaxURI is the greatest length of a URI or template in bytes.
const MaxURI = 8 << 10

// maxVariables bounds a template.
const maxVariables = 64

// ErrVariable says that a template cannot carry a value of a variable.
var ErrVariable = errors.New("value cannot be carried by the template")

// Values are the variables of one URI, decoded. A plain variable has one
// value, an exploded one ({/path*}) one for each element; one that the URI
// leaves out has no entry.
type Values map[string][]string

// Get returns the first value of a variable, or "".
func (v Values) Get(name string) string {
	if list := v[name]; len(list) > 0 {
		return list[0]
	}
	return ""
}

// Template is a URI template, ready to match. It never changes and may be used
// by many goroutines.
type Template struct {
	text     string
	parts    []part
	prefix   string // of every URI that matches
	literals int    // bytes
	pattern  *regexp.Regexp
}

// Parse compiles a template of any level of RFC 6570. Beyond its syntax it
// refuses what cannot be matched without guessing: a variable used twice, and
// expressions side by side that nothing separates. It accepts prefix modifiers
// ({x:3}), which then bound the value's length.
func Parse(template string) (*Template, error) {
	if len(template) > MaxURI {
		return nil, fmt.Errorf("template of %d bytes is longer than %d", len(template), MaxURI)
	}
	// The library knows the syntax. Its matching and expansion are not used:
	// they encode characters beyond ASCII by code point instead of UTF-8.
	if _, err := rfc6570.New(template); err != nil {
		return nil, fmt.Errorf("template %q: %w", template, err)
	}
	t := &Template{text: template}
	var err error
	if t.parts, err = split(template); err != nil {
		return nil, fmt.Errorf("template %q: %w", template, err)
	}
	for i, p := range t.parts {
		t.literals += len(p.literal)
		if i == 0 {
			t.prefix = p.literal
		}
	}
	if t.pattern, err = regexp.Compile(expression(t.parts)); err != nil {
		return nil, fmt.Errorf("template %q: %w", template, err)
	}
	return t, nil
}

// String returns the text of the template.
func (t *Template) String() string { return t.text }

// Variables returns the names of the variables in the order of the template.
func (t *Template) Variables() []string {
	var names []string
	for _, p := range t.parts {
		for _, v := range p.variables {
			names = append(names, v.name)
		}
	}
	return names
}

// Specificity orders templates that match the same URI: the greater one says
// more about it. Text counts most, then plain variables over those that take
// slashes, then fewer variables.
func (t *Template) Specificity() int {
	n := t.literals * 2 * maxVariables * (maxVariables + 1)
	for _, p := range t.parts {
		for _, v := range p.variables {
			n--
			if p.reserved() || v.explode {
				n -= maxVariables
			}
		}
	}
	return n
}

// Match returns the variables of a URI that the template describes, decoded
// once, or false. It takes time linear in the URI, which may have up to MaxURI
// bytes. Variables of simple expressions and {+x} are never empty.
func (t *Template) Match(uri string) (Values, bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) {
		return nil, false
	}
	at := t.pattern.FindStringSubmatchIndex(uri)
	if at == nil {
		return nil, false
	}
	values := Values{}
	group := 1
	for i := range t.parts {
		p := &t.parts[i]
		if p.variables == nil {
			continue
		}
		if start := at[2*group]; start >= 0 && !p.read(uri[start:at[2*group+1]], values) {
			return nil, false
		}
		group++
	}
	return values, true
}

// Expand makes the URI for values. What it returns matches the template and
// gives the same values again; otherwise the error wraps [ErrVariable]. The
// variables of simple expressions and {+x} must be given.
func (t *Template) Expand(values Values) (string, error) {
	left := maps.Clone(values)
	var dst []byte
	for i := range t.parts {
		p := &t.parts[i]
		dst = append(dst, p.literal...)
		var err error
		if dst, err = p.expand(dst, values); err != nil {
			return "", err
		}
		for _, v := range p.variables {
			delete(left, v.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		return "", fmt.Errorf("variable %q is not in the template: %w", name, ErrVariable)
	}
	uri := string(dst)
	again, ok := t.Match(uri)
	if !ok {
		return "", fmt.Errorf("a variable is refused: %w", ErrVariable)
	}
	for name, list := range values {
		if !slices.Equal(again[name], list) {
			return "", fmt.Errorf("variable %s: %w", name, ErrVariable)
		}
	}
	return uri, nil
}
