package flows_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// counted is middleware that counts requests by method.
type counted struct {
	mu sync.Mutex
	n  map[string]int
}

func (k *counted) wrap(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		k.mu.Lock()
		if k.n == nil {
			k.n = make(map[string]int)
		}
		k.n[c.Method()]++
		k.mu.Unlock()
		return next(c)
	}
}

// spent gives and forgets how often a method was called.
func (k *counted) spent(method string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.n[method]
	delete(k.n, method)
	return n
}

// Proves: FLOW-CACHE-P. Ruling 22: results are kept for as long as the server
// said and forgotten when it tells of a change; older revisions keep nothing.
func TestFLOW_CACHE_P(t *testing.T) {
	var calls counted
	build := func(t testing.TB, o *server.Options) *server.Server {
		o.Cache = server.Cache{TTL: time.Minute}
		s := with(
			server.Tool("sum", "Adds.", sum), server.Text("x:a", "a", "A"),
			server.Text("x:short", "s", "S").With(server.ResourceOptions{Cache: &server.Cache{TTL: time.Second}}),
			server.Text("x:never", "n", "N").With(server.ResourceOptions{Cache: &server.Cache{}}),
		)(t, o)
		s.Use(calls.wrap)
		return s
	}
	bubbles(t, build, func(t *testing.T, era mcptest.Era, join joiner) {
		calls.n = nil
		s, c := join(&client.Options{OnToolsChanged: func(context.Context) {}})
		tools := func() int { collect(t, c.Tools(t.Context())); return calls.spent(mcp.MethodToolsList) }
		read := func(uri string) int {
			if _, err := c.ReadResource(t.Context(), uri, nil); err != nil {
				t.Error(err)
			}
			return calls.spent(mcp.MethodResourcesRead)
		}
		want := func(what string, got, modern int) {
			t.Helper()
			if era.Version != newest {
				modern = 1
			}
			if got != modern {
				t.Errorf("%s: %d requests, want %d", what, got, modern)
			}
		}
		want("first list", tools(), 1)
		want("second list", tools(), 0)
		want("first read", read("x:a"), 1)
		want("second read", read("x:a"), 0)
		want("other params", read("x:short"), 1)
		want("never kept", read("x:never"), 1)
		want("never kept, again", read("x:never"), 1)
		time.Sleep(2 * time.Second)
		want("short, stale", read("x:short"), 1)
		want("long, fresh", read("x:a"), 0)
		if _, err := c.ReadResource(t.Context(), "x:a", &client.CallOptions{NoCache: true}); err != nil || calls.spent(mcp.MethodResourcesRead) != 1 {
			t.Errorf("NoCache was not heeded: %v", err)
		}
		s.Add(server.Tool("more", "More.", sum))
		synctest.Wait()
		want("after a change", tools(), 1)
		want("and again", tools(), 0)
		sub, err := c.Subscribe(t.Context(), "x:a")
		if err != nil {
			t.Fatal(err)
		}
		want("subscribed", read("x:a"), 0)
		s.ResourceUpdated("x:a")
		synctest.Wait()
		want("after an update", read("x:a"), 1)
		want("another resource", read("x:short"), 0)
		sub.Close()
		time.Sleep(time.Minute + time.Second)
		want("list, stale", tools(), 1)
		want("read, stale", read("x:a"), 1)
	})
}

