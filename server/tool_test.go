package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type sum struct {
	Sum int `json:"sum"`
}

// give makes a tool that takes nothing and gives one value.
func give[Out any](name string, v Out) *server.ToolFeature {
	return server.Tool(name, "Gives.", func(context.Context, none) (Out, error) { return v, nil })
}

// Each form of result, in each revision: an older one gets what it can say.
// Proves: FLOW-TOOL.
func TestToolOutputs(t *testing.T) {
	s := newServer(nil,
		give("text", "plain"),
		give("nothing", mcp.None{}),
		give("content", mcp.Content(mcp.Text("one"))),
		give("typed", mcp.Image([]byte("png"), "image/png")),
		give("contents", []mcp.Content{mcp.Text("one"), mcp.Text("two")}),
		give("struct", sum{5}),
		give("list", []int{1, 2}),
		give("with", mcp.With[sum]{Value: sum{5}, Content: []mcp.Content{mcp.Text("five")}}),
		give("own", &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("x")}, IsError: true}),
		give("audio", mcp.Audio([]byte("wav"), "audio/wav")),
		give("link", mcp.Link("file:///a", "a")),
	)
	for _, c := range []struct {
		tool, versions, want string
	}{
		{"text", "all", `{"content":[{"type":"text","text":"plain"}]}`},
		{"nothing", "all", `{"content":[]}`},
		{"content", "all", `{"content":[{"type":"text","text":"one"}]}`},
		{"typed", "all", `{"content":[{"type":"image","data":"cG5n","mimeType":"image/png"}]}`},
		{"contents", "all", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`},
		{"struct", v2024 + v2503, `{"content":[{"type":"text","text":"{\"sum\":5}"}]}`},
		{"struct", v2506 + v2511 + v2607, `{"content":[{"type":"text","text":"{\"sum\":5}"}],"structuredContent":{"sum":5}}`},
		{"list", v2024 + v2503 + v2506 + v2511, `{"content":[{"type":"text","text":"[1,2]"}]}`},
		{"list", v2607, `{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}`},
		{"with", v2024 + v2503, `{"content":[{"type":"text","text":"five"}]}`},
		{"with", v2506 + v2511 + v2607, `{"content":[{"type":"text","text":"five"}],"structuredContent":{"sum":5}}`},
		{"own", "all", `{"content":[{"type":"text","text":"x"}],"isError":true}`},
		{"audio", v2024, `{"content":[{"type":"resource","resource":{"uri":"audio:","mimeType":"audio/wav","blob":"d2F2"}}]}`},
		{"audio", v2503 + v2506 + v2511 + v2607, `{"content":[{"type":"audio","data":"d2F2","mimeType":"audio/wav"}]}`},
		{"link", v2506 + v2511 + v2607, `{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}`},
	} {
		for _, v := range versions {
			if c.versions != "all" && !strings.Contains(c.versions, v) {
				continue
			}
			t.Run(c.tool+"/"+v, func(t *testing.T) {
				l := join(t, s, v)
				got := decode[map[string]any](t, l.result(l.tool(c.tool, emptyBody)))
				if v == v2607 {
					if got["resultType"] != mcp.ResultComplete {
						t.Errorf("resultType is %v", got["resultType"])
					}
					delete(got, "resultType")
					delete(got, "_meta")
				}
				want := decode[map[string]any](t, mcp.RawValue(c.want))
				if c.tool == "audio" && v == v2024 {
					blankURI(got)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			})
		}
	}
}

// blankURI takes away the part of a made-up URI that is nobody's business.
func blankURI(result map[string]any) {
	contents, _ := result["content"].([]any)
	for _, c := range contents {
		if m, ok := c.(map[string]any); ok {
			if r, ok := m["resource"].(map[string]any); ok {
				r["uri"] = "audio:"
			}
		}
	}
}

// What a tool cannot give is an internal error, not an empty success.
// Proves: SEC-TOOL-6.
func TestToolNoResult(t *testing.T) {
	s := newServer(nil, give("nil", (*mcp.CallToolResult)(nil)), give("nilcontent", mcp.Content(nil)))
	for _, name := range []string{"nil", "nilcontent"} {
		l := join(t, s, v2607)
		if got := l.isError(l.tool(name, emptyBody)); !strings.Contains(got, "internal error (ref ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Arguments are checked before the handler runs. In the newest revisions the
// model reads what is wrong, in older ones it is a protocol error.
// Proves: SEC-TOOL-1.
func TestToolArguments(t *testing.T) {
	ran := 0
	s := newServer(unlimited(), server.Tool("add", "Adds.", func(_ context.Context, in struct {
		A int    `json:"a" min:"0" max:"9"`
		B int    `json:"b"`
		C string `json:"c,omitzero" enum:"x,y"`
	},
	) (sum, error) {
		ran++
		return sum{in.A + in.B}, nil
	}))
	each(t, versions, func(t *testing.T, v string) {
		l := join(t, s, v)
		before := ran
		for _, arguments := range []string{`{}`, `{"a":1}`, `{"a":1,"b":"2"}`, `{"a":10,"b":1}`, `{"a":1.5,"b":1}`, `{"a":1,"b":1,"c":"z"}`, `{"A":1,"a":1,"b":1,"c":1}`} {
			m := l.tool("add", arguments)
			var text string
			if v == v2511 || v == v2607 {
				text = l.isError(m)
			} else {
				text = l.fails(m, mcp.CodeInvalidParams)
			}
			if !strings.Contains(text, "invalid arguments") {
				t.Errorf("%s: %q", arguments, text)
			}
		}
		if ran != before {
			t.Errorf("the handler ran %d times for bad arguments", ran-before)
		}
		if m := l.tool("add", `{"a":1,"b":2}`); !strings.Contains(m.raw, `{\"sum\":3}`) {
			t.Errorf("got %s", m.raw)
		}
	})
}

