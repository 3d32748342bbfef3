package schema

import (
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/internal/wire"
)

// cursor is the place of a walk in the text of a value.
type cursor struct {
	raw []byte
	// The path: the first steps in room, so that usual values need no
	// allocation, the others in rest.
	steps int
	room  [8]step
	rest  []step
}

// step is one token of a JSON pointer: a name, given by its literal, or an
// index if end is 0.
type step struct{ at, end int32 }

func (c *cursor) push(at, end int) {
	s := step{int32(at), int32(end)}
	if c.steps < len(c.room) {
		c.room[c.steps] = s
	} else {
		c.rest = append(c.rest[:c.steps-len(c.room)], s)
	}
	c.steps++
}

func (c *cursor) pop() { c.steps-- }

// pointer returns the path as a JSON pointer.
func (c *cursor) pointer() string {
	var b strings.Builder
	for i := range c.steps {
		var s step
		if i < len(c.room) {
			s = c.room[i]
		} else {
			s = c.rest[i-len(c.room)]
		}
		b.WriteByte('/')
		if s.end == 0 {
			b.WriteString(strconv.Itoa(int(s.at)))
			continue
		}
		writeToken(&b, wire.Text(c.raw[s.at:s.end]))
	}
	return b.String()
}

// writeToken writes a name as a token of a JSON pointer, bounded, and without
// what a terminal would act on.
func writeToken(b *strings.Builder, name string) {
	for i, r := range name {
		if i >= 64 {
			b.WriteRune('…')
			return
		}
		switch {
		case r == '~':
			b.WriteString("~0")
		case r == '/':
			b.WriteString("~1")
		case !strconv.IsPrint(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
}
