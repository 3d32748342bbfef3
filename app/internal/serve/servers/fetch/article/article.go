// Package article makes markdown of the article in an HTML page of a stranger, within bounds
// of time and memory.
package article

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// An Article is the readable part of a page.
type Article struct {
	Title    string // of the page
	Markdown string // "" if the page has no text
	Note     string // says what of the page it is, if it is not the article as usual, or ""
}

// When a page has much more text than its article.
const (
	shortShare = 10   // the article has less than one part in so many
	longRest   = 1000 // and so many bytes are left out at least
	// tiny is the length of the longest article that hidden text replaces, such as "Loading, one moment".
	tiny = 200
)

const leftOut = "the page hides text, which is left out; raw gives it"

// Markdown returns the article of an HTML page as markdown, or all the text of a page without an
// article. If a page hides more text than its article has, until its scripts run, and the article is
// tiny or within the hidden text, the hidden text is part of it; otherwise a note says that it is left
// out. A page cannot replace the text that people see by another one for models. at is where the page is,
// for its links. maxWork bounds the sum over the nodes of the page of 32 and their depth, and over the
// lines of its texts of twice the lists and quotes around them: the time that it takes grows with the
// size of the page and with that alone. A page beyond it, or one that cannot be read, is an error, and so
// is the end of ctx, which is looked at while the page is read.
func Markdown(ctx context.Context, page string, at *url.URL, maxWork int) (a Article, err error) {
	defer func() {
		if recover() != nil { // a page that the packages below cannot read is not the end of the call
			a, err = Article{}, errUnreadable
		}
	}()
	steps := servers.NewSteps(ctx)
	bounded, err := bound(steps, page, maxWork/16)
	if err != nil {
		return Article{}, err
	}
	doc, err := parse(steps, bounded)
	if err != nil {
		return Article{}, err
	}
	if work(doc, 0, 0) > maxWork {
		return Article{}, errComplex
	}
	all, concealed := count(doc, false)
	a, length, err := simplify(steps, doc, at)
	if err == nil && concealed > length {
		a, length, err = revealed(steps, bounded, at, a, length)
	}
	switch {
	case err != nil || all == 0:
		return Article{Title: a.Title}, err
	case length == 0:
		a.Markdown, err = whole(steps, bounded, at)
		a.Note = "the page has no article, so this is all of its text"
	case length*shortShare < all && all-length > longRest && a.Note == "":
		a.Note = fmt.Sprintf("the article is a small part of the text of the page (%d of %d bytes); raw gives the rest", length, all)
	}
	return a, err
}

// parse makes a tree of a page.
func parse(steps *servers.Steps, page []byte) (*html.Node, error) {
	r := &reader{steps: steps, r: bytes.NewReader(page)}
	doc, err := html.Parse(r)
	switch {
	case r.err != nil:
		return nil, r.err
	case err != nil:
		return nil, errComplex // it is nested too deep; a reader of bytes has no errors
	}
	return doc, nil
}

// A reader ends when the call is cancelled.
type reader struct {
	steps *servers.Steps
	r     io.Reader
	err   error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err = r.steps.Add(len(p)); r.err != nil {
		return 0, r.err
	}
	return r.r.Read(p)
}

// simplify makes markdown of the article in a page, if it has one, and returns the length of its text.
// Each of its halves takes up to half a second for the largest page and cannot be interrupted.
func simplify(steps *servers.Steps, doc *html.Node, at *url.URL) (a Article, length int, err error) {
	if err := steps.Add(servers.CostPerPoll); err != nil {
		return a, 0, err
	}
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	found, err := parser.ParseAndMutate(doc, at)
	if err != nil || found.Node == nil {
		return a, 0, nil //nolint:nilerr // it says that there is no article
	}
	if err := steps.Add(servers.CostPerPoll); err != nil {
		return a, 0, err
	}
	a.Title = found.Title()
	length, _ = count(found.Node, true)
	a.Markdown, err = toMarkdown(found.Node)
	return a, length, err
}

// revealed is the article of a page whose hidden text is shown, if that is more than twice as long as the
// article without it, which must be tiny or part of it. A tiny one that is not part of it is in front of
// it.
func revealed(steps *servers.Steps, page []byte, at *url.URL, visible Article, length int) (Article, int, error) {
	doc, err := parse(steps, page)
	if err != nil {
		return visible, length, err
	}
	for n := range doc.Descendants() {
		n.Attr = slices.DeleteFunc(n.Attr, hides)
	}
	a, longer, err := simplify(steps, doc, at)
	if err != nil || longer <= 2*length {
		return visible, length, err
	}
	if !within(visible.Markdown, a.Markdown) {
		if length > tiny {
			visible.Note = leftOut
			return visible, length, nil
		}
		a.Markdown = visible.Markdown + "\n\n" + a.Markdown
	}
	a.Note = "the page hides text until its scripts run, and this has the hidden text"
	return a, longer, nil
}

// within reports whether each line of a text is one of another text.
func within(text, other string) bool {
	lines := make(map[string]bool)
	for line := range strings.Lines(other) {
		lines[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !lines[line] {
			return false
		}
	}
	return true
}

// whole makes markdown of all of the text in a page.
func whole(steps *servers.Steps, page []byte, at *url.URL) (string, error) {
	doc, err := parse(steps, page)
	if err != nil {
		return "", err
	}
	for n := range doc.Descendants() {
		if n.DataAtom != atom.A && n.DataAtom != atom.Img {
			continue
		}
		for i, a := range n.Attr {
			if a.Key != "href" && a.Key != "src" {
				continue
			}
			if link, err := at.Parse(a.Val); err == nil {
				n.Attr[i].Val = link.String()
			}
		}
		if n.DataAtom == atom.A && len(n.Attr) == 0 { // no link
			rename(n, atom.Span)
		}
	}
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Body {
			rename(n, atom.Div)
			return toMarkdown(n)
		}
	}
	return "", nil
}

// count returns how many bytes of text, without white space, are in the body of a page, or with inBody in a
// part of it, and how many of them the page hides.
func count(n *html.Node, inBody bool) (all, concealed int) {
	inBody = inBody || n.DataAtom == atom.Body
	if n.Type == html.TextNode && inBody {
		for _, word := range strings.Fields(n.Data) {
			all += len(word)
		}
	}
	for c := range n.ChildNodes() {
		more, hidden := count(c, inBody)
		all += more
		concealed += hidden
	}
	if n.Type == html.ElementNode && slices.ContainsFunc(n.Attr, hides) {
		concealed = all
	}
	return all, concealed
}

var hidingStyle = regexp.MustCompile(`(?i)display\s*:\s*none|visibility\s*:\s*hidden`)

// hides reports whether an attribute hides its element.
func hides(a html.Attribute) bool {
	switch a.Key {
	case "hidden":
		return true
	case "aria-hidden":
		return a.Val == "true"
	case "style":
		return hidingStyle.MatchString(a.Val)
	}
	return false
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
