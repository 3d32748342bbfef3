package mcptest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Placeholders stand for what differs from run to run. They are strings, in
// the place of a whole value.
const (
	anyValue   = "$any"
	savePrefix = "$save:"
)

// varying are members whose values get a placeholder by themselves when a
// transcript is written.
var varying = map[string]bool{"requestState": true, "nextCursor": true}

// A matcher compares what came with what was expected, and remembers what was
// to be saved.
type matcher struct {
	saved map[string]*tree
}

// match compares got with want. If they agree, what want saves is kept;
// otherwise nothing is.
func (m *matcher) match(want, got *tree) error {
	try := &matcher{saved: maps.Clone(m.saved)}
	if try.saved == nil {
		try.saved = make(map[string]*tree)
	}
	if err := try.compare("", want, got); err != nil {
		return err
	}
	m.saved = try.saved
	return nil
}

// placeholder returns the name after the dollar sign, if t is a placeholder.
func (t *tree) placeholder() (string, bool) {
	if t.kind != '"' || !strings.HasPrefix(t.text, "$") || strings.HasPrefix(t.text, "$$") {
		return "", false
	}
	return t.text[1:], true
}

// literal is what a string of a transcript means: "$$" stands for one "$".
func (t *tree) literal() string {
	if strings.HasPrefix(t.text, "$$") {
		return t.text[1:]
	}
	return t.text
}

func (m *matcher) compare(at string, want, got *tree) error {
	if name, ok := want.placeholder(); ok {
		return m.fill(at, name, want, got)
	}
	if want.kind != got.kind {
		return mismatch(at, want, got)
	}
	switch want.kind {
	case '{':
		return m.compareObjects(at, want, got)
	case '[':
		if at == "" { // a batch, whose answers stand in any order
			return m.compareBatches(want, got)
		}
		for i := range min(len(want.items), len(got.items)) {
			if err := m.compare(fmt.Sprintf("%s/%d", at, i), want.items[i], got.items[i]); err != nil {
				return err
			}
		}
		if len(want.items) != len(got.items) {
			return fmt.Errorf("at %s: %d elements, want %d", place(at), len(got.items), len(want.items))
		}
	case '"':
		if want.literal() != got.text {
			return mismatch(at, want, got)
		}
	case '0':
		if !sameNumber(want.raw, got.raw) {
			return mismatch(at, want, got)
		}
	default:
		if want.raw != got.raw {
			return mismatch(at, want, got)
		}
	}
	return nil
}

// fill deals with a placeholder.
func (m *matcher) fill(at, name string, want, got *tree) error {
	if want.text == anyValue {
		return nil
	}
	if name, ok := strings.CutPrefix(want.text, savePrefix); ok {
		m.saved[name] = got
		return nil
	}
	known := m.saved[name]
	if known == nil {
		return fmt.Errorf("at %s: nothing was saved as %q", place(at), name)
	}
	if known.line() != got.line() {
		return fmt.Errorf("at %s: got %s, want %s as before", place(at), shown(got), shown(known))
	}
	return nil
}

func (m *matcher) compareObjects(at string, want, got *tree) error {
	joker, found := "", false // a name that varies, of which there may be one
	for i, name := range want.names {
		if strings.HasPrefix(name, savePrefix) {
			if joker, found = m.leftover(want, got); !found {
				return fmt.Errorf("at %s: there is not exactly one member besides those that are named", place(at))
			}
			m.saved[name[len(savePrefix):]] = stringTree(joker)
			name = joker
		}
		item := got.member(name)
		if item == nil {
			return fmt.Errorf("at %s: member %q is missing", place(at), name)
		}
		if err := m.compare(at+"/"+name, want.items[i], item); err != nil {
			return err
		}
	}
	for _, name := range got.names {
		if want.member(name) == nil && (!found || name != joker) {
			return fmt.Errorf("at %s: unexpected member %q", place(at), name)
		}
	}
	return nil
}

