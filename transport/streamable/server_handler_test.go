package streamable_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// Rulings 1, 11, 12, 14: what decides the status of a response.
//
// Proves: MSG-4
func TestStatuses(t *testing.T) {
	fails := func(code int64) method {
		return func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
			return nil, jsonrpc.NewError(code, "as you wish")
		}
	}
	methods := map[string]method{
		"params": fails(mcp.CodeInvalidParams), "internal": fails(mcp.CodeInternalError), "mismatch": fails(mcp.CodeHeaderMismatch),
		"version": fails(mcp.CodeUnsupportedVersion), "capability": fails(mcp.CodeMissingClientCapability), "invalid": fails(mcp.CodeInvalidRequest),
		"busy": fails(mcp.CodeTooManyInFlight), "stopping": fails(mcp.CodeShuttingDown),
	}
	const id = "the session's" // stands for the id of the session
	modern := []string{"MCP-Protocol-Version", v2607}
	legacy := []string{"Mcp-Session-Id", id}
	const hello = `{"jsonrpc":"2.0","method":"hello"}`
	meta := func(members string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"params","params":{"_meta":{` + members + `}}}`
	}
	const version, capabilities = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":{}`
	for _, test := range []struct {
		name   string
		method string
		body   string
		header []string
		status int
		parts  []string
	}{
		{"modern", "POST", modernBody(1, "echo", ""), modern, 200, nil},
		{"modern by its body", "POST", modernBody(1, "echo", ""), nil, 200, nil},
		{"modern by its header", "POST", rpc(1, "echo", ""), modern, 200, nil},
		{"modern with a session id", "POST", modernBody(1, "echo", ""), []string{"Mcp-Session-Id", "none"}, 200, nil},
		{"modern initialize", "POST", modernBody(1, "initialize", ""), modern, 404, []string{"-32601", `"id":1`}},
		{"modern unknown method", "POST", modernBody(1, "nothing", ""), modern, 404, []string{"-32601"}},
		{"modern invalid params", "POST", modernBody(1, "params", ""), modern, 200, []string{"-32602"}},
		{"modern without capabilities", "POST", meta(version), modern, 400, []string{"-32602"}},
		{"modern without version", "POST", meta(capabilities), modern, 400, []string{"-32602"}},
		{"modern with an odd version", "POST", meta(`"io.modelcontextprotocol/protocolVersion":1,` + capabilities), modern, 400, []string{"-32602"}},
		{"modern with odd capabilities", "POST", meta(version + `,"io.modelcontextprotocol/clientCapabilities":[]`), modern, 400, []string{"-32602"}},
		{"modern without _meta", "POST", rpc(1, "params", ""), modern, 400, []string{"-32602"}},
		{"modern internal error", "POST", modernBody(1, "internal", ""), modern, 200, []string{"-32603"}},
		{"modern header mismatch", "POST", modernBody(1, "mismatch", ""), modern, 400, []string{"-32020"}},
		{"modern version", "POST", modernBody(1, "version", ""), modern, 400, []string{"-32022"}},
		{"modern capability", "POST", modernBody(1, "capability", ""), modern, 400, []string{"-32021"}},
		{"modern invalid request", "POST", modernBody(1, "invalid", ""), modern, 400, []string{"-32600"}},
		{"modern too many", "POST", modernBody(1, "busy", ""), modern, 429, []string{"-31002"}},
		{"modern shutting down", "POST", modernBody(1, "stopping", ""), modern, 503, []string{"-31004"}},
		{"modern notification", "POST", `{"jsonrpc":"2.0","method":"hello","params":{` + modernMeta + `}}`, modern, 202, nil},
		{"modern malformed notification", "POST", `{"jsonrpc":"2.0","method":"hello","params":1}`, modern, 400, []string{`{"jsonrpc":"2.0","error"`, "-32600"}},
		{"modern response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, modern, 400, []string{`{"jsonrpc":"2.0","error"`}},
		{"modern batch", "POST", "[" + modernBody(1, "echo", "") + "]", modern, 400, []string{`{"jsonrpc":"2.0","error"`, "-32600"}},
		{"modern parse error", "POST", `{`, modern, 400, []string{`{"jsonrpc":"2.0","error"`, "-32700"}},
		{"modern invalid envelope", "POST", `{"jsonrpc":"1.0","id":"x","method":"echo"}`, modern, 400, []string{`"id":"x"`, "-32600"}},
		{"modern GET", "GET", "", modern, 405, nil},
		{"modern DELETE", "DELETE", "", modern, 405, nil},

		{"legacy", "POST", rpc(1, "echo", ""), legacy, 200, nil},
		{"legacy unknown method", "POST", rpc(1, "nothing", ""), legacy, 200, []string{"-32601"}},
		{"legacy invalid params", "POST", rpc(1, "params", ""), legacy, 200, []string{"-32602"}},
		{"legacy invalid request", "POST", rpc(1, "invalid", ""), legacy, 400, []string{"-32600"}},
		{"legacy too many", "POST", rpc(1, "busy", ""), legacy, 200, []string{"-31002"}},
		{"legacy notification", "POST", hello, legacy, 202, nil},
		{"legacy response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, legacy, 202, nil},
		{"legacy malformed response", "POST", `{"jsonrpc":"2.0","id":1,"result":1}`, legacy, 400, []string{`{"jsonrpc":"2.0","error"`}},
		{"legacy malformed notification", "POST", `{"jsonrpc":"2.0","method":1}`, legacy, 400, []string{"-32600"}},
		{"legacy batch", "POST", "[" + rpc(1, "echo", "") + "]", legacy, 400, []string{`{"jsonrpc":"2.0","error"`, "-32600"}},
		{"legacy second initialize", "POST", rpc(1, "initialize", `"protocolVersion":"2025-11-25"`), legacy, 200, []string{"-32602", `"id":1`}},
		{"legacy its version", "POST", rpc(1, "echo", ""), append([]string{"MCP-Protocol-Version", v2511}, legacy...), 200, nil},
		{"legacy another version", "POST", rpc(1, "echo", ""), append([]string{"MCP-Protocol-Version", v2506}, legacy...), 200, nil},
		{"legacy unknown version", "POST", rpc(1, "echo", ""), append([]string{"MCP-Protocol-Version", "1999-01-01"}, legacy...), 400, nil},
		{"legacy two versions", "POST", rpc(1, "echo", ""), append([]string{"MCP-Protocol-Version", v2511, "MCP-Protocol-Version", v2511}, legacy...), 400, nil},
		{"legacy GET of an unknown version", "GET", "", append([]string{"MCP-Protocol-Version", "1999-01-01"}, legacy...), 400, nil},
		{"legacy DELETE of an unknown version", "DELETE", "", append([]string{"MCP-Protocol-Version", "1999-01-01"}, legacy...), 400, nil},

		{"no session", "POST", rpc(1, "echo", ""), nil, 400, []string{`"id":null`}},
		{"no session, known version", "POST", rpc(1, "echo", ""), []string{"MCP-Protocol-Version", v2511}, 400, []string{`{"jsonrpc":"2.0","error"`}},
		{"empty session", "POST", rpc(1, "echo", ""), []string{"Mcp-Session-Id", " "}, 400, nil},
		{"two sessions", "POST", rpc(1, "echo", ""), append([]string{"Mcp-Session-Id", id}, legacy...), 400, nil},
		{"unknown session", "POST", rpc(1, "echo", ""), []string{"Mcp-Session-Id", "none"}, 404, []string{`"id":null`}},
		{"unknown session, notification", "POST", hello, []string{"Mcp-Session-Id", "none"}, 404, nil},
		{"unknown session, parse error", "POST", "{", []string{"Mcp-Session-Id", "none"}, 404, nil},
		{"unknown session, initialize", "POST", rpc(1, "initialize", `"protocolVersion":"2025-11-25"`), []string{"Mcp-Session-Id", "none"}, 404, nil},
		{"unknown session, GET", "GET", "", []string{"Mcp-Session-Id", "none"}, 404, nil},
		{"unknown session, DELETE", "DELETE", "", []string{"Mcp-Session-Id", "none"}, 404, nil},
		{"no session, parse error", "POST", "{", nil, 400, []string{`"id":null`, "-32700"}},
		{"no session, notification", "POST", hello, nil, 400, nil},
		{"no session, GET", "GET", "", nil, 405, nil},
		{"no session, DELETE", "DELETE", "", nil, 400, nil},
		{"refused initialize", "POST", rpc(1, "initialize", `"protocolVersion":"bad"`), nil, 200, []string{"-32602", `"id":1`}},
		{"initialize with an unknown version", "POST", rpc(1, "initialize", `"protocolVersion":"2025-11-25"`), []string{"MCP-Protocol-Version", "1999-01-01"}, 400, nil},
		{"empty body", "POST", "", nil, 400, []string{"-32700"}},
		{"other method", "PUT", "", nil, 405, nil},
		{"OPTIONS that asks nothing", "OPTIONS", "", nil, 405, nil},

		{"no Accept", "POST", modernBody(1, "echo", ""), []string{"Accept", ""}, 200, nil},
		{"any Accept", "POST", modernBody(1, "echo", ""), []string{"Accept", "*/*"}, 200, nil},
		{"JSON alone", "POST", modernBody(1, "echo", ""), []string{"Accept", "application/json"}, 200, []string{`"id":1,"result"`}},
		{"events alone", "POST", modernBody(1, "echo", ""), []string{"Accept", "text/event-stream"}, 406, nil},
		{"JSON refused", "POST", modernBody(1, "echo", ""), []string{"Accept", "*/*, application/json;q=0"}, 406, nil},
		{"GET of JSON", "GET", "", append([]string{"Accept", "application/json"}, legacy...), 406, nil},
		{"no Content-Type", "POST", modernBody(1, "echo", ""), []string{"Content-Type", ""}, 415, nil},
		{"text", "POST", modernBody(1, "echo", ""), []string{"Content-Type", "text/plain"}, 415, nil},
		{"JSON in UTF-8", "POST", modernBody(1, "echo", ""), []string{"Content-Type", "application/json; charset=UTF-8"}, 200, nil},
		{"JSON in UTF-8, without hyphen", "POST", modernBody(1, "echo", ""), []string{"Content-Type", `application/json; charset="utf8"`}, 200, nil},
		{"JSON in Latin-1", "POST", modernBody(1, "echo", ""), []string{"Content-Type", "application/json; charset=latin1"}, 415, nil},
		{"compressed", "POST", modernBody(1, "echo", ""), []string{"Content-Encoding", "gzip"}, 415, nil},
		{"not compressed", "POST", modernBody(1, "echo", ""), []string{"Content-Encoding", "identity"}, 200, nil},
		{"foreign origin", "POST", modernBody(1, "echo", ""), []string{"Origin", "https://evil.example"}, 403, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // what takes 200 ms gets status 200, to be an event stream
				s := newPipes(t, newPeer(maps.Clone(methods)), nil)
				header, opened := slices.Clone(test.header), s.open(v2511)
				for i, value := range header {
					if value == id {
						header[i] = opened
					}
				}
				checkStatus(s, s.send(test.method, test.body, header...), test.name, test.status, test.parts)
			})
		})
	}
}

