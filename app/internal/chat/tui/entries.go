package tui

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
)

// Bounds of what is shown of a block of text that is folded.
const (
	foldedLines = 12
	foldedBytes = 4 << 10
)

// entries makes lines of entries. Blocks are cut unless all is set; cut says that one was.
func (p *painter) entries(list []ui.Entry, width int, all bool) (lines []string, cut bool) {
	t := p.theme
	for i := range list {
		e := &list[i]
		switch e.Kind {
		case ui.EntrySaid:
			lines = append(lines, style.WrapSpans([]style.Span{{Text: e.Text, Style: t.Text}}, width)...)
		case ui.EntryFact:
			lines = append(lines, p.labelled(e.Label+": ", e.Text, false, width)...)
		case ui.EntryClaim:
			text, more := e.Text, false
			if !all {
				text, more = cutText(text)
			}
			cut = cut || more
			lines = append(lines, p.labelled(e.Label+" (untrusted): ", text, true, width)...)
		case ui.EntryWarning:
			spans := []style.Span{{Text: "WARNING: " + e.Text, Style: t.Warning}}
			lines = append(lines, style.WrapSpans(spans, width)...)
		case ui.EntryBlock:
			if e.Label != "" {
				lines = append(lines, style.WrapSpans([]style.Span{{Text: e.Label + ":", Style: t.Label}}, width)...)
			}
			block, more := p.text(e.Text, width, all)
			cut = cut || more
			lines = append(lines, block...)
		case ui.EntryModel:
			if e.Follows {
				lines = append(lines, "")
			}
			lines = append(lines, prefixed(p.document(e.Doc, max(width-2, leastColumns)), "  ", "")...)
		}
	}
	return lines, cut
}

// labelled makes lines of a label and a text. Those of a stranger's text that follow the label
// have a mark, so that none can pass for another label.
func (p *painter) labelled(label, text string, untrusted bool, width int) []string {
	s, further := p.theme.Text, "  "
	if untrusted {
		s, further = p.theme.Untrusted, "  "+p.theme.Border.Render("│ ")
	}
	spans := []style.Span{{Text: label, Style: p.theme.Label}, {Text: text, Style: s}}
	return prefixed(style.WrapSpans(spans, max(width-style.Width(further), leastColumns)), further, "  ")
}

// text makes lines of a stranger's text of several lines, each with a mark, so that none
// can pass for one of the program.
func (p *painter) text(text string, width int, all bool) (lines []string, cut bool) {
	shown := text
	if !all {
		shown, cut = cutText(text)
	}
	for part := range strings.SplitSeq(shown, "\n") {
		lines = append(lines, style.WrapSpans([]style.Span{{Text: part, Style: p.theme.Untrusted}}, max(width-2, leastColumns))...)
	}
	if !all && len(lines) > foldedLines {
		lines, cut = lines[:foldedLines], true
	}
	lines = prefixed(lines, p.theme.Border.Render("│ "), "")
	if cut {
		lines = append(lines, p.more(text, width))
	}
	return lines, cut
}

// more tells that a text is longer.
func (p *painter) more(text string, width int) string {
	return p.theme.Dim.Render(style.Fit(fmt.Sprintf("│ … %s in all; opened, everything is shown", size(len(text))), width))
}

// cutText cuts a text that is too long to be shown folded.
func cutText(text string) (shown string, cut bool) {
	if len(text) > foldedBytes {
		text, cut = strings.ToValidUTF8(text[:foldedBytes], ""), true
	}
	lines := 0
	for i := range len(text) {
		if text[i] == '\n' {
			if lines++; lines >= foldedLines {
				return text[:i], true
			}
		}
	}
	return text, cut
}

// size is a number of bytes in words.
func size(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return ui.Grouped(int64(n)) + " bytes"
}
