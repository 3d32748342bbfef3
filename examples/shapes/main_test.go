package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/examples/internal/try"
	"github.com/parley-mcp/parley/mcp"
)

func TestShapes(t *testing.T) {
	c, ctx := try.Client(t, newServer(), nil), t.Context()

	out, err := client.Call[searchOut](ctx, c, "search", map[string]any{"query": "bridges", "limit": 1})
	if err != nil || len(out.Hits) != 1 || out.Hits[0].Year != 1901 || !out.More {
		t.Errorf("search: %+v, %v", out, err)
	}
	out, err = client.Call[searchOut](ctx, c, "search", map[string]any{"query": "bridges", "since": "1950-01-01T00:00:00Z"})
	if err != nil || len(out.Hits) != 1 || out.Hits[0].Year != 1987 {
		t.Errorf("search since: %+v, %v", out, err)
	}
	if text, err := client.Call[string](ctx, c, "count", map[string]string{"kind": "book"}); err != nil || text != "2 of kind book" {
		t.Errorf("count: %q, %v", text, err)
	}
	res, err := c.CallTool(ctx, "chart", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if img, ok := res.Content[0].(*mcp.ImageContent); !ok || img.MIMEType != "image/png" || !strings.HasPrefix(string(img.Data), "\x89PNG") {
		t.Errorf("chart: %+v", res.Content[0])
	}
	res, err = c.CallTool(ctx, "report", nil, nil)
	if err != nil || len(res.Content) != 3 {
		t.Errorf("report: %+v, %v", res, err)
	}
	res, err = c.CallTool(ctx, "newest", nil, nil)
	if err != nil || string(res.StructuredContent) != `{"title":"Bridges at Night","year":2011}` {
		t.Errorf("newest: %+v, %v", res, err)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; text != "The newest film is Bridges at Night." {
		t.Errorf("newest: %q", text)
	}
	if _, err = client.Call[mcp.None](ctx, c, "remove", map[string]string{"title": "Bridges and Roads"}); err != nil {
		t.Error(err)
	}
}

// What is wrong with arguments, and what the tool says, is told to the model.
func TestErrors(t *testing.T) {
	c := try.Client(t, newServer(), nil)
	for _, test := range []struct{ tool, args, want string }{
		{"search", `{}`, `invalid arguments: member "query" is required`},
		{"search", `{"query":"x","kind":"song"}`, "invalid arguments: /kind: must be one of \"book\", \"film\""},
		{"search", `{"query":"x","limit":99,"page":1}`, "/limit"},
		{"remove", `{"title":"x"}`, `there is no "x"; look for its exact title with search`},
	} {
		_, err := client.Call[mcp.CallToolResult](t.Context(), c, test.tool, mcp.RawValue(test.args))
		if failed, ok := errors.AsType[*client.ToolError](err); !ok || !strings.Contains(failed.Error(), test.want) {
			t.Errorf("%s %s: %v, want %q", test.tool, test.args, err, test.want)
		}
	}
}