// checkStatus compares a response of TestStatuses.
func checkStatus(s *site, r outcome, name string, status int, parts []string) {
	s.Helper()
	s.check(name, r, status, parts...)
	if status == 202 && r.body != "" {
		s.Errorf("202 with body %s, want none", r.body)
	}
	if allow := r.header.Get("Allow"); (status == 405) != (allow != "") {
		s.Errorf("status %d with Allow %q", r.status, allow)
	}
	if status >= 400 && !strings.Contains(r.body, `"error"`) {
		s.Errorf("body %s, want a JSON-RPC error", r.body)
	}
	if r.header.Get("Mcp-Session-Id") != "" {
		s.Error("a session was opened")
	}
}

// Ruling 26: what is to be tried again says when.
func TestRetryAfter(t *testing.T) {
	s := newSite(t, newPeer(map[string]method{
		"busy": func(context.Context, *transport.Exchange) (jsonrpc.Body, error) {
			return nil, jsonrpc.NewError(mcp.CodeRateLimited, "slowly").With(mcp.RetryData{RetryAfterMs: 2500})
		},
	}), nil)
	r := s.modern("busy", "")
	s.check("busy", r, 429)
	if got := r.header.Get("Retry-After"); got != "3" {
		t.Errorf("Retry-After is %q, want 3", got)
	}
}

