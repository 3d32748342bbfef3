// Package article makes markdown of the article in an HTML page of a stranger, within bounds
// of time and memory.
package article

import (
	"net/url"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Markdown makes markdown of the article in an HTML page, and gives the title of the page;
// "" is a page without an article. at is where the page is, for its links. maxWork bounds the
// sum over the nodes of the page of 32 and their depth, and over the lines of its texts of
// twice the lists and quotes around them: the time that it takes grows with the size of the
// page and with that alone. A page beyond it, or one that cannot be read, is an error.
func Markdown(page string, at *url.URL, maxWork int) (title, markdown string, err error) {
	defer func() {
		if recover() != nil { // a page that the packages below cannot read is not the end of the call
			title, markdown, err = "", "", errUnreadable
		}
	}()
	bounded, err := bound(page, maxWork/16)
	if err != nil {
		return "", "", err
	}
	doc, err := html.Parse(strings.NewReader(string(bounded)))
	if err != nil {
		return "", "", errComplex // it is nested too deep; a reader of a string has no errors
	}
	if work(doc, 0, 0) > maxWork {
		return "", "", errComplex
	}
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	article, err := parser.ParseAndMutate(doc, at)
	if err != nil || article.Node == nil {
		return "", "", nil // the error says that there is no article
	}
	markdown, err = toMarkdown(article.Node)
	return article.Title(), markdown, err
}

// work is the sum of 32 and the depth of each node, which bounds how long it takes to look
// at each, and at those around it. Each line of a text counts twice for each list and quote
// around it, which write it again with more in front of it.
func work(n *html.Node, depth, indent int) int {
	sum := 32 + depth
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Blockquote:
		indent = min(indent+1, maxIndent)
	default: // no other element indents
	}
	if n.Type == html.TextNode {
		sum += 2 * indent * strings.Count(n.Data, "\n")
	}
	for c := range n.ChildNodes() {
		sum += work(c, depth+1, indent)
	}
	return sum
}
