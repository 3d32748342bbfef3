package flows_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type sumIn struct {
	A int `json:"a" min:"0" max:"100"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func sum(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }

// Proves: FLOW-TOOL-P
func TestFLOW_TOOL_P(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.PageSize = 3
		s := with(
			server.Tool("sum", "Adds.", sum),
			server.Tool("list", "Gives a list.", func(context.Context, mcp.None) ([]int, error) { return []int{1, 2}, nil }),
			server.Tool("fails", "Fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("the printer is on fire") }),
			server.Tool("protocol", "Breaks a rule.", func(context.Context, mcp.None) (string, error) { return "", mcp.NewError(-31999, "not like this") }),
			server.Tool("both", "Value and content.", func(context.Context, mcp.None) (mcp.With[sumOut], error) {
				return mcp.With[sumOut]{Value: sumOut{3}, Content: []mcp.Content{mcp.Text("three")}}, nil
			}),
			server.RawTool(mcp.Tool{Name: "raw", InputSchema: raw(`{"type":"object","properties":{"x":{"$ref":"#/$defs/even"}},"$defs":{"even":{"multipleOf":2}}}`)},
				func(_ context.Context, arguments raw) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(arguments))}}, nil
				}),
		)(t, o)
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		var names []string
		for _, tool := range collect(t, c.Tools(t.Context())) {
			names = append(names, tool.Name)
			output := since(era.Version, june) && (tool.Name == "sum" || tool.Name == "both") || era.Version == newest && tool.Name == "list"
			if (tool.OutputSchema != nil) != output {
				t.Errorf("tool %s has the output schema %s", tool.Name, tool.OutputSchema)
			}
		}
		if got := strings.Join(names, " "); got != "both fails list protocol raw sum" {
			t.Errorf("tools %s", got)
		}
		if got, err := client.Call[sumOut](t.Context(), c, "sum", sumIn{2, 3}); err != nil || got.Sum != 5 {
			t.Errorf("sum %+v, %v", got, err)
		}
		if got, err := client.Call[[]int](t.Context(), c, "list", nil); err != nil || len(got) != 2 {
			t.Errorf("list %v, %v", got, err)
		}
		if r, err := c.CallTool(t.Context(), "both", nil, nil); err != nil || text(t, r) != "three" || (r.StructuredContent != nil) != since(era.Version, june) {
			t.Errorf("both %+v, %v", r, err)
		}
		if r, err := c.CallTool(t.Context(), "raw", raw(`{"x":4}`), nil); err != nil || text(t, r) != `{"x":4}` {
			t.Errorf("raw %+v, %v", r, err)
		}
		if r, err := c.CallTool(t.Context(), "fails", nil, nil); err != nil || !r.IsError || text(t, r) != "the printer is on fire" {
			t.Errorf("fails %+v, %v", r, err)
		}
		if _, err := c.CallTool(t.Context(), "protocol", nil, nil); code(err) != -31999 {
			t.Errorf("protocol %v", err)
		}
		if _, err := c.CallTool(t.Context(), "none", nil, nil); code(err) != mcp.CodeInvalidParams {
			t.Errorf("unknown tool %v", err)
		}
		for _, bad := range []string{`{"x":3}`, `{"x":-1}`} {
			wrongArguments(t, era, c, "raw", bad)
		}
	})
}

// wrongArguments checks that a call is refused in the way of the revision:
// -32602, or from 2025-11-25 on as a result that the model reads.
func wrongArguments(t *testing.T, era mcptest.Era, c *client.Client, tool, arguments string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), tool, raw(arguments), nil)
	switch {
	case !since(era.Version, autumn):
		if code(err) != mcp.CodeInvalidParams {
			t.Errorf("%.80s: %+v, %v", arguments, r, err)
		}
	case err != nil || !r.IsError || !strings.HasPrefix(text(t, r), "invalid arguments"):
		t.Errorf("%.80s: %+v, %v", arguments, r, err)
	}
}

// Proves: SEC-TOOL-1: arguments are checked before the handler runs.
func TestSEC_TOOL_1(t *testing.T) {
	type deep struct {
		Name  string   `json:"name" minlen:"1" maxlen:"5" pattern:"^[a-z]+$"`
		Tags  []string `json:"tags,omitzero" maxlen:"2" enum:"a,b,c"`
		Inner *sumIn   `json:"inner,omitzero"`
	}
	var ran atomic.Int32
	build := with(
		server.Tool("deep", "Counts its runs.", func(context.Context, deep) (string, error) {
			ran.Add(1)
			return "ok", nil
		}),
		server.Tool("none", "Takes nothing.", func(context.Context, mcp.None) (string, error) {
			ran.Add(1)
			return "ok", nil
		}),
	)
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		ran.Store(0)
		for _, bad := range []string{
			`{}`, `{"name":""}`, `{"name":"toolong"}`, `{"name":"A"}`, `{"name":7}`, `{"name":null}`, `{"name":"a","more":1}`, `{"Name":"a"}`, `{"name":"a","NAME":"b"}`,
			`{"name":"a","tags":["d"]}`, `{"name":"a","tags":["a","b","c"]}`, `{"name":"a","tags":"a"}`, `{"name":"a","tags":null}`,
			`{"name":"a","inner":{"a":-1,"b":0}}`, `{"name":"a","inner":{"a":1}}`, `{"name":"a","inner":{"a":1.5,"b":0}}`, `{"name":"a","inner":{"a":1e99,"b":0}}`, `{"name":"a","inner":[]}`,
		} {
			wrongArguments(t, era, c, "deep", bad)
		}
		wrongArguments(t, era, c, "none", `{"x":1}`)
		if n := ran.Load(); n != 0 {
			t.Errorf("the handler ran %d times", n)
		}
		if _, err := client.Call[string](t.Context(), c, "deep", raw(`{"name":"abc","tags":["a","c"],"inner":{"a":100,"b":-7}}`)); err != nil || ran.Load() != 1 {
			t.Errorf("what fits: %v, %d runs", err, ran.Load())
		}
	})
	for name, schema := range map[string]string{
		"remote ref":    `{"type":"object","properties":{"a":{"$ref":"https://example.com/schema.json"}}}`,
		"file ref":      `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		"deep":          `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 80) + `{}` + strings.Repeat(`}`, 80) + `}}`,
		"many nodes":    `{"type":"object","properties":{"a":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 20_000) + `{}]}}}`,
		"not an object": `{"type":"string"}`,
		"odd dialect":   `{"$schema":"https://example.com/my","type":"object"}`,
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the schema was accepted")
				}
			}()
			server.New("s", "1", quiet()).Add(server.RawTool(mcp.Tool{Name: "t", InputSchema: raw(schema)}, func(context.Context, raw) (*mcp.CallToolResult, error) { return nil, nil }))
		})
	}
}

