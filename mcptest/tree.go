package mcptest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/schema"
)

// A tree is a parsed JSON value, with its members in their order.
type tree struct {
	kind  byte   // one of { [ " 0 t f n
	raw   string // the text of a scalar
	text  string // what a string means
	names []string
	items []*tree // members or elements
}

// anything is the schema that every value fits: the way to the strict decoder.
var anything = func() *schema.Compiled {
	c, err := schema.Compile(mcp.RawValue(`{}`), nil)
	if err != nil {
		panic(err) // the empty schema is one
	}
	return c
}()

// maxTree bounds the nesting of what is parsed.
const maxTree = 256

var errNoJSON = errors.New("not valid JSON")

// parseTree parses a JSON text.
func parseTree(raw []byte) (*tree, error) {
	if err := anything.Check(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoJSON, err)
	}
	p := treeParser{text: string(raw)}
	t, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.pos != len(p.text) {
		return nil, fmt.Errorf("%w: text after the value", errNoJSON)
	}
	return t, nil
}

// A treeParser reads text that is known to be JSON, but stays within it
// whatever it is.
type treeParser struct {
	text string
	pos  int
}

func (p *treeParser) skip() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// peek gives the next byte that is no white space, or 0 at the end.
func (p *treeParser) peek() byte {
	p.skip()
	if p.pos == len(p.text) {
		return 0
	}
	return p.text[p.pos]
}

func (p *treeParser) value(depth int) (*tree, error) {
	if depth > maxTree {
		return nil, fmt.Errorf("%w: nested deeper than %d", errNoJSON, maxTree)
	}
	switch c := p.peek(); c {
	case '{', '[':
		return p.container(c, depth)
	case '"':
		return p.str()
	case 0:
		return nil, fmt.Errorf("%w: it ends too early", errNoJSON)
	default:
		start := p.pos
		for p.pos < len(p.text) && strings.IndexByte(" \t\r\n,:]}", p.text[p.pos]) < 0 {
			p.pos++
		}
		t := &tree{kind: c, raw: p.text[start:p.pos]}
		if c == '-' || '0' <= c && c <= '9' {
			t.kind = '0'
		}
		if t.raw == "" {
			return nil, fmt.Errorf("%w: unexpected %q", errNoJSON, c)
		}
		return t, nil
	}
}

func (p *treeParser) container(open byte, depth int) (*tree, error) {
	t := &tree{kind: open}
	shut := open + 2 // true of both kinds of brackets
	p.pos++
	for first := true; p.peek() != shut; first = false {
		if !first {
			if p.peek() != ',' {
				return nil, fmt.Errorf("%w: expected a comma", errNoJSON)
			}
			p.pos++
		}
		if open == '{' {
			name, err := p.str()
			if err != nil {
				return nil, err
			}
			if p.peek() != ':' {
				return nil, fmt.Errorf("%w: expected a colon", errNoJSON)
			}
			p.pos++
			t.names = append(t.names, name.text)
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, item)
	}
	p.pos++
	return t, nil
}

func (p *treeParser) str() (*tree, error) {
	if p.peek() != '"' {
		return nil, fmt.Errorf("%w: expected a string", errNoJSON)
	}
	start := p.pos
	for p.pos++; p.pos < len(p.text) && p.text[p.pos] != '"'; p.pos++ {
		if p.text[p.pos] == '\\' {
			p.pos++
		}
	}
	p.pos = min(p.pos+1, len(p.text))
	t := &tree{kind: '"', raw: p.text[start:p.pos]}
	if err := anything.Decode([]byte(t.raw), &t.text); err != nil {
		return nil, fmt.Errorf("%w: string %s: %w", errNoJSON, t.raw, err)
	}
	return t, nil
}

// member returns a member of an object, or nil.
func (t *tree) member(name string) *tree {
	if t == nil {
		return nil
	}
	for i, n := range t.names {
		if n == name {
			return t.items[i]
		}
	}
	return nil
}

// sameNumber compares numbers in any spelling that a double distinguishes.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y && len(a) < 16 && len(b) < 16
}

// line writes a value in one line.
func (t *tree) line() string {
	var b strings.Builder
	t.write(&b, -1, "")
	return b.String()
}

// layout writes a value over several lines where it is wider than width.
// Lines after the first begin with white space.
func (t *tree) layout(width int) string {
	var b strings.Builder
	t.write(&b, width, "  ")
	return b.String()
}

// write appends a value. A negative width means one line.
func (t *tree) write(b *strings.Builder, width int, indent string) {
	if t.kind != '{' && t.kind != '[' {
		b.WriteString(t.raw)
		return
	}
	broken := false
	if width >= 0 && len(t.items) > 0 {
		broken = len(t.line())+len(indent) > width
	}
	b.WriteByte(t.kind)
	for i, item := range t.items {
		if i > 0 {
			b.WriteByte(',')
		}
		if broken {
			b.WriteString("\n" + indent)
		}
		if t.kind == '{' {
			b.WriteString(quote(t.names[i]) + ":")
		}
		item.write(b, width, indent+"  ")
	}
	if broken {
		b.WriteString("\n" + indent[2:])
		if indent == "  " {
			b.WriteByte(' ') // the closing bracket continues the message
		}
	}
	b.WriteByte(t.kind + 2)
}

// quote writes a name as a JSON string.
func quote(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7F:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
