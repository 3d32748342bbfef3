package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// Extension is what a client that shows pages gives to client.Options.Extensions.
//
// SEP-1865, Client (Host) Capabilities.
func Extension() client.Extension {
	return client.Extension{ID: ID, Settings: settings{[]string{MIMEType}}, Revisions: client.Metadata}
}

// UI is what a tool says about its page.
type UI struct {
	// URI is that of the page, for [Fetch]. Empty is none: the tool is one that pages
	// call.
	URI string
	// Visibility are the callers that may use it; empty is both. Names that are not
	// known are there as they came.
	Visibility []Caller
}

// Visible reports whether a caller may use the tool. A nil UI is that of a tool which
// says nothing: all may.
func (u *UI) Visible(to Caller) bool {
	return u == nil || len(u.Visibility) == 0 || slices.Contains(u.Visibility, to)
}

// Of returns what a tool says about its page: `_meta.ui`, or the older key
// "ui/resourceUri" where that names no page. It is nil if the tool says nothing. The
// error is about what cannot be read; such a tool has no page, and [Visible] hides it
// from both callers.
//
// SEP-1865, Resource Discovery.
func Of(tool *mcp.Tool) (*UI, error) {
	ui, err := uiOf(tool)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", clip(tool.Name), err)
	}
	return ui, nil
}

func uiOf(tool *mcp.Tool) (*UI, error) {
	raw, nested := tool.Meta[metaUI]
	old, flat := tool.Meta[metaOld]
	if !nested && !flat {
		return nil, nil
	}
	var meta struct {
		ResourceURI *string   `json:"resourceUri,omitzero"`
		Visibility  *[]Caller `json:"visibility,omitzero"`
	}
	if nested {
		if err := strictjson.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("_meta.ui: %w", err)
		}
	}
	ui := &UI{}
	if meta.Visibility != nil {
		if len(*meta.Visibility) == 0 {
			return nil, errors.New("_meta.ui: visibility is empty")
		}
		ui.Visibility = *meta.Visibility
	}
	switch {
	case meta.ResourceURI != nil:
		ui.URI = *meta.ResourceURI
	case flat:
		if err := strictjson.Unmarshal(old, &ui.URI); err != nil {
			return nil, fmt.Errorf("_meta[%q]: %w", metaOld, err)
		}
	default:
		return ui, nil
	}
	if err := checkURI(ui.URI); err != nil {
		return nil, err
	}
	return ui, nil
}

// Visible reports whether a caller may use a tool: a host leaves out of its model's list
// what is not visible to [Model], and refuses to pages what is not visible to [App]. A
// tool whose `_meta` cannot be read is visible to neither.
//
// SEP-1865, Visibility: "Host MUST NOT include tools in the agent's tool list when their
// visibility does not include "model"".
func Visible(tool *mcp.Tool, to Caller) bool {
	ui, err := Of(tool)
	return err == nil && ui.Visible(to)
}

// ErrNotForPages says that a tool is not one that pages may call.
var ErrNotForPages = errors.New("the tool is not for pages")

// CallForPage calls a tool for a page, and refuses with [ErrNotForPages] what is not
// visible to [App]. c must be the client of the server that the page came from: a page
// never reaches another server. Whether a person has to agree is for the host to decide
// before.
//
// SEP-1865, Visibility: "Host MUST reject tools/call requests from apps for tools that
// don't include "app" in visibility".
func CallForPage(ctx context.Context, c *client.Client, name string, args any, o *client.CallOptions) (*mcp.CallToolResult, error) {
	tool, err := c.Tool(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("call for a page: %w", err)
	}
	if !Visible(tool, App) {
		return nil, fmt.Errorf("tool %q: %w", clip(name), ErrNotForPages)
	}
	return c.CallTool(ctx, name, args, o)
}

// FetchOptions are the optional parts of Fetch. A nil *FetchOptions is the default.
type FetchOptions struct {
	// MaxSize is the most bytes that a page may have. Default [MaxPage].
	MaxSize int
	// Listed is the page's entry in the list of resources, if the host has it already.
	// Default: it is looked up where the page itself says nothing about its settings.
	Listed *mcp.Resource
	// Call are the options of the requests. Default none.
	Call *client.CallOptions
}

// A Document is a page as a server gave it, checked.
type Document struct {
	// URI is where it is from.
	URI string
	// HTML is the page, in UTF-8.
	HTML string
	// Meta is what the server says about it.
	Meta PageMeta
	// CSP is the value of the header Content-Security-Policy that it must be shown
	// with; see the function [CSP].
	CSP string
}