// Proves: SEC-TOOL-3: structured output is checked on both sides.
func TestSEC_TOOL_3(t *testing.T) {
	var gives atomic.Pointer[string]
	tool := server.RawTool(mcp.Tool{
		Name: "t", InputSchema: raw(`{"type":"object"}`),
		OutputSchema: raw(`{"type":"object","properties":{"n":{"type":"integer","maximum":9}},"required":["n"]}`),
	}, func(context.Context, raw) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("x")}, StructuredContent: raw(*gives.Load())}, nil
	})
	mcptest.EachEra(t, with(tool), nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		for output, fits := range map[string]bool{`{"n":7}`: true, `{"n":10}`: false, `{"n":"7"}`: false, `{}`: false, `[]`: false} {
			gives.Store(&output)
			r, err := c.CallTool(t.Context(), "t", nil, nil)
			if err != nil || r.IsError == fits {
				t.Errorf("%s: %+v, %v", output, r, err)
				continue
			}
			if !fits && (r.StructuredContent != nil || !strings.HasPrefix(text(t, r), "internal error (ref ")) {
				t.Errorf("%s: the peer got %+v", output, r)
			}
		}
	})
	t.Run("a server that breaks its promise", func(t *testing.T) {
		for _, version := range []string{newest, autumn, june} {
			synctest.Test(t, func(t *testing.T) {
				build := func(t testing.TB, o *server.Options) *server.Server {
					s := with(tool)(t, o)
					s.Use(func(next server.Func) server.Func {
						return func(c *server.Call) (server.Result, error) {
							res, err := next(c)
							if r, ok := res.(*mcp.CallToolResult); ok {
								r.StructuredContent = raw(`{"n":99}`)
							}
							return res, err
						}
					})
					return s
				}
				gives.Store(new(`{"n":1}`))
				c := mcptest.Join(t, build, nil, mcptest.Era{Version: version, Transport: "mem"})
				collect(t, c.Tools(t.Context()))
				if _, err := client.Call[mcp.RawValue](t.Context(), c, "t", nil); !errors.Is(err, client.ErrOutput) {
					t.Errorf("%s: error %v", version, err)
				}
				r, err := c.CallTool(t.Context(), "t", nil, nil)
				if err != nil || r.StructuredContent != nil || len(c.Problems()) != 1 {
					t.Errorf("%s: %+v, %v, problems %v", version, r, err, c.Problems())
				}
			})
		}
	})
}

