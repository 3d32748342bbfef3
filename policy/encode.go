package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// AppendJSON appends the rule in its JSON form, which ParseRule reads, and returns the longer slice.
// Members with their default are left out; Source is no part of the form. It fails for a rule that is
// not valid, and returns dst as it was.
func (r *Rule) AppendJSON(dst []byte) ([]byte, error) {
	c := r.clone()
	if _, err := c.compile(newInterner()); err != nil {
		return dst, sourceError(r.Source, "rule", err)
	}
	e := encoder{dst}
	e.open("effect")
	e.text(c.Effect.String())
	if c.Kind != KindTool {
		e.member("kind")
		e.text(string(c.Kind))
	}
	for _, m := range [...]struct{ name, text string }{{"server", c.Server}, {"name", c.Name}} {
		if m.text != "*" {
			e.member(m.name)
			e.text(m.text)
		}
	}
	if len(c.Where) > 0 {
		e.member("where")
		e.where(c.Where)
	}
	encodeWords(&e, "hints", c.Hints)
	for i, list := range c.callerLists() {
		encodeWords(&e, callerNames[i], *list)
	}
	encodeWords(&e, "labels", c.Labels)
	for _, m := range [...]struct {
		name string
		at   time.Time
	}{{"from", c.From}, {"until", c.Until}} {
		if !m.at.IsZero() {
			e.member(m.name)
			e.text(m.at.Format(time.RFC3339Nano))
		}
	}
	if c.Reason != "" {
		e.member("reason")
		e.text(c.Reason)
	}
	return append(e.dst, '}'), nil
}

// MarshalJSON returns the rule as AppendJSON does.
func (r Rule) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

type encoder struct{ dst []byte }

func (e *encoder) text(s string) { e.dst = wire.AppendString(e.dst, s) }

func (e *encoder) open(name string) {
	e.dst = append(e.dst, '{')
	e.text(name)
	e.dst = append(e.dst, ':')
}

func (e *encoder) member(name string) {
	e.dst = append(e.dst, ',')
	e.text(name)
	e.dst = append(e.dst, ':')
}

// where appends the predicates, those with the same pointer together.
func (e *encoder) where(where []Predicate) {
	e.dst = append(e.dst, '{')
	done := make(map[string]bool)
	for i := range where {
		pointer := where[i].Pointer
		if done[pointer] {
			continue
		}
		if len(done) > 0 {
			e.dst = append(e.dst, ',')
		}
		done[pointer] = true
		e.text(pointer)
		e.dst = append(e.dst, ':')
		e.predicates(where[i:], pointer)
	}
	e.dst = append(e.dst, '}')
}

// predicates appends one object if each operation stands in it once, and otherwise a list.
func (e *encoder) predicates(where []Predicate, pointer string) {
	start, objects := len(e.dst), 0
	var used [OpRange + 1]bool
	for i := range where {
		p := &where[i]
		if p.Pointer != pointer {
			continue
		}
		switch {
		case objects == 0:
			objects++
			e.open(p.memberName())
		case used[p.Op]:
			objects++
			used = [OpRange + 1]bool{}
			e.dst = append(e.dst, "},"...)
			e.open(p.memberName())
		default:
			e.member(p.memberName())
		}
		used[p.Op] = true
		e.operands(p)
	}
	e.dst = append(e.dst, '}')
	if objects > 1 {
		e.dst = append(slices.Insert(e.dst, start, '['), ']')
	}
}

// memberName is the first member of a predicate in the JSON form.
func (p *Predicate) memberName() string {
	switch {
	case p.Op == OpRange && p.Min != nil:
		return "min"
	case p.Op == OpRange:
		return "max"
	default:
		return p.Op.String()
	}
}

func (e *encoder) operands(p *Predicate) {
	switch p.Op {
	case OpGlob:
		encodeList(e, p.Globs)
	case OpInside:
		encodeList(e, p.Dirs)
	case OpHost:
		encodeList(e, p.Hosts)
	case OpRange:
		if p.Min != nil {
			e.value(p.Min)
			if p.Max != nil {
				e.member("max")
			}
		}
		if p.Max != nil {
			e.value(p.Max)
		}
	default:
		e.dst = append(e.dst, '[')
		for i, v := range p.Values {
			if i > 0 {
				e.dst = append(e.dst, ',')
			}
			e.value(v)
		}
		e.dst = append(e.dst, ']')
	}
}

// value appends a value that is known to be valid.
func (e *encoder) value(v mcp.RawValue) { e.dst, _ = wire.Append(e.dst, v) }

func encodeWords[S ~string](e *encoder, name string, words []S) {
	if len(words) > 0 {
		e.member(name)
		encodeList(e, words)
	}
}

func encodeList[S ~string](e *encoder, words []S) {
	e.dst = append(e.dst, '[')
	for i, w := range words {
		if i > 0 {
			e.dst = append(e.dst, ',')
		}
		e.text(string(w))
	}
	e.dst = append(e.dst, ']')
}

// String returns the rule in one line for people: "deny files/write_* where /path inside /etc or /usr,
// from rules.json:3". It is no form that can be read; see AppendJSON.
func (r *Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Effect.String() + " ")
	if r.Kind != KindTool && r.Kind != "" {
		b.WriteString(string(r.Kind) + ":")
	}
	b.WriteString(pattern(r.Server) + "/" + pattern(r.Name))
	for i := range r.Where {
		if i == 0 {
			b.WriteString(" where ")
		} else {
			b.WriteString(" and ")
		}
		b.WriteString(r.Where[i].String())
	}
	part := func(name, list string) {
		if list != "" {
			b.WriteString(", " + name + " " + list)
		}
	}
	part("if", wordList(r.Hints))
	for i, list := range r.callerLists() {
		part(callerNames[i], wordList(*list))
	}
	part("with", wordList(r.Labels))
	if !r.From.IsZero() {
		part("since", r.From.Format(time.RFC3339))
	}
	if !r.Until.IsZero() {
		part("until", r.Until.Format(time.RFC3339))
	}
	if s := r.Source.String(); s != "" {
		part("from", phrase(s))
	}
	return b.String()
}

func pattern(s string) string {
	if s == "" {
		return "*"
	}
	return word(s)
}

// String returns the predicate for people: "/n from 1 to 10".
func (p *Predicate) String() string {
	s := word(p.Pointer) + " "
	switch p.Op {
	case OpGlob:
		return s + "like " + wordList(p.Globs)
	case OpInside:
		return s + "inside " + wordList(p.Dirs)
	case OpHost:
		return s + "on host " + wordList(p.Hosts)
	case OpRange:
		return s + rangeString(p)
	default:
		shown := make([]string, len(p.Values))
		for i, v := range p.Values {
			shown[i] = showValue(v)
		}
		return s + "is " + choices(shown)
	}
}

func rangeString(p *Predicate) string {
	switch {
	case p.Max == nil:
		return "from " + showValue(p.Min)
	case p.Min == nil:
		return "up to " + showValue(p.Max)
	default:
		return "from " + showValue(p.Min) + " to " + showValue(p.Max)
	}
}

// showValue shows a value in one line, with escapes for characters that do not print.
func showValue(raw mcp.RawValue) string {
	text, err := wire.Append(nil, raw)
	if err != nil {
		return strconv.Quote(string(raw))
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
