package server_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// A witness keeps what an observer is told, in words.
type witness struct{ logtest.List }

func (w *witness) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := w.Take(); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (w *witness) observer() server.Observer {
	return server.Observer{
		Refused: func(_ context.Context, r transport.Refusal) {
			name := "?"
			if r.Transport != nil {
				name = r.Transport.Name
			}
			if r.Principal == nil {
				name += " by nobody"
			}
			w.Addf("refused %s %q %d %s", name, r.Method, r.Err.Code, r.Err.Limit)
		},
		SessionOpened: func(s server.SessionInfo) { w.Addf("opened %s %s", s.Transport, s.Version) },
		SessionEnded: func(s server.SessionInfo, cause error) {
			w.Addf("ended %s %s in order %v after %v", s.Transport, s.Version, errors.Is(cause, transport.ErrClosed), time.Since(s.Opened))
		},
	}
}

// Proves: SEC-DOS-1. What a pipe and the server itself refuse, before middleware.
func TestObserveRefusals(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		var w witness
		o := quiet()
		s := newServer(o, echo())
		passed := 0
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				passed++
				return next(c)
			}
		})
		s.Observe(w.observer())
		l := joinAs(t, s, v, ada)
		w.Take() // of the session
		passed = 0
		for _, test := range []struct{ text, want string }{
			{`{"jsonrpc":"2.0","id":1,"method":"x",}`, `refused stdio "" -32700 `},
			{`{"jsonrpc":"2.0","id":{},"method":"x"}`, `refused stdio "" -32600 `},
			{`[]`, `refused stdio "" -32600 `},
			{l.request("1", "nothing/at-all", emptyBody), `refused stdio "nothing/at-all" -32601 `},
			{l.request("2", "prompts/list", emptyBody), `refused stdio "prompts/list" -32601 `},
			{l.request("3", "tools/call", `{"name":4}`), `refused stdio "tools/call" -32602 `},
		} {
			l.WriteLine(test.text)
			l.next()
			w.expect(t, test.want)
		}
		if passed != 0 {
			t.Errorf("%d requests came to middleware", passed)
		}
	})
}

// A refusal names the limit that the caller was over.
func TestObserveLimits(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			o := quiet()
			o.Limits = server.Limits{ToolRate: 1, MaxInFlight: 1}
			s := newServer(o, server.Tool("holds", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}), echo().(*server.ToolFeature).With(server.ToolOptions{Rate: 0.1}))
			s.Observe(w.observer())
			l := joinAs(t, s, v, ada)
			l.tool("echo", `{"text":"x"}`)
			w.Take() // of the session
			l.fails(l.tool("echo", `{"text":"x"}`), mcp.CodeRateLimited)
			w.expect(t, `refused stdio "tools/call" -31001 ToolOptions.Rate`)
			held := l.start("tools/call", `{"name":"holds"}`)
			synctest.Wait()
			l.fails(l.tool("holds", emptyBody), mcp.CodeTooManyInFlight)
			w.expect(t, `refused stdio "tools/call" -31002 Limits.MaxInFlight`)
			l.WriteLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, held))
			synctest.Wait()
			for range 10 { // the burst
				l.fails(l.tool("nothing", emptyBody), mcp.CodeInvalidParams)
			}
			w.expect(t) // middleware sees these
			turn := l.start("tools/call", `{"name":"nothing"}`)
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = s.Shutdown(ctx) // what waits for its turn is refused
			if got := w.Take(); len(got) == 0 || got[0] != `refused stdio "tools/call" -31004 ` {
				t.Errorf("told %q of request %s", got, turn)
			}
		})
	})
}

