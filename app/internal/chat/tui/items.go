package tui

import (
	"strings"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// A modelText is a block of the model's text.
type modelText struct{ block ui.Block }

func (m *modelText) lines(p *painter, width int, _, _ bool) ([]string, bool) {
	if m.block.IsBlank() {
		return nil, false
	}
	return prefixed(p.document(ui.ParseMarkdown(m.block.Source), max(width-2, leastColumns)), "  ", ""), false
}

// A speaker says which model says what follows.
type speaker struct {
	name    string
	offline bool
}

func (s *speaker) lines(p *painter, width int, _, _ bool) ([]string, bool) {
	text := host.EscapeLine(s.name)
	if s.offline {
		text = "The built-in planner, which is no language model"
	}
	return []string{p.theme.Model.Render(style.Fit("● "+text, width))}, false
}

// A userText is what the person said.
type userText struct{ text string }

func (u *userText) lines(p *painter, width int, open, _ bool) ([]string, bool) {
	shown, cut := u.text, false
	if !open {
		shown, cut = cutText(shown)
	}
	lines := style.Wrap(shown, max(width-2, leastColumns))
	if !open && len(lines) > foldedLines {
		lines, cut = lines[:foldedLines], true
	}
	for i := range lines {
		lines[i] = p.theme.Strong.Render(lines[i])
	}
	if cut {
		lines = append(lines, p.more(u.text, width-2))
	}
	return prefixed(lines, "  ", p.theme.You.Render("› ")), cut || open
}

// A told is entries as they are.
type told struct{ entries []ui.Entry }

func (t *told) lines(p *painter, width int, open, _ bool) ([]string, bool) {
	lines, cut := p.entries(t.entries, width, open)
	return lines, cut || open
}

// A shortTold is entries of which the first line is shown until it is opened.
type shortTold struct{ entries []ui.Entry }

func (t *shortTold) lines(p *painter, width int, open, _ bool) ([]string, bool) {
	if open {
		lines, _ := p.entries(t.entries, width, true)
		return append([]string{p.theme.Dim.Render(style.Fit("▾ "+t.entries[0].Text, width))}, lines[min(1, len(lines)):]...), true
	}
	return []string{p.theme.Dim.Render(style.Fit("▸ "+t.entries[0].Text, width))}, true
}

// A remark is a sentence of this program that is no record.
type remark struct {
	text string
	bad  bool
}

func (r *remark) lines(p *painter, width int, _, _ bool) ([]string, bool) {
	s := p.theme.Dim
	if r.bad {
		s = p.theme.Error
	}
	return style.WrapSpans([]style.Span{{Text: strings.TrimRight(r.text, "\n"), Style: s}}, width), false
}
