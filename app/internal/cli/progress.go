package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
)

// How much progress is shown: a server that floods is not let through.
const (
	progressPause = 100 * time.Millisecond // between two updates of a line
	progressLines = 20                     // lines in a file, per call
	maxMessage    = 400                    // bytes of a server's message
)

// A progress shows how far a call is: on a terminal in one line that changes,
// elsewhere in a bounded number of lines. It is used by one goroutine at a time.
type progress struct {
	p     *program
	what  string
	last  time.Time
	lines int
	dirty bool // the line on the terminal is not empty
}

func (p *program) progress(what string) *progress {
	return &progress{p: p, what: host.EscapeLine(what)}
}

// show shows one notice.
func (g *progress) show(done, total float64, message string) {
	text := fmt.Sprintf("%s: %v", g.what, done)
	if total > 0 {
		text = fmt.Sprintf("%s: %v of %v", g.what, done, total)
	}
	if message != "" {
		text += " " + shorten(host.EscapeLine(shorten(message, maxMessage)), maxMessage)
	}
	if !g.p.Streams.ErrTerminal {
		if g.lines++; g.lines <= progressLines {
			g.p.Note("%s", text)
		}
		return
	}
	now := time.Now()
	if now.Sub(g.last) < progressPause && done != total {
		return
	}
	g.last, g.dirty = now, true
	_, _ = fmt.Fprintf(g.p.Streams.Err, "\r\x1b[K%s", fitting(text, g.p.width()-1))
}

// end clears the line, so that what follows stands alone.
func (g *progress) end() {
	if g.dirty {
		_, _ = fmt.Fprint(g.p.Streams.Err, "\r\x1b[K")
		g.dirty = false
	}
}

// fitting is as much of a text as surely fits into so many columns: a line that
// the terminal breaks could not be cleared any more.
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

// width is the columns of the terminal.
func (p *program) width() int {
	if p.Streams.Width != nil {
		if w := p.Streams.Width(); w > 0 {
			return w
		}
	}
	return 80
}

// shorten cuts a text.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