// ErrBadPage says that a server gave something that is not to be shown as a page.
var ErrBadPage = errors.New("bad page")

// Fetch reads a page: its type must be [MIMEType] to the letter, its text valid UTF-8,
// its size within bounds, the origins that it declares none but origins. What is wrong
// with it is an [ErrBadPage]. What the contents say about the page is taken before
// what the list says. It may be called by many goroutines at once.
//
// SEP-1865: "Host MUST use resources/read to fetch the referenced resource URI".
func Fetch(ctx context.Context, c *client.Client, uri string, o *FetchOptions) (*Document, error) {
	var opts FetchOptions
	if o != nil {
		opts = *o
	}
	if err := checkURI(uri); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPage, err)
	}
	res, err := c.ReadResource(ctx, uri, opts.Call)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", uri, err)
	}
	doc, own, err := read(uri, res, cmp.Or(opts.MaxSize, MaxPage))
	if err != nil {
		return nil, fmt.Errorf("page %s: %w: %w", uri, ErrBadPage, err)
	}
	if own == nil {
		listed, err := findListed(ctx, c, uri, opts.Listed)
		if err != nil {
			return nil, fmt.Errorf("page %s: its entry in the list: %w", uri, err)
		}
		if listed != nil {
			own = listed.Meta[metaUI]
		}
	}
	if err := doc.setMeta(own); err != nil {
		return nil, fmt.Errorf("page %s: %w: %w", uri, ErrBadPage, err)
	}
	return doc, nil
}

// read takes a page out of what a server gave, and `_meta.ui` of it, or nil.
func read(uri string, res *mcp.ReadResourceResult, most int) (*Document, mcp.RawValue, error) {
	if len(res.Contents) != 1 {
		return nil, nil, fmt.Errorf("it has %d contents; a page is one", len(res.Contents))
	}
	part := &res.Contents[0]
	if part.URI != uri {
		return nil, nil, fmt.Errorf("the contents are those of %q", clip(part.URI))
	}
	if part.MIMEType != MIMEType {
		return nil, nil, fmt.Errorf("the type is %q; it must be %q", clip(part.MIMEType), MIMEType)
	}
	html := part.Text
	if part.Blob != nil {
		if len(part.Blob) > most { // before it is copied
			return nil, nil, fmt.Errorf("the page has %d bytes; at most %d are allowed", len(part.Blob), most)
		}
		html = string(part.Blob)
	}
	if err := checkPage(html, most); err != nil {
		return nil, nil, err
	}
	return &Document{URI: uri, HTML: html}, part.Meta[metaUI], nil
}

// setMeta reads `_meta.ui`; nil is none.
func (d *Document) setMeta(raw mcp.RawValue) (err error) {
	if raw != nil {
		if err := strictjson.Unmarshal(raw, &d.Meta); err != nil {
			return fmt.Errorf("_meta.ui: %w", err)
		}
	}
	if err := d.Meta.check(); err != nil {
		return err
	}
	d.CSP, err = CSP(d.Meta.CSP)
	return err
}

// findListed finds the entry of a page in the list of resources, or nil: servers may
// leave pages out.
func findListed(ctx context.Context, c *client.Client, uri string, known *mcp.Resource) (*mcp.Resource, error) {
	if known != nil {
		if known.URI != uri {
			return nil, fmt.Errorf("FetchOptions.Listed is the entry of %q", clip(known.URI))
		}
		return known, nil
	}
	for r, err := range c.Resources(ctx) {
		if err != nil {
			return nil, err
		}
		if r.URI == uri {
			return r, nil
		}
	}
	return nil, nil
}

// A Loader is what a host of package host gives to host.Options.Pages. The zero value is
// ready.
type Loader struct {
	// MaxSize is the most bytes that a page may have. Default [MaxPage].
	MaxSize int
}

// LoadPage is [Fetch], with its parts apart: the document, the policy that it must be
// shown with, and what else the server says of it, a [PageMeta] as JSON.
func (l Loader) LoadPage(ctx context.Context, c *client.Client, uri string) (html, csp string, meta mcp.RawValue, err error) {
	doc, err := Fetch(ctx, c, uri, &FetchOptions{MaxSize: l.MaxSize})
	if err != nil {
		return "", "", nil, err
	}
	meta, err = strictjson.Marshal(&doc.Meta)
	return doc.HTML, doc.CSP, meta, err
}