// leftover is the one member of got that want does not name.
func (m *matcher) leftover(want, got *tree) (name string, ok bool) {
	for _, n := range got.names {
		if want.member(n) != nil {
			continue
		}
		if ok {
			return "", false
		}
		name, ok = n, true
	}
	return name, ok
}

// compareBatches compares arrays of messages without regard to order.
func (m *matcher) compareBatches(want, got *tree) error {
	rest := slices.Clone(got.items)
next:
	for i, w := range want.items {
		for k, g := range rest {
			if m.match(w, g) == nil {
				rest = slices.Delete(rest, k, k+1)
				continue next
			}
		}
		return fmt.Errorf("in the batch: nothing is like message %d, %s", i, shown(w))
	}
	if len(rest) > 0 {
		return fmt.Errorf("in the batch: unexpected message %s", shown(rest[0]))
	}
	return nil
}

// substitute replaces the placeholders of a client's line by what was saved.
// It works on the text, since such a line need not be JSON.
func (m *matcher) substitute(line string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, `"$`)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, closed := strings.Cut(rest, `"`)
		switch known := m.saved[name]; {
		case !closed:
			b.WriteString(`"$`)
			line = rest
			continue
		case strings.HasPrefix(name, "$"):
			b.WriteString(`"` + name + `"`)
		case known == nil && strings.HasPrefix(after, ":"): // a name that begins so
			b.WriteString(`"$` + name + `"`)
		case known == nil:
			return "", fmt.Errorf("nothing was saved as %q", name)
		default:
			b.WriteString(known.line())
		}
		line = after
	}
}

// renewed gives what a transcript expects from now on: what came, with the
// placeholders that stood in the same places before.
func renewed(old, got *tree) *tree {
	if old != nil {
		if _, ok := old.placeholder(); ok {
			return old
		}
	}
	if got.kind == '"' && strings.HasPrefix(got.text, "$") {
		return &tree{kind: '"', raw: `"$` + got.raw[1:], text: "$" + got.text}
	}
	if got.kind != '{' && got.kind != '[' {
		return got
	}
	out := &tree{kind: got.kind, names: slices.Clone(got.names)}
	for i, item := range got.items {
		before := old.counterpart(got, i)
		if name := got.name(i); before == nil && varying[name] {
			before = stringTree(savePrefix + name)
		}
		after := renewed(before, item)
		if got.name(i) == "inputRequests" && len(after.names) == 1 {
			after.names[0] = savePrefix + "key"
		}
		out.items = append(out.items, after)
	}
	if id := slices.Index(out.names, "id"); id >= 0 && slices.Contains(out.names, "method") { // the server asks
		if _, kept := out.items[id].placeholder(); !kept {
			out.items[id] = stringTree(savePrefix + "id")
		}
	}
	return out
}

// name is the name of a member, or "" for an element of an array.
func (t *tree) name(i int) string {
	if t.kind != '{' {
		return ""
	}
	return t.names[i]
}

// counterpart is what stands in t where got has its member or element i.
func (t *tree) counterpart(got *tree, i int) *tree {
	switch {
	case t == nil || t.kind != got.kind:
		return nil
	case got.kind == '{':
		if m := t.member(got.names[i]); m != nil {
			return m
		}
		if len(t.names) == 1 && strings.HasPrefix(t.names[0], savePrefix) {
			return t.items[0]
		}
	case i < len(t.items):
		return t.items[i]
	}
	return nil
}

func stringTree(text string) *tree { return &tree{kind: '"', raw: quote(text), text: text} }

func mismatch(at string, want, got *tree) error {
	return fmt.Errorf("at %s: got %s, want %s", place(at), shown(got), shown(want))
}

func place(at string) string {
	if at == "" {
		return "the top"
	}
	return at
}

// shown is a value for messages.
func shown(t *tree) string {
	const most = 2000
	s := t.line()
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