// Proves: SEC-TOOL-6: neither errors nor panics tell of the inside; both are
// found again in the log by their reference, and the process lives.
func TestSEC_TOOL_6(t *testing.T) {
	const inside = "db.internal:5432 password=hunter2"
	var log strings.Builder
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		return with(
			server.Tool("error", "Fails.", func(context.Context, mcp.None) (string, error) { return "", errors.New(inside) }),
			server.Tool("panic", "Panics.", func(context.Context, mcp.None) (string, error) { panic(inside) }),
			server.Tool("exit", "Ends its goroutine.", func(context.Context, mcp.None) (string, error) { runtime.Goexit(); return "", nil }),
			server.Tool("wrapped", "Wraps.", func(context.Context, mcp.None) (string, error) {
				return "", mcp.Errorf("the database is away: %v", "try later")
			}),
			server.Resource("x:panic", "p", func(context.Context) (string, error) { panic(inside) }),
			server.Prompt("panic", "Panics.", func(context.Context, mcp.None) (string, error) { panic(inside) }),
		)(t, o)
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		refs := map[string]string{}
		r, err := c.CallTool(t.Context(), "error", nil, nil)
		if err != nil || !r.IsError {
			t.Fatalf("error: %+v, %v", r, err)
		}
		refs["error"] = text(t, r)
		for what, err := range map[string]error{
			"panic":    second(c.CallTool(t.Context(), "panic", nil, nil)),
			"exit":     second(c.CallTool(t.Context(), "exit", nil, nil)),
			"resource": second(c.ReadResource(t.Context(), "x:panic", nil)),
			"prompt":   second(c.GetPrompt(t.Context(), "panic", nil, nil)),
		} {
			var e *jsonrpc.Error
			if !errors.As(err, &e) || e.Code != mcp.CodeInternalError {
				t.Fatalf("%s: %v", what, err)
			}
			refs[what] = e.Message
		}
		for what, said := range refs {
			var ref string
			if _, err := fmt.Sscanf(said, "internal error (ref %6s)", &ref); err != nil {
				t.Errorf("%s: the peer reads %q", what, said)
			}
			if !strings.Contains(log.String(), ref) || !strings.Contains(log.String(), "hunter2") {
				t.Errorf("%s: the log does not tell of %s", what, ref)
			}
		}
		if r, err := c.CallTool(t.Context(), "wrapped", nil, nil); err != nil || text(t, r) != "the database is away: try later" {
			t.Errorf("what is meant for the peer: %+v, %v", r, err)
		}
	})
}

// Proves: FLOW-TOOL-P: what an older revision cannot say is said as the table
// of translations has it.
func TestFLOW_TOOL_P_Content(t *testing.T) {
	build := with(server.Tool("all", "Gives everything.", func(context.Context, mcp.None) ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.Text("t"), mcp.Image([]byte{1}, "image/png"), mcp.Audio([]byte{2}, "audio/wav"),
			mcp.Link("x:a", "a"), mcp.Embed(mcp.ResourceContents{URI: "x:b", Text: "b"}),
		}, nil
	}))
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		r, err := c.CallTool(t.Context(), "all", nil, nil)
		if err != nil || len(r.Content) != 5 {
			t.Fatalf("%+v, %v", r, err)
		}
		kinds := ""
		for _, block := range r.Content {
			kinds += fmt.Sprintf("%T ", block)
		}
		kinds = strings.ReplaceAll(kinds, "*mcp.", "")
		want := "TextContent ImageContent AudioContent ResourceLink EmbeddedResource "
		switch {
		case era.Version == y2024:
			want = "TextContent ImageContent EmbeddedResource TextContent EmbeddedResource "
		case !since(era.Version, june):
			want = "TextContent ImageContent AudioContent TextContent EmbeddedResource "
		}
		if kinds != want {
			t.Errorf("content %s, want %s", kinds, want)
		}
		switch link := r.Content[3].(type) {
		case *mcp.TextContent:
			if !strings.Contains(link.Text, "x:a") {
				t.Errorf("the link became %q", link.Text)
			}
		case *mcp.ResourceLink:
			if link.URI != "x:a" || link.Name != "a" {
				t.Errorf("link %+v", link)
			}
		}
	})
}