// The envelope of tools/call is read strictly: no case folding, no duplicate
// keys, no array, no wrong types (G16, M0). Proves: MSG-1, MSG-2. Ruling 8.
func TestToolParams(t *testing.T) {
	s := newServer(nil, echo())
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		for _, c := range []struct {
			params string
			code   int64
		}{
			{`{"name":"nosuch","NAME":"echo"}`, mcp.CodeInvalidParams},
			{`{"name":"echo","Arguments":{"text":"x"}}`, mcp.CodeInvalidParams},
			{`{"name":1}`, mcp.CodeInvalidParams},
			{`{"name":"echo","arguments":[1]}`, mcp.CodeInvalidParams},
			{`{"arguments":{}}`, mcp.CodeInvalidParams},
			{`{}`, mcp.CodeInvalidParams},
			{`{"name":"nosuch"}`, mcp.CodeInvalidParams},
		} {
			m := l.call("tools/call", c.params)
			if m.Error == nil && v != v2024 && strings.Contains(c.params, "[1]") {
				l.isError(m) // told to the model
				continue
			}
			l.fails(m, c.code)
		}
		l.last++
		l.WriteLine(l.request("99", "tools/call", `{"name":"safe","name":"echo","arguments":{"text":"x"}}`))
		if m := l.next(); m.Error == nil || m.Error.Code != mcp.CodeParseError {
			t.Errorf("duplicate key: %s", m.raw)
		}
	})
	l := join(t, s, v2511)
	l.WriteLine(`{"jsonrpc":"2.0","id":98,"method":"tools/call","params":["echo"]}`)
	l.fails(l.wait("98"), mcp.CodeInvalidParams)
}

