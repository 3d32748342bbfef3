package flows_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// Elsewhere NAME overrides name, so that a gateway and a server read two tools.
func TestDefectM0(t *testing.T) {
	var ran logtest.List
	build := with(
		server.Tool("t", "T.", func(context.Context, mcp.None) (string, error) { ran.Add("t"); return "", nil }),
		server.RawTool(mcp.Tool{Name: "open", InputSchema: raw(`{"type":"object"}`)}, func(_ context.Context, args raw) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(args))}}, nil
		}),
	)
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, build(t, quiet()), nil)
		l.shake(autumn, "{}")
		for _, params := range []string{`{"name":"nosuch","NAME":"t"}`, `{"Name":"t"}`, `{"name":"t","Arguments":{}}`, `{"nam\u0065":"open","NAMe":"t"}`} {
			l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`, params).fails(-32602, "1")
		}
		for _, envelope := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"t"}}`, `{"jsonrpc":"2.0","ID":1,"method":"ping"}`, `{"JSONRPC":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}`} {
			l.ask("%s", envelope).want("-32600", "error", "code")
		}
		// Ruling 8: never inside arguments or _meta.
		m := l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","arguments":{"name":1,"Name":2},"_meta":{"a.b/x":1,"A.B/x":2}}}`)
		m.want(`[{"type":"text","text":"{\"name\":1,\"Name\":2}"}]`, "result", "content")
		if got := ran.All(); len(got) > 0 {
			t.Errorf("%q ran", got)
		}
	})
}

// Elsewhere a listen on stdio stops everything behind it.
func TestDefectM1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(server.Text("x:a", "a", "A"))(t, quiet()), nil)
		for i := range 5 {
			l.ask(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{%s,"notifications":{"resourcesListChanged":true}}}`, i, meta("{}"))
		}
		l.ask(`{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{%s}}`, meta("{}")).want("9", "id")
		l.Silent()
	})
}

// Elsewhere a line of stdio has no limit.
func TestDefectM2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(server.Text("x:a", "a", "A"))(t, quiet()), &stdio.Options{MaxMessage: 1000})
		l.shake(june, "{}")
		part := strings.Repeat("x", 1000)
		if _, err := io.WriteString(l.Conn, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":"`); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			if _, err := io.WriteString(l.Conn, part); err != nil {
				t.Fatal(err)
			}
		}
		l.ask(`"}}`).fails(-32700, "1")
		l.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`).want("2", "id")
	})
}

// Elsewhere schemas are shown but not enforced.
func TestDefectM3(t *testing.T) {
	var ran atomic.Int32
	build := with(
		server.Tool("typed", "T.", func(_ context.Context, in sumIn) (string, error) { ran.Add(1); return "", nil }),
		server.RawTool(mcp.Tool{Name: "raw", InputSchema: raw(`{"type":"object","required":["a"]}`)}, func(context.Context, raw) (*mcp.CallToolResult, error) {
			ran.Add(1)
			return &mcp.CallToolResult{}, nil
		}),
	)
	mcptest.EachEra(t, build, nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for _, tool := range []string{"typed", "raw"} {
			wrongArguments(t, era, c, tool, `{}`)
			wrongArguments(t, era, c, tool, ``)
		}
		if ran.Load() > 0 {
			t.Errorf("handlers ran %d times", ran.Load())
		}
	})
}

// Elsewhere pages go by name, and of resources of one name some are never reached.
func TestDefectM4(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Limits.PageSize = 2
		s := with()(t, o)
		for i := range 5 {
			s.Add(server.Text(fmt.Sprintf("x:%d", i), "one name", "X"))
		}
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if n := len(collect(t, c.Resources(t.Context()))); n != 5 {
			t.Errorf("%d resources, want 5", n)
		}
	})
}

// Elsewhere resources cannot ask, and malformed answers become nil.
func TestDefectM5(t *testing.T) {
	ask := func(ctx context.Context) (string, error) {
		a, err := server.Elicit[number](ctx, "n?")
		return fmt.Sprint(a.Action, a.Value.N), err
	}
	build := with(
		server.Resource("x:ask", "ask", ask),
		server.Prompt("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) { return ask(ctx) }),
		server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) { return ask(ctx) }),
	)
	mcptest.EachEra(t, build, answers(func() (*mcp.ElicitResult, error) { return client.Accept(number{6}) }), func(t *testing.T, era mcptest.Era, c *client.Client) {
		if !since(era.Version, june) {
			t.Skip("no elicitation in this revision")
		}
		r, err := c.ReadResource(t.Context(), "x:ask", nil)
		if err != nil || r.Contents[0].Text != "accept6" {
			t.Errorf("%+v, %v", r, err)
		}
		p, err := c.GetPrompt(t.Context(), "ask", nil, nil)
		if err != nil || p.Messages[0].Content.(*mcp.TextContent).Text != "accept6" {
			t.Errorf("%+v, %v", p, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, build(t, quiet()), nil)
		caps := meta(`{"elicitation":{}}`)
		first := l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"ask"}}`, caps)
		retry := func(responses string) message {
			return l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{%s,"name":"ask","requestState":%s,"inputResponses":%s}}`, caps, first.at("result", "requestState"), responses)
		}
		for _, bad := range []string{`null`, `7`, `{}`, `{"action":"accept"}`, `{"action":"accept","content":{"n":"six"}}`, `{"action":"shrug"}`, `{"action":"accept","content":null}`, `[]`} {
			m := retry(`{"` + keyOf(first) + `":` + bad + `}`)
			if m.code() == "" && m.at("result", "isError") != "true" {
				t.Errorf("%s: %s", bad, m.text)
			}
		}
		retry(`{"other":{"action":"accept","content":{"n":6}}}`).want(`"input_required"`, "result", "resultType") // asked again
		retry(`{}`).want(`"input_required"`, "result", "resultType")
		retry(`{"`+keyOf(first)+`":{"action":"accept","content":{"n":6}}}`).want(`[{"type":"text","text":"accept6"}]`, "result", "content")
	})
}

// Elsewhere a panic on stdio is answered without the id, with its text, and the caller waits for ever.
func TestDefectM6(t *testing.T) {
	for _, version := range versions {
		synctest.Test(t, func(t *testing.T) {
			l := dial(t, with(server.Tool("panic", "P.", func(context.Context, mcp.None) (string, error) { panic("db7") }))(t, quiet()), nil)
			params := ""
			if version == newest {
				params = "," + meta("{}")
			} else {
				l.shake(version, "{}")
			}
			m := l.ask(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"panic"%s}}`, params)
			m.fails(-32603, `"x"`)
			if strings.Contains(m.text, "db7") {
				t.Errorf("the peer reads %s", m.text)
			}
		})
	}
}

