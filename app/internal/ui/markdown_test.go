package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
)

// outline writes a tree in one line.
func outline(n *ui.Node) string {
	s := string(n.Kind)
	if n.Level > 0 {
		s += fmt.Sprint(n.Level)
	}
	if n.Start > 0 {
		s += fmt.Sprint(":", n.Start-1)
	}
	if n.Language != "" {
		s += ":" + n.Language
	}
	if n.URL != "" {
		s += "<" + n.URL + ">"
	}
	if n.Kind == ui.NodeText || n.Text != "" {
		s = strings.TrimPrefix(s, "text") + fmt.Sprintf("%q", n.Text)
	}
	if len(n.Nodes) > 0 {
		parts := make([]string, len(n.Nodes))
		for i, c := range n.Nodes {
			parts[i] = outline(c)
		}
		s += "(" + strings.Join(parts, " ") + ")"
	}
	return s
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ source, want string }{
		{"", ``},
		{"a\nb\n\nc", `paragraph("a b") paragraph("c")`},
		{"# A #\n## B\n####### C\nD\n=\nE\n---", `heading1("A") heading2("B") heading1("####### C D") heading2("E")`},
		{"- a\n- b\n  - c\n\n  d\n* e", `list(item(paragraph("a")) item(paragraph("b") list(item(paragraph("c"))) paragraph("d"))) list(item(paragraph("e")))`},
		{"3. a\nb\n4. c\n1) d", `list:3(item(paragraph("a b")) item(paragraph("c"))) list:1(item(paragraph("d")))`},
		{"it was\n1985. No list", `paragraph("it was 1985. No list")`},
		{"-\n- a", `list(item item(paragraph("a")))`},
		{"```go x\na\n\tb\n```\nc\n~~~\n```\n", "code-block:go\"a\\n\\tb\" paragraph(\"c\") code-block\"```\\n\""},
		{"    a\n\n     b\nc", `code-block"a\n\n b" paragraph("c")`},
		{"> a\n> > b\nc\n\nd", `quote(paragraph("a") quote(paragraph("b c"))) paragraph("d")`},
		{"***\n- - -\n___", `rule rule rule`},
		{"| a | b |\n|---|:-:|\n| 1 | *2* | 3 |\n| x\\|y |\n\nc", `table(row(cell("a") cell("b")) row(cell("1") cell(emphasis("2"))) row(cell("x|y") cell)) paragraph("c")`},
		{"a | b\nno table", `paragraph("a | b no table")`},
		{"*a* **b** ***c*** _d_ __e__", `paragraph(emphasis("a") " " strong("b") " " emphasis(strong("c")) " " emphasis("d") " " strong("e"))`},
		{"*a **b* c** a_b_c 2 * 3 * 4 *", `paragraph(emphasis("a " emphasis(emphasis("b") " c")) " a" "_" "b" "_" "c 2 " "*" " 3 " "*" " 4 " "*")`},
		{"`a` ``b`c`` `d", "paragraph(code\"a\" \" \" code\"b`c\" \" `d\")"},
		{"[a *b*](https://x.example/y \"title\") [c](<http://x.example/>) [m](mailto:a@x.example)", `paragraph(link<https://x.example/y>("a " emphasis("b")) " " link<http://x.example/>("c") " " link<mailto:a@x.example>("m"))`},
		{"[a](javascript:alert(1)) [b](/rel) [c](data:text/html,x) [d](file:///etc/passwd)", `paragraph("[a](javascript:alert(1))" " " "[b](/rel)" " " "[c](data:text/html,x)" " " "[d](file:///etc/passwd)")`},
		{"![pic](https://x.example/p.png) ![](http://x.example)", `paragraph(link<https://x.example/p.png>("image: pic") " " link<http://x.example>("image: "))`},
		{"see https://x.example/a_b_(c). <https://y.example> xhttp://no.example", `paragraph("see " link<https://x.example/a_b_(c)>("https://x.example/a_b_(c)") ". " link<https://y.example>("https://y.example") " xhttp://no.example")`},
		{"<b onclick=x>a</b> <script>&lt;&#27;[2J&amp;amp;", `paragraph("<b onclick=x>a</b> <script><\\u{1b}[2J&amp;")`},
		{"a  \nb\\\nc \\*d\\* \\q", `paragraph("a" break "b" break "c *d* \\q")`},
		{"a\u202eb\x1b[2K\x07\x9b", `paragraph("a\\u{202e}b\\u{1b}[2K\\u{7}\\x9b")`},
		{"[a](https://x.example/\u202e)", `paragraph("[a](https://x.example/\\u{202e})")`},
		{"a\r\nb\rc", `paragraph("a b c")`},
	} {
		doc := ui.ParseMarkdown(test.source)
		want := "document"
		if test.want != "" {
			want += "(" + test.want + ")"
		}
		if got := outline(doc); got != want {
			t.Errorf("%q:\n got %s\nwant %s", test.source, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	source := "# A heading\n\nSome *text* with `code` and a [link](https://example.com/) that goes on and on.\n\n" +
		"1. one\n2. two\n   - nested item with more words than fit\n\n> quoted\n> more\n\n```sh\nrm\t-rf ./a-long-name-that-does-not-fit-here\n```\n\n---\n\n" +
		"| a | b |\n|-|-|\n| 1 | 2 |\n\nhttps://example.com/x\n\n\x1b[2J"
	golden(t, "plain-40", ui.Plain(ui.ParseMarkdown(source), 40))
	golden(t, "plain-12", ui.Plain(ui.ParseMarkdown(source), 12))
	if got := ui.Plain(nil, 0) + ui.Plain(ui.ParseMarkdown("  \n"), 0); got != "" {
		t.Errorf("nothing is %q", got)
	}
}

// depth is the greatest depth of a tree, nodes how many nodes it has.
func depth(n *ui.Node) (deep, nodes int) {
	nodes = 1
	for _, c := range n.Nodes {
		d, m := depth(c)
		deep, nodes = max(deep, d), nodes+m
	}
	return deep + 1, nodes
}

// bounded is the most that a tree may have: lists within lists count twice, and within
// a paragraph come emphasis and links.
const (
	boundedDepth = 60
	boundedNodes = 120_000
)

// Text that makes other parsers slow, or that makes deep trees, is read in time that grows
// with its length only: a parser that is quadratic does not end in the test's time.
func TestMarkdownHostile(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	const size = 256 << 10
	for _, unit := range []string{
		">", "> ", "- ", "1. ", "  - a\n", "[", "]", "![", "[a](", "[a](<b", "[a](b \"", "*a_", "a**b", "**a *b ", "*", "_ ", "`", "e`", "<", "<http://",
		"http://", "&", "\\", "|", "a|b\n-|-\n", "|-|\n", "#", "# \n", "\n", "\n\n- ", "-\n\n", "~~~\n", "```\n", "\t", " ", "    a\n", "a\n==\n", "> a\n\n", "[]()", "(", "<a b='",
	} {
		doc := ui.ParseMarkdown(strings.Repeat(unit, size/len(unit)))
		if deep, nodes := depth(doc); deep > boundedDepth || nodes > boundedNodes {
			t.Errorf("%q: %d deep, %d nodes", unit, deep, nodes)
		}
		checkPlain(t, ui.Plain(doc, 80))
	}
	var b strings.Builder
	for i := range 1000 { // lists that are nested deeper and deeper
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	for i := range 1000 { // runs of backticks of all lengths
		b.WriteString("e" + strings.Repeat("`", i))
	}
	if deep, _ := depth(ui.ParseMarkdown(b.String())); deep > boundedDepth {
		t.Errorf("%d deep", deep)
	}
	long := ui.ParseMarkdown(strings.Repeat("word ", 1<<19))
	if !strings.Contains(outline(long), "longer than can be shown") {
		t.Error("that a text is cut off is not said")
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a\n\n- b\n  > c `d` **e** [f](https://g.example)\n\n|a|b|\n|-|-|\n|c|", "```\n\x1b[2J\n", "*a **b* c** \u202e\x9b\u3164", "1. a\n\n   b\n2) c\\\nd  \ne"} {
		f.Add(s, 40)
	}
	f.Fuzz(func(t *testing.T, source string, width int) {
		doc := ui.ParseMarkdown(source)
		if deep, _ := depth(doc); deep > boundedDepth {
			t.Errorf("%d deep", deep)
		}
		var walk func(n *ui.Node)
		walk = func(n *ui.Node) {
			if n.Kind != ui.NodeCodeBlock && n.Text != host.EscapeLine(n.Text) || n.Text != host.Escape(n.Text) || n.Language != host.EscapeLine(n.Language) {
				t.Errorf("%s has %q, %q", n.Kind, n.Text, n.Language)
			}
			if n.URL != "" && (n.Kind != ui.NodeLink || !strings.HasPrefix(n.URL, "http://") && !strings.HasPrefix(n.URL, "https://") && !strings.HasPrefix(n.URL, "mailto:")) {
				t.Errorf("%s leads to %q", n.Kind, n.URL)
			}
			for _, c := range n.Nodes {
				walk(c)
			}
		}
		walk(doc)
		checkPlain(t, ui.Plain(doc, width%200))
	})
}

// Blocks of a model's text come out as soon as they are complete.
func TestTranscriptStreams(t *testing.T) {
	t.Parallel()

	var script ui.Transcript
	var blocks []string
	text := "One\ntwo\n\nThree\n```\ncode\n\nmore\n```\n\n- a\n\n  b\n\n- c\n\nEnd"
	for _, r := range text {
		for _, e := range script.Add(&host.Record{Body: &host.TextRecord{Text: string(r)}}) {
			if e.Kind == ui.EntryModel {
				blocks = append(blocks, ui.Plain(e.Doc, 80))
			}
		}
	}
	for _, e := range script.Flush() {
		blocks = append(blocks, ui.Plain(e.Doc, 80))
	}
	want := []string{"One two\n", "Three\n\n  code\n\n  more\n", "- a\n  b\n", "- c\n\nEnd\n"}
	if fmt.Sprint(blocks) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", blocks, want)
	}
}
