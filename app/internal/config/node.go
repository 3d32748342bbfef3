package config

import (
	"fmt"
	"strconv"

	"github.com/parley-mcp/parley/strictjson"
)

// kind is the type of a value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// A node is a value of a file, JSON or YAML alike, with its line.
type node struct {
	kind    kind
	line    int
	text    string // of a string its value, of other scalars the text of the file
	items   []*node
	members []member
}

// A member is one of an object. No name is there twice.
type member struct {
	name  string
	line  int
	value *node
}

// Bounds of what one file may hold.
const (
	maxFile    = 4 << 20 // bytes
	maxDepth   = 64
	maxNodes   = 1 << 20 // values; aliases of YAML count as often as they are used
	maxServers = 500
	maxRules   = 2000 // of one list
	maxName    = 256  // bytes of the name of a server, or of a rule that is one name
	maxURL     = 8192 // bytes
	maxTypos   = 20   // unknown members of one object that are compared with known ones
)

// A lineError is an error at a line of a file.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

// at makes an error about a node. The text must show no value of the file.
func at(n *node, format string, args ...any) error {
	return &lineError{line: n.line, text: fmt.Sprintf(format, args...)}
}

// get returns the member of that name, or nil. It may be called on nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// is reports whether n is there and of the kind.
func (n *node) is(k kind) bool { return n != nil && n.kind == k }

// str is the value of a string.
func (n *node) str() (string, error) {
	if n.kind != kindString {
		return "", at(n, "expected a string, found %s", n.kind)
	}
	return n.text, nil
}

// scalar is the value of a string, or the text of a number or boolean.
func (n *node) scalar() (string, error) {
	switch n.kind {
	case kindString, kindNumber, kindBool:
		return n.text, nil
	default:
		return "", at(n, "expected a string, found %s", n.kind)
	}
}

func (n *node) boolean() (bool, error) {
	if n.kind != kindBool {
		return false, at(n, "expected true or false, found %s", n.kind)
	}
	return n.text == "true", nil
}

// number is a number that is not negative.
func (n *node) number() (float64, error) {
	if n.kind != kindNumber {
		return 0, at(n, "expected a number, found %s", n.kind)
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil || f < 0 || f > 1e12 {
		return 0, at(n, "the number must be from 0 to 1e12")
	}
	return f, nil
}

// list is the scalars of an array. A single scalar is a list of one.
func (n *node) list() ([]string, error) {
	if n.kind != kindArray {
		s, err := n.scalar()
		if err != nil {
			return nil, at(n, "expected an array of strings, found %s", n.kind)
		}
		return []string{s}, nil
	}
	return n.array()
}

// array is the scalars of an array.
func (n *node) array() ([]string, error) {
	if n.kind != kindArray {
		return nil, at(n, "expected an array of strings, found %s", n.kind)
	}
	texts := make([]string, 0, len(n.items))
	for _, item := range n.items {
		s, err := item.scalar()
		if err != nil {
			return nil, err
		}
		texts = append(texts, s)
	}
	return texts, nil
}

// json is the value as JSON.
func (n *node) json() strictjson.RawValue { return n.appendJSON(nil) }

func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case kindObject:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.name), ':')
			b = m.value.appendJSON(b)
		}
		return append(b, '}')
	case kindArray:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case kindString:
		return appendString(b, n.text)
	case kindNull:
		return append(b, "null"...)
	default:
		return append(b, n.text...)
	}
}

// appendString writes a string, which is valid UTF-8.
func appendString(b []byte, s string) []byte {
	quoted, err := strictjson.Marshal(s)
	if err != nil {
		return append(b, `""`...)
	}
	return append(b, quoted...)
}
