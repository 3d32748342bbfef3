package apps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// PageOptions are the optional parts of a page. A nil *PageOptions is one without.
type PageOptions struct {
	// Name is the name of the resource for programs. Default: what is behind ui:// in
	// the URI.
	Name string
	// Title and Description are for people. Default none.
	Title, Description string
	// CSP are the origins outside of the page that it uses. Default none: then hosts
	// give the page no network.
	CSP *Domains
	// Permissions are what it asks of the browser. Default none.
	Permissions Permissions
	// Domain is the origin that it wants to be shown at; each host defines what it
	// takes. Default: the host's choice.
	Domain string
	// PrefersBorder says whether the host should draw a border and a background.
	// Hosts differ where nothing is said. Default: the host's choice.
	PrefersBorder *bool
}

// Page makes a page of HTML: a resource of the type [MIMEType] at a URI that begins with
// ui://. It is one document with all that it needs in it, or with CSP. Its size is at
// most [MaxPage]. Server.Add with the same URI replaces it while the server runs, and
// the feature's With sets what resources have besides: all but MIMEType and Meta.
//
// Page panics if the URI is not one of pages, if html is no HTML5 document in UTF-8, or
// if an option cannot be declared: that is a mistake in the program. [NewPage] returns
// an error instead.
//
// SEP-1865, UI Resource Format.
func Page(uri, html string, o *PageOptions) *server.ResourceFeature {
	return must(NewPage(uri, html, o))
}

// NewPage is [Page] for pages that are made while a program runs: it returns an error
// where Page panics.
func NewPage(uri, html string, o *PageOptions) (*server.ResourceFeature, error) {
	if err := checkURI(uri); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	f, err := newPage(uri, html, o)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", uri, err)
	}
	return f, nil
}

func newPage(uri, html string, o *PageOptions) (*server.ResourceFeature, error) {
	var opts PageOptions
	if o != nil {
		opts = *o
	}
	if err := checkPage(html, MaxPage); err != nil {
		return nil, err
	}
	if err := checkDoctype(html); err != nil {
		return nil, err
	}
	meta, err := pageMeta(&PageMeta{opts.CSP, opts.Permissions, opts.Domain, opts.PrefersBorder})
	if err != nil {
		return nil, err
	}
	if opts.Name == "" {
		opts.Name = strings.TrimPrefix(uri, scheme)
	}
	size := int64(len(html))
	def := mcp.Resource{
		URI: uri, Name: opts.Name, Title: opts.Title, Description: opts.Description,
		MIMEType: MIMEType, Size: &size, Meta: meta,
	}
	return server.NewRawResource(def, func(context.Context, string) (*mcp.ReadResourceResult, error) {
		// Without a URI, so that a server that this one is mounted in says its own.
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{MIMEType: MIMEType, Text: html, Meta: meta}}}, nil
	})
}

// pageMeta is `_meta` of a page, or nil if there is nothing to say.
func pageMeta(m *PageMeta) (mcp.Meta, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	text, err := strictjson.Marshal(m)
	if err != nil {
		return nil, err
	}
	if string(text) == "{}" {
		return nil, nil
	}
	return mcp.Meta{metaUI: text}, nil
}

// checkDoctype refuses what does not begin as HTML5 documents do. A browser would take
// it for a page of the nineties.
//
// SEP-1865, Content Requirements: "Content MUST be valid HTML5 document".
func checkDoctype(html string) error {
	const doctype = "<!doctype html"
	rest := strings.TrimLeft(strings.TrimPrefix(html, "\ufeff"), " \t\r\n\f")
	for strings.HasPrefix(rest, "<!--") {
		_, after, ok := strings.Cut(rest, "-->")
		if !ok {
			return errors.New("the comment at its beginning has no end")
		}
		rest = strings.TrimLeft(after, " \t\r\n\f")
	}
	if len(rest) <= len(doctype) || !strings.EqualFold(rest[:len(doctype)], doctype) || !strings.ContainsRune(" \t\r\n\f>", rune(rest[len(doctype)])) {
		return errors.New("it is no HTML5 document; begin it with <!doctype html>")
	}
	return nil
}

// must is for constructors whose errors are mistakes in the program.
func must[F any](f F, err error) F {
	if err != nil {
		panic("apps: " + err.Error())
	}
	return f
}
