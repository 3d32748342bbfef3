package proxy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// linking is a server with URIs in everything that it gives.
func linking() *server.Server {
	s := server.New("linking", "1", &server.Options{Logger: quiet, Limits: unlimited})
	page := mcp.Meta{"ui": mcp.RawValue(`{"resourceUri":"ui://chart/page","visibility":["model"]}`), "ui/resourceUri": mcp.RawValue(`"ui://chart/page"`)}
	s.Add(
		server.Tool("link", "", func(context.Context, mcp.None) ([]mcp.Content, error) {
			return []mcp.Content{
				mcp.Link("hidden:///x", "x"),
				mcp.Link("note:///one", "one"),
				mcp.Link("https://example.com/", "web"),
				mcp.Embed(mcp.ResourceContents{URI: "made-up:deep", Text: "deep"}),
			}, nil
		}).With(server.ToolOptions{Meta: page}),
		server.Prompt("link", "", func(context.Context, mcp.None) (mcp.PromptMessage, error) {
			return mcp.PromptMessage{Role: mcp.RoleUser, Content: mcp.Embed(mcp.ResourceContents{URI: "note:///one", Text: "one"})}, nil
		}),
		server.Text("note:///one", "one", "first"),
		server.Text("ui://chart/page", "page", "<html>"),
		server.Template("ui://chart/{part}", "parts", func(_ context.Context, v struct {
			Part string `uri:"part"`
		},
		) (string, error) {
			return "part " + v.Part, nil
		}),
	)
	s.ReadUnlisted(server.Reader{Read: func(_ context.Context, uri string) (*mcp.ReadResourceResult, error) {
		if !strings.HasPrefix(uri, "hidden:") {
			return nil, server.ErrNotFound
		}
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{URI: uri, Text: "hidden"}}}, nil
	}})
	return s
}

// URIs in all that passes are those that the caller can read, and what the caller
// sends comes back as the upstream server knows it.
func TestURIs(t *testing.T) {
	eachEra(t, linking(), nil, func(t *testing.T, version string, era mcptest.Era, c *client.Client) {
		r, err := c.CallTool(t.Context(), "up_link", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var uris []string
		for _, content := range r.Content {
			switch x := content.(type) {
			case *mcp.ResourceLink:
				uris = append(uris, x.URI)
			case *mcp.EmbeddedResource:
				uris = append(uris, x.Resource.URI)
			}
		}
		want := []string{"up+hidden:///x", "up+note:///one", "https://example.com/", "up+made-up:deep"}
		if era.Version < v2506 { // links are text there
			want = want[3:]
		}
		if !slices.Equal(uris, want) {
			t.Errorf("URIs %q, want %q", uris, want)
		}
		m, err := c.GetPrompt(t.Context(), "up_link", nil, nil)
		if err != nil || m.Messages[0].Content.(*mcp.EmbeddedResource).Resource.URI != "up+note:///one" {
			t.Errorf("prompt: %+v, %v", m, err)
		}
		for uri, want := range map[string]string{
			"up+note:///one": "first", "up+hidden:///x": "hidden",
			"ui://up+chart/page": "<html>", "ui://up+chart/legend": "part legend",
		} {
			got, err := c.ReadResource(t.Context(), uri, nil)
			if err != nil || got.Contents[0].URI != uri || got.Contents[0].Text != want {
				t.Errorf("read %s: %+v, %v", uri, got, err)
			}
		}
		tool, err := c.Tool(t.Context(), "up_link")
		if err != nil {
			t.Fatal(err)
		}
		if era.Version >= v2506 && (string(tool.Meta["ui/resourceUri"]) != `"ui://up+chart/page"` || !strings.Contains(string(tool.Meta["ui"]), `"ui://up+chart/page"`)) {
			t.Errorf("the tool's page: %s", tool.Meta)
		}
		for _, uri := range []string{"up+none:///", "note:///one", "ui://chart/page", "up+up+note:///one"} {
			if got, err := c.ReadResource(t.Context(), uri, nil); err == nil {
				t.Errorf("read %s: %+v", uri, got)
			}
		}
	})
}
