package streamable_test

import (
	"context"
	"errors"
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
			if c.Method() != "tools/call" {
				return next(c)
			}
			r := streamable.RequestFrom(c)
			if c.Method() != "tools/call" {
				return next(c)
			}
			seen <- fmt.Sprintf("%s %s %s %s", streamable.Header(c, "x-tenant"), r.PathValue("tenant"), r.URL.RawQuery, r.Header["Authorization"])
			r.Header.Set("X-Tenant", "changed") // a copy
			return next(c)
		}
	})
	core.Add(server.Tool("ask", "Tells what it sees.", func(ctx context.Context, _ struct{}) (string, error) {
		r := streamable.RequestFrom(ctx)
		if r.Header.Get("Cookie") != "" || r.Header.Get("Mcp-Session-Id") != "" || r.ContentLength != 0 {
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
		for era, call := range map[string]func() outcome{
			"modern": func() outcome {
				return s.modern("tools/call", `"name":"ask","arguments":{}`, append([]string{"Mcp-Name", "ask"}, about...)...)
			},
			"legacy": func() outcome {
				return s.send(http.MethodPost, rpc(1, "tools/call", `"name":"ask","arguments":{}`), append([]string{"Mcp-Session-Id", id}, about...)...)
			},
		} {
			s.check(era, call(), 200, tenant+" "+tenant+" Bearer secret")
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

// On an endpoint without sessions too a client that goes cancels nothing
// (ruling 13), and the end of the endpoint cancels what is left.
func TestSessionlessDisconnect(t *testing.T) {
	mcptest.NoLeaks(t)
	started, gone, got := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	s := newSite(t, newPeer(map[string]method{
		"wait": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			close(started)
			<-gone
			for range 3 { // which nobody reads
				_ = x.Out.Send(ctx, &jsonrpc.Outgoing{Method: "step"})
			}
			got <- ctx.Err()
			return echo(x.In.Params), nil
		},
		"last": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
			close(started)
			<-ctx.Done()
			got <- context.Cause(ctx)
			return nil, errNone
		},
	}), &streamable.Options{Sessionless: true})
	begin := func(name string) (failed chan error, cancel context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		failed = make(chan error, 1)
		go func() {
			r, err := s.do(ctx, http.MethodPost, rpc(1, name, ""))
			if err == nil {
				r.Body.Close()
			}
			failed <- err
		}()
		<-started
		return failed, cancel
	}
	failed, cancel := begin("wait")
	cancel()
	if err := <-failed; err == nil {
		t.Error("the request did not end")
	}
	s.check("another request", s.send(http.MethodPost, rpc(2, "echo", "")), 200)
	close(gone)
	if err := <-got; err != nil {
		t.Errorf("the request was cancelled with its connection: %v", err)
	}
	started = make(chan struct{})
	failed, cancel = begin("last")
	defer cancel()
	over, end := context.WithCancel(t.Context())
	end()
	if err := s.h.Shutdown(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-got; !errors.Is(err, streamable.ErrStopped) {
		t.Errorf("the last request was cancelled with %v, want ErrStopped", err)
	}
	t.Logf("the other request, cut off or answered: %v", <-failed)
}
