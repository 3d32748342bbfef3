package flows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// What other implementations are known to get wrong, and this one must not.
//
// Without HTTP or authorization there is nothing to try for these: G6 (base64
// in Mcp-Name), G7 (an empty string in x-mcp-header), G10 (disconnect, Origin),
// G11 (a stateful HTTP handler that refuses modern clients), M8 (OAuth client),
// M9 (Origin), and the HTTP half of M2. G14 is a matter of cost, which
// benchmarks watch: templates and schemas are compiled when they are registered.

type number struct {
	N int `json:"n"`
}

// twice is a tool that asks two questions, one after the other.
func twice() server.Feature {
	return server.Tool("twice", "Asks twice.", func(ctx context.Context, _ mcp.None) (string, error) {
		a, err := server.Elicit[number](ctx, "first")
		if err != nil {
			return "", err
		}
		b, err := server.Elicit[number](ctx, "second")
		return fmt.Sprint(a.Value.N + b.Value.N), err
	})
}

// Elsewhere the bridge to older clients runs a handler twice at most, and leaks inputRequests.
func TestDefectG1(t *testing.T) {
	for _, version := range []string{autumn, june} {
		synctest.Test(t, func(t *testing.T) {
			l := dial(t, with(twice())(t, quiet()), nil)
			l.shake(version, `{"elicitation":{}}`)
			l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"twice"}}`)
			for i := range 2 {
				ask := l.next()
				ask.want(`"elicitation/create"`, "method")
				l.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"n":%d}}}`, ask.at("id"), 20+i)
			}
			l.next().want(`{"content":[{"type":"text","text":"41"}]}`, "result")
		})
	}
}

// Elsewhere a state without questions is called complete, and the result is empty.
func TestDefectG2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		c := mcptest.Join(t, with(visit(&looks, 40)), &client.Options{
			OnElicitURL: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return client.Accept(nil) },
		}, mcptest.Era{Version: newest, Transport: "mem"})
		if got, err := client.Call[string](t.Context(), c, "visit", nil); err != nil || got != "paid true" {
			t.Errorf("%q, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		l := dial(t, with(visit(&looks, 1000))(t, quiet()), nil)
		caps := meta(`{"elicitation":{"url":{}}}`)
		m := l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"visit"}}`, caps)
		m = l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{%s,"name":"visit","requestState":%s,"inputResponses":{%q:{"action":"accept"}}}}`, caps, m.at("result", "requestState"), keyOf(m))
		m.want(`"input_required"`, "result", "resultType")
		m.want("", "result", "inputRequests")
		if m.at("result", "requestState") == "" {
			t.Errorf("nothing to go on with: %s", m.text)
		}
	})
}