// SEC-HTTP-1: pages of listed origins learn what they may send.
func TestPreflight(t *testing.T) {
	h := streamable.NewHandler(newPeer(nil), &streamable.Options{Access: web.Access{Origins: []string{"https://app.example"}}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "http://localhost/mcp", nil)
	r.Header.Set("Origin", "https://app.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "mcp-param-region, mcp-session-id")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "mcp-param-region") {
		t.Errorf("status %d, headers %v", w.Code, w.Header())
	}
}

func TestHandlerShutdown(t *testing.T) {
	mcptest.NoLeaks(t)
	p := newPeer(nil)
	s := newSite(t, p, nil)
	id := s.open(v2511)
	f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	f.primed()
	for range 2 { // Shutdown may come more than once
		if err := s.h.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.ends()
	for _, r := range []outcome{
		s.modern("echo", ""),
		s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id),
		s.send(http.MethodPost, rpc(1, "initialize", `"protocolVersion":"2025-11-25"`)),
		s.send(http.MethodGet, "", "Mcp-Session-Id", id),
	} {
		s.check("after Shutdown", r, 503, "-31004")
		if r.header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	}
	session := p.session()
	if session.ended != 1 || !errors.Is(session.closed, transport.ErrClosed) {
		t.Errorf("Ending was called %d times, Close with %v; want once, and ErrClosed", session.ended, session.closed)
	}
}

// Shutdown lets requests finish, and tells those who go on for as long as
// somebody listens.
func TestHandlerShutdownWaits(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	listening := make(chan struct{})
	s := newSite(t, newPeer(map[string]method{
		"wait": g.wait,
		"listen": func(_ context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			close(listening)
			<-x.Ending
			return jsonrpc.Empty(), nil
		},
	}), nil)
	id := s.open(v2511)
	answers := make(chan outcome, 3)
	go func() { answers <- s.modern("wait", "") }()
	go func() { answers <- s.modern("listen", "") }()
	go func() { answers <- s.send(http.MethodPost, rpc(1, "wait", ""), "Mcp-Session-Id", id) }()
	within(t, "wait", g.entered)
	within(t, "wait", g.entered)
	within(t, "listen", listening)
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- s.h.Shutdown(context.Background()) }()
	}
	s.check("listen", within(t, "the end of listen", answers), 200, `"result"`)
	select {
	case err := <-done:
		t.Fatalf("Shutdown returned with requests under way: %v", err)
	default:
	}
	g.release <- struct{}{}
	g.release <- struct{}{}
	for range 2 {
		s.check("wait", within(t, "an answer", answers), 200, `"result"`)
		if err := within(t, "the end of Shutdown", done); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	}
}

