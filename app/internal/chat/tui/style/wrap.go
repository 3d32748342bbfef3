package style

import (
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// tab is the distance of tab stops.
const tab = 4

// Width is the number of columns that a text takes, on one line and without styles.
func Width(text string) int { return ansi.StringWidth(text) }

// Wrap breaks a text into lines of at most width columns (at least 1), at blanks where
// possible. The text is escaped already and has no styles; it may hold newlines and
// tabs. Other control characters are shown as U+FFFD. A character that is wider than
// the width has a line of its own. It takes time linear in the text, also for one
// token of a megabyte.
func Wrap(text string, width int) []string {
	return WrapSpans([]Span{{Text: text}}, width)
}

// WrapHard is Wrap for code: it breaks at the width only and keeps all blanks.
func WrapHard(text string, width int) []string {
	w := wrapper{width: max(width, 1), spans: []Span{{Text: text}}, hard: true}
	return w.lines()
}

// Fit cuts a text, of which only the first line counts, to a width. What is cut is told
// by an ellipsis.
func Fit(text string, width int) string {
	if width <= 0 {
		return ""
	}
	text, _, more := strings.Cut(text, "\n")
	var b strings.Builder
	used, last := 0, 0 // last is the length of what leaves room for the ellipsis
	for len(text) > 0 {
		c, columns := cluster(text)
		if used+columns > width {
			return b.String()[:last] + "…"
		}
		text = text[len(c):]
		b.WriteString(shown(c))
		if used += columns; used < width {
			last = b.Len()
		}
	}
	if more {
		return b.String()[:last] + "…"
	}
	return b.String()
}

// Pad is Fit, filled with blanks to the width.
func Pad(text string, width int) string {
	text = Fit(text, width)
	return text + strings.Repeat(" ", max(width-Width(text), 0))
}

// A Span is text of one style.
type Span struct {
	Text  string
	Style lipgloss.Style
}

// WrapSpans is Wrap for text of several styles: words may go on from one span to the
// next. Each line has complete styles.
func WrapSpans(spans []Span, width int) []string {
	w := wrapper{width: max(width, 1), spans: spans}
	return w.lines()
}

// A piece is a part of a span on a line.
type piece struct {
	span int
	text []byte
}

// A wrapper breaks spans into lines.
type wrapper struct {
	width int
	spans []Span
	hard  bool

	out       []string
	line      []piece
	lineWidth int
	// blanks are those after line, which are not written at the end of a line.
	blanks    []piece
	blanked   int
	word      []piece
	wordWidth int
}

// cluster is the first character of a text as people see one, and its columns.
func cluster(s string) (c string, columns int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], 1
	}
	return ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
}

// shown is a character as it is written: no control character is.
func shown(c string) string {
	if r, _ := utf8.DecodeRuneInString(c); r < ' ' || r >= 0x7f && r < 0xa0 {
		return "\uFFFD"
	}
	return c
}

func (w *wrapper) lines() []string {
	for i := range w.spans {
		for s := w.spans[i].Text; s != ""; {
			c, columns := cluster(s)
			s = s[len(c):]
			switch {
			case c == "\n" || c == "\r\n":
				w.flush()
				w.end()
			case c == "\t" && w.hard:
				n := tab - w.lineWidth%tab
				w.put(i, strings.Repeat(" ", n), n)
			case c == "\t", c == " " && !w.hard:
				w.flush()
				w.blank(i)
			default:
				w.put(i, shown(c), columns)
			}
		}
	}
	w.flush()
	w.end()
	return w.out
}

// put adds a character to the word, or where words do not count to the line.
func (w *wrapper) put(span int, c string, columns int) {
	if w.hard {
		if w.lineWidth+columns > w.width && w.lineWidth > 0 {
			w.end()
		}
		w.line = add(w.line, span, c)
		w.lineWidth += columns
		return
	}
	if w.wordWidth+columns > w.width && w.wordWidth > 0 {
		w.flush() // a word that is longer than a line
	}
	w.word = add(w.word, span, c)
	w.wordWidth += columns
}

// blank adds a blank after the last word.
func (w *wrapper) blank(span int) {
	if w.lineWidth+w.blanked < w.width {
		w.blanks = add(w.blanks, span, " ")
		w.blanked++
	}
}

// flush writes the word.
func (w *wrapper) flush() {
	if len(w.word) == 0 {
		return
	}
	if w.lineWidth+w.blanked+w.wordWidth > w.width && w.lineWidth+w.blanked > 0 {
		w.end()
	}
	for _, list := range [][]piece{w.blanks, w.word} {
		for _, p := range list {
			w.line = add(w.line, p.span, string(p.text))
		}
	}
	w.lineWidth += w.blanked + w.wordWidth
	w.blanks, w.blanked, w.word, w.wordWidth = w.blanks[:0], 0, w.word[:0], 0
}

// end ends the line.
func (w *wrapper) end() {
	var b strings.Builder
	for _, p := range w.line {
		b.WriteString(w.spans[p.span].Style.Inline(true).Render(string(p.text)))
	}
	w.out = append(w.out, b.String())
	w.line, w.lineWidth, w.blanks, w.blanked = w.line[:0], 0, w.blanks[:0], 0
}

// add adds text to the last piece, if it is of the same span.
func add(list []piece, span int, text string) []piece {
	if n := len(list); n > 0 && list[n-1].span == span {
		list[n-1].text = append(list[n-1].text, text...)
		return list
	}
	return append(list, piece{span, []byte(text)})
}