// Elsewhere two stdio servers of one process share their session.
func TestDefectM7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := with(server.Tool("who", "Says what it knows.", func(ctx context.Context, _ mcp.None) (string, error) {
			return server.CallFrom(ctx).Version() + fmt.Sprint(server.CanRoots(ctx)), nil
		}))(t, quiet())
		one, two, third := dial(t, s, nil), dial(t, s, nil), dial(t, with(server.Text("x:a", "a", "A"))(t, quiet()), nil)
		one.shake(june, `{"roots":{}}`)
		two.shake(march, `{}`)
		third.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`).fails(-32600, "1")
		for _, test := range []struct {
			l    *lines
			want string
		}{{one, june + "true"}, {two, march + "false"}, {one, june + "true"}} {
			test.l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}`).want(`[{"type":"text","text":"`+test.want+`"}]`, "result", "content")
		}
		one.ask(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`)
		two.Silent()
		third.Silent()
	})
}

// Elsewhere what a session may see is lost in the era without sessions.
func TestDefectM10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := with(server.Tool("admin", "A.", sum), server.Tool("all", "B.", sum))(t, quiet())
		s.Visible(func(ctx context.Context, it server.Item) bool {
			return it.Name != "admin" || slices.Contains(server.Caller(ctx).Scopes, "admin")
		})
		for _, version := range versions {
			for _, scope := range []string{"admin", "user"} {
				c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Principal: &principal.Principal{Issuer: "i", Subject: scope, Scopes: []string{scope}}}), &client.Options{Versions: []string{version}})
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]int{"admin": 2, "user": 1}[scope]
				if n := len(collect(t, c.Tools(t.Context()))); n != want {
					t.Errorf("%s, %s: %d tools, want %d", version, scope, n, want)
				}
				if _, err := c.CallTool(t.Context(), "admin", sumIn{1, 2}, nil); (err == nil) != (scope == "admin") {
					t.Errorf("%s, %s: %v", version, scope, err)
				}
				c.Close()
			}
		}
	})
}

// The same for sampling and roots, in both eras: what is no answer is never taken for one.
func TestDefectM5_Others(t *testing.T) {
	sample := server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		r, err := server.Sample(ctx, &mcp.CreateMessageParams{Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text("?")}}}, MaxTokens: 1})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("took %+v", r), nil
	})
	roots := server.Tool("ask", "Asks.", tellRoots)
	for name, test := range map[string]struct {
		feature server.Feature
		caps    string
		bad     []string
	}{
		"sample": {sample, `{"sampling":{}}`, []string{`{}`, `{"role":"assistant","model":"m"}`, `{"role":"assistant","model":"m","content":[]}`, `{"role":"assistant","model":"m","content":{"type":"hologram"}}`, `{"model":"m","content":{"type":"text","text":"x"}}`}},
		"roots":  {roots, `{"roots":{}}`, []string{`{}`, `{"roots":null}`, `{"roots":{}}`, `{"roots":[7]}`}},
		"form":   {asksFor[number]("ask"), `{"elicitation":{}}`, []string{`{}`, `{"action":"shrug"}`, `{"action":"accept"}`, `{"action":"accept","content":{"n":"x"}}`}},
	} {
		for _, version := range []string{newest, autumn} {
			t.Run(name+"/"+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := dial(t, with(test.feature)(t, quiet()), nil)
					if version != newest {
						l.shake(version, test.caps)
					}
					for _, bad := range test.bad {
						var m message
						if version == newest {
							m = l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"ask"}}`, meta(test.caps))
							m = l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{%s,"name":"ask","requestState":%s,"inputResponses":{%q:%s}}}`, meta(test.caps), m.at("result", "requestState"), keyOf(m), bad)
						} else {
							l.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`)
							m = l.ask(`{"jsonrpc":"2.0","id":%s,"result":%s}`, l.next().at("id"), bad)
						}
						if m.code() == "" && m.at("result", "isError") != "true" {
							t.Errorf("%s: %s", bad, m.text)
						}
					}
				})
			})
		}
	}
}
