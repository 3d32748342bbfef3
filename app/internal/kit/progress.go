package kit

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
)

// Limits of the progress that is shown, in case a server floods the client.
const (
	progressPause = 100 * time.Millisecond // between two updates of a line
	progressLines = 20                     // lines in a file, per call
	MaxMessage    = 400                    // bytes of a server's message that are shown
)

// A Progress shows the progress of a call: on a terminal in one line that changes,
// otherwise in a limited number of lines. It is not safe for concurrent use.
type Progress struct {
	c     *Console
	what  string
	last  time.Time
	lines int
	dirty bool // the line on the terminal is not empty
}

// Progress returns a Progress of a call.
func (c *Console) Progress(what string) *Progress {
	return &Progress{c: c, what: host.EscapeLine(what)}
}

// Show shows one notification. total is 0 if it is unknown.
func (g *Progress) Show(done, total float64, message string) {
	text := fmt.Sprintf("%s: %v", g.what, done)
	if total > 0 {
		text = fmt.Sprintf("%s: %v of %v", g.what, done, total)
	}
	if message != "" {
		text += " " + Shorten(host.EscapeLine(Shorten(message, MaxMessage)), MaxMessage)
	}
	if !g.c.Streams.ErrTerminal {
		if g.lines++; g.lines <= progressLines {
			g.c.Note("%s", text)
		}
		return
	}
	now := time.Now()
	if now.Sub(g.last) < progressPause && done != total {
		return
	}
	g.last, g.dirty = now, true
	_, _ = fmt.Fprintf(g.c.Streams.Err, "\r\x1b[K%s", fitting(text, g.c.Columns()-1))
}

// End clears the line on the terminal.
func (g *Progress) End() {
	if g.dirty {
		_, _ = fmt.Fprint(g.c.Streams.Err, "\r\x1b[K")
		g.dirty = false
	}
}

// fitting cuts a text so that it fits into the columns for certain: if the terminal
// wrapped the line, it could not be cleared any more.
func fitting(text string, columns int) string {
	for i, r := range text {
		if columns--; r >= 0x1100 { // from here on many are wide
			columns--
		}
		if columns < 0 {
			return text[:i]
		}
	}
	return text
}

// Columns returns the columns of the terminal.
func (c *Console) Columns() int {
	if c.Streams.Width != nil {
		if w := c.Streams.Width(); w > 0 {
			return w
		}
	}
	return 80
}

// Shorten cuts s to at most most bytes, and appends "…" if it did.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
