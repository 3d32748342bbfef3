package fetch

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-mcp/parley/app/servers/fetch/article"
)

// maxType is how many characters of a content type are read.
const maxType = 200

// present makes a page of what a site sent.
func (f *fetcher) present(ctx context.Context, resp *http.Response, body []byte, raw bool) (*page, error) {
	contentType := abbreviate(resp.Header.Get("Content-Type"), maxType)
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
	title, markdown, err := article.Markdown(text, resp.Request.URL, f.opts.MaxWork)
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
