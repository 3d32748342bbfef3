package schema

import (
	"strconv"
	"strings"
)

// trail is a walk over a value: where it is, and what it found.
type trail struct {
	raw      []byte
	problems []Problem
	more     bool
	broken   bool // the text is not JSON after all
	depth    int
	scratch  []byte

	// The path: the first steps in room, so that usual values need no
	// allocation, the others in rest.
	steps int
	room  [8]step
	rest  []step
}

// step is one token of a JSON pointer: a name, given by its literal, or an
// index if end is 0.
type step struct{ at, end int32 }

func (k *trail) push(at, end int) {
	s := step{int32(at), int32(end)}
	if k.steps < len(k.room) {
		k.room[k.steps] = s
	} else {
		k.rest = append(k.rest[:k.steps-len(k.room)], s)
	}
	k.steps++
}

func (k *trail) pop() { k.steps-- }

// fail notes a problem at the current path. Once there are too many, the walk
// ends, which over says.
func (k *trail) fail(reason string) {
	if len(k.problems) == MaxProblems {
		k.more = true
		return
	}
	k.problems = append(k.problems, Problem{Pointer: k.pointer(), Reason: reason})
}

func (k *trail) over() bool { return k.more || k.broken }

// breakOff ends the walk over a text that is not JSON. A walk that has ended
// over its problems has not seen the rest of the text.
func (k *trail) breakOff() int {
	k.broken = !k.more
	return len(k.raw)
}

func (k *trail) pointer() string {
	var b strings.Builder
	for i := range k.steps {
		var s step
		if i < len(k.room) {
			s = k.room[i]
		} else {
			s = k.rest[i-len(k.room)]
		}
		b.WriteByte('/')
		if s.end == 0 {
			b.WriteString(strconv.Itoa(int(s.at)))
			continue
		}
		writeToken(&b, string(unquote(nil, k.raw[s.at+1:s.end-1])))
	}
	return b.String()
}

// inner returns the text of the string literal from at to end, valid until
// the next call.
func (k *trail) inner(at, end int, escaped bool) []byte {
	if !escaped {
		return k.raw[at+1 : end-1]
	}
	k.scratch = unquote(k.scratch[:0], k.raw[at+1:end-1])
	return k.scratch
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

// quoted shows a member's name, bounded.
func quoted(name string) string {
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	return strconv.Quote(name)
}