// Shutdown cancels what does not finish, and waits for it all the same.
func TestHandlerShutdownCuts(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	full := make(chan error, 2)
	s := newSite(t, newPeer(map[string]method{
		"wait": g.wait,
		"flood": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			g.entered <- ctx
			for {
				if err := x.Out.Send(context.Background(), big); err != nil {
					full <- err
					return nil, err
				}
			}
		},
	}), nil)
	id := s.open(v2511)
	s.follow(http.MethodPost, modernBody(1, "flood", ""))
	s.follow(http.MethodPost, rpc(1, "flood", ""), "Mcp-Session-Id", id)
	for range 2 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if r, err := s.do(ctx, http.MethodPost, rpc(2, "wait", ""), "Mcp-Session-Id", id); err == nil {
				r.Body.Close()
			}
		}()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if r, err := s.do(ctx, http.MethodPost, modernBody(2, "wait", "")); err == nil {
				r.Body.Close()
			}
		}()
	}
	for range 5 { // one of the two in the session has the other's id
		within(t, "a request", g.entered)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.h.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v, want that it was cut short", err)
	}
	for range 2 {
		if err := within(t, "the end of a flood", full); err == nil {
			t.Error("a flood ended well")
		}
	}
}

// big is a message that buffers on the way do not swallow many of.
var big = &jsonrpc.Outgoing{Method: "note", Params: jsonrpc.JSON(map[string]string{"pad": strings.Repeat("p", 256<<10)})}

