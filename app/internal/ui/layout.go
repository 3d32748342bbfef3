package ui

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Columns of a terminal: what is assumed, and the least that is laid out for.
const (
	usualWidth = 80
	leastWidth = 24
)

// Bounds of what a terminal is shown.
const (
	maxShown = 16 << 10 // bytes of arguments or messages
	maxClaim = 600      // bytes of a title or description
	maxName  = 64       // bytes of a name
)

// mark begins every line of a stranger's text but one that follows a label. A
// terminal that breaks long lines by itself would begin the rest at its edge,
// where a text could pass for a line of this program.
const mark = "    | "

// A EntryKind says what an Entry is.
type EntryKind string

// The kinds of entries.
const (
	// EntrySaid is a sentence of the program. Names in it are escaped.
	EntrySaid EntryKind = "said"
	// EntryFact is a label and what the program knows: the server's name, a rule.
	EntryFact EntryKind = "fact"
	// EntryClaim is a label and what a stranger says: untrusted, on one line.
	EntryClaim EntryKind = "claim"
	// EntryBlock is a label and a stranger's text of several lines.
	EntryBlock EntryKind = "block"
	// EntryWarning is something suspicious.
	EntryWarning EntryKind = "warning"
	// EntryModel is text of the model, in Doc.
	EntryModel EntryKind = "model"
)

// An Entry is one thing to show. Label and Text are escaped: they can be shown as they
// are, and hold no newline except the Text of an EntryBlock. A face shows which text is
// untrusted: that of an EntryClaim, EntryBlock or EntryModel.
type Entry struct {
	Kind  EntryKind
	Label string
	Text  string
	// Value is the JSON that the Text of an EntryBlock lays out, as it came: not escaped. It is
	// nil if the block is no JSON.
	Value mcp.RawValue
	// Doc is the markdown of an EntryModel, which Follows the one before if they are parts
	// of one text.
	Doc     *Node
	Follows bool
}

// limits say how much of long texts is shown, in bytes; 0 is everything.
type limits struct{ block, claim int }

// usualLimits are those of a question.
var usualLimits = limits{maxShown, maxClaim}

// Layout returns lines as text for a plain terminal of so many columns, nothing of them left
// out. Without a width it is 80.
func Layout(lines []Entry, width int) string { return layout(lines, width, limits{}) }

// layout returns lines as text for a plain terminal of so many columns.
func layout(lines []Entry, width int, l limits) string {
	width = columnsOf(width)
	var b strings.Builder
	for i := range lines {
		line := &lines[i]
		switch line.Kind {
		case EntrySaid:
			b.WriteString(wrapLine(line.Text, width))
		case EntryFact:
			b.WriteString(broken("  "+line.Label+": ", line.Text, width))
		case EntryClaim:
			b.WriteString(broken("  "+line.Label+" (untrusted): ", cutTo(line.Text, l.claim), width))
		case EntryWarning:
			b.WriteString(wrapLine("  WARNING: "+line.Text, width))
		case EntryBlock:
			b.WriteString(block(line, width, l.block))
		case EntryModel:
			if line.Follows {
				b.WriteByte('\n')
			}
			b.WriteString(indented(Plain(line.Doc, width-len(indent))))
		}
	}
	return b.String()
}

// columnsOf is the width that is laid out for.
func columnsOf(width int) int {
	if width <= 0 {
		width = usualWidth
	}
	return max(width, leastWidth) - 1 // some terminals break a line that is just full
}

// block shows a label and lines, and says so when not all of them are shown.
func block(line *Entry, width, limit int) string {
	var b strings.Builder
	if line.Label != "" {
		b.WriteString(wrapLine("  "+line.Label+":", width))
	}
	end := len(line.Text)
	if limit > 0 {
		end = boundary(line.Text, limit)
	}
	for part := range strings.SplitSeq(line.Text[:end], "\n") {
		b.WriteString(broken(mark, part, width))
	}
	if more := len(line.Text) - end; more > 0 {
		fmt.Fprintf(&b, "  WARNING: %d more bytes are not shown\n", more)
	}
	return b.String()
}

// broken shows a label and a text that is escaped already, broken so that the
// terminal does not break it, after a blank where there is one. Each further line is
// marked. No character is lost but that tabs become blanks.
func broken(label, text string, width int) string {
	var b strings.Builder
	at := textColumns(label)
	switch {
	case at <= width-leastWidth/2 || text == "" && at <= width:
		b.WriteString(label)
	default: // hardly anything fits next to the label
		b.WriteString(wrapLine(strings.TrimRight(label, " "), width) + mark)
		at = len(mark)
	}
	text = strings.NewReplacer("\t", " ", "\n", " ").Replace(text)
	for {
		end := fitting(text, width-at)
		b.WriteString(text[:end])
		if end < len(text) && text[end-1] != ' ' {
			b.WriteString(goesOn)
		}
		b.WriteByte('\n')
		if text = text[end:]; text == "" {
			return b.String()
		}
		b.WriteString(mark)
		at = len(mark)
	}
}

// goesOn ends a line that is broken within a word.
const goesOn = `\`

// fitting is how many bytes of a text fit into so many columns: all, or up to a blank
// in the second half of them, or as many as there is room for beside goesOn, but one character.
func fitting(text string, width int) int {
	at, blank, last := 0, 0, 0
	for i, r := range text {
		if at += columns(r); at > width && i > 0 {
			if blank > i/2 {
				return blank
			}
			if last > 0 {
				return last // there is room for goesOn
			}
			return i
		}
		last = i
		if r == ' ' {
			blank = i + 1
		}
	}
	return len(text)
}

// indent begins the lines of the model's text, and the rest of a sentence that is
// longer than a line. No sentence and no fact of the program begins so.
const indent = "    "

// wrapLine breaks a sentence between its words.
func wrapLine(s string, width int) string {
	w := &wrapper{width: width, rest: indent}
	w.text(s)
	return w.end()
}

// indented moves the lines of a text to the right.
func indented(text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			line = indent + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// columns is how many columns a character takes at most.
func columns(r rune) int {
	if r >= 0x1100 { // from here on many are wide
		return 2
	}
	return 1
}

func textColumns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// claim shortens and escapes one line of a stranger.
func claim(s string) string {
	return host.EscapeLine(oneLine(shorten(strings.TrimSpace(s), maxClaim)))
}

// breaks are line ends and tabs with the blanks around them.
var breaks = regexp.MustCompile(`[ \t]*[\t\r\n][ \t\r\n]*`)

// oneLine is a text of several lines as one line: descriptions of tools often have lists and
// indented parts. Blanks within a line stay as they are.
func oneLine(s string) string { return breaks.ReplaceAllString(s, " ") }

// name shortens and escapes a name.
func name(s string) string {
	if s == "" {
		return `""`
	}
	return host.EscapeLine(shorten(s, maxName))
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:boundary(s, limit)] + "…"
}

// boundary is the last index up to limit at which a character begins.
func boundary(s string, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	for i := limit; i > limit-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return limit
}

// cutTo cuts a text and says how much of it is left out. A limit of 0 is none.
func cutTo(s string, limit int) string {
	if limit == 0 || len(s) <= limit {
		return s
	}
	end := boundary(s, limit)
	return fmt.Sprintf("%s… (%d more bytes)", s[:end], len(s)-end)
}
