package guard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// newRevocable serves an MCP server by all transports, in memory, behind a guard that asks v each time.
// A call of the tool "wait" says so on began, and how it ended on ended. The test is in a bubble of
// synctest: a guard that is late, as on a busy machine, ends what is open.
func newRevocable(t *testing.T, v *verdict, o streamable.Options) (x *site, began chan struct{}, ended chan error) {
	t.Helper()
	began, ended = make(chan struct{}, 1), make(chan error, 1)
	s := newTools(nil)
	s.Add(
		server.Text("test:a", "a", "text"),
		server.Tool("wait", "Waits until it is cancelled.", func(ctx context.Context, _ struct{}) (string, error) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "", ctx.Err()
		}),
	)
	v.again = make(chan struct{}, 1)
	x = &site{bench: &bench{t: t, clock: clocktest.New(epoch)}, url: "http://127.0.0.1/mcp"}
	webtest.ShutDown(t, s.Shutdown)
	endpoint, old, sockets := streamable.NewHandler(s, &o), sse.NewHandler(s, nil), websocket.NewHandler(s, nil)
	v.token.Store(&guard.Token{Issuer: issuerID, Subject: "ada", Audience: []string{x.url}})
	g, err := guard.New(x.url, v, &guard.Options{RequireFresh: fresh})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	mux.Handle("/mcp/sse", old)
	mux.Handle("/mcp/ws", sockets)
	x.client = webtest.ServeMemory(t, g.Protect(mux)).Client()
	for _, end := range []func(context.Context) error{endpoint.Shutdown, old.Shutdown, sockets.Shutdown} {
		webtest.Abort(t, end)
	}
	return x, began, ended
}

const (
	waiting = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{}` // and _meta
	hello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	meta    = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newest + `","io.modelcontextprotocol/clientCapabilities":{}}`
)

// An openRequest is what is open when its token is revoked.
type openRequest struct {
	name        string
	sessionless bool
	session     bool
	call        bool // of the tool
	gone        bool // the client leaves before
	method      string
	body        string
	headers     []string
}

// Whatever is open ends when its token is revoked: calls of every revision, with and without
// sessions, also one whose client has gone; subscriptions; streams of sessions. Attack: work that
// goes on for who has no access any more.
func TestRevokedEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	modern := []string{"MCP-Protocol-Version", newest, "Mcp-Method"}
	for _, test := range []openRequest{
		{name: "call", call: true, method: "POST", body: waiting + meta + `}}`, headers: append(modern, "tools/call", "Mcp-Name", "wait")},
		{name: "subscription", method: "POST", body: listen, headers: append(modern, "subscriptions/listen")},
		{name: "call of a session", session: true, call: true, method: "POST", body: waiting + `}}`},
		{name: "call of a session, the client gone", session: true, call: true, gone: true, method: "POST", body: waiting + `}}`},
		{name: "stream of a session", session: true, method: "GET"},
		{name: "call without sessions", sessionless: true, call: true, method: "POST", body: waiting + `}}`, headers: []string{"MCP-Protocol-Version", "2025-11-25"}},
		{name: "batch without sessions", sessionless: true, call: true, method: "POST", body: "[" + waiting + `}}]`, headers: []string{"MCP-Protocol-Version", "2025-03-26"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test.testRevoked(t) })
		})
	}
}

// testRevoked has a request open for some time, revokes its token, and waits for its end.
func (test *openRequest) testRevoked(t *testing.T) {
	t.Helper()
	v := new(verdict)
	x, began, ended := newRevocable(t, v, streamable.Options{Sessionless: test.sessionless})
	headers := test.headers
	if test.session {
		open := x.send(http.MethodPost, "opaque", hello)
		headers = append(headers, "Mcp-Session-Id", open.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25")
		x.send(http.MethodPost, "opaque", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, headers...)
	}
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	type result struct {
		status int
		body   string
		err    error
	}
	answered := make(chan result, 1)
	go func() {
		resp, err := x.client.Transport.RoundTrip(x.newRequest(ctx, test.method, "opaque", test.body, headers...))
		if err != nil {
			answered <- result{err: err}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		answered <- result{resp.StatusCode, string(body), err}
	}()
	if test.call {
		<-began
	}
	// It has been verified anew, and goes on.
	for range 4 {
		select {
		case <-v.again:
		case got := <-answered:
			t.Fatalf("it ended early: %+v", got)
		}
	}
	if test.gone {
		leave()
		<-answered
	}
	v.fail(errors.New("revoked"))
	if test.call {
		if err := <-ended; !errors.Is(err, principal.ErrRevoked) {
			t.Errorf("the call ended with %v", err)
		}
	}
	if !test.gone {
		if got := <-answered; errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("the response did not end: %+v", got)
		}
	}
	if got := x.send(http.MethodPost, "opaque", `{}`, headers...); got.status != http.StatusUnauthorized {
		t.Errorf("the next request: %d %s", got.status, got.body)
	}
}

// The transports whose one connection is everything end it.
func TestRevokedEndsConnections(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"HTTP+SSE": "/sse", "WebSocket": "/ws"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testRevokedConnection(t, path) })
		})
	}
}

// testRevokedConnection opens a connection at a path, and waits for its end when its token is revoked.
func testRevokedConnection(t *testing.T, path string) {
	t.Helper()
	v := new(verdict)
	x, _, _ := newRevocable(t, v, streamable.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := x.newRequest(ctx, http.MethodGet, "opaque", "")
	r.URL.Path += path
	if path == "/ws" {
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "mcp",
		} {
			r.Header.Set(name, value)
		}
	}
	resp, err := x.client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", resp.StatusCode)
	}
	for range 4 {
		select {
		case <-v.again:
		case <-ctx.Done():
			t.Fatal("the connection is not watched")
		}
	}
	v.fail(errors.New("revoked"))
	rest, err := io.ReadAll(resp.Body)
	if ctx.Err() != nil || path == "/sse" && !strings.Contains(string(rest), "endpoint") {
		t.Errorf("the connection did not end: %q %v", rest, err)
	}
}