func TestHandlerServe(t *testing.T) {
	mcptest.NoLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	addr := make(chan net.Addr, 1)
	var order []string
	done := make(chan error, 1)
	go func() {
		done <- streamable.Serve(ctx, "127.0.0.1:0", newPeer(nil), &streamable.Options{HTTP: web.ServeOptions{
			Listening: func(a net.Addr) { addr <- a },
			Shutdown:  func(context.Context) error { order = append(order, "ours"); return nil },
		}})
	}()
	s := &site{TB: t, url: "http://" + within(t, "listening", addr).String() + streamable.Path, client: &http.Client{Transport: &http.Transport{}}}
	s.check("echo", s.modern("echo", ""), 200)
	id := s.open(v2511)
	f := s.follow(http.MethodGet, "", "Mcp-Session-Id", id)
	f.primed()
	cancel()
	f.ends()
	if err := within(t, "the end of Serve", done); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if !slices.Equal(order, []string{"ours"}) {
		t.Errorf("Shutdown of the options was called: %v", order)
	}
	s.client.CloseIdleConnections()
}

// What two revisions do not share is kept apart on one endpoint, whatever goes
// on at the same time.
func TestConcurrentEras(t *testing.T) {
	mcptest.NoLeaks(t)
	s := newSite(t, newPeer(map[string]method{"count": count(20)}), nil)
	done := make(chan struct{})
	const clients = 12
	for i := range clients {
		go func() {
			defer func() { done <- struct{}{} }()
			versions := []string{v2411, v2503, v2506, v2511}
			id := s.open(versions[i%len(versions)])
			for n := range 10 {
				s.check("modern", s.modern("count", ""), 200, noted(19), `"result"`)
				s.check("legacy", s.send(http.MethodPost, rpc(n, "count", ""), "Mcp-Session-Id", id), 200, noted(19), `"result"`)
				s.check("legacy", s.send(http.MethodPost, rpc(n, "echo", `"x":1`), "Mcp-Session-Id", id), 200, `"x":1`)
			}
			s.check("delete", s.send(http.MethodDelete, "", "Mcp-Session-Id", id), 204)
		}()
	}
	for range clients {
		within(t, "the end of a client", done)
	}
}

// The endpoint serves behind a writer that knows no deadlines too.
func TestRecorder(t *testing.T) {
	h := streamable.NewHandler(newPeer(map[string]method{"count": count(2)}), nil)
	for name, want := range map[string]string{"echo": "application/json", "count": "text/event-stream"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(modernBody(1, name, "")))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: status %d, %s", name, w.Code, w.Header().Get("Content-Type"))
		}
	}
}

// A silent endpoint gives signs of life in every era.
func TestHandlerKeepAlive(t *testing.T) {
	for name, version := range map[string]string{"modern": v2607, "resumable": v2506, "primed": v2511, "early": v2411} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				s := newPipes(t, newPeer(map[string]method{"wait": g.wait}), nil)
				header, body := []string{"MCP-Protocol-Version", v2607}, modernBody(1, "wait", "")
				if version != v2607 {
					header, body = []string{"Mcp-Session-Id", s.open(version)}, rpc(1, "wait", "")
				}
				begun := time.Now()
				f := s.follow(http.MethodPost, body, header...) // returns with the header
				if waited := time.Since(begun); waited > 15*time.Second {
					t.Errorf("the response began after %v", waited)
				}
				// Four lines at most every 15 s: read a minute of them.
				for seen := 0; time.Since(begun) < time.Minute; seen++ {
					at := time.Now()
					line := make([]byte, 256)
					if _, err := f.r.Body.Read(line); err != nil {
						t.Fatal(err)
					}
					if silence := time.Since(at); silence > 15*time.Second {
						t.Errorf("silence of %v", silence)
					}
				}
				g.release <- struct{}{}
				f.wants(`"result"`)
				f.ends()
			})
		})
	}
}
