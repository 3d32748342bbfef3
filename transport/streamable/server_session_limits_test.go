package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// One session more than an address may have ends the one that was idle the
// longest, never one in use. Named callers end nothing of others.
//
// Proves: SEC-DOS-1.
func TestSessionsPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		p := newPeer(map[string]method{"wait": g.wait})
		s := newPipes(t, p, &streamable.Options{MaxSessionsPerAddress: 3})
		s.user = ""
		ping := func(id string, status int) {
			t.Helper()
			s.check("ping", s.send(http.MethodPost, rpc(1, "echo", ""), "Mcp-Session-Id", id), status)
		}
		busy := s.open(v2511)
		waiting := s.follow(http.MethodPost, rpc(2, "wait", ""), "Mcp-Session-Id", busy)
		time.Sleep(time.Second)
		listening := s.open(v2511)
		s.follow(http.MethodGet, "", "Mcp-Session-Id", listening)
		time.Sleep(time.Second)
		idle := s.open(v2511)
		time.Sleep(time.Second)
		next := s.open(v2511) // in the place of idle
		ping(idle, 404)
		p.mu.Lock()
		closed := p.sessions[2].closed
		p.mu.Unlock()
		if !errors.Is(closed, transport.ErrClosed) {
			t.Errorf("the displaced session was closed with %v, want ErrClosed", closed)
		}
		ping(next, 200)
		s.follow(http.MethodGet, "", "Mcp-Session-Id", next)
		r := s.send(http.MethodPost, rpc(0, "initialize", initialize))
		s.check("all in use", r, 429, "-31002", "MaxSessionsPerAddress", "192.0.2.1", "3 sessions")
		if got := r.header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After is %q, want 1", got)
		}
		s.check("a named caller", s.send(http.MethodPost, rpc(0, "initialize", initialize), "X-User", "ada"), 200)
		ping(listening, 200)
		ping(busy, 200)
		g.release <- struct{}{}
		waiting.primed()
		waiting.wants(`"id":2`)
	})
}

// At the default limits, 150 sessions and 80 clients that listen, half of them of
// the stateless revision, are served from one address: hosted agents, or an
// office behind a proxy.
func TestManyFromOneAddress(t *testing.T) {
	mcptest.NoLeaks(t)
	core := server.New("s", "1", nil)
	core.Add(server.Tool("echo", "Gives back.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return in.Text, nil
	}))
	h := streamable.NewHandler(core, nil)
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer h.Shutdown(context.Background()) //nolint:errcheck // it has no end to wait for
	s := &site{TB: t, h: h, url: srv.URL, client: srv.Client()}
	ids, listening := make([]string, 150), make([]*feed, 40)
	for i := range ids {
		ids[i] = s.open(v2511)
	}
	for i := range listening {
		listening[i] = s.follow(http.MethodGet, "", "Mcp-Session-Id", ids[i])
		listening[i].primed()
	}
	for i, id := range ids {
		s.check(fmt.Sprintf("call in session %d", i), s.send(http.MethodPost, rpc(1, "tools/call", `"name":"echo","arguments":{"text":"hi"}`), "Mcp-Session-Id", id), 200, "hi")
	}
	subscribed := make([]*feed, 40) // clients of the stateless revision
	for i := range subscribed {
		subscribed[i] = s.follow(http.MethodPost, modernBody(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
			"MCP-Protocol-Version", v2607, "Mcp-Method", "subscriptions/listen")
		subscribed[i].wants("acknowledged")
	}
	core.Add(server.Tool("late", "Comes later.", func(context.Context, struct{}) (string, error) { return "", nil }))
	for _, f := range append(listening, subscribed...) {
		f.wants("notifications/tools/list_changed")
	}
}
