package consent

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// Columns of the terminal: what is assumed, and the least that is laid out for.
const (
	usualWidth = 80
	leastWidth = 24
)

// mark begins every line of a stranger's text but one that follows a label. A
// terminal that breaks long lines by itself would begin the rest at its edge,
// where a text could pass for a line of this program.
const mark = "    | "

// width is the columns of the terminal.
func (t *Terminal) width() int {
	if t.Width == nil {
		return usualWidth
	}
	if w := t.Width(); w > 0 {
		return max(w, leastWidth)
	}
	return usualWidth
}

// said shows a label, and after it one line of a stranger, shortened, escaped
// and broken into lines of ours.
func (t *Terminal) said(label, text string) {
	t.printf("%s%s\n", label, strings.TrimPrefix(t.broken(claim(text), len(label)), mark))
}

// block shows lines, and says so when not all of them are shown.
func (t *Terminal) block(s string) {
	more := len(s) - maxShown
	for line := range strings.SplitSeq(shorten(s, maxShown), "\n") {
		t.printf("%s\n", t.broken(line, len(mark)))
	}
	if more > 0 {
		t.printf("    WARNING: %d more bytes are not shown\n", more)
	}
}

// broken breaks a line that is escaped already, so that the terminal does not.
// The first part has so many columns less, the others are marked.
func (t *Terminal) broken(line string, first int) string {
	width := t.width() - 1 // some terminals break a line that is just full
	var b strings.Builder
	b.WriteString(mark)
	at := first
	if at > width-leastWidth/2 { // hardly anything fits next to the label
		b.WriteString("\n" + mark)
		at = len(mark)
	}
	for _, r := range line {
		w := columns(r)
		if at+w > width {
			b.WriteString("\n" + mark)
			at = len(mark)
		}
		if r == '\t' {
			r = ' '
		}
		b.WriteRune(r)
		at += w
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

// claim shortens and escapes one line of a stranger.
func claim(s string) string {
	return host.EscapeLine(shorten(strings.TrimSpace(s), maxClaim))
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// lookalike warns of a name that may be taken for another one.
func (t *Terminal) lookalike(name string) {
	for _, r := range name {
		if r <= ' ' || r > '~' {
			t.printf("  WARNING: %s\n", fmt.Sprintf("the name holds %q, which is not plain ASCII: it may look like the name of another tool", r))
			return
		}
	}
}
