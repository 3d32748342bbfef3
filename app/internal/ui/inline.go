package ui

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/host"
)

// plainText is a text as it was written, on one line.
func plainText(s string) *Node {
	return &Node{Kind: NodeText, Text: host.EscapeLine(strings.NewReplacer("\n", " ", "\t", " ").Replace(s))}
}

// inline reads the text of a paragraph, heading or cell.
func (p *parser) inline(s string) []*Node {
	s = strings.Trim(s, " \t\n")
	return p.span(s, true)
}

// span reads inline markdown. Links hold no links.
func (p *parser) span(s string, links bool) []*Node {
	if p.full() {
		return []*Node{p.node(plainText(s))}
	}
	t := &inline{parser: p, s: s, links: links, ticks: tickRuns(s)}
	t.closing = closings(s)
	t.read()
	return p.tree(t.tokens)
}

// A token is a node, or a run of * or _ that may begin or end emphasis.
type token struct {
	node *Node // nil for a run
	run  string
	// canOpen and canClose say what the run may do by the characters around it.
	canOpen, canClose bool
	// opens and closes are how long the emphases are that begin and end here, from the
	// outermost to the innermost for opens, and the other way round for closes.
	opens, closes []int
	left          int // characters of the run that are in no emphasis
}

// An inline reads one text.
type inline struct {
	parser  *parser
	s       string
	links   bool
	ticks   map[int][]int // where runs of so many backticks begin
	closing map[int]int   // where the bracket of an index is closed
	tokens  []*token
	text    strings.Builder
}

// tickRuns finds the runs of backticks in a text, by their length.
func tickRuns(s string) map[int][]int {
	if strings.IndexByte(s, '`') < 0 {
		return nil
	}
	runs := make(map[int][]int)
	for i := 0; i < len(s); {
		n := runLength(s[i:], '`')
		if n > 0 {
			runs[n] = append(runs[n], i)
		}
		i += max(n, 1)
	}
	return runs
}

