package flows_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// replicas serves as many servers as there are behind one address, in turn.
func replicas(t *testing.T, make func() *server.Server) (address string, hits *[2]atomic.Int64) {
	t.Helper()
	hits = new([2]atomic.Int64)
	var targets [2]*url.URL
	for i := range targets {
		s := make()
		h := streamable.NewHandler(s, &streamable.Options{Sessionless: true})
		srv := webtest.Serve(t, h)
		webtest.ShutDown(t, h.Shutdown)
		u, err := url.Parse(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		targets[i] = u
	}
	var turn atomic.Int64
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			i := turn.Add(1) % 2
			hits[i].Add(1)
			r.SetURL(targets[i])
		},
	}
	front := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise net/http closes the body as soon as the answer begins, and a
		// proxy that has not seen its end yet gives the replica up.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		proxy.ServeHTTP(w, r)
	}))
	return front.URL, hits
}

// lone is a server with features of every kind, whose replicas share a key.
func lone() *server.Server {
	s := server.New("lone", "1", &server.Options{
		StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
		Limits:    server.Limits{PageSize: 2, ToolRate: server.Unlimited, ListRate: server.Unlimited},
	})
	s.Add(
		server.Tool("echo", "Gives back.", func(ctx context.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			if err := server.Progress(ctx, 1, 1, "almost"); err != nil {
				return "", err
			}
			if err := server.Log(ctx, mcp.LogInfo, "", "echoing"); err != nil {
				return "", err
			}
			return in.Text, nil
		}),
		server.Tool("sure", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
			a, err := server.Elicit[struct {
				Yes bool `json:"yes"`
			}](ctx, "Sure?")
			switch {
			case errors.Is(err, server.ErrNotCapable):
				return "cannot ask: " + err.Error(), nil
			case err != nil:
				return "", err
			}
			return fmt.Sprintf("%s %t", a.Action, a.Value.Yes), nil
		}),
		server.Tool("third", "Is on the second page.", func(context.Context, struct{}) (string, error) { return "", nil }),
		server.Resource("note://1", "note", func(context.Context) (string, error) { return "text", nil }),
	)
	return s
}

// Clients of the four revisions that have Streamable HTTP are served by two
// replicas in turn: they list, in pages, and call, a hundred times, without an
// error; progress and log messages come on the request's own stream.
func TestSessionlessReplicas(t *testing.T) {
	address, hits := replicas(t, lone)
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var progressed atomic.Int64
			logged := make(chan struct{}, 200)
			c, err := client.Connect(t.Context(), streamable.URL(address), &client.Options{
				Versions: []string{version},
				OnLog:    func(context.Context, *mcp.LogParams) { logged <- struct{}{} },
				OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: map[string]mcp.RawValue{"yes": mcp.RawValue("true")}}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Version() != version {
				t.Fatalf("negotiated %s", c.Version())
			}
			for i := range 100 {
				names := ""
				for tool, err := range c.Tools(t.Context()) {
					if err != nil {
						t.Fatalf("list %d: %v", i, err)
					}
					names += tool.Name + " "
				}
				if names != "echo sure third " {
					t.Fatalf("list %d: %s", i, names)
				}
				text := fmt.Sprint("call ", i)
				res, err := c.CallTool(t.Context(), "echo", map[string]string{"text": text}, &client.CallOptions{
					OnProgress: func(float64, float64, string) { progressed.Add(1) },
				})
				if err != nil || res.Content[0].(*mcp.TextContent).Text != text {
					t.Fatalf("call %d: %v %v", i, res, err)
				}
			}
			for range 100 {
				<-logged
			}
			if progressed.Load() != 100 {
				t.Errorf("%d notices of progress, want 100", progressed.Load())
			}
			res, err := c.CallTool(t.Context(), "sure", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := res.Content[0].(*mcp.TextContent).Text
			want := "keeps no sessions"
			switch {
			case c.Modern():
				want = "accept true"
			case version == "2025-03-26":
				want = "has no forms"
			}
			if !strings.Contains(got, want) {
				t.Errorf("a question gave %q", got)
			}
			caps := c.Capabilities()
			if c.Modern() != caps.Has(mcp.CapResourcesSubscribe) || c.Modern() != caps.Has(mcp.CapToolsListChanged) || !caps.Has(mcp.CapResources) {
				t.Errorf("capabilities %+v", caps)
			}
		})
	}
	if hits[0].Load() < 400 || hits[1].Load() < 400 {
		t.Errorf("%d and %d requests reached the replicas, want both used", hits[0].Load(), hits[1].Load())
	}
}

