package article

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/parley-mcp/parley/app/internal/serve/servers"
)

// How an HTML page is bounded before it becomes a tree, which may have many times the
// nodes that its text has tags: text between tags of formatting that are left open has all
// of them around it again in each paragraph.
const (
	// maxOpen is how many elements may be open at once; the tags of deeper ones are
	// left out, and their text stays.
	maxOpen = 100
	// maxTag is the size in bytes of the longest tag; longer ones, such as those of
	// images that are written in the page itself, are left out.
	maxTag = 16 << 10
	// maxTitle is the size in bytes of the longest title.
	maxTitle = 4 << 10
	// maxFormatting is like maxOpen for formatting, such as <b>.
	maxFormatting = 8
	// attributesOfNode is how many attributes count as one more node.
	attributesOfNode = 2
)

// errComplex says that a page has too many elements, or too deep ones, to be simplified.
var errComplex = errors.New("it has too many elements")

// formatting are the elements that the parser of HTML opens again in a new block until
// their end tag (WHATWG HTML, "list of active formatting elements"). Of links only one is
// open.
var formatting = atoms(atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong,
	atom.Tt, atom.U)

// hidden are elements whose contents are no part of an article, and in which tags are read
// by other rules.
var hidden = atoms(atom.Iframe, atom.Math, atom.Noembed, atom.Noframes, atom.Noscript, atom.Plaintext,
	atom.Script, atom.Select, atom.Style, atom.Svg, atom.Template, atom.Textarea, atom.Xmp, atom.Frameset)

// unnested are elements that have no contents, or that the next of their kind ends, so
// that they are no deeper than the lists and tables around them.
var unnested = atoms(atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta,
	atom.Param, atom.Source, atom.Track, atom.Wbr, atom.P, atom.Li, atom.Dd, atom.Dt, atom.Option, atom.Td, atom.Th, atom.Tr,
	atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption, atom.Colgroup, atom.Html, atom.Head, atom.Body, atom.Title)

func atoms(list ...atom.Atom) map[atom.Atom]bool {
	set := make(map[atom.Atom]bool, len(list))
	for _, a := range list {
		set[a] = true
	}
	return set
}

// A bounder copies the tags and texts of a page, without those that would make its tree
// large or deep out of proportion.
type bounder struct {
	out    bytes.Buffer
	open   []string    // the elements that are open, by name
	roots  []atom.Atom // which of <html> and <body> there were
	active []atom.Atom // the formatting that has no end tag so far
	nodes  int         // about how many the tree has at most
	title  bool        // the next text is the title
}

// bound returns what a parser gets of a page, or errComplex if its tree may have more
// nodes.
func bound(steps *servers.Steps, page string, maxNodes int) ([]byte, error) {
	var b bounder
	b.out.Grow(len(page))
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		if kind == html.ErrorToken { // a reader of a string has no other error than its end
			return b.out.Bytes(), nil
		}
		if err := steps.Add(len(z.Raw())); err != nil {
			return nil, err
		}
		if err := b.token(steps, z, kind); err != nil {
			return nil, err
		}
		if b.nodes > maxNodes {
			return nil, errComplex
		}
	}
}

// token copies what z is at, or passes over it.
func (b *bounder) token(steps *servers.Steps, z *html.Tokenizer, kind html.TokenType) error {
	raw := z.Raw()
	switch kind {
	case html.StartTagToken, html.SelfClosingTagToken:
		raw = slices.Clone(raw) // reading the name changes it
		name, more := z.TagName()
		tag := atom.Lookup(name)
		switch {
		case hidden[tag] && kind == html.SelfClosingTagToken && (tag == atom.Svg || tag == atom.Math):
		case hidden[tag]:
			return skip(steps, z, string(name))
		case len(raw) <= maxTag && b.start(string(name), tag, countAttributes(z, more)):
			b.out.Write(raw)
			b.title = tag == atom.Title
		}
	case html.EndTagToken:
		raw = slices.Clone(raw)
		name, _ := z.TagName()
		if b.end(string(name), atom.Lookup(name)) {
			b.out.Write(raw)
		}
	case html.TextToken:
		b.count()
		if b.title {
			raw, b.title = raw[:min(len(raw), maxTitle)], false
		}
		b.out.Write(raw)
	case html.DoctypeToken:
		b.out.Write(raw)
	default: // a comment
	}
	return nil
}

// skip passes over an element, to its end tag. A list of choices that has none ends with
// what cannot be in it.
func skip(steps *servers.Steps, z *html.Tokenizer, element string) error {
	for depth := 1; depth > 0; {
		kind := z.Next()
		if kind == html.ErrorToken {
			return nil
		}
		if err := steps.Add(len(z.Raw())); err != nil {
			return err
		}
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		name, _ := z.TagName()
		switch {
		case kind == html.SelfClosingTagToken:
			z.NextIsNotRawText() // such as <title/> in SVG
		case string(name) == element && kind == html.StartTagToken && element != "select":
			depth++
		case string(name) == element:
			depth--
		case element == "select" && kind == html.EndTagToken && (string(name) == "form" || string(name) == "body"):
			depth = 0
		}
	}
	return nil
}

// countAttributes passes over the attributes of a tag, if there are more than none.
func countAttributes(z *html.Tokenizer, more bool) (n int) {
	for ; more; n++ {
		_, _, more = z.TagAttr()
	}
	return n
}

// count counts a node, with the formatting and the link that may be opened again around it.
func (b *bounder) count() { b.nodes += 2 + len(b.active) }

// start counts a start tag with so many attributes, and reports whether it stays.
func (b *bounder) start(name string, tag atom.Atom, attributes int) bool {
	b.count()
	b.nodes += attributes / attributesOfNode
	if tag == atom.Html || tag == atom.Body { // of a second one the parser would add the attributes to the first
		if slices.Contains(b.roots, tag) {
			return false
		}
		b.roots = append(b.roots, tag)
	}
	if unnested[tag] {
		return true
	}
	if len(b.open) >= maxOpen || formatting[tag] && len(b.active) >= maxFormatting {
		return false
	}
	if formatting[tag] {
		b.active = append(b.active, tag)
	}
	b.open = append(b.open, name)
	return true
}

// end counts an end tag, and reports whether it stays: the tag of an element that is not
// open does not.
func (b *bounder) end(name string, tag atom.Atom) bool {
	b.count() // some make an element, as </p> does
	if unnested[tag] {
		return true
	}
	at := lastIndex(b.open, name)
	if i := lastIndex(b.active, tag); i >= 0 { // its element may have ended with another
		b.active = slices.Delete(b.active, i, i+1)
		if at >= 0 {
			b.open = slices.Delete(b.open, at, at+1)
		}
		return true
	}
	if at >= 0 {
		b.open = b.open[:at]
	}
	return at >= 0
}

func lastIndex[T comparable](list []T, v T) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == v {
			return i
		}
	}
	return -1
}
