package ui

import (
	"net/url"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// A Node is a part of a markdown text. A face makes elements of nodes and of nothing
// else: there is no HTML, no image and no link to run something.
type Node struct {
	Kind NodeKind
	// Text is that of NodeText, NodeCode and NodeCodeBlock, escaped by host.Escape.
	// Only the Text of a NodeCodeBlock may hold newlines and tabs.
	Text string
	// URL is the address of a NodeLink: http, https or mailto.
	URL string
	// Language is that of a NodeCodeBlock, escaped, or empty.
	Language string
	// Level is 1 to 6 for a NodeHeading.
	Level int
	// Start is the number of the first item of a NodeList that is numbered, plus 1;
	// 0 says that it is not numbered.
	Start int
	Nodes []*Node
}

// A NodeKind says what a node is.
type NodeKind string

// The kinds of nodes. A document holds blocks; so do items and quotes. Paragraphs,
// headings, cells, links, emphasis and strong hold inline nodes.
const (
	NodeDocument  NodeKind = "document"
	NodeParagraph NodeKind = "paragraph"
	NodeHeading   NodeKind = "heading"
	NodeList      NodeKind = "list"
	NodeItem      NodeKind = "item"
	NodeCodeBlock NodeKind = "code-block"
	NodeQuote     NodeKind = "quote"
	NodeRule      NodeKind = "rule"
	NodeTable     NodeKind = "table" // of rows; the first is the head
	NodeRow       NodeKind = "row"
	NodeCell      NodeKind = "cell"

	NodeText     NodeKind = "text"
	NodeCode     NodeKind = "code"
	NodeEmphasis NodeKind = "emphasis"
	NodeStrong   NodeKind = "strong"
	NodeLink     NodeKind = "link"
	NodeBreak    NodeKind = "break"
)

// Bounds of a document. What is deeper, or more, is text.
const (
	maxDepth   = 8       // quotes and lists in one another
	maxNesting = 8       // emphasis in emphasis
	maxNodes   = 50_000  // about
	maxSource  = 1 << 20 // bytes; the rest is cut off, and the text says so
	maxURL     = 2048    // bytes
	maxCells   = 32      // of a row
)

// ParseMarkdown reads a text of a model or a server, in time linear to its length. It
// knows what CommonMark calls paragraphs, headings, lists, quotes, code, rules,
// emphasis, inline links and hard breaks, and tables with pipes. HTML is shown as
// text; an image is a link to it; a link that leads anywhere but to http, https or
// mail is text as it was written. There is no error: all text is markdown.
func ParseMarkdown(source string) *Node {
	note := ""
	if len(source) > maxSource {
		source = source[:boundary(source, maxSource)]
		note = "[the text is longer than can be shown here]"
	}
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	p := &parser{}
	doc := &Node{Kind: NodeDocument, Nodes: p.blocks(strings.Split(source, "\n"), 0)}
	if note != "" {
		doc.Nodes = append(doc.Nodes, &Node{Kind: NodeParagraph, Nodes: []*Node{{Kind: NodeText, Text: note}}})
	}
	return doc
}

// A parser reads blocks. Each level of quotes and lists copies its lines, so that the
// time is that of the source times maxDepth at most.
type parser struct{ nodes int }

// full reports whether there are so many nodes that the rest is text.
func (p *parser) full() bool { return p.nodes > maxNodes }

// node counts a node.
func (p *parser) node(n *Node) *Node {
	p.nodes++
	return n
}

// blocks reads lines as blocks.
func (p *parser) blocks(lines []string, depth int) []*Node {
	var list []*Node
	for i := 0; i < len(lines); {
		if blank(lines[i]) {
			i++
			continue
		}
		if depth >= maxDepth || p.full() {
			return append(list, p.verbatim(lines[i:]))
		}
		n, used := p.block(lines[i:], depth)
		list = append(list, p.node(n))
		i += used
	}
	return list
}

// verbatim is lines that are not read any more.
func (p *parser) verbatim(lines []string) *Node {
	return p.node(&Node{Kind: NodeParagraph, Nodes: []*Node{plainText(strings.Join(lines, " "))}})
}

// block reads the block that begins with the first line, which is not blank, and
// says of how many lines it is.
func (p *parser) block(lines []string, depth int) (*Node, int) {
	line := lines[0]
	switch k := startOf(line); k {
	case startFence:
		return fenced(lines)
	case startHeading:
		text := strings.TrimLeft(line, " ")
		level := len(text) - len(strings.TrimLeft(text, "#"))
		text = strings.TrimSpace(text[level:])
		if bare := strings.TrimRight(text, "#"); bare == "" || strings.HasSuffix(bare, " ") {
			text = strings.TrimSpace(bare)
		}
		return &Node{Kind: NodeHeading, Level: level, Nodes: p.inline(text)}, 1
	case startRule:
		return &Node{Kind: NodeRule}, 1
	case startQuote:
		return p.quote(lines, depth)
	case startItem:
		return p.list(lines, depth)
	case startCode:
		return indentedCode(lines)
	case startText:
	}
	if n, used := p.table(lines); n != nil {
		return n, used
	}
	return p.paragraph(lines)
}

// A start is what a line can begin.
type start uint8

const (
	startText start = iota
	startFence
	startHeading
	startRule
	startQuote
	startItem
	startCode // indented by four spaces; not in a paragraph
)

// startOf says what a line begins that is not blank.
func startOf(line string) start {
	if indentOf(line) >= 4 {
		return startCode
	}
	text := strings.TrimLeft(line, " ")
	switch text[0] {
	case '`', '~':
		if fence, _ := fenceOf(line); fence != "" {
			return startFence
		}
	case '#':
		level := len(text) - len(strings.TrimLeft(text, "#"))
		if level <= 6 && (level == len(text) || text[level] == ' ' || text[level] == '\t') {
			return startHeading
		}
	case '>':
		return startQuote
	}
	if isRule(text) {
		return startRule
	}
	if _, ok := markerOf(line); ok {
		return startItem
	}
	return startText
}

// interrupts reports whether a line ends a paragraph.
func interrupts(line string) bool {
	switch startOf(line) {
	case startText, startCode:
		return false
	case startItem:
		m, _ := markerOf(line)
		return m.number <= 1 && !blank(line[m.width:]) // a number in a text begins no list
	case startFence, startHeading, startRule, startQuote:
	}
	return true
}

// paragraph reads lines of text, and a heading that is underlined.
func (p *parser) paragraph(lines []string) (*Node, int) {
	end := 1
	for end < len(lines) && !blank(lines[end]) {
		if under := strings.TrimSpace(lines[end]); indentOf(lines[end]) < 4 {
			if level := underlineOf(under); level > 0 {
				return &Node{Kind: NodeHeading, Level: level, Nodes: p.inline(strings.Join(lines[:end], "\n"))}, end + 1
			}
		}
		if interrupts(lines[end]) {
			break
		}
		end++
	}
	return &Node{Kind: NodeParagraph, Nodes: p.inline(strings.Join(lines[:end], "\n"))}, end
}

// underlineOf is the level of the heading that a line underlines, or 0.
func underlineOf(line string) int {
	switch {
	case strings.Trim(line, "=") == "":
		return 1
	case strings.Trim(line, "-") == "":
		return 2
	}
	return 0
}

// quote reads lines that begin with >, and those that go on with their text.
func (p *parser) quote(lines []string, depth int) (*Node, int) {
	var inner []string
	end := 0
	for ; end < len(lines) && !blank(lines[end]); end++ {
		text := strings.TrimLeft(lines[end], " ")
		switch {
		case indentOf(lines[end]) < 4 && text[0] == '>':
			inner = append(inner, strings.TrimPrefix(text[1:], " "))
			continue
		case len(inner) > 0 && !blank(inner[len(inner)-1]) && !interrupts(lines[end]):
			inner = append(inner, text)
			continue
		}
		break
	}
	return &Node{Kind: NodeQuote, Nodes: p.blocks(inner, depth+1)}, end
}

// A marker begins an item of a list.
type marker struct {
	kind   byte // the bullet, or what follows the number
	number int  // -1 for a bullet
	width  int  // of the marker with the blanks before it
	indent int  // of the text of the item
}

// markerOf reads the marker at the beginning of a line.
func markerOf(line string) (marker, bool) {
	before := indentOf(line)
	m := marker{number: -1, width: before}
	digits := m.width
	for digits < len(line) && digits < m.width+9 && '0' <= line[digits] && line[digits] <= '9' {
		digits++
	}
	switch {
	case before >= 4 || digits == len(line):
		return m, false
	case digits > m.width && (line[digits] == '.' || line[digits] == ')'):
		m.number = 0
		for _, d := range line[m.width:digits] {
			m.number = m.number*10 + int(d-'0')
		}
	case digits > m.width || !strings.ContainsRune("-+*", rune(line[digits])):
		return m, false
	}
	m.kind, m.width = line[digits], digits+1
	after := indentOf(line[m.width:])
	switch rest := line[m.width:]; {
	case blank(rest):
		after = 1
	case after == 0:
		return m, false
	case after > 4: // the item begins with indented code
		after = 1
	}
	m.indent = m.width + after
	return m, true
}

// list reads the items of a list.
func (p *parser) list(lines []string, depth int) (*Node, int) {
	first, _ := markerOf(lines[0])
	n := &Node{Kind: NodeList, Start: first.number + 1}
	at := 0
	for at < len(lines) && !p.full() {
		next := at
		for at > 0 && next < len(lines) && blank(lines[next]) {
			next++
		}
		if next == len(lines) || startOf(lines[next]) != startItem {
			break
		}
		m, _ := markerOf(lines[next])
		if m.kind != first.kind {
			break
		}
		item, used := itemLines(lines[next:], m)
		n.Nodes = append(n.Nodes, p.node(&Node{Kind: NodeItem, Nodes: p.blocks(item, depth+1)}))
		at = next + used
	}
	return n, max(at, 1)
}

// itemLines are the lines of an item, without its indentation, and how many lines
// they take.
func itemLines(lines []string, m marker) ([]string, int) {
	item := []string{dedent(lines[0], m.indent)}
	end := 1 // after the last line that is not blank
	for i := 1; i < len(lines); i++ {
		line := lines[i]
		switch {
		case blank(line):
			item = append(item, "")
			continue
		case indentOf(line) >= m.indent:
			item = append(item, dedent(line, m.indent))
		case end == i && !interrupts(line) && startOf(line) != startItem && !blank(item[len(item)-1]):
			item = append(item, strings.TrimLeft(line, " "))
		default:
			return item[:end], end
		}
		end = i + 1
	}
	return item[:end], end
}

// dedent cuts off the first bytes of a line.
func dedent(line string, n int) string {
	if len(line) <= n {
		return ""
	}
	return line[n:]
}

// fenceOf returns the fence with which a line begins, or "", and what follows it.
func fenceOf(line string) (fence, info string) {
	text := strings.TrimLeft(line, " ")
	if indentOf(line) >= 4 || text == "" || text[0] != '`' && text[0] != '~' {
		return "", ""
	}
	info = strings.TrimLeft(text, text[:1])
	fence = text[:len(text)-len(info)]
	if len(fence) < 3 || fence[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return fence, strings.TrimSpace(info)
}

// fenced reads a block of code between fences.
func fenced(lines []string) (*Node, int) {
	fence, info := fenceOf(lines[0])
	language, _, _ := strings.Cut(info, " ")
	before := indentOf(lines[0])
	var code []string
	end := 1
	for ; end < len(lines); end++ {
		if closing, rest := fenceOf(lines[end]); rest == "" && len(closing) >= len(fence) && closing[0] == fence[0] {
			end++
			break
		}
		code = append(code, dedent(lines[end], min(before, indentOf(lines[end]))))
	}
	return &Node{Kind: NodeCodeBlock, Language: lineOf(language), Text: host.Escape(strings.Join(code, "\n"))}, end
}

// lineOf is name for what may be empty.
func lineOf(s string) string { return host.EscapeLine(shorten(s, maxName)) }

// indentedCode reads lines that are indented by four spaces.
func indentedCode(lines []string) (*Node, int) {
	var code []string
	end := 0
	for i, line := range lines {
		if !blank(line) {
			if indentOf(line) < 4 {
				break
			}
			end = i + 1
		}
		code = append(code, dedent(line, 4))
	}
	return &Node{Kind: NodeCodeBlock, Text: host.Escape(strings.Join(code[:end], "\n"))}, end
}

// table reads a table: a head, a line of dashes, rows. It returns nil if there is none.
func (p *parser) table(lines []string) (*Node, int) {
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !isDelimiter(lines[1]) {
		return nil, 0
	}
	head := cellsOf(lines[0])
	if len(head) != len(cellsOf(lines[1])) {
		return nil, 0
	}
	n := &Node{Kind: NodeTable, Nodes: []*Node{p.row(head, len(head))}}
	end := 2
	for ; end < len(lines) && !blank(lines[end]) && !interrupts(lines[end]) && !p.full(); end++ {
		n.Nodes = append(n.Nodes, p.row(cellsOf(lines[end]), len(head)))
	}
	return n, end
}

// isDelimiter reports whether a line stands between the head of a table and its rows.
func isDelimiter(line string) bool {
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, " |:-") == ""
}

// cellsOf splits a row at its pipes.
func cellsOf(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	var cells []string
	from := 0
	for i := 0; i < len(line) && len(cells) < maxCells; i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	if rest := strings.TrimSpace(line[from:]); rest != "" {
		cells = append(cells, rest)
	}
	return cells
}

// row makes a row of so many cells.
func (p *parser) row(cells []string, columns int) *Node {
	n := p.node(&Node{Kind: NodeRow})
	for i := range columns {
		cell := p.node(&Node{Kind: NodeCell})
		if i < len(cells) {
			cell.Nodes = p.inline(cells[i])
		}
		n.Nodes = append(n.Nodes, cell)
	}
	return n
}

func blank(line string) bool { return strings.Trim(line, " \t") == "" }

// indentOf counts the spaces at the beginning of a line.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// isRule reports whether a text is three or more of one of - * _, perhaps with blanks.
func isRule(text string) bool {
	c := text[0]
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	return strings.Count(text, string(c)) >= 3 && strings.Trim(text, string(c)+" \t") == ""
}

// linkURL returns an address that a link may lead to, or "".
func linkURL(raw string) string {
	if len(raw) > maxURL || raw != host.EscapeLine(raw) {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", u.Scheme == "mailto" && u.Opaque != "":
		return u.String()
	}
	return ""
}