// runLength counts how often a byte comes at the beginning.
func runLength(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

// closings finds the closing bracket of each opening one.
func closings(s string) map[int]int {
	if strings.IndexByte(s, '[') < 0 {
		return nil
	}
	pairs := make(map[int]int)
	var open []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			open = append(open, i)
		case ']':
			if n := len(open); n > 0 {
				pairs[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
	return pairs
}

// read makes tokens of the text.
func (t *inline) read() {
	for i := 0; i < len(t.s); {
		if t.parser.full() {
			t.flush()
			t.tokens = append(t.tokens, &token{node: plainText(t.s[i:])})
			return
		}
		used := 0
		switch t.s[i] {
		case '\\':
			used = t.escape(i)
		case '`':
			used = t.code(i)
		case '*', '_':
			used = t.run(i)
		case '[':
			used = t.link(i, i)
		case '!':
			if strings.HasPrefix(t.s[i+1:], "[") {
				used = t.link(i, i+1)
			}
		case '<', 'h':
			used = t.address(i)
		case '\n':
			used = t.newline(i)
		}
		if used == 0 {
			t.text.WriteByte(t.s[i])
			used = 1
		}
		i += used
	}
	t.flush()
}

// add ends the text before a node.
func (t *inline) add(n *Node) {
	t.flush()
	t.tokens = append(t.tokens, &token{node: t.parser.node(n)})
}

// flush makes a node of the text until here.
func (t *inline) flush() {
	if t.text.Len() == 0 {
		return
	}
	s := strings.ReplaceAll(html.UnescapeString(t.text.String()), "\t", " ")
	t.text.Reset()
	t.tokens = append(t.tokens, &token{node: t.parser.node(&Node{Kind: NodeText, Text: host.EscapeLine(s)})})
}

// escape reads a backslash.
func (t *inline) escape(i int) int {
	if i+1 == len(t.s) {
		return 0
	}
	switch c := t.s[i+1]; {
	case c == '\n':
		t.add(&Node{Kind: NodeBreak})
		return 2 + indentOf(t.s[i+2:])
	case c == '&':
		t.text.WriteString("&amp;")
		return 2
	case c < utf8.RuneSelf && (unicode.IsPunct(rune(c)) || unicode.IsSymbol(rune(c))):
		t.text.WriteByte(c)
		return 2
	}
	return 0
}

// newline reads the end of a line: a break after two blanks, else a blank.
func (t *inline) newline(i int) int {
	used := 1 + indentOf(t.s[i+1:])
	before := t.s[:i]
	bare := len(strings.TrimRight(before[max(0, i-2):], " "))
	if i >= 2 && bare == 0 {
		text := strings.TrimRight(t.text.String(), " ")
		t.text.Reset()
		t.text.WriteString(text)
		t.add(&Node{Kind: NodeBreak})
		return used
	}
	t.text.WriteByte(' ')
	return used
}

// code reads a span of code: up to a run of as many backticks.
func (t *inline) code(i int) int {
	n := runLength(t.s[i:], '`')
	runs := t.ticks[n]
	for len(runs) > 0 && runs[0] <= i {
		runs = runs[1:]
	}
	t.ticks[n] = runs
	if len(runs) == 0 {
		t.text.WriteString(t.s[i : i+n])
		return n
	}
	end := runs[0]
	text := strings.NewReplacer("\n", " ", "\t", " ").Replace(t.s[i+n : end])
	if len(text) > 2 && text[0] == ' ' && text[len(text)-1] == ' ' && strings.Trim(text, " ") != "" {
		text = text[1 : len(text)-1]
	}
	t.add(&Node{Kind: NodeCode, Text: host.EscapeLine(text)})
	return end + n - i
}

// run reads * or _, which may begin or end emphasis.
func (t *inline) run(i int) int {
	n := runLength(t.s[i:], t.s[i])
	before, _ := utf8.DecodeLastRuneInString(t.s[:i])
	after, _ := utf8.DecodeRuneInString(t.s[i+n:])
	if i == 0 {
		before = ' '
	}
	if i+n == len(t.s) {
		after = ' '
	}
	punct := func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
	left := !unicode.IsSpace(after) && (!punct(after) || unicode.IsSpace(before) || punct(before))
	right := !unicode.IsSpace(before) && (!punct(before) || unicode.IsSpace(after) || punct(after))
	tok := &token{run: t.s[i : i+n], left: n, canOpen: left, canClose: right}
	if t.s[i] == '_' { // not inside of words
		tok.canOpen = left && (!right || punct(before))
		tok.canClose = right && (!left || punct(after))
	}
	t.flush()
	t.tokens = append(t.tokens, tok)
	t.parser.nodes++
	return n
}

// link reads [text](address), which begins at an index; an image has its bracket
// one later.
func (t *inline) link(i, bracket int) int {
	end, closed := t.closing[bracket]
	if !closed || !t.links || !strings.HasPrefix(t.s[end+1:], "(") {
		return 0
	}
	raw, used := destination(t.s[end+2 : min(len(t.s), end+2+maxURL)])
	if used == 0 {
		return 0
	}
	used += end + 2 - i
	address := linkURL(html.UnescapeString(raw))
	if address == "" {
		t.flush()
		t.tokens = append(t.tokens, &token{node: t.parser.node(plainText(t.s[i : i+used]))})
		return used
	}
	n := &Node{Kind: NodeLink, URL: address}
	if bracket > i {
		n.Nodes = []*Node{plainText("image: " + strings.TrimSpace(t.s[bracket+1:end]))}
	} else {
		n.Nodes = t.parser.span(t.s[bracket+1:end], false)
	}
	t.add(n)
	return used
}

// destination reads an address and perhaps a title, up to the closing parenthesis. It
// says how many bytes they take, or 0 if it is no link.
func destination(s string) (address string, used int) {
	rest := strings.TrimLeft(s, " \n")
	if strings.HasPrefix(rest, "<") {
		end := strings.IndexAny(rest, ">\n")
		if end < 0 || rest[end] != '>' {
			return "", 0
		}
		address, rest = rest[1:end], rest[end+1:]
	} else {
		end, depth := 0, 0
	scan:
		for ; end < len(rest); end++ {
			switch rest[end] {
			case ' ', '\n', '\t':
				break scan
			case '(':
				depth++
			case ')':
				if depth == 0 {
					break scan
				}
				depth--
			}
		}
		address, rest = rest[:end], rest[end:]
	}
	rest = strings.TrimLeft(rest, " \n")
	if rest != "" && strings.IndexByte(`"'`, rest[0]) >= 0 {
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return "", 0
		}
		rest = strings.TrimLeft(rest[end+2:], " \n")
	}
	if !strings.HasPrefix(rest, ")") {
		return "", 0
	}
	return address, len(s) - len(rest) + 1
}

// address reads an address that stands in the text, or <address>.
func (t *inline) address(i int) int {
	rest := t.s[i:min(len(t.s), i+maxURL)]
	if rest[0] == '<' {
		end := strings.IndexAny(rest[1:], "<> \n")
		if !t.links || end < 0 || rest[end+1] != '>' {
			return 0
		}
		u := linkURL(rest[1 : end+1])
		if u == "" {
			return 0
		}
		t.add(&Node{Kind: NodeLink, URL: u, Nodes: []*Node{{Kind: NodeText, Text: u}}})
		return end + 2
	}
	if !t.links || !strings.HasPrefix(rest, "https://") && !strings.HasPrefix(rest, "http://") {
		return 0
	}
	if before, _ := utf8.DecodeLastRuneInString(t.s[:i]); i > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before)) {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("<>\"`[]|\\", r) })
	if end < 0 {
		end = len(rest)
	}
	end = len(strings.TrimRight(rest[:end], "*_~.,:;!?'"))
	if strings.HasSuffix(rest[:end], ")") && strings.Count(rest[:end], ")") > strings.Count(rest[:end], "(") {
		end--
	}
	u := linkURL(rest[:end])
	if u == "" {
		return 0
	}
	t.add(&Node{Kind: NodeLink, URL: u, Nodes: []*Node{{Kind: NodeText, Text: u}}})
	return end
}

