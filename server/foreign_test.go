package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Definitions of another server are offered as they are, also where an author is
// held to more, and arguments are not checked here.
func TestForeign(t *testing.T) {
	s := server.New("gateway", "1", nil)
	meta := mcp.Meta{"io.modelcontextprotocol/x": mcp.RawValue(`1`)}
	got := func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(arguments))}, StructuredContent: mcp.RawValue(`"odd"`)}, nil
	}
	tool, err := server.ForeignTool(mcp.Tool{
		Name: "two words", InputSchema: mcp.RawValue(`{"type":"object","required":["a"]}`),
		OutputSchema: mcp.RawValue(`{"type":"object"}`), Meta: meta,
	}, got)
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := server.ForeignPrompt(mcp.Prompt{Name: "two words", Meta: meta, Arguments: []mcp.PromptArgument{{Name: "a", Required: true}}},
		func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	s.Add(tool, prompt)
	l := join(t, s, v2607)
	list := string(l.result(l.call("tools/list", `{}`)))
	for _, part := range []string{`"name":"two words"`, `"io.modelcontextprotocol/x":1`, `"outputSchema":{"type":"object"}`} {
		if !strings.Contains(string(list), part) {
			t.Errorf("%s lacks %s", list, part)
		}
	}
	if res := string(l.result(l.call("tools/call", `{"name":"two words","arguments":{"b":2}}`))); !strings.Contains(string(res), `{\"b\":2}`) || !strings.Contains(string(res), `"structuredContent":"odd"`) {
		t.Errorf("got %s", res)
	}
	l.result(l.call("prompts/get", `{"name":"two words"}`))
}

// What would mislead, or cannot be compiled, is refused.
func TestForeignRefusals(t *testing.T) {
	for _, def := range []mcp.Tool{
		{Name: "", InputSchema: mcp.RawValue(`{"type":"object"}`)},
		{Name: `quo"te`, InputSchema: mcp.RawValue(`{"type":"object"}`)},
		{Name: `back\u0061`, InputSchema: mcp.RawValue(`{"type":"object"}`)},
		{Name: "hid\u202eden", InputSchema: mcp.RawValue(`{"type":"object"}`)},
		{Name: strings.Repeat("x", 300), InputSchema: mcp.RawValue(`{"type":"object"}`)},
		{Name: "schema", InputSchema: mcp.RawValue(`{"type":7}`)},
		{Name: "none"},
	} {
		if _, err := server.ForeignTool(def, nil); err == nil {
			t.Errorf("%.20q was taken", def.Name)
		}
	}
}

// URIs that no list names are read by the Reader, mounted or not; what a rule hides
// stays hidden.
func TestReadUnlisted(t *testing.T) {
	inner := server.New("inner", "1", nil)
	inner.ReadUnlisted(server.Reader{Read: func(_ context.Context, uri string) (*mcp.ReadResourceResult, error) {
		if uri == "x:///none" {
			return nil, server.ErrNotFound
		}
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "read " + uri}}}, nil
	}})
	inner.Visible(func(_ context.Context, it server.Item) bool { return it.Name != "x:///secret" })
	top := server.New("top", "1", nil)
	top.Mount("in", inner)
	for s, prefix := range map[*server.Server]string{inner: "", top: "in+"} {
		l := join(t, s, v2607)
		if res := l.result(l.call("resources/read", `{"uri":"`+prefix+`x:///a"}`)); !strings.Contains(string(res), "read x:///a") || !strings.Contains(string(res), `"uri":"`+prefix+`x:///a"`) {
			t.Errorf("got %s", res)
		}
		for _, uri := range []string{"x:///none", "x:///secret", "no uri"} {
			l.fails(l.call("resources/read", `{"uri":"`+prefix+uri+`"}`), -32602)
		}
	}
	l := join(t, top, v2607)
	l.fails(l.call("resources/read", `{"uri":"x:///a"}`), -32602)
}
