package config

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/parley-mcp/parley/strictjson"
)

// parseJSON reads JSON with comments, commas after the last member and a byte order mark.
func parseJSON(data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	value, err := parseHuJSON(data)
	if err != nil {
		return nil, err
	}
	p := &jsonParser{data: data, line: 1}
	root := p.node(&value)
	plain := value.Clone()
	plain.Standardize()
	if err := strictjson.Valid(plain.Pack(), &strictjson.Options{MaxDepth: maxDepth, MaxBytes: maxFile + 1}); err != nil {
		return nil, strictError(root, err)
	}
	return root, nil
}

// parseHuJSON parses data into a tree that keeps comments. The parser recurses and has no
// bound of its own, so the depth is checked first.
func parseHuJSON(data []byte) (hujson.Value, error) {
	if line := tooDeep(data); line > 0 {
		return hujson.Value{}, &lineError{line: line, text: "values are nested more than " + strconv.Itoa(maxDepth) + " levels deep"}
	}
	value, err := hujson.Parse(data)
	if err == nil {
		return value, nil
	}
	// A comment on the last line need not end with a line feed.
	if value, again := hujson.Parse(append(bytes.Clone(data), '\n')); again == nil {
		return value, nil
	}
	return value, syntaxError(err)
}

var linePattern = regexp.MustCompile(`line (\d+)(?:, column (\d+))?`)

// syntaxError keeps the place of an error and drops its text, which may show a part of the
// file.
func syntaxError(err error) error {
	e := &lineError{text: "this is no JSON: look for a missing comma, quote or bracket"}
	if m := linePattern.FindStringSubmatch(err.Error()); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		if m[2] != "" {
			e.text += " at column " + m[2]
		}
	}
	return e
}

// tooDeep returns the line at which data is nested deeper than maxDepth, or 0. It knows
// strings and comments, and takes everything else as it comes.
func tooDeep(data []byte) int {
	depth, line := 0, 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '\n':
			line++
		case '"':
			end := skipString(data, i)
			line += bytes.Count(data[i:end], []byte("\n"))
			i = end - 1
		case '/':
			end := skipComment(data, i)
			line += bytes.Count(data[i:end], []byte("\n"))
			i = end - 1
		case '[', '{':
			if depth++; depth > maxDepth {
				return line
			}
		case ']', '}':
			depth--
		}
	}
	return 0
}

// skipString returns the index after the string that begins at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// skipComment returns the index after the comment that begins at i, or i+1 if none does.
func skipComment(data []byte, i int) int {
	rest := data[i:]
	var end []byte
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		end = []byte("\n")
	case bytes.HasPrefix(rest, []byte("/*")):
		end = []byte("*/")
	default:
		return i + 1
	}
	n := bytes.Index(rest[2:], end)
	if n < 0 {
		return len(data)
	}
	if end[0] == '\n' {
		return i + 2 + n // the line feed is the caller's
	}
	return i + 2 + n + len(end)
}

// A jsonParser makes nodes of a tree, counting lines as it goes.
type jsonParser struct {
	data []byte
	seen int // bytes whose lines are counted
	line int
}

// lineAt is the line of an offset. Offsets come in ascending order.
func (p *jsonParser) lineAt(offset int) int {
	if offset > p.seen {
		p.line += bytes.Count(p.data[p.seen:offset], []byte("\n"))
		p.seen = offset
	}
	return p.line
}

func (p *jsonParser) node(v *hujson.Value) *node {
	n := &node{line: p.lineAt(v.StartOffset)}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.kind = kindObject
		for i := range t.Members {
			m := &t.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			line := p.lineAt(m.Name.StartOffset)
			n.members = append(n.members, member{name: name.String(), line: line, value: p.node(&m.Value)})
		}
	case *hujson.Array:
		n.kind = kindArray
		for i := range t.Elements {
			n.items = append(n.items, p.node(&t.Elements[i]))
		}
	case hujson.Literal:
		n.kind, n.text = literalKind(t), t.String()
	}
	return n
}

func literalKind(l hujson.Literal) kind {
	switch l.Kind() {
	case 't', 'f':
		return kindBool
	case '0':
		return kindNumber
	case '"':
		return kindString
	default:
		return kindNull
	}
}

// strictError is an error of the strict reader with the line of its place.
func strictError(root *node, err error) error {
	if line, name, found := duplicate(root); found && errors.Is(err, strictjson.ErrDuplicate) {
		return &lineError{line: line, text: "the member " + show(name) + " is there twice: remove one"}
	}
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return &lineError{text: "this is no JSON"}
	}
	return &lineError{line: pointerLine(root, e.Pointer), text: e.Reason}
}

// duplicate finds the second of two members with one name.
func duplicate(n *node) (line int, name string, found bool) {
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.name] {
			return m.line, m.name, true
		}
		seen[m.name] = true
		if line, name, found = duplicate(m.value); found {
			return line, name, true
		}
	}
	for _, item := range n.items {
		if line, name, found = duplicate(item); found {
			return line, name, true
		}
	}
	return 0, "", false
}

// pointerLine is the line of the deepest value on the way of a JSON pointer.
func pointerLine(n *node, pointer string) int {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		next := n.get(unescape.Replace(segment))
		if i, err := strconv.Atoi(segment); err == nil && n.kind == kindArray && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.line
}