// Elsewhere a URI with \a, \x7f or a zero-width space makes an error that cannot be
// encoded, and ends the session.
func TestDefectG3(t *testing.T) {
	mcptest.EachEra(t, with(server.Text("x:a", "a", "A")), nil, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for _, uri := range []string{"x:\a", "x:\x7f", "x:\u200b", "x:\u2028\u2029", "x:\"\\", "x:\x00", "x:\U0001f600", "x:\ufeff"} {
			_, err := c.ReadResource(t.Context(), uri, nil)
			notFound(t, era.Version, uri, err)
			if _, err := c.CallTool(t.Context(), uri, nil, nil); err == nil {
				t.Errorf("tool %q", uri)
			}
		}
		if _, err := c.ReadResource(t.Context(), "x:a", nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// Elsewhere a panic in a handler ends the process.
func TestDefectG4(t *testing.T) {
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.OnRootsChanged = func(context.Context) { panic("roots") }
		s := with(
			server.Tool("panic", "Panics.", func(context.Context, mcp.None) (string, error) { panic("tool") }),
			server.Tool("nil", "Follows nil.", func(context.Context, mcp.None) (string, error) { var p *number; return fmt.Sprint(p.N), nil }),
			server.Prompt("p", "P.", messages).With(server.PromptOptions{Complete: map[string]server.Completer{
				"file": func(context.Context, string, map[string]string) ([]string, error) { panic("completer") },
			}}),
			server.Text("x:a", "a", "A").With(server.ResourceOptions{Watch: func(context.Context, func()) { panic("watch") }}),
			server.Text("x:hidden", "h", "H"),
		)(t, o)
		s.Visible(func(_ context.Context, it server.Item) bool {
			if it.Name == "x:hidden" {
				panic("visible")
			}
			return true
		})
		return s
	}
	bubbles(t, build, func(t *testing.T, _ mcptest.Era, join joiner) {
		s, c := join(&client.Options{OnRoots: func(context.Context) ([]mcp.Root, error) { return nil, nil }})
		for what, err := range map[string]error{
			"tool":      second(c.CallTool(t.Context(), "panic", nil, nil)),
			"nil":       second(c.CallTool(t.Context(), "nil", nil, nil)),
			"completer": second(c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.PromptRef("p"), Argument: mcp.CompletionArgument{Name: "file"}})),
			"visible":   second(c.ReadResource(t.Context(), "x:hidden", nil)),
		} {
			if code(err) != mcp.CodeInternalError {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := c.RootsChanged(t.Context()); err != nil {
			t.Error(err)
		}
		sub, err := c.Subscribe(t.Context(), "x:a")
		if err != nil {
			t.Fatal(err)
		}
		s.ResourceUpdated("x:hidden")
		synctest.Wait()
		if _, err := c.ReadResource(t.Context(), "x:a", nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		sub.Close()
	})
}

// Elsewhere a client without elicitation is asked to elicit.
func TestDefectG5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(twice())(t, quiet()), nil)
		for i, caps := range []string{`{}`, `{"sampling":{},"roots":{}}`, `{"elicitation":{"url":{}}}`} {
			m := l.ask(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s,"name":"twice"}}`, i, meta(caps))
			m.fails(mcp.CodeMissingClientCapability, fmt.Sprint(i))
			m.want(`{"elicitation":{"form":{}}}`, "error", "data", "requiredCapabilities")
		}
		l.Silent()
	})
}

// Elsewhere the end of one listen silences another, notices precede the
// acknowledgement, and unsubscribing runs with an ended context.
func TestDefectG8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan error, 4)
		s := with(
			server.Text("x:a", "a", "A"), server.Text("x:b", "b", "B"),
			server.Text("x:w", "w", "W").With(server.ResourceOptions{Watch: func(ctx context.Context, changed func()) {
				begun <- ctx.Err()
				changed() // at once: before the acknowledgement, if it could
				<-ctx.Done()
			}}),
		)(t, quiet())
		l := dial(t, s, nil)
		listen := func(id, uri string) {
			t.Helper()
			l.send(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{%s,"notifications":{"resourceSubscriptions":[%q]}}}`, id, meta("{}"), uri)
			m := l.next()
			m.want(`"notifications/subscriptions/acknowledged"`, "method")
			m.want(id, "params", "_meta", mcp.MetaSubscriptionID)
		}
		updated := func(id, uri string) {
			t.Helper()
			m := l.next()
			m.want(`"`+uri+`"`, "params", "uri")
			m.want(id, "params", "_meta", mcp.MetaSubscriptionID)
		}
		listen("1", "x:w")
		updated("1", "x:w")
		if err := <-begun; err != nil {
			t.Errorf("the watcher begins with %v", err)
		}
		listen(`"two"`, "x:a")
		listen(`"three"`, "x:b")
		l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"three"}}`)
		l.Silent()
		s.ResourceUpdated("x:b")
		l.Silent()
		s.ResourceUpdated("x:a")
		updated(`"two"`, "x:a")
		s.ResourceUpdated("x:w")
		updated("1", "x:w")
	})
}

// Elsewhere results are public unless told otherwise, those that took answers are
// kept, and the cache has no bound.
func TestDefectG9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ttl := int64(60_000)
		var reads counted
		s := with(
			server.Resource("x:ttl", "ttl", func(context.Context) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "T"}}, Cacheable: mcp.Cacheable{TTLMs: &ttl}}, nil
			}),
			server.Resource("x:ask", "ask", func(ctx context.Context) (*mcp.ReadResourceResult, error) {
				a, err := server.Elicit[number](ctx, "n?")
				return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: fmt.Sprint(a.Value.N)}}, Cacheable: mcp.Cacheable{TTLMs: &ttl}}, err
			}),
		)(t, quiet())
		s.Use(reads.wrap)
		l := dial(t, s, nil)
		m := l.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{%s,"uri":"x:ttl"}}`, meta("{}"))
		m.want("60000", "result", "ttlMs")
		m.want(`"private"`, "result", "cacheScope")
		reads.spent(mcp.MethodResourcesRead)

		c, err := client.Connect(t.Context(), mem.New(s, nil), &client.Options{Cache: client.NewCache(3, 0), OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(number{4})
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range 3 {
			if r, err := c.ReadResource(t.Context(), "x:ask", nil); err != nil || r.Contents[0].Text != "4" {
				t.Errorf("%+v, %v", r, err)
			}
			if n := reads.spent(mcp.MethodResourcesRead); n != 2 {
				t.Errorf("read %d took %d rounds, want 2: it was kept", i, n)
			}
		}
		o := quiet()
		o.Cache = server.Cache{TTL: time.Hour}
		s2 := with(server.Template("n:{n}", "n", func(context.Context, struct {
			N int `uri:"n"`
		},
		) (string, error) {
			return "n", nil
		}))(t, o)
		s2.Use(reads.wrap)
		c2, err := client.Connect(t.Context(), mem.New(s2, nil), &client.Options{CacheEntries: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer c2.Close()
		for i := range 10 {
			if _, err := c2.ReadResource(t.Context(), fmt.Sprintf("n:%d", i), nil); err != nil {
				t.Error(err)
			}
		}
		reads.spent(mcp.MethodResourcesRead)
		for i := range 10 {
			if _, err := c2.ReadResource(t.Context(), fmt.Sprintf("n:%d", 9-i), nil); err != nil {
				t.Error(err)
			}
		}
		if n := reads.spent(mcp.MethodResourcesRead); n < 7 {
			t.Errorf("a cache of three entries held %d", 10-n)
		}
	})
}

// Elsewhere ordinary errors have the code 0, and the text of any error goes to the model.
func TestDefectG12(t *testing.T) {
	build := with(
		server.Tool("t", "T.", func(context.Context, mcp.None) (string, error) { return "", errors.New("dial db7 as root") }),
		server.Prompt("p", "P.", func(context.Context, mcp.None) (string, error) { return "", errors.New("dial db7 as root") }),
		server.Prompt("q", "Q.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("ask later") }),
		server.Resource("x:r", "r", func(context.Context) (string, error) { return "", errors.New("dial db7 as root") }),
	)
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		r, err := c.CallTool(t.Context(), "t", nil, nil)
		if err != nil || !r.IsError || strings.Contains(text(t, r), "db7") {
			t.Errorf("%+v, %v", r, err)
		}
		for what, err := range map[string]error{
			"prompt": second(c.GetPrompt(t.Context(), "p", nil, nil)), "resource": second(c.ReadResource(t.Context(), "x:r", nil)),
			"meant for the peer": second(c.GetPrompt(t.Context(), "q", nil, nil)),
		} {
			if code(err) != mcp.CodeInternalError || strings.Contains(err.Error(), "db7") || (what == "meant for the peer") != strings.Contains(err.Error(), "ask later") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// Elsewhere cursors of strangers are decoded by gob.
func TestDefectG13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, with(server.Tool("sum", "Adds.", sum))(t, quiet()), nil)
		l.shake(june, "{}")
		for _, cursor := range []string{"", "Iv+BAwEBCXBhZ2VUb2tlbgH/ggABAQEHTGFzdFVJRAEMAAAA", "\x00\xff", strings.Repeat("/", 100_000)} {
			l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%s}}`, jsonText(t, strings.ToValidUTF8(cursor, "?"))).fails(-32602, "1")
		}
	})
}

// Elsewhere the client writes answers and state into the caller's own params.
func TestDefectG15(t *testing.T) {
	n := 0
	o := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		n++
		return client.Accept(number{n})
	}}
	mcptest.EachEra(t, with(twice()), o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		if !since(era.Version, june) {
			t.Skip("no elicitation in this revision")
		}
		n = 0
		p := &mcp.CallToolParams{Name: "twice", Arguments: raw(`{}`)}
		for _, want := range []string{"3", "7"} {
			var r mcp.CallToolResult
			if err := c.Request(t.Context(), mcp.MethodToolsCall, p, &r, nil); err != nil || text(t, &r) != want {
				t.Errorf("%+v, %v; want %s", r, err, want)
			}
			if p.RequestState != nil || p.InputResponses != nil || !p.Base().Meta.ProgressToken.IsZero() || p.Meta.ProtocolVersion != "" {
				t.Errorf("the caller's params became %+v", p)
			}
		}
	})
}

// Elsewhere of two members with one name the last one wins, or one that differs in case does.
func TestDefectG16(t *testing.T) {
	var ran logtest.List
	tool := func(name string) server.Feature {
		return server.Tool(name, "Says that it ran.", func(_ context.Context, in struct {
			Path string `json:"path,omitzero"`
		},
		) (string, error) {
			ran.Addf("%s %s", name, in.Path)
			return "ok", nil
		})
	}
	for _, version := range []string{newest, march} {
		synctest.Test(t, func(t *testing.T) {
			l := dial(t, with(tool("safe"), tool("danger"))(t, quiet()), nil)
			params := ""
			if version == newest {
				params = "," + meta("{}")
			} else {
				l.shake(version, "{}")
			}
			l.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"danger"%s}}`, params).fails(-32700, "1")
			l.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"safe","arguments":{"path":"a","path":"b"}%s}}`, params).fails(-32700, "2")
			l.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"safe","n\u0061me":"danger"%s}}`, params).fails(-32700, "3")
			l.ask(`{"jsonrpc":"2.0","id":4,"method":"tools/list","method":"tools/call","params":{"name":"danger"%s}}`, params)
			if got := ran.All(); len(got) > 0 {
				t.Errorf("%q ran", got)
			}
		})
	}
}
