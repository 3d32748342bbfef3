package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// A card is a call: two lines while it is folded, everything about it when it is open.
type card struct {
	call     *host.CallRecord
	sent     *host.StartRecord
	result   *host.ResultRecord
	progress *host.ProgressRecord
	waiting  bool // a question about it is open
	started  time.Time
	now      func() time.Time
	entries  []ui.Entry // all records of it in words
}

// shownArguments bounds the arguments that are looked at for the line of a card, in bytes.
const shownArguments = 1 << 10

func (c *card) lines(p *painter, width int, open, marked bool) ([]string, bool) {
	t := p.theme
	fold := "▸ "
	if open {
		fold = "▾ "
	}
	name := c.name()
	head := style.Fit(fold+name, width)
	line := t.Title.Render(head)
	if marked {
		line = t.Selected.Render(head)
	}
	if left := width - style.Width(head) - 1; left >= leastColumns {
		line += " " + t.Dim.Render(style.Fit(c.arguments(), left))
	}
	text, s := c.state(t)
	out := []string{line, s.Render(style.Fit("  "+text, width))}
	if open {
		lines, _ := p.entries(c.entries, max(width-2, leastColumns), true)
		out = append(out, prefixed(lines, "  ", "")...)
	}
	return out, true
}

// name is the server and the tool.
func (c *card) name() string {
	tool := host.EscapeLine(c.call.Tool)
	switch {
	case tool == "":
		return host.EscapeLine(c.call.ModelName)
	case c.call.Server == "":
		return tool
	}
	return host.EscapeLine(c.call.Server) + "." + tool
}

// arguments are those of the call on one line: what was sent, if it was.
func (c *card) arguments() string {
	raw := c.call.Arguments
	if c.sent != nil {
		raw = c.sent.Arguments
	}
	return oneLine(raw)
}

// oneLine is the beginning of a JSON value on one line.
func oneLine(raw mcp.RawValue) string {
	text := string(raw[:min(len(raw), shownArguments)])
	if len(raw) > shownArguments {
		text = strings.ToValidUTF8(text, "") + "…"
	}
	return host.EscapeLine(text)
}

// state says in words how far the call is.
func (c *card) state(t *style.Theme) (string, lipgloss.Style) {
	switch {
	case c.result != nil:
		return c.ended(t)
	case c.waiting:
		return "waits for your answer", t.Warning
	case c.sent == nil:
		return "asked for", t.Dim
	}
	text := fmt.Sprintf("running, %d s", int(c.now().Sub(c.started).Seconds()))
	if pr := c.progress; pr != nil {
		text += fmt.Sprintf(", at %.6g", pr.Progress)
		if pr.Total > 0 {
			text += fmt.Sprintf(" of %.6g", pr.Total)
		}
		if pr.Message != "" {
			text += " (untrusted: " + style.Fit(host.EscapeLine(pr.Message), 60) + ")"
		}
	}
	return text + "; /cancel " + host.EscapeLine(c.call.ID) + " ends it", t.Spinner
}

// ended says how the call ended.
func (c *card) ended(t *style.Theme) (string, lipgloss.Style) {
	r := c.result
	took := ""
	if r.Millis >= 100 {
		took = fmt.Sprintf(" after %.1f s", float64(r.Millis)/1000)
	}
	why := ""
	if r.Why != "" {
		why = ": " + style.Fit(host.EscapeLine(r.Why), 300)
	}
	switch r.Outcome {
	case host.OutcomeDone:
		if r.Failed {
			return "✗ done" + took + ", the tool says that it failed", t.Error
		}
		n := 0
		for _, part := range r.Content {
			n += len(host.ContentText(part))
		}
		return "✓ done" + took + ", " + size(n), t.Success
	case host.OutcomeFailed:
		return "✗ failed" + took + why, t.Error
	case host.OutcomeRefused:
		return "✗ refused, nothing was done" + why, t.Warning
	case host.OutcomeNotRun:
		return "✗ not run" + why, t.Warning
	case host.OutcomeCancelled:
		return "✗ cancelled" + took + why, t.Warning
	case host.OutcomeInterrupted:
		return "✗ interrupted" + why, t.Warning
	}
	return "ended as " + host.EscapeLine(string(r.Outcome)) + why, t.Dim
}
