package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

func TestShapes(t *testing.T) {
	c, ctx := mcptest.Client(t, newServer()), t.Context()

	out, err := client.Call[searchOut](ctx, c, "search", map[string]any{"query": "bridges", "limit": 1})
	if err != nil || len(out.Hits) != 1 || out.Hits[0].Year != 1901 || !out.More {
		t.Errorf("search: %+v, %v", out, err)
	}
	out, err = client.Call[searchOut](ctx, c, "search", map[string]any{"query": "bridges", "since": "1950-01-01T00:00:00Z"})
	if err != nil || len(out.Hits) != 1 || out.Hits[0].Year != 1987 {
		t.Errorf("search since: %+v, %v", out, err)
	}
	if out, err = client.Call[searchOut](ctx, c, "between", period{From: 1980, To: 2000}); err != nil || len(out.Hits) != 1 {
		t.Errorf("between: %+v, %v", out, err)
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
	c := mcptest.Client(t, newServer())
	for _, test := range []struct{ tool, args, want string }{
		{"search", `{}`, `invalid arguments: member "query" is required`},
		{"search", `{"query":"x","kind":"song"}`, "invalid arguments: /kind: must be one of \"book\", \"film\""},
		{"search", `{"query":"x","limit":99,"page":1}`, `invalid arguments: /limit: must be between 1 and 50; unknown member "page"`},
		{"between", `{"from":2000,"to":1900}`, "to must not be before from"},
		{"remove", `{"title":"x"}`, `there is no "x"; look for its exact title with search`},
	} {
		_, err := client.Call[mcp.CallToolResult](t.Context(), c, test.tool, mcp.RawValue(test.args))
		if failed, ok := errors.AsType[*client.ToolError](err); !ok || !strings.Contains(failed.Error(), test.want) {
			t.Errorf("%s %s: %v, want %q", test.tool, test.args, err, test.want)
		}
	}
}

// What the page says under pitfalls.
func TestPitfalls(t *testing.T) {
	type untagged struct{ Query string }
	type lists struct {
		Names []string       `json:"names"`
		Ages  map[string]int `json:"ages"`
	}
	s := newServer()
	s.Add(
		server.Tool("untagged", "", func(_ context.Context, in untagged) (string, error) { return in.Query, nil }),
		server.Tool("nils", "", func(context.Context, mcp.None) (lists, error) { return lists{}, nil }),
	)
	c, ctx := mcptest.Client(t, s), t.Context()
	if text, err := client.Call[string](ctx, c, "untagged", map[string]string{"Query": "x"}); err != nil || text != "x" {
		t.Errorf("untagged: %q, %v", text, err)
	}
	if res, err := c.CallTool(ctx, "nils", nil, nil); err != nil || string(res.StructuredContent) != `{"names":[],"ages":{}}` {
		t.Errorf("nils: %+v, %v", res, err)
	}
	if _, err := client.Call[searchOut](ctx, c, "search", mcp.RawValue(`{"query":"x","since":null}`)); err == nil {
		t.Error("null was taken for an optional argument")
	}
	if _, err := server.NewTool("text", "", func(context.Context, string) (string, error) { return "", nil }); err == nil {
		t.Error("a string was taken for the arguments")
	}
	if _, err := server.NewTool("a name", "", untaggedTool); err == nil {
		t.Error("a name with a space was taken")
	}
	one, err := server.NewTool("one", "", untaggedTool)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.TryAdd(one, one); err == nil {
		t.Error("two tools of one name were added at once")
	}
	if err := s.TryAdd(one); err != nil {
		t.Error(err)
	}
	if err := s.TryAdd(one); err != nil {
		t.Errorf("a tool cannot be replaced: %v", err)
	}
}

func untaggedTool(context.Context, mcp.None) (string, error) { return "", nil }
