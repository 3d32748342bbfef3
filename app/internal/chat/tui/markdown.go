package tui

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/ui"
)

// leastColumns is the narrowest text: parts that are indented further are cut at the edge.
const leastColumns = 8

// A painter makes lines of what is shown. Everything that it is given is escaped.
type painter struct{ theme *style.Theme }

// document makes lines of markdown.
func (p *painter) document(doc *ui.Node, width int) []string { return p.blocks(doc.Nodes, width) }

// blocks makes lines of blocks, with a blank line between them.
func (p *painter) blocks(nodes []*ui.Node, width int) []string {
	var out []string
	for i, n := range nodes {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, p.block(n, max(width, leastColumns))...)
	}
	return out
}

// block makes lines of a block.
func (p *painter) block(n *ui.Node, width int) []string {
	t := p.theme
	switch n.Kind {
	case ui.NodeHeading:
		return style.WrapSpans(p.inline(nil, n.Nodes, t.Heading), width)
	case ui.NodeList:
		return p.list(n, width)
	case ui.NodeCodeBlock:
		lines := style.WrapHard(strings.TrimSuffix(n.Text, "\n"), width-2)
		for i := range lines {
			lines[i] = t.Code.Render(lines[i])
		}
		out := prefixed(lines, t.Border.Render("│ "), "")
		if n.Language != "" {
			out = append([]string{t.Dim.Render(style.Fit("  "+n.Language, width))}, out...)
		}
		return out
	case ui.NodeQuote:
		return prefixed(p.blocks(n.Nodes, width-2), t.Quote.Render("▌ "), "")
	case ui.NodeRule:
		return []string{t.Border.Render(strings.Repeat("─", min(width, 40)))}
	case ui.NodeTable:
		return p.table(n, width)
	case ui.NodeDocument, ui.NodeItem:
		return p.blocks(n.Nodes, width)
	case ui.NodeParagraph, ui.NodeRow, ui.NodeCell:
		return style.WrapSpans(p.inline(nil, n.Nodes, t.Text), width)
	case ui.NodeText, ui.NodeCode, ui.NodeEmphasis, ui.NodeStrong, ui.NodeLink, ui.NodeBreak:
	}
	return style.WrapSpans(p.inline(nil, []*ui.Node{n}, t.Text), width)
}

// prefixed puts something before each line; before the first one first, if it is not empty.
func prefixed(lines []string, rest, first string) []string {
	for i := range lines {
		if i == 0 && first != "" {
			lines[i] = first + lines[i]
			continue
		}
		lines[i] = rest + lines[i]
	}
	return lines
}

// list makes lines of a list.
func (p *painter) list(n *ui.Node, width int) []string {
	var out []string
	for i, item := range n.Nodes {
		mark := "• "
		if n.Start > 0 {
			mark = strconv.Itoa(n.Start-1+i) + ". "
		}
		columns := style.Width(mark)
		var lines []string
		for j, child := range item.Nodes {
			if j > 0 && child.Kind != ui.NodeList {
				lines = append(lines, "")
			}
			lines = append(lines, p.block(child, max(width-columns, leastColumns))...)
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
		out = append(out, prefixed(lines, strings.Repeat(" ", columns), p.theme.Dim.Render(mark))...)
	}
	return out
}

// inline makes spans of inline nodes.
func (p *painter) inline(spans []style.Span, nodes []*ui.Node, s lipgloss.Style) []style.Span {
	t := p.theme
	for _, n := range nodes {
		switch n.Kind {
		case ui.NodeText:
			spans = append(spans, style.Span{Text: n.Text, Style: s})
		case ui.NodeCode:
			spans = append(spans, style.Span{Text: n.Text, Style: t.Code})
		case ui.NodeBreak:
			spans = append(spans, style.Span{Text: "\n", Style: s})
		case ui.NodeEmphasis:
			spans = p.inline(spans, n.Nodes, t.Emphasis.Inherit(s))
		case ui.NodeStrong:
			spans = p.inline(spans, n.Nodes, t.Strong.Inherit(s))
		case ui.NodeLink:
			before := len(spans)
			spans = p.inline(spans, n.Nodes, t.Link)
			if textOf(spans[before:]) != n.URL { // where it leads is always shown
				spans = append(spans, style.Span{Text: " <" + n.URL + ">", Style: t.Dim})
			}
		default:
			spans = p.inline(spans, n.Nodes, s)
		}
	}
	return spans
}

// textOf is the text of spans.
func textOf(spans []style.Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// table makes lines of a table: columns where they fit, else each cell on a line.
func (p *painter) table(n *ui.Node, width int) []string {
	t := p.theme
	var widths []int
	for _, row := range n.Nodes {
		for i, cell := range row.Nodes {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], style.Width(textOf(p.inline(nil, cell.Nodes, t.Text))))
		}
	}
	total := 3 * max(len(widths)-1, 0)
	for _, w := range widths {
		total += w
	}
	if total > width {
		return p.longTable(n, width)
	}
	var out []string
	for i, row := range n.Nodes {
		var b strings.Builder
		for j, cell := range row.Nodes {
			if j > 0 {
				b.WriteString(t.Border.Render(" │ "))
			}
			s := t.Text
			if i == 0 {
				s = t.Strong
			}
			spans := p.inline(nil, cell.Nodes, s)
			b.WriteString(strings.Join(style.WrapSpans(spans, width), " "))
			b.WriteString(strings.Repeat(" ", max(widths[j]-style.Width(textOf(spans)), 0)))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
		if i == 0 {
			out = append(out, t.Border.Render(strings.Repeat("─", total)))
		}
	}
	return out
}

// longTable makes lines "head: cell" of a table that is too wide.
func (p *painter) longTable(n *ui.Node, width int) []string {
	var out []string
	var head []*ui.Node
	for i, row := range n.Nodes {
		if i == 0 {
			head = row.Nodes
			continue
		}
		if i > 1 {
			out = append(out, "")
		}
		for j, cell := range row.Nodes {
			var spans []style.Span
			if j < len(head) {
				spans = append(p.inline(nil, head[j].Nodes, p.theme.Strong), style.Span{Text: ": ", Style: p.theme.Strong})
			}
			out = append(out, style.WrapSpans(p.inline(spans, cell.Nodes, p.theme.Text), width)...)
		}
	}
	return out
}
