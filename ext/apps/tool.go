package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// ToolOptions are the optional parts of a tool with a page. A nil *ToolOptions is one
// without.
type ToolOptions struct {
	// Visibility are the callers of the tool. A tool for App alone does not exist
	// for clients that do not show pages. Hosts decide by it what models see; it is no
	// access control: who may call is checked as for every tool. Default: both.
	Visibility []Caller
}

// Tool says that the results of a tool are shown in a page of the same server, and
// returns the feature. Server.Add refuses it unless the page is there, or comes in the
// same call; a page of another server that is mounted has the URI that it has in s. A
// page may also come from a template or a directory, whose contents then must have
// [MIMEType]. Removing the page later is allowed, and hosts then fail to show it: remove
// the tool before it. Without a page, "", the tool is one that pages call, for App alone.
//
// A tool with a page must give a text too, for models, and for clients that show no
// page. To a result without one its structured content is added as text. One that has
// neither is an error: the caller gets an internal error, the log says which tool it was.
//
// Tool panics if page is not a URI of a page, or the options contradict each other:
// that is a mistake in the program. [NewTool] returns an error instead.
//
// SEP-1865, Resource Discovery: "Resource MUST exist on the server"; Graceful
// Degradation: "Tools MUST return meaningful content array even when UI is available".
func Tool(f *server.ToolFeature, page string, o *ToolOptions) *server.ToolFeature {
	return must(NewTool(f, page, o))
}

// NewTool is [Tool] for tools that are made while a program runs: it returns an error
// where Tool panics.
func NewTool(f *server.ToolFeature, page string, o *ToolOptions) (*server.ToolFeature, error) {
	var visibility []Caller
	if o != nil {
		visibility = o.Visibility
	}
	if f == nil {
		return nil, errors.New("the tool is nil")
	}
	if err := checkVisibility(visibility); err != nil {
		return nil, fmt.Errorf("tool with the page %q: %w", clip(page), err)
	}
	appOnly := len(visibility) == 1 && visibility[0] == App
	meta := mcp.Meta{}
	x := server.ToolExtension{Meta: meta}
	switch {
	case page != "":
		if err := checkURI(page); err != nil {
			return nil, fmt.Errorf("tool with a page: %w", err)
		}
		old, err := strictjson.Marshal(page)
		if err != nil {
			return nil, err
		}
		meta[metaOld] = old
		x.Resource, x.ResourceType, x.Result = page, MIMEType, withText
	case !appOnly:
		return nil, errors.New("tool without a page: only one for App alone has none; name its page, or set Visibility")
	}
	ui, err := strictjson.Marshal(toolMeta{page, visibility})
	if err != nil {
		return nil, err
	}
	meta[metaUI] = ui
	if appOnly {
		x.Visible = func(c *server.Call) bool { return Supported(c) }
	}
	return f.Extend(x), nil
}

func checkVisibility(list []Caller) error {
	if list != nil && len(list) == 0 {
		return errors.New("visibility is empty, so that the tool would be for nobody; leave it nil for both callers")
	}
	for i, caller := range list {
		if caller != Model && caller != App {
			return fmt.Errorf("visibility has %q; it is made of apps.Model and apps.App", clip(string(caller)))
		}
		if slices.Contains(list[:i], caller) {
			return fmt.Errorf("visibility has %q twice", caller)
		}
	}
	return nil
}

var errNoText = errors.New("the result has no text; a tool with a page also serves models and clients without pages, so add mcp.Text with what the page shows")

// withText makes sure that a result of a tool with a page has a text.
func withText(_ *server.Call, res *mcp.CallToolResult) error {
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			if c != nil && strings.TrimSpace(c.Text) != "" {
				return nil
			}
		case *mcp.EmbeddedResource:
			if c != nil && strings.TrimSpace(c.Resource.Text) != "" {
				return nil
			}
		}
	}
	if res.StructuredContent == nil {
		return errNoText
	}
	res.Content = append(mcp.Contents{mcp.Text(string(res.StructuredContent))}, res.Content...)
	return nil
}

// Enable declares the extension, in the revisions in which tools have `_meta`. Tools and
// pages work without it, but hosts may ask for it. A server that others are mounted in
// declares it itself. It panics after the first request.
func Enable(s *server.Server) {
	s.Extend(server.Extension{ID: ID, Revisions: server.Metadata})
}

// settings are what a client declares under ID.
type settings struct {
	MIMETypes []string `json:"mimeTypes"`
}

// Supported reports whether the client of the request that ctx belongs to shows pages:
// it declared the extension with [MIMEType], in a revision in which tools have `_meta`.
// A handler may do less for a client that does. An endpoint without sessions does not
// know what clients of a handshake declared, and takes them for clients without pages.
//
// SEP-1865, Client<>Server Capability Negotiation.
func Supported(ctx context.Context) bool {
	c := server.CallFrom(ctx)
	if c == nil || c.Revisions()&server.Metadata == 0 {
		return false
	}
	caps := c.ClientCapabilities()
	if caps == nil {
		return false
	}
	var declared settings
	raw, ok := caps.Extensions[ID]
	return ok && strictjson.Unmarshal(raw, &declared) == nil && slices.Contains(declared.MIMETypes, MIMEType)
}