// What transports refuse by themselves is told too, whichever it is.
func TestObserveTransports(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler func(t *testing.T, s *server.Server) http.Handler
		method  string
		header  []string
		body    string
		status  int
		want    string
	}{
		{"malformed", mcpEndpoint, "POST", nil, `{"jsonrpc":`, 400, `refused http "" -32700 `},
		{"of a stateless revision", mcpEndpoint, "POST", []string{"MCP-Protocol-Version", v2607}, `[]`, 400, `refused http "" -32600 `},
		{
			"headers that differ from the body", mcpEndpoint, "POST",
			[]string{"MCP-Protocol-Version", v2607, "Mcp-Method", "ping"},
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			400, `refused http "tools/list" -32020 `,
		},
		{"too long", mcpEndpoint, "POST", nil, strings.Repeat(" ", 2048), 413, `refused http "" -32600 MaxMessage`},
		{"no session", mcpEndpoint, "POST", nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, `refused http "" -32600 `},
		{"unknown session", mcpEndpoint, "POST", []string{"Mcp-Session-Id", "x"}, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 404, `refused http "" -32600 `},
		{"media type", mcpEndpoint, "POST", []string{"Content-Type", "text/plain"}, `{}`, 415, `refused http "" -32600 `},
		{"one session too many", mcpEndpoint, "POST", nil, hello, 429, `refused http "" -31002 MaxSessions`},
		{"method of HTTP", mcpEndpoint, "PUT", nil, "", 405, `refused http "" -32600 `},
		{"page of a stranger", mcpEndpoint, "POST", []string{"Origin", "https://evil.example"}, `{}`, 403, `refused http "" -32600 `},
		{"no address", mcpEndpoint, "POST", []string{"Host", "evil.example"}, `{}`, 403, `refused http "" -32600 `},
		{"sse", sseEndpoint, "POST", nil, `{}`, 404, `refused sse "" -32600 `},
		{"sse, page of a stranger", sseEndpoint, "GET", []string{"Origin", "https://evil.example"}, "", 403, `refused sse "" -32600 `},
		{"websocket", websocketEndpoint, "GET", nil, "", 426, `refused websocket "" -32600 `},
		{"websocket, page of a stranger", websocketEndpoint, "GET", []string{"Origin", "https://evil.example"}, "", 403, `refused websocket "" -32600 `},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w witness
			s := newServer(nil, echo())
			s.Observe(w.observer())
			h := test.handler(t, s)
			w.Take() // of the session
			r := httptest.NewRequestWithContext(t.Context(), test.method, "http://localhost/mcp", strings.NewReader(test.body))
			r.RemoteAddr = "192.0.2.7:1234"
			if test.method == http.MethodPost {
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
			}
			for i := 0; i < len(test.header); i += 2 {
				if r.Header.Set(test.header[i], test.header[i+1]); test.header[i] == "Host" {
					r.Host = test.header[i+1]
					r.Header.Del("Host")
				}
			}
			out := httptest.NewRecorder()
			h.ServeHTTP(out, r)
			if out.Code != test.status {
				t.Errorf("status %d, want %d: %s", out.Code, test.status, out.Body)
			}
			w.expect(t, test.want)
		})
	}
}

// mcpEndpoint has as many sessions as it may.
func mcpEndpoint(t *testing.T, s *server.Server) http.Handler {
	t.Helper()
	// The one session is of a named caller: it makes place for nobody.
	named := func(r *http.Request) *principal.Principal {
		if r.Header.Get("X-User") == "" {
			return nil
		}
		return ada
	}
	h := streamable.NewHandler(s, &streamable.Options{MaxMessage: 1024, MaxSessions: 1, Access: web.Access{Principal: named}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(hello))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("X-User", "ada")
	h.ServeHTTP(httptest.NewRecorder(), r)
	return h
}

func sseEndpoint(_ *testing.T, s *server.Server) http.Handler { return sse.NewHandler(s, nil) }

func websocketEndpoint(_ *testing.T, s *server.Server) http.Handler {
	return websocket.NewHandler(s, nil)
}

// A session is told of once when it opens and once when it ends, over every
// transport, and in both eras where a connection carries many requests.
func TestObserveSessions(t *testing.T) {
	transports := map[string]func(t *testing.T, s *server.Server) transport.Dialer{}
	for _, name := range []string{"mem", "stdio", "streamable", "sse", "websocket"} {
		transports[name] = func(t *testing.T, s *server.Server) transport.Dialer { return mcptest.Dialer(t, s, name) }
	}
	called := map[string]string{"mem": "memory", "streamable": "http"}
	for name, dialer := range transports {
		for _, v := range bothEras {
			if name == "sse" && v == v2607 {
				continue
			}
			t.Run(name+" "+v, func(t *testing.T) {
				var w witness
				s := newServer(nil, echo())
				o := w.observer()
				inner := o.SessionEnded
				ended := make(chan struct{})
				o.SessionEnded = func(s server.SessionInfo, cause error) {
					s.Opened = time.Now() // the test is about how long it took elsewhere
					inner(s, cause)
					close(ended)
				}
				s.Observe(o)
				if name == "sse" {
					v = v2024
				}
				c, err := client.Connect(t.Context(), dialer(t, s), &client.Options{Versions: []string{v}})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, err := c.CallTool(t.Context(), "echo", map[string]string{"text": "x"}, nil); err != nil {
						t.Fatal(err)
					}
				}
				if name == "streamable" && v == v2607 {
					w.expect(t) // requests that belong to no session
					_ = c.Close()
					return
				}
				kind := cmp.Or(called[name], name)
				w.expect(t, fmt.Sprintf("opened %s %s", kind, v))
				_ = c.Close()
				<-ended
				if got := w.Take(); len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf("ended %s %s in order true", kind, v)) {
					t.Errorf("told %q", got)
				}
			})
		}
	}
}

