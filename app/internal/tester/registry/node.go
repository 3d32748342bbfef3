package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"
)

// Bounds of what is checked.
const (
	MaxFile  = 1 << 20 // bytes
	maxDepth = 32      // the format has less than ten levels, and _meta may have more
)

// A kind is what a JSON value is.
type kind int

const (
	isNull kind = iota
	isBool
	isNumber
	isString
	isArray
	isObject
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// A node is a JSON value and where it begins.
type node struct {
	kind    kind
	at, end int    // offsets of its first byte and behind its last
	text    string // of a string
	yes     bool   // of a boolean
	items   []*node
	members []member // in the order of the file; of two of one name both
}

type member struct {
	name  string
	at    int
	value *node
}

// member is the last member of a name, as most readers take it, or nil.
func (n *node) member(name string) *node {
	var found *node
	for _, m := range n.members {
		if m.name == name {
			found = m.value
		}
	}
	return found
}

// A syntaxError says where a text is no JSON.
type syntaxError struct {
	at     int
	reason string
}

func (e *syntaxError) Error() string { return e.reason }

// A parser makes nodes of a text.
type parser struct {
	text []byte
	dec  *json.Decoder
}

// parse reads one JSON value. The error is a *syntaxError.
func parse(text []byte) (*node, error) {
	if !utf8.Valid(text) {
		at := 0
		for at < len(text) {
			r, size := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return nil, &syntaxError{at, "the text is not valid UTF-8"}
	}
	p := &parser{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	at := p.next()
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &syntaxError{at, "unexpected data after the value"}
	}
	return n, nil
}

// next is the offset of the next token.
func (p *parser) next() int {
	at := int(p.dec.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) token() (json.Token, int, error) {
	at := p.next()
	token, err := p.dec.Token()
	if err == nil {
		return token, at, nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return nil, at, &syntaxError{max(int(syntax.Offset)-1, 0), "invalid JSON: " + syntax.Error()}
	}
	return nil, at, &syntaxError{len(p.text), "the text ends unexpectedly"}
}

func (p *parser) value(depth int) (*node, error) {
	token, at, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{at: at}
	defer func() { n.end = int(p.dec.InputOffset()) }()
	switch t := token.(type) {
	case bool:
		n.kind, n.yes = isBool, t
	case json.Number:
		n.kind = isNumber
	case string:
		n.kind, n.text = isString, t
	case json.Delim:
		if depth == maxDepth {
			return nil, &syntaxError{at, fmt.Sprintf("the text is nested deeper than %d", maxDepth)}
		}
		if t == '{' {
			n.kind = isObject
			return n, p.object(n, depth)
		}
		n.kind = isArray
		return n, p.array(n, depth)
	}
	return n, nil
}

func (p *parser) object(n *node, depth int) error {
	for p.dec.More() {
		token, at, err := p.token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return &syntaxError{at, "invalid JSON: a field name must be a string"}
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, at, value})
	}
	_, _, err := p.token() // the closing bracket
	return err
}

func (p *parser) array(n *node, depth int) error {
	for p.dec.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, _, err := p.token() // the closing bracket
	return err
}

// lineStarts are the offsets at which the lines of a text begin.
func lineStarts(text []byte) []int {
	starts := []int{0}
	for i, b := range text {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineAt is the number of the line of an offset, from 1.
func lineAt(starts []int, offset int) int {
	return sort.Search(len(starts), func(i int) bool { return starts[i] > offset })
}