// tree finds which runs belong together, and makes nodes of the tokens.
//
// Each run that may end emphasis ends that of the last run of its kind that may begin
// one; what began in between is text. So every run is looked at twice at most.
func (p *parser) tree(tokens []*token) []*Node {
	var open []*token
	waiting := make(map[byte]int)
	for _, t := range tokens {
		if t.node != nil {
			continue
		}
		kind := t.run[0]
		for t.canClose && t.left > 0 && waiting[kind] > 0 {
			top := open[len(open)-1]
			if top.run[0] != kind || top.left == 0 {
				open = open[:len(open)-1]
				waiting[top.run[0]]--
				continue
			}
			n := 1
			if t.left >= 2 && top.left >= 2 {
				n = 2
			}
			top.left, t.left = top.left-n, t.left-n
			top.opens, t.closes = append(top.opens, n), append(t.closes, n)
		}
		if t.canOpen && t.left > 0 {
			open = append(open, t)
			waiting[kind]++
		}
	}
	return p.build(tokens)
}

// build makes nodes of tokens whose runs are matched.
func (p *parser) build(tokens []*token) []*Node {
	root := &Node{}
	stack := []*Node{root}
	top := func() *Node { return stack[min(len(stack)-1, maxNesting)] }
	for _, t := range tokens {
		if t.node != nil {
			top().Nodes = append(top().Nodes, t.node)
			continue
		}
		for range t.closes {
			stack = stack[:len(stack)-1]
		}
		if t.left > 0 {
			top().Nodes = append(top().Nodes, p.node(&Node{Kind: NodeText, Text: t.run[:t.left]}))
		}
		for i := len(t.opens) - 1; i >= 0; i-- { // the last match is the outermost
			n := p.node(&Node{Kind: NodeEmphasis})
			if t.opens[i] == 2 {
				n.Kind = NodeStrong
			}
			if len(stack) <= maxNesting {
				top().Nodes = append(top().Nodes, n)
			}
			stack = append(stack, n)
		}
	}
	return root.Nodes
}