// Foreign schemas are compiled at registration and enforced in both
// directions. Proves: SEC-TOOL-1, SEC-TOOL-3.
func TestRawTool(t *testing.T) {
	def := mcp.Tool{
		Name: "raw", Title: "Raw", Description: "Any schema.",
		InputSchema:  mcp.RawValue(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"integer","multipleOf":3}},"required":["n"]}`),
		OutputSchema: mcp.RawValue(`{"type":"object","properties":{"ok":{"const":true}},"required":["ok"]}`),
	}
	s := newServer(nil, server.RawTool(def, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: mcp.RawValue(strings.Replace(`{"ok":N}`, "N", map[string]string{`{"n":3}`: "true", `{"n":6}`: "1"}[string(arguments)], 1))}, nil
	}))
	l := join(t, s, v2607)
	if got := l.toolResult(l.tool("raw", `{"n":3}`)); string(got.StructuredContent) != `{"ok":true}` || got.Content == nil {
		t.Errorf("got %+v", got)
	}
	if got := l.isError(l.tool("raw", `{"n":4}`)); !strings.Contains(got, "invalid arguments") {
		t.Errorf("got %q", got)
	}
	if got := l.isError(l.tool("raw", `{"n":6}`)); strings.Contains(got, "ok") || !strings.Contains(got, "internal error") {
		t.Errorf("a result that breaks its schema gives %q", got)
	}
	list := l.result(l.call("tools/list", emptyBody))
	for _, part := range []string{`"title":"Raw"`, `"multipleOf":3`, `"const":true`} {
		if !strings.Contains(string(list), part) {
			t.Errorf("the list lacks %s: %s", part, list)
		}
	}
}

// What cannot be served is found when the program starts.
// Proves: SEC-TOOL-1, SEC-ICON-1. Ruling 27.
func TestToolRegistration(t *testing.T) {
	var text logtest.Log
	s := newServer(&server.Options{Logger: text.Logger()})
	fine := func(context.Context, none) (string, error) { return "", nil }
	panics(t, "tool name", func() { s.Add(server.Tool("bad name!!", "", fine)) })
	panics(t, "tool name", func() { s.Add(server.Tool("", "", fine)) })
	panics(t, "tool name", func() { s.Add(server.Tool(strings.Repeat("x", 129), "", fine)) })
	panics(t, "arguments", func() {
		server.Tool("x", "", func(context.Context, chan int) (string, error) { return "", nil })
	})
	panics(t, "result", func() {
		server.Tool("x", "", func(context.Context, none) (func(), error) { return nil, nil })
	})
	panics(t, "inputSchema", func() {
		server.RawTool(mcp.Tool{Name: "x", InputSchema: mcp.RawValue(`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`)}, nil)
	})
	panics(t, "inputSchema", func() {
		server.RawTool(mcp.Tool{Name: "x", InputSchema: mcp.RawValue(`{"$ref":"https://example.com/schema.json"}`)}, nil)
	})
	panics(t, "reserved", func() {
		s.Add(server.Tool("x", "", fine).With(server.ToolOptions{Meta: mcp.Meta{"io.modelcontextprotocol/x": mcp.RawValue("1")}}))
	})
	panics(t, "_meta key", func() {
		s.Add(server.Tool("x", "", fine).With(server.ToolOptions{Meta: mcp.Meta{"/": mcp.RawValue("1")}}))
	})
	s.Add(server.Tool("icon", "", fine).With(server.ToolOptions{Icons: []mcp.Icon{{Src: "http://example.com/i.png"}}}))
	if !strings.Contains(text.String(), "icon will be refused") {
		t.Errorf("no warning of a bad icon: %s", text.String())
	}
	s.Add(server.Tool("login", "", func(context.Context, struct {
		Password string `json:"password"`
	},
	) (string, error) {
		return "", nil
	}))
	if !strings.Contains(text.String(), "looks like secrets") {
		t.Errorf("no warning of a secret argument: %s", text.String())
	}
}

// Features come and go while clients are there. Proves: SEC-CAP-1.
func TestToolsComeAndGo(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		s := newServer(nil)
		l := join(t, s, v)
		if got := l.fails(l.call("tools/list", emptyBody), mcp.CodeMethodNotFound); !strings.Contains(got, `"tools"`) {
			t.Errorf("without tools: %q", got)
		}
		s.Add(give("a", "old"), give("b", ""))
		s.Add(give("a", "new"))
		drain(l)
		if got := l.text(l.tool("a", emptyBody)); got != "new" {
			t.Errorf("after replacing: %q", got)
		}
		if !s.RemoveTools("b", "nosuch") || s.RemoveTools("nosuch") {
			t.Error("RemoveTools reports wrongly")
		}
		drain(l)
		if got := l.fails(l.tool("b", emptyBody), mcp.CodeInvalidParams); !strings.Contains(got, `unknown tool "b"`) {
			t.Errorf("after removal: %q", got)
		}
	})
	s := newServer(&server.Options{DeclareTools: true})
	l := join(t, s, v2607)
	if got := string(l.result(l.call("tools/list", emptyBody))); !strings.Contains(got, `"tools":[]`) {
		t.Errorf("declared without any: %s", got)
	}
}

// drain reads what is on its way, up to the answer to a listing.
func drain(l *line) {
	l.t.Helper()
	l.result(l.call("tools/list", emptyBody))
}

// The same tools through the client, over every transport and revision.
// Proves: FLOW-TOOL.
func TestToolEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("add", "Adds.", func(_ context.Context, in struct {
			A int `json:"a"`
			B int `json:"b"`
		},
		) (sum, error) {
			if in.B == 0 {
				return sum{}, mcp.Errorf("b must not be 0")
			}
			return sum{in.A + in.B}, nil
		}).With(server.ToolOptions{Title: "Add", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)}}))
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		got, err := client.Call[sum](t.Context(), c, "add", map[string]int{"a": 1, "b": 2})
		if err != nil || got.Sum != 3 {
			t.Errorf("got %v, %v", got, err)
		}
		res, err := c.CallTool(t.Context(), "add", map[string]int{"a": 1, "b": 0}, nil)
		if err != nil || !res.IsError || res.Content[0].(*mcp.TextContent).Text != "b must not be 0" {
			t.Errorf("got %+v, %v", res, err)
		}
		tool, err := c.Tool(t.Context(), "add")
		if err != nil {
			t.Fatal(err)
		}
		if era.Version >= v2506 && tool.Title != "Add" {
			t.Errorf("title is %q", tool.Title)
		}
		if (tool.OutputSchema != nil) != (era.Version >= v2506) {
			t.Errorf("output schema is %s", tool.OutputSchema)
		}
		if _, err := c.CallTool(t.Context(), "nosuch", nil, nil); err == nil || errors.Is(err, client.ErrClosed) {
			t.Errorf("unknown tool: %v", err)
		}
	})
}

// Null for an optional object is as good as none, in every revision, and
// nowhere else. Ruling 33.
func TestNullIsAbsence(t *testing.T) {
	each(t, versions, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			heard := make(chan struct{}, 1)
			o := quiet()
			o.OnRootsChanged = func(context.Context) { heard <- struct{}{} }
			s := newServer(o, give("a", "x"), echo(), server.Text("test:a", "a", ""), asker("drop", "Drop?"),
				server.Prompt("p", "", func(_ context.Context, in struct {
					A string `json:"a,omitzero"`
				},
				) (string, error) {
					return "got " + in.A, nil
				}).With(server.PromptOptions{Complete: map[string]server.Completer{"a": server.Choices("x")}}))
			l := join(t, s, v)
			l.text(l.call("tools/call", `{"name":"a","arguments":null}`))
			l.result(l.call("prompts/get", `{"name":"p","arguments":null}`))
			l.result(l.call("completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":null}`))
			for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
				l.result(l.call(method, `{"cursor":null}`))
			}
			if l.modern() {
				l.text(l.call("tools/call", `{"name":"a","arguments":null,"inputResponses":null}`))
				res := l.asked(l.call("tools/call", `{"name":"drop","arguments":null}`))
				if got := l.text(l.call("tools/call", with(`{"name":"drop"}`, res.answers(accepted)))); got != "accept true" {
					t.Errorf("null and none are two: %q", got)
				}
			} else {
				for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping"} {
					l.WriteLine(`{"jsonrpc":"2.0","id":99,"method":"` + method + `","params":null}`)
					l.result(l.wait("99"))
					l.result(l.call(method, `{"_meta":null}`))
				}
				l.text(l.call("tools/call", `{"name":"a","arguments":null,"_meta":null}`))
				l.result(l.call("resources/read", `{"uri":"test:a","_meta":null}`))
				l.WriteLine(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":null}`)
				<-heard
				l.WriteLine(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":null}`)
				l.fails(l.wait("99"), mcp.CodeInvalidParams)
			}
			for method, params := range map[string]string{
				"tools/call": `{"name":null}`, "prompts/get": `{"name":null}`, "resources/read": `{"uri":null}`,
				"completion/complete": `{"ref":null,"argument":{"name":"a","value":""}}`,
			} {
				l.fails(l.call(method, params), map[bool]int64{true: mcp.CodeInvalidParams, false: mcp.CodeResourceNotFoundLegacy}[l.modern() || method != "resources/read"])
			}
			if m := l.call("tools/call", `{"name":"echo","arguments":{"text":null}}`); m.Error == nil && !strings.Contains(m.raw, `"isError":true`) {
				t.Errorf("null for a text is taken: %s", m.raw)
			}
		})
	})
}

