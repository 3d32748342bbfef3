package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch/article"
	"github.com/parley-mcp/parley/mcp"
)

// maxType is how many characters of a content type are read.
const maxType = 200

// present makes a page of the body that a site sent for u. The error is for the model.
func (f *fetcher) present(ctx context.Context, u *url.URL, resp *http.Response, body []byte, raw bool) (*page, error) {
	contentType := abbreviate(resp.Header.Get("Content-Type"), maxType)
	p := &page{facts: Facts{URL: resp.Request.URL.String(), Status: resp.StatusCode, ContentType: contentType}}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, mcp.Errorf("Failed to fetch %s: the page is empty (status code %d)", shown(u.String()), resp.StatusCode)
	}
	media, _, _ := mime.ParseMediaType(contentType) // one that cannot be read says nothing
	if kind := binaryKind(body, media); kind != "" {
		return p, f.presentBinary(ctx, p, kind, body)
	}
	typed := contentType == "" || strings.Contains(strings.ToLower(contentType), "text/html")
	d := decode(body, contentType, typed || looksLikeHTML(string(body[:min(len(body), 400)])))
	p.text, p.facts.Encoding, p.facts.EncodingGuessed = d.text, d.encoding, d.guessed
	if d.guessed {
		p.prefix = "Note: the encoding of the page was guessed: " + d.encoding + "\n"
	}
	if media == "text/markdown" {
		return p, nil
	}
	if raw || !typed && !looksLikeHTML(d.text) {
		p.prefix += "Content type " + contentType + " cannot be simplified to markdown, but here is the raw content:\n"
		return p, nil
	}
	return p, f.simplify(ctx, u, resp.Request.URL, p)
}

// simplify replaces the HTML in a page, which is at a URL, by the markdown of its article.
func (f *fetcher) simplify(ctx context.Context, asked, at *url.URL, p *page) error {
	select {
	case f.conversion <- struct{}{}:
		defer func() { <-f.conversion }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	a, err := article.Markdown(ctx, p.text, at, f.opts.MaxWork)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && a.Markdown == "":
		err = errors.New("it has no readable text (scripts, frames, images and forms are left out)")
	}
	if err != nil {
		return mcp.Errorf("Failed to fetch %s: the page failed to be simplified from HTML: %w. Call the fetch tool with raw to get it as it is", shown(asked.String()), err)
	}
	p.text, p.facts.Title = a.Markdown, a.Title
	if a.Note != "" {
		p.prefix += "Note: " + a.Note + "\n"
	}
	return nil
}

// shownImages are the types of images that models read.
var shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// presentBinary makes a page of a body that is no text: an image that models read is content, of anything
// else only type and size are shown, with the reason. The error is the cause of the cancellation of ctx.
func (f *fetcher) presentBinary(ctx context.Context, p *page, kind string, body []byte) (err error) {
	reason := ""
	switch {
	case !slices.Contains(shownImages, kind):
		reason = "it is not text"
	case len(body) > f.opts.MaxImage:
		reason = fmt.Sprintf("it is larger than %d bytes", f.opts.MaxImage)
	default:
		if reason, err = f.checkImage(ctx, kind, body); err != nil {
			return err
		}
	}
	p.text = fmt.Sprintf("[%s, %d bytes", kind, len(body))
	if reason != "" {
		p.text += ": not shown, because " + reason + "]"
		return nil
	}
	p.text += "]"
	p.image = mcp.Image(body, kind)
	return nil
}

// binaryKind returns the type of a body that is not text, by its first bytes, or else as it is
// declared; "" is a text.
func binaryKind(body []byte, declared string) string {
	head := body[:min(len(body), 512)]
	sniffed, _, _ := strings.Cut(http.DetectContentType(head), ";")
	textual := isTextual(declared)
	switch {
	case strings.HasPrefix(sniffed, "text/"), (declared == "" || textual) && wide(head) != "":
		return ""
	case sniffed == "application/octet-stream" && textual: // a text with a NUL
		return ""
	case sniffed == "application/octet-stream":
		return cmp.Or(declared, sniffed)
	case sniffed != "application/pdf" && !bytes.ContainsFunc(head, isBinary): // a text that begins like a format: "BM"
		return ""
	}
	return sniffed
}

// isBinary reports whether a byte is none of a text (WHATWG MIME Sniffing, binary data byte).
func isBinary(r rune) bool {
	return r < ' ' && !strings.ContainsRune("\t\n\f\r\x1b", r)
}

// isTextual reports whether a media type is a type of text.
func isTextual(media string) bool {
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json") || strings.HasSuffix(media, "xml") ||
		strings.HasSuffix(media, "javascript") || strings.HasSuffix(media, "yaml")
}

// looksLikeHTML reports whether a text has the tag of HTML among its first 100 characters.
func looksLikeHTML(text string) bool {
	head, _ := cut(text, 0, 100)
	return strings.Contains(head, "<html")
}
