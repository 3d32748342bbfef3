package article

import (
	"errors"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// errUnreadable says that a page made the packages that read it fail.
var errUnreadable = errors.New("it cannot be read")

const (
	// maxIndent is how deep lists and quotes stand in each other; deeper ones are part
	// of the one around them. Each indents all of its lines.
	maxIndent = 12
	// maxCells is how many cells a table has when all its rows are as long as the
	// longest; a larger one becomes paragraphs.
	maxCells = 50_000
)

// Characters that are none stand for "<" and ">" in texts until the conversion is done,
// which would write them as entities.
const (
	less    = "\ufdd0"
	greater = "\ufdd1"
)

var (
	escape   = strings.NewReplacer(less, "\ufffd", greater, "\ufffd", "<", less, ">", greater, `*`, `\*`, `_`, `\_`)
	unescape = strings.NewReplacer(less, "<", greater, ">")
)

// toMarkdown makes markdown of an article, in the style of the official server: headings
// with "#", "*" before items of lists, and "*" and "_" in texts escaped. It changes the
// article.
func toMarkdown(article *html.Node) (string, error) {
	tame(article, 0, false)
	c := converter.NewConverter(
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(commonmark.WithBulletListMarker("*"), commonmark.WithHorizontalRule("---"),
				commonmark.WithListEndComment(false)),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
		),
		// Its own looks ahead from each character to the end of the line.
		converter.WithEscapeMode(converter.EscapeModeDisabled),
	)
	text, err := c.ConvertNode(article)
	if err != nil {
		return "", errUnreadable
	}
	return strings.TrimSpace(unescape.Replace(string(text))), nil
}

// tame changes what would make the markdown of an element large out of proportion, and
// escapes its texts, if they are not code.
func tame(n *html.Node, indent int, code bool) {
	switch n.DataAtom {
	case atom.Pre, atom.Code, atom.Kbd, atom.Samp:
		code = true
	case atom.Ul, atom.Ol, atom.Blockquote:
		if indent++; indent > maxIndent {
			rename(n, atom.Div)
		}
	case atom.Li:
		if indent > maxIndent {
			rename(n, atom.Div)
		}
	case atom.Table:
		tameTable(n)
	case atom.Td, atom.Th:
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "colspan" || a.Key == "rowspan" })
	default: // nothing else grows
	}
	if n.Type == html.TextNode && !code {
		n.Data = escape.Replace(n.Data)
	}
	for c := range n.ChildNodes() {
		tame(c, indent, code)
	}
}

// tameTable makes paragraphs of a table that has another one in it, or too many cells.
func tameTable(t *html.Node) {
	rows, longest, nested := 0, 0, false
	for n := range t.Descendants() {
		switch n.DataAtom {
		case atom.Table:
			nested = true
		case atom.Tr:
			rows++
			cells := 0
			for c := range n.ChildNodes() {
				if c.Type == html.ElementNode {
					cells++
				}
			}
			longest = max(longest, cells)
		default: // is in one of these
		}
	}
	if nested || (rows+1)*longest > maxCells {
		flatten(t)
		rename(t, atom.Div)
	}
}

// flatten makes paragraphs of the rows and cells of a table, but not of those of one in it.
func flatten(n *html.Node) {
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Table:
			continue
		case atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
			rename(c, atom.Div)
		default: // stays as it is
		}
		flatten(c)
	}
}

func rename(n *html.Node, a atom.Atom) { n.DataAtom, n.Data = a, a.String() }
