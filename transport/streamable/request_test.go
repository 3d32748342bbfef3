package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Handlers and middleware reach the HTTP request that carried the message, in
// every era; what proves the client's identity only by its name.
func TestRequestFrom(t *testing.T) {
	mcptest.NoLeaks(t)
	core := server.New("s", "1", nil)
	seen := make(chan string, 1)
	core.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			r := streamable.RequestFrom(c)
			seen <- fmt.Sprintf("%s %s %s %s", streamable.Header(c, "x-tenant"), r.PathValue("tenant"), r.URL.RawQuery, r.Header["Authorization"])
			r.Header.Set("X-Tenant", "changed") // a copy
			return next(c)
		}
	})
	core.Add(server.Tool("ask", "Tells what it sees.", func(ctx context.Context, _ struct{}) (string, error) {
		r := streamable.RequestFrom(ctx)
		if r.Header.Get("Cookie") != "" || r.ContentLength != 0 {
			return "", fmt.Errorf("the copy has %v and %d bytes", r.Header, r.ContentLength)
		}
		return streamable.Header(ctx, "X-Tenant") + " " + r.Header.Get("X-Tenant") + " " + streamable.Header(ctx, "Authorization"), nil
	}))
	h := streamable.NewHandler(core, nil)
	mux := http.NewServeMux()
	mux.Handle("/{tenant}/mcp", h)
	srv := httptest.NewServer(mux)
	defer srv.Close()
	defer h.Shutdown(context.Background()) //nolint:errcheck // it has no end to wait for
	s := &site{TB: t, h: h, url: srv.URL + "/acme/mcp?q=1", client: srv.Client()}
	id := s.open(v2511)
	for _, tenant := range []string{"one", "two"} { // of this request, not of the one that opened the session
		about := []string{"X-Tenant", tenant, "Authorization", "Bearer secret", "Cookie", "a=b"}
		for era, r := range map[string]outcome{
			"modern": s.modern("tools/call", `"name":"ask","arguments":{}`, append([]string{"Mcp-Name", "ask"}, about...)...),
			"legacy": s.send(http.MethodPost, rpc(1, "tools/call", `"name":"ask","arguments":{}`), append([]string{"Mcp-Session-Id", id}, about...)...),
		} {
			s.check(era, r, 200, tenant+" "+tenant+" Bearer secret")
			if got, want := <-seen, tenant+" acme q=1 []"; got != want {
				t.Errorf("%s: middleware saw %q, want %q", era, got, want)
			}
		}
	}
	if streamable.RequestFrom(t.Context()) != nil || streamable.Header(t.Context(), "Host") != "" {
		t.Error("there is a request outside of one")
	}
}

// A request of a session goes on when its client has gone, and still sees its
// headers.
func TestRequestFromAfterItsEnd(t *testing.T) {
	mcptest.NoLeaks(t)
	started, gone, got := make(chan struct{}), make(chan struct{}), make(chan string, 1)
	s := newSite(t, newPeer(map[string]method{"wait": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		close(started)
		<-gone
		got <- streamable.Header(ctx, "X-Tenant") + " " + streamable.RequestFrom(ctx).Header.Get("X-Tenant")
		return echo(x.In.Params), nil
	}}), nil)
	id := s.open(v2506)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		r, err := s.do(ctx, http.MethodPost, rpc(1, "wait", ""), "Mcp-Session-Id", id, "X-Tenant", "one")
		if err == nil {
			r.Body.Close()
		}
		failed <- err
	}()
	<-started
	cancel()
	if err := <-failed; err == nil {
		t.Error("the request did not end")
	}
	s.check("another request", s.send(http.MethodPost, rpc(2, "echo", ""), "Mcp-Session-Id", id, "X-Tenant", "two"), 200)
	close(gone)
	if s := <-got; s != "one one" {
		t.Errorf("the handler saw %q, want the headers of its own request", s)
	}
}
