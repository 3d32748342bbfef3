package panel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A tone says what a text is, from which its style follows.
type tone uint8

const (
	toneText tone = iota
	toneDim
	toneTitle
	toneUntrusted
	toneWarning
	toneAdded
	toneRemoved
	toneDomain // of the address of a page
	toneInput  // what the person types
)

// A row is one line of the middle of a panel: two texts, each with its tone.
type row struct {
	head, text         string
	headTone, textTone tone
	// item is the number of the entry of a list that the row belongs to, or -1.
	item int32
	// spans take the place of both texts in rows with more parts.
	spans []span
}

type span struct {
	tone tone
	text string
}

// noItem is the item of rows that belong to no list.
const noItem = -1

// A body is the middle of a panel, broken for a width. It is built once for each width
// and content; drawing takes the visible rows of it.
type body struct {
	columns int
	rows    []row
	item    int32 // of the rows that are added
	// must are the rows of which the last must have been shown before an approval counts; 0: all.
	must int
}

func newBody(columns int) *body { return &body{columns: max(columns, 4), item: noItem} }

func (b *body) add(r row) {
	r.item = b.item
	b.rows = append(b.rows, r)
}

// sentence adds a sentence of the program.
func (b *body) sentence(t tone, text string) {
	for _, line := range sentence(text, b.columns, sentenceIndent) {
		b.add(row{text: line, textTone: t})
	}
}

// labelled adds a label and a text of one line, which goes on in marked rows.
func (b *body) labelled(label string, t tone, text string) {
	if w := width(label); w <= b.columns*2/3 {
		b.broken(label, toneDim, t, oneLine(text), w)
		return
	}
	b.sentence(toneDim, strings.TrimRight(label, " "))
	b.marked(mark, t, text)
}

// broken adds a text whose first row begins with a label.
func (b *body) broken(label string, lt, t tone, text string, at int) {
	head, headTone := label, lt
	for {
		room := max(b.columns-at, 1)
		end := fit(text, room)
		piece := text[:end]
		text = text[end:]
		if text != "" && !strings.HasSuffix(piece, " ") && at+width(piece) < b.columns {
			piece += goesOn
		}
		b.add(row{head: head, text: piece, headTone: headTone, textTone: t})
		if text == "" {
			return
		}
		head, headTone, at = mark, t, width(mark)
	}
}

// marked adds the lines of a text, each of them with a mark.
func (b *body) marked(mark string, t tone, text string) {
	at := width(mark)
	for line := range strings.SplitSeq(text, "\n") {
		b.brokenMarked(mark, t, oneLine(line), at)
	}
}

// brokenMarked adds one line, broken into marked rows.
func (b *body) brokenMarked(mark string, t tone, text string, at int) {
	room := max(b.columns-at, 1)
	for {
		end := fit(text, room)
		piece := text[:end]
		text = text[end:]
		if text != "" && !strings.HasSuffix(piece, " ") && width(piece) < room {
			piece += goesOn
		}
		b.add(row{head: mark, text: piece, headTone: t, textTone: t})
		if text == "" {
			return
		}
	}
}

// limits are how many bytes of long texts are shown; 0 is everything.
type limits struct{ claim, block, part int }

// shortLimits are those of a question that is not shown in full.
var shortLimits = limits{claim: 600, block: 16 << 10, part: 2_000}

// cut is the beginning of a text, and how many bytes are left out.
func cut(text string, limit int) (shown string, more int) {
	if limit <= 0 || len(text) <= limit {
		return text, 0
	}
	end := limit
	for end > 0 && text[end]&0xC0 == 0x80 { // within a character
		end--
	}
	return text[:end], len(text) - end
}

// more says that something is left out.
func (b *body) more(bytes int) {
	if bytes > 0 {
		b.sentence(toneWarning, fmt.Sprintf("WARNING: %s more bytes are not shown here", number(bytes)))
	}
}

// untrusted is a label with the word that says whose text follows.
func untrusted(label string) string {
	const word = "(untrusted)"
	if label == "" {
		return word
	}
	if strings.HasSuffix(label, word) {
		return label
	}
	return label + " " + word
}

// entry adds an entry of a wording, as the form of its value if there is one.
func (b *body) entry(e *ui.Entry, f *form, l limits) {
	switch e.Kind {
	case ui.EntrySaid:
		b.sentence(toneText, e.Text)
	case ui.EntryFact:
		b.labelled(e.Label+": ", toneText, e.Text)
	case ui.EntryWarning:
		b.sentence(toneWarning, "WARNING: "+e.Text)
	case ui.EntryClaim:
		text, more := cut(e.Text, l.claim)
		b.labelled(untrusted(e.Label)+": ", toneUntrusted, text)
		b.more(more)
	case ui.EntryBlock:
		if f != nil {
			b.form(e.Label, f, l)
			return
		}
		b.sentence(toneDim, untrusted(e.Label)+":")
		text, more := cut(e.Text, l.block)
		b.marked(mark, toneUntrusted, text)
		b.more(more)
	case ui.EntryModel:
		b.sentence(toneDim, untrusted(e.Label)+":")
		b.marked(mark, toneUntrusted, host.Escape(ui.Plain(e.Doc, b.columns)))
	}
}

// form shows JSON as names and values, one a row.
func (b *body) form(label string, f *form, l limits) {
	if f.whole() {
		text, more := cut(f.parts[0].text, l.part)
		b.labelled(untrusted(label)+": ", toneUntrusted, text)
		b.more(more)
		return
	}
	b.sentence(toneDim, untrusted(label)+":")
	for i := range f.parts {
		b.part(&f.parts[i], l)
	}
	if f.more {
		b.sentence(toneWarning, fmt.Sprintf("WARNING: more than these %s values are not shown here", number(len(f.parts))))
	}
}

// part shows a name and its value.
func (b *body) part(p *part, l limits) {
	shown, more := cut(p.text, l.part)
	if p.lines > 0 {
		b.marked(mark, toneUntrusted, fmt.Sprintf("%s (%s lines):", p.label, number(p.lines)))
		b.marked(mark+mark, toneUntrusted, shown)
	} else {
		b.marked(mark, toneUntrusted, p.label+": "+shown)
	}
	b.more(more)
}

// tab shows the tab of a text: it is not as blanks are.
const tab = "⇥ "

// isCut reports whether a part of the form is too long to be shown whole at first.
func (f *form) isCut(l limits) bool {
	return f.more || slices.ContainsFunc(f.parts, func(p part) bool { return len(p.text) > l.part })
}

// isCut reports whether an entry that is no form is.
func isCut(e *ui.Entry, l limits) bool {
	return e.Kind == ui.EntryClaim && len(e.Text) > l.claim || e.Kind == ui.EntryBlock && len(e.Text) > l.block
}
