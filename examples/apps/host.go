package main

import (
	"context"
	"net/http"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A host shows the pages of one server.
type host struct {
	c *client.Client
}

func connect(ctx context.Context, d transport.Dialer) (*host, error) {
	c, err := client.Connect(ctx, d, &client.Options{Extensions: []client.Extension{apps.Extension()}})
	if err != nil {
		return nil, err
	}
	return &host{c}, nil
}

// forModel are the tools that the model is told of.
func (h *host) forModel(ctx context.Context) ([]*mcp.Tool, error) {
	var list []*mcp.Tool
	for tool, err := range h.c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		if apps.Visible(tool, apps.Model) {
			list = append(list, tool)
		}
	}
	return list, nil
}

// pageOf is the page for the results of a tool, or nil if it has none.
func (h *host) pageOf(ctx context.Context, tool *mcp.Tool) (*apps.Document, error) {
	ui, err := apps.Of(tool)
	if err != nil || ui == nil || ui.URI == "" {
		return nil, err
	}
	return apps.Fetch(ctx, h.c, ui.URI, nil)
}

// frame serves a page to the frame that shows it, at an origin of its own.
func frame(page *apps.Document) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page.CSP)
		_, _ = w.Write([]byte(page.HTML))
	})
}

// fromPage answers the request tools/call of a page.
func (h *host) fromPage(ctx context.Context, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	return apps.CallForPage(ctx, h.c, p.Name, p.Arguments, nil)
}
