package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

const marked = "com.example/marked"

// What an extension adds to a tool holds in every revision, where the tool is mounted
// too, and stays when the author sets options.
func TestToolExtension(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		inner := server.New("inner", "1", o)
		inner.Add(
			server.Text("demo://needed", "needed", "x"),
			server.Tool("shown", "Says hello.", func(_ context.Context, _ mcp.None) (string, error) { return "hello", nil }).
				Extend(server.ToolExtension{
					Meta:     mcp.Meta{"com.example/mark": mcp.RawValue(`1`)},
					Resource: "demo://needed",
					Result: func(_ *server.Call, res *mcp.CallToolResult) error {
						res.Content = append(res.Content, mcp.Text("and more"))
						return nil
					},
				}).With(server.ToolOptions{Meta: mcp.Meta{"com.example/own": mcp.RawValue(`2`)}}),
			server.Tool("secret", "Says nothing.", func(_ context.Context, _ mcp.None) (string, error) { return "psst", nil }).
				Extend(server.ToolExtension{Visible: func(c *server.Call) bool { return c.HasExtension(marked) }}),
			server.Tool("spoilt", "Says nothing right.", func(_ context.Context, _ mcp.None) (string, error) { return "?", nil }).
				Extend(server.ToolExtension{Result: func(*server.Call, *mcp.CallToolResult) error { return mcp.Errorf("not this") }}),
		)
		s := server.New("outer", "1", o)
		s.Mount("in", inner)
		return s
	}
	for name, extensions := range map[string][]client.Extension{
		"without": nil,
		"with":    {{ID: marked, Revisions: client.AllRevisions}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &client.Options{Extensions: extensions}
			mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
				var names []string
				for tool, err := range c.Tools(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, tool.Name)
					if tool.Name == "in_shown" && era.Version >= "2025-06-18" && (string(tool.Meta["com.example/mark"]) != "1" || string(tool.Meta["com.example/own"]) != "2") {
						t.Errorf("_meta of the tool: %v", tool.Meta)
					}
				}
				want := []string{"in_shown", "in_spoilt"}
				if extensions != nil {
					want = []string{"in_secret", "in_shown", "in_spoilt"}
				}
				if diff := cmp.Diff(want, names); diff != "" {
					t.Error(diff)
				}
				res, err := c.CallTool(t.Context(), "in_shown", nil, nil)
				if err != nil || len(res.Content) != 2 {
					t.Errorf("in_shown: %+v, %v", res, err)
				}
				if _, err := c.CallTool(t.Context(), "in_secret", nil, nil); (err == nil) != (extensions != nil) {
					t.Errorf("in_secret: %v", err)
				}
				if res, err := c.CallTool(t.Context(), "in_spoilt", nil, nil); err != nil || !res.IsError {
					t.Errorf("in_spoilt: %+v, %v", res, err)
				}
			}, mcptest.Over("mem", "streamable"))
		})
	}
}

// A tool is refused whose resource is missing or of another type, and the call of Add
// then adds nothing.
func TestToolNeedsResource(t *testing.T) {
	tool := func(uri string) *server.ToolFeature {
		return server.Tool("t", "", func(context.Context, mcp.None) (string, error) { return "", nil }).
			Extend(server.ToolExtension{Resource: uri, ResourceType: "text/x"})
	}
	page := func(uri string) server.Feature {
		return server.Text(uri, "p", "").With(server.ResourceOptions{MIMEType: "text/x"})
	}
	type variables struct {
		ID string `uri:"id"`
	}
	read := func(context.Context, variables) (string, error) { return "", nil }
	inner := server.New("inner", "1", nil)
	inner.Add(page("demo://inner"))
	s := server.New("s", "1", nil)
	s.Mount("in", inner)
	for _, test := range []struct {
		name string
		add  []server.Feature
		want string // "" is taken
	}{
		{"missing", []server.Feature{tool("demo://p")}, "does not have"},
		{"tool first", []server.Feature{tool("demo://a"), page("demo://a")}, ""},
		{"page first", []server.Feature{page("demo://b"), tool("demo://b")}, ""},
		{"there already", []server.Feature{tool("demo://b")}, ""},
		{"of another type", []server.Feature{tool("demo://c"), server.Text("demo://c", "c", "")}, `must be "text/x"`},
		{"nothing was added", []server.Feature{tool("demo://c")}, "does not have"},
		{"of a template", []server.Feature{tool("demo://d/1"), server.Template("demo://d/{id}", "d", read)}, ""},
		{"of a template there", []server.Feature{tool("demo://d/2")}, ""},
		{"beside the template", []server.Feature{tool("demo://e/1"), server.Template("demo://f/{id}", "f", read)}, "does not have"},
		{"mounted", []server.Feature{tool("in+demo://inner")}, ""},
	} {
		err := s.TryAdd(test.add...)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestToolExtensionMeta(t *testing.T) {
	s := server.New("s", "1", nil)
	twice := server.Tool("t", "", func(context.Context, mcp.None) (string, error) { return "", errors.New("unused") }).
		With(server.ToolOptions{Meta: mcp.Meta{"ui": mcp.RawValue(`{}`)}}).
		Extend(server.ToolExtension{Meta: mcp.Meta{"ui": mcp.RawValue(`{}`)}})
	if err := s.TryAdd(twice); err == nil || !strings.Contains(err.Error(), "set twice") {
		t.Errorf("a key set twice: %v", err)
	}
	reserved := server.Tool("t", "", func(context.Context, mcp.None) (string, error) { return "", errors.New("unused") }).
		Extend(server.ToolExtension{Meta: mcp.Meta{"io.modelcontextprotocol/x": mcp.RawValue(`{}`)}})
	if err := s.TryAdd(reserved); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("a reserved key: %v", err)
	}
}
