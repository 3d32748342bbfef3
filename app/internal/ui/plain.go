package ui

import (
	"strconv"
	"strings"
)

// Plain returns a document as text for a terminal of so many columns, 80 if width is
// 0: without colours, wrapped, links as "text <address>". It has no control character
// but newlines, and ends with one unless it is empty.
func Plain(doc *Node, width int) string {
	if doc == nil {
		return ""
	}
	if width <= 0 {
		width = usualWidth
	}
	w := &plainWriter{}
	w.blocks(doc.Nodes, max(width, leastWidth/2), "\n")
	return w.b.String()
}

// leastText is the fewest columns that text is wrapped to, however deep it stands.
const leastText = 10

// A plainWriter writes blocks as text.
type plainWriter struct {
	b      strings.Builder
	prefix string // of each line
	first  string // of the next line, in the place of prefix, if set
}

// line writes a line of text.
func (w *plainWriter) line(s string) {
	prefix := w.prefix
	if w.first != "" {
		prefix, w.first = w.first, ""
	}
	w.b.WriteString(strings.TrimRight(prefix+s, " ") + "\n")
}

// blocks writes blocks with something between them.
func (w *plainWriter) blocks(list []*Node, width int, between string) {
	for i, n := range list {
		if i > 0 && between != "" {
			w.line("")
		}
		w.block(n, width)
	}
}

// nested writes blocks behind a prefix.
func (w *plainWriter) nested(list []*Node, width int, first, rest, between string) {
	outer := w.prefix
	start := outer
	if w.first != "" {
		start = w.first
	}
	w.first, w.prefix = start+first, outer+rest
	w.blocks(list, max(width-len(rest), leastText), between)
	if w.first != "" { // there was nothing
		w.line("")
	}
	w.prefix = outer
}

func (w *plainWriter) block(n *Node, width int) {
	switch n.Kind {
	case NodeHeading:
		w.wrapped(strings.Repeat("#", n.Level)+" "+flat(n.Nodes), width)
	case NodeRule:
		w.line("---")
	case NodeQuote:
		w.nested(n.Nodes, width, "> ", "> ", "\n")
	case NodeList:
		for i, item := range n.Nodes {
			bullet := "- "
			if n.Start > 0 {
				bullet = strconv.Itoa(n.Start-1+i) + ". "
			}
			w.nested(item.Nodes, width, bullet, strings.Repeat(" ", len(bullet)), "")
		}
	case NodeCodeBlock:
		for line := range strings.SplitSeq(n.Text, "\n") {
			for _, part := range hardBreak(strings.ReplaceAll(line, "\t", "    "), max(width-len(codeMark), leastText)) {
				w.line(codeMark + part)
			}
		}
	case NodeTable:
		for _, row := range n.Nodes {
			cells := make([]string, len(row.Nodes))
			for i, cell := range row.Nodes {
				cells[i] = strings.ReplaceAll(flat(cell.Nodes), "\n", " ")
			}
			w.wrapped(strings.Join(cells, " | "), width)
		}
	default:
		w.wrapped(flat(n.Nodes), width)
	}
}

// codeMark begins each line of code.
const codeMark = "  "

// wrapped writes text that may hold newlines, wrapped.
func (w *plainWriter) wrapped(s string, width int) {
	for line := range strings.SplitSeq(s, "\n") {
		t := &wrapper{width: width}
		t.text(line)
		for part := range strings.SplitSeq(strings.TrimSuffix(t.end(), "\n"), "\n") {
			w.line(part)
		}
	}
}

// flat is the text of inline nodes.
func flat(list []*Node) string {
	var b strings.Builder
	for _, n := range list {
		switch n.Kind {
		case NodeText:
			b.WriteString(n.Text)
		case NodeCode:
			b.WriteString("`" + n.Text + "`")
		case NodeBreak:
			b.WriteByte('\n')
		case NodeLink:
			if text := flat(n.Nodes); text != "" && text != n.URL {
				b.WriteString(text + " ")
			}
			b.WriteString("<" + n.URL + ">")
		default:
			b.WriteString(flat(n.Nodes))
		}
	}
	return b.String()
}

// hardBreak breaks a text into parts of so many columns.
func hardBreak(s string, width int) []string {
	var parts []string
	from, at := 0, 0
	for i, r := range s {
		if w := columns(r); at+w > width {
			parts = append(parts, s[from:i])
			from, at = i, w
		} else {
			at += w
		}
	}
	return append(parts, s[from:])
}

// A wrapper breaks a text between its words.
type wrapper struct {
	width int
	rest  string // begins each line but the first
	b     strings.Builder
	at    int // columns of the line until here
}

// text adds a text of one line.
func (w *wrapper) text(s string) {
	lead := indentOf(s)
	w.b.WriteString(s[:lead])
	w.at += lead
	start := true
	for word := range strings.SplitSeq(s[lead:], " ") {
		size := textColumns(word)
		switch {
		case start:
		case w.at+1+size <= w.width:
			w.b.WriteByte(' ')
			w.at++
		default:
			w.newline()
		}
		start = false
		for i, part := range hardBreak(word, max(w.width-len(w.rest), leastText)) {
			if i > 0 {
				w.newline()
			}
			w.b.WriteString(part)
			w.at += textColumns(part)
		}
	}
}

func (w *wrapper) newline() {
	w.b.WriteString("\n" + w.rest)
	w.at = len(w.rest)
}

// end returns the text, with a newline.
func (w *wrapper) end() string { return w.b.String() + "\n" }