// What a variant does to the definition that it is given does not change the
// definition of others.
func TestVariantOwnsItsDefinition(t *testing.T) {
	o := server.ToolOptions{
		Annotations: &mcp.ToolAnnotations{Title: "All"}, Icons: []mcp.Icon{{Src: "https://a.example/all.png"}},
		Meta: mcp.Meta{"com.example/a": mcp.RawValue(`1`)},
	}
	first := true
	o.Variant = func(_ context.Context, def mcp.Tool) mcp.Tool {
		if first {
			def.Annotations.Title += "+"
			def.Icons[0].Src += "+"
			def.Meta["com.example/b"] = mcp.RawValue(`2`)
			copy(def.InputSchema[strings.Index(string(def.InputSchema), "team"):], "tram")
		}
		first = false
		return def
	}
	tool := server.Tool("t", "", func(context.Context, struct {
		Team string `json:"team,omitzero"`
	},
	) (string, error) {
		return "done", nil
	})
	l := join(t, newServer(unlimited(), tool.With(o)), v2607)
	if got := string(l.call("tools/list", "{}").Result); !strings.Contains(got, `"tram"`) || !strings.Contains(got, "All+") {
		t.Errorf("the first list is %s", got)
	}
	got := string(l.call("tools/list", "{}").Result)
	if !strings.Contains(got, `"team"`) || strings.Contains(got, "All+") || strings.Contains(got, "png+") || len(o.Meta) != 1 {
		t.Errorf("the second list is %s; the author's meta is %v", got, o.Meta)
	}
}