// A session lasts from its handshake to its end, whichever end it is.
func TestObserveSessionTime(t *testing.T) {
	each(t, bothEras, func(t *testing.T, v string) {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			s := newServer(nil, echo())
			s.Observe(w.observer())
			idle := dial(t, s, v, nil) // says nothing
			l := join(t, s, v)
			l.tool("echo", `{"text":"x"}`)
			w.expect(t, "opened stdio "+v)
			time.Sleep(time.Hour) // of the test's own clock
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			w.expect(t, "ended stdio "+v+" in order true after 1h0m0s")
			<-idle.Served
			w.expect(t)
		})
	})
}

// A handshake that middleware refuses is told as a session neither opened.
func TestObserveRefusedHandshake(t *testing.T) {
	var w witness
	s := newServer(nil, echo())
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Method() == mcp.MethodInitialize {
				return nil, mcp.NewError(-7, "not today")
			}
			return next(c)
		}
	})
	s.Observe(w.observer())
	l := dial(t, s, v2511, nil)
	l.WriteLine(hello)
	if m := l.next(); m.Error == nil || m.Error.Code != -7 {
		t.Errorf("answered %s", m.raw)
	}
	w.expect(t) // middleware saw it
}

// Observers are all told; one that panics harms nobody.
func TestObserverPanics(t *testing.T) {
	var w witness
	var text logtest.Log
	s := newServer(&server.Options{Logger: text.Logger()}, echo())
	s.Observe(server.Observer{
		Refused:       func(context.Context, transport.Refusal) { panic("oh") },
		SessionOpened: func(server.SessionInfo) { panic("oh") },
	}, server.Observer{}, w.observer())
	l := join(t, s, v2511)
	l.fails(l.call("nothing", emptyBody), mcp.CodeMethodNotFound)
	w.expect(t, "opened stdio "+v2511, `refused stdio "nothing" -32601 `)
	if got := strings.Count(text.String(), "panicked"); got != 2 {
		t.Errorf("%d panics in the log, want 2", got)
	}
	panics(t, "Observe after the first request", func() { s.Observe(server.Observer{}) })
}

// Attack: a flood of messages that are refused must not fill the log.
// Proves: SEC-DOS-1.
func TestRefusalsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text logtest.Log
		s := newServer(&server.Options{Logger: text.Logger()}, echo())
		l := joinAs(t, s, v2511, ada)
		flood := func() {
			for i := range 2500 {
				l.WriteLine("{]")
				l.next()
				l.fails(l.call(fmt.Sprintf("nothing/%d", i), emptyBody), mcp.CodeMethodNotFound)
			}
		}
		flood()
		lines := func(level string) (n int, last string) {
			for line := range strings.Lines(text.String()) {
				if strings.Contains(line, "request refused") && strings.Contains(line, "level="+level) {
					n, last = n+1, line
				}
			}
			return n, last
		}
		for _, level := range []string{"WARN", "DEBUG"} {
			if n, last := lines(level); n != 1 || strings.Contains(last, "refused=") {
				t.Errorf("%d lines of level %s, want 1: %s", n, level, last)
			}
		}
		time.Sleep(10 * time.Second) // of the test's own clock
		flood()
		for _, level := range []string{"WARN", "DEBUG"} {
			if n, last := lines(level); n != 2 || !strings.Contains(last, "refused=2500 within=10s") {
				t.Errorf("%d lines of level %s, want 2: %s", n, level, last)
			}
		}
		if _, last := lines("WARN"); !strings.Contains(last, "transport=stdio") || !strings.Contains(last, "code=-32700") {
			t.Errorf("the line says %s", last)
		}
		if _, last := lines("DEBUG"); !strings.Contains(last, "mcp.method=nothing/0 ") || !strings.Contains(last, "mcp.principal=ada") {
			t.Errorf("the line says %s", last)
		}
	})
}
