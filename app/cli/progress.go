package cli

import (
	"fmt"
	"time"

	"github.com/parley-mcp/parley/host"
)

// How much progress is shown: a server that floods is not let through.
const (
	progressPause = 100 * time.Millisecond // between two updates of a line
	progressLines = 20                     // lines in a file, per call
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
		text += " " + host.EscapeLine(message)
	}
	if !g.p.streams.ErrTerminal {
		if g.lines++; g.lines <= progressLines {
			g.p.note("%s", text)
		}
		return
	}
	now := time.Now()
	if now.Sub(g.last) < progressPause && done != total {
		return
	}
	g.last, g.dirty = now, true
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:100])
	}
	_, _ = fmt.Fprintf(g.p.streams.Err, "\r\x1b[K%s", text)
}

// end clears the line, so that what follows stands alone.
func (g *progress) end() {
	if g.dirty {
		_, _ = fmt.Fprint(g.p.streams.Err, "\r\x1b[K")
		g.dirty = false
	}
}
