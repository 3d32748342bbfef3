package fetch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
)

// present makes a page of what a site sent.
func (f *fetcher) present(ctx context.Context, resp *http.Response, body []byte, raw bool) (*page, error) {
	contentType := resp.Header.Get("Content-Type")
	typed := contentType == "" || strings.Contains(strings.ToLower(contentType), "text/html")
	text := decode(body, contentType, typed || looksLikeHTML(string(body[:min(len(body), 400)])))
	p := &page{text: text, facts: Facts{URL: resp.Request.URL.String(), Status: resp.StatusCode, ContentType: contentType}}
	if raw || !typed && !looksLikeHTML(text) {
		p.prefix = "Content type " + contentType + " cannot be simplified to markdown, but here is the raw content:\n"
		return p, nil
	}
	select {
	case f.conversion <- struct{}{}:
		defer func() { <-f.conversion }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	title, markdown, err := simplify(text, resp.Request.URL, f.opts.MaxWork)
	switch {
	case err != nil:
		markdown = fmt.Sprintf("<error>Page failed to be simplified from HTML: %s. Call the fetch tool with raw to get it as it is.</error>", err)
	case markdown == "":
		markdown = "<error>Page failed to be simplified from HTML</error>"
	}
	p.text, p.facts.Title = markdown, title
	return p, nil
}

// looksLikeHTML reports whether a text has the tag of HTML among its first 100 characters.
func looksLikeHTML(text string) bool {
	head, _ := cut(text, 0, 100)
	return strings.Contains(head, "<html")
}

// simplify makes markdown of the article in an HTML page; "" is a page without one. at is
// where the page is, for its links. The time that it takes grows with the size of the page
// and with maxWork alone.
func simplify(page string, at *url.URL, maxWork int) (title, markdown string, err error) {
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
	if work(doc, 0) > maxWork {
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
// at each, and at those around it.
func work(n *html.Node, depth int) int {
	sum := 32 + depth
	for c := range n.ChildNodes() {
		sum += work(c, depth+1)
	}
	return sum
}
