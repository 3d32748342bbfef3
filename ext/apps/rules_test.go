package apps_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/apps"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// SEP-1865, Client (Host) Capabilities: mimeTypes is "REQUIRED", and a server knows by it
// that the client shows pages; in every revision that has `_meta`, over every transport.
func TestDeclared(t *testing.T) {
	got, err := strictjson.Marshal(apps.Extension().Settings)
	if err != nil || string(got) != `{"mimeTypes":["text/html;profile=mcp-app"]}` || apps.Extension().ID != apps.ID {
		t.Errorf("%s, %v", got, err)
	}
	mcptest.EachEra(t, build, showsPages(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if shown, err := client.Call[bool](t.Context(), c, "plain", city{"Oslo"}); err != nil || !shown {
			t.Errorf("the server takes the client for one without pages: %t, %v", shown, err)
		}
	}, metadata)
}

// SEP-1865, Content Requirements: resources/read of a page has one content, with its URI,
// "mimeType MUST be text/html;profile=mcp-app", and "Content MUST be provided via either
// text (string) or blob".
func TestPageContents(t *testing.T) {
	mcptest.EachEra(t, build, showsPages(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		r, err := c.ReadResource(t.Context(), pageURI, nil)
		if err != nil || len(r.Contents) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		got := r.Contents[0]
		if got.URI != pageURI || got.MIMEType != "text/html;profile=mcp-app" || got.Text != page || got.Blob != nil {
			t.Errorf("%+v", got)
		}
	}, metadata, mcptest.Over("mem", "streamable"))
}

// "Host MUST reject tools/call requests from apps for tools that don't include "app" in
// visibility": nothing of the call is sent.
func TestCallForPageSendsNothing(t *testing.T) {
	for visibility, allowed := range map[string]bool{
		`["app"]`: true, `["model","app"]`: true, `["model"]`: false, `["later"]`: false, `[]`: false, `"app"`: false,
	} {
		called := new(atomic.Int32)
		def := mcp.Tool{
			Name: "t", InputSchema: mcp.RawValue(`{"type":"object"}`),
			Meta: mcp.Meta{"ui": mcp.RawValue(`{"visibility":` + visibility + `}`)},
		}
		s := server.New("s", "1", nil)
		s.Add(server.RawTool(def, func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) {
			called.Add(1)
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("done")}}, nil
		}))
		_, err := apps.CallForPage(t.Context(), mcptest.Client(t, s, showsPages()), "t", nil, nil)
		if allowed && (err != nil || called.Load() != 1) || !allowed && (!errors.Is(err, apps.ErrNotForPages) || called.Load() != 0) {
			t.Errorf("%s: called %d times, %v", visibility, called.Load(), err)
		}
	}
}