// Proves: FLOW-CACHE-P. Ruling 22: what is private never reaches another
// principal through a shared cache; public does, unless lists depend on callers.
func TestFLOW_CACHE_P_Scope(t *testing.T) {
	for name, test := range map[string]struct {
		public, visible bool
		want            int // requests of the second principal
	}{"private": {false, false, 1}, "public": {true, false, 0}, "public, but filtered": {true, true, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls counted
				o := quiet()
				o.Cache = server.Cache{TTL: time.Minute, Public: test.public}
				s := with(server.Text("x:a", "a", "A"))(t, o)
				s.Use(calls.wrap)
				if test.visible {
					s.Visible(func(context.Context, server.Item) bool { return true })
				}
				cache := client.NewCache(0, 0)
				for i, who := range []string{"ann", "bob"} {
					c, err := client.Connect(t.Context(), mem.New(s, &mem.Options{Key: "server", Principal: &principal.Principal{Issuer: "i", Subject: who}}),
						&client.Options{Cache: cache, Principal: who, Versions: []string{newest}})
					if err != nil {
						t.Fatal(err)
					}
					collect(t, c.Resources(t.Context()))
					if _, err := c.ReadResource(t.Context(), "x:a", nil); err != nil {
						t.Error(err)
					}
					want := test.want
					if i == 0 {
						want = 1
					}
					if lists, reads := calls.spent(mcp.MethodResourcesList), calls.spent(mcp.MethodResourcesRead); lists != want || reads != want {
						t.Errorf("%s sent %d lists and %d reads, want %d", who, lists, reads, want)
					}
					c.Close()
				}
			})
		})
	}
}

// Proves: FLOW-CACHE-P. Rulings 19 and 22: hints on complete results only, one scope for
// all pages, none on what took answers; by hand.
func TestFLOW_CACHE_P_Hints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet()
		o.Cache = server.Cache{TTL: 1500 * time.Millisecond, Public: true}
		o.Limits.PageSize = 1
		var asked atomic.Int32
		s := with(
			server.Text("x:a", "a", "A"), server.Tool("sum", "Adds.", sum), server.Prompt("review", "R.", messages),
			server.Resource("x:ask", "ask", func(ctx context.Context) (string, error) {
				asked.Add(1)
				a, err := server.Elicit[struct {
					N int `json:"n"`
				}](ctx, "n?")
				return fmt.Sprint(a.Value.N), err
			}),
		)(t, o)
		l := dial(t, s, nil)
		hints := func(m message, ttl, scope string) {
			t.Helper()
			m.want(ttl, "result", "ttlMs")
			m.want(scope, "result", "cacheScope")
		}
		for i, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"} {
			hints(l.ask(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, i, method, meta("{}")), "1500", `"public"`)
		}
		page := l.ask(`{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{%s}}`, meta("{}"))
		hints(l.ask(`{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{%s,"cursor":%s}}`, meta("{}"), page.at("result", "nextCursor")), "1500", `"public"`)
		hints(l.ask(`{"jsonrpc":"2.0","id":10,"method":"resources/read","params":{%s,"uri":"x:a"}}`, meta("{}")), "1500", `"public"`)
		hints(l.ask(`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{%s,"name":"sum","arguments":{"a":1,"b":2}}}`, meta("{}")), "", "")
		hints(l.ask(`{"jsonrpc":"2.0","id":12,"method":"prompts/get","params":{%s,"name":"review","arguments":{"file":"f"}}}`, meta("{}")), "", "")
		m := l.ask(`{"jsonrpc":"2.0","id":13,"method":"resources/read","params":{%s,"uri":"x:ask"}}`, meta(`{"elicitation":{}}`))
		m.want(`"input_required"`, "result", "resultType")
		hints(m, "", "")
		key := keyOf(m)
		m = l.ask(`{"jsonrpc":"2.0","id":14,"method":"resources/read","params":{%s,"uri":"x:ask","requestState":%s,"inputResponses":{%q:{"action":"accept","content":{"n":5}}}}}`,
			meta(`{"elicitation":{}}`), m.at("result", "requestState"), key)
		m.want(`[{"uri":"x:ask","mimeType":"text/plain","text":"5"}]`, "result", "contents")
		hints(m, "0", `"private"`)
		// The default is not to be cached, and private.
		plain := dial(t, with(server.Text("x:a", "a", "A"))(t, quiet()), nil)
		hints(plain.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{%s,"uri":"x:a"}}`, meta("{}")), "0", `"private"`)
	})
}

// keyOf is the key of the one question of a result.
func keyOf(m message) string {
	m.t.Helper()
	for key := range m.object("result", "inputRequests").All() {
		return key
	}
	m.t.Fatalf("no question in %s", m.text)
	return ""
}