// What an endpoint without sessions says to single messages.
func TestSessionlessMessages(t *testing.T) {
	s := newSite(t, &streamable.Options{Sessionless: true}, echoTool())
	hello := rpc(0, "initialize", `"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`)
	r := s.do(http.MethodPost, hello)
	r.has(http.StatusOK)
	if id := r.header.Get("Mcp-Session-Id"); id != "" || !strings.Contains(r.text, `"protocolVersion":"2025-11-25"`) || strings.Contains(r.text, "listChanged") {
		t.Errorf("initialize: session %q, body %s", id, r.text)
	}
	call := rpc(1, "tools/call", `"name":"echo","arguments":{"text":"hi"}`)
	for _, test := range []struct {
		name, method, body string
		header             []string
		status             int
		parts              []string
	}{
		{"no version", "POST", call, nil, 200, []string{"hi"}},
		{"a version", "POST", call, []string{"MCP-Protocol-Version", autumn}, 200, []string{"hi"}},
		{"an old session", "POST", call, []string{"Mcp-Session-Id", "gone"}, 200, []string{"hi"}},
		{"unknown version", "POST", call, []string{"MCP-Protocol-Version", "1999-01-01"}, 400, []string{"-32600", "1999-01-01"}},
		{"empty version", "POST", call, []string{"MCP-Protocol-Version", " "}, 400, []string{"-32600"}},
		{"unknown method", "POST", rpc(1, "nothing", ""), nil, 200, []string{"-32601"}},
		{"ping", "POST", rpc(1, "ping", ""), nil, 200, []string{`"result":{}`}},
		{"set level", "POST", rpc(1, "logging/setLevel", `"level":"info"`), nil, 200, []string{"-32601", "session"}},
		{"subscribe", "POST", rpc(1, "resources/subscribe", `"uri":"note://1"`), nil, 200, []string{"-32601"}},
		{"bad handshake", "POST", rpc(1, "initialize", ""), nil, 200, []string{"-32602"}},
		{"notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, nil},
		{"response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 400, []string{"asked nothing"}},
		{"no JSON", "POST", `{`, []string{"Mcp-Session-Id", "gone"}, 400, []string{"-32700"}},
		{"batch", "POST", "[" + call + "," + rpc(2, "nothing", "") + `,{"jsonrpc":"2.0","method":"notifications/x"},7]`, nil, 200, []string{`"id":1`, "hi", `"id":2`, "-32601", "-32600"}},
		{"batch of notifications", "POST", `[{"jsonrpc":"2.0","method":"notifications/x"}]`, nil, 202, nil},
		{"batch of responses", "POST", `[{"jsonrpc":"2.0","id":1,"result":{}}]`, nil, 400, []string{"asked nothing"}},
		{"batch with a handshake", "POST", "[" + hello + "]", nil, 200, []string{"-32600"}},
		{"batch with another era", "POST", "[" + strings.Replace(call, `"params":{`, `"params":{`+meta("{}")+`,`, 1) + "]", nil, 200, []string{"-32600"}},
		{"batch of another revision", "POST", "[" + call + "]", []string{"MCP-Protocol-Version", autumn}, 400, []string{"-32600"}},
		{"GET", "GET", "", nil, 405, nil},
		{"DELETE", "DELETE", "", []string{"Mcp-Session-Id", "gone"}, 405, nil},
	} {
		r := s.do(test.method, test.body, test.header...)
		if r.status != test.status {
			t.Errorf("%s: status %d, want %d; body %s", test.name, r.status, test.status, r.text)
		}
		for _, part := range test.parts {
			if !strings.Contains(r.text, part) {
				t.Errorf("%s: body %s, want %s in it", test.name, r.text, part)
			}
		}
		if allow := r.header.Get("Allow"); test.status == 405 && allow != "POST" {
			t.Errorf("%s: Allow is %q", test.name, allow)
		}
	}
}

func rpc(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)
}

// Middleware sees the handshake of clients without session too, and may refuse it.
func TestSessionlessMiddleware(t *testing.T) {
	s := lone()
	var seen []string
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			seen = append(seen, c.Method()+" "+c.Version()+" "+c.SessionID())
			if p, ok := c.Params().(*mcp.InitializeParams); ok && p.ClientInfo.Name == "mallory" {
				return nil, mcp.Errorf("not you")
			}
			return next(c)
		}
	})
	h := streamable.NewHandler(s, &streamable.Options{Sessionless: true})
	post := func(body string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	hello := func(name string) string {
		return rpc(1, "initialize", `"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}`)
	}
	if got := post(hello("ada")); !strings.Contains(got, "serverInfo") {
		t.Errorf("ada: %s", got)
	}
	if got := post(hello("mallory")); !strings.Contains(got, "not you") {
		t.Errorf("mallory: %s", got)
	}
	if got := strings.Join(seen, ","); got != "initialize 2025-06-18 ,initialize 2025-06-18 " {
		t.Errorf("middleware saw %q", got)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Limits.MaxBatch holds without sessions too.
//
// Proves: Ruling 10.
func TestSessionlessMaxBatch(t *testing.T) {
	for _, test := range []struct{ limit, fits, over int }{{3, 3, 4}, {150, 150, 151}, {0, 100, 101}, {server.Unlimited, 300, 0}} {
		o := quiet()
		o.Limits = server.Limits{MaxBatch: test.limit}
		h := streamable.NewHandler(with(echoTool())(t, o), &streamable.Options{Sessionless: true})
		post := func(n int) (int, string) {
			items := make([]string, n)
			for i := range items {
				items[i] = rpc(i, "ping", "")
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader("["+strings.Join(items, ",")+"]"))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		if status, body := post(test.fits); status != http.StatusOK || strings.Count(body, `"result":{}`) != test.fits {
			t.Errorf("MaxBatch %d: %d messages are answered %d %s", test.limit, test.fits, status, body)
		}
		if status, body := post(test.over); status != http.StatusBadRequest || !strings.Contains(body, "-32600") {
			t.Errorf("MaxBatch %d: %d messages are answered %d %s", test.limit, test.over, status, body)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
