package streamable_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// newServer is a real server with a tool that asks.
func newToolServer() *server.Server {
	type confirm struct {
		Yes bool `json:"yes"`
	}
	s := server.New("real", "1.0.0", &server.Options{Limits: server.Limits{ToolRate: server.Unlimited}})
	s.Add(server.Tool("drop", "Asks, then drops.", func(ctx context.Context, _ struct{}) (string, error) {
		if err := server.Progress(ctx, 1, 2, "asking"); err != nil {
			return "", err
		}
		answer, err := server.Elicit[confirm](ctx, "Really?")
		if err != nil {
			return "", err
		}
		if !answer.Accepted() {
			return "kept", nil
		}
		return "dropped", nil
	}))
	return s
}

// One server serves both eras on one endpoint: a tool that asks is called by
// each in its way.
func TestModernBesideSessions(t *testing.T) {
	mcptest.NoLeaks(t)
	core := newToolServer()
	s := newSite(t, core, nil)
	t.Cleanup(func() {
		if err := core.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + v2607 + `","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	call := []string{"MCP-Protocol-Version", v2607, "Mcp-Method", "tools/call", "Mcp-Name", "drop"}
	s.check("modern", s.send(http.MethodPost, rpc(1, "tools/call", `"name":"drop","arguments":{},`+meta), call...), 200, `"input_required"`, "Really?")
	s.check("modern, wrong method", s.modern("nothing", ""), 404, "-32601")
	s.check("modern, wrong header", s.send(http.MethodPost, rpc(1, "tools/list", meta), call...), 400, "-32020")
	s.check("modern, no header", s.send(http.MethodPost, rpc(1, "tools/list", meta)), 400, "-32020")
	s.check("modern, doubled header", s.send(http.MethodPost, rpc(1, "tools/list", meta),
		"MCP-Protocol-Version", v2607, "Mcp-Method", "tools/list", "Mcp-Method", "tools/list"), 400, "-32020")
	s.check("modern, no _meta", s.send(http.MethodPost, rpc(1, "tools/list", ""), "MCP-Protocol-Version", v2607, "Mcp-Method", "tools/list"), 400, "-32602")

	for _, version := range []string{v2506, v2511} {
		r := s.send(http.MethodPost, rpc(0, "initialize", `"protocolVersion":"`+version+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`))
		s.check("initialize", r, 200, version)
		id := r.header.Get("Mcp-Session-Id")
		s.check("initialized", s.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id), 202)
		s.check("version", s.send(http.MethodPost, rpc(2, "ping", ""), "Mcp-Session-Id", id, "MCP-Protocol-Version", v2503), 200)
		f := s.follow(http.MethodPost, rpc(1, "tools/call", `"name":"drop","arguments":{},"_meta":{"progressToken":"p"}`), "Mcp-Session-Id", id, "MCP-Protocol-Version", version)
		if version == v2511 {
			f.primed()
		}
		f.wants("notifications/progress")
		m, err := jsonrpc.Parse(f.wants("elicitation/create", "Really?").Data, jsonrpc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s.check("answer", s.send(http.MethodPost, `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"action":"accept","content":{"yes":true}}}`, "Mcp-Session-Id", id), 202)
		f.wants(`"id":1`, "dropped")
		f.ends()
		s.check("second initialize", s.send(http.MethodPost, rpc(3, "initialize", initialize), "Mcp-Session-Id", id), 400, "-32600")
	}
}

// A subscription ends in good order when the endpoint does, and on a
// disconnect when the client does.
func TestModernListen(t *testing.T) {
	mcptest.NoLeaks(t)
	core := newToolServer()
	s := newSite(t, core, nil)
	header := []string{"MCP-Protocol-Version", v2607, "Mcp-Method", "subscriptions/listen"}
	listen := modernBody(1, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	gone := s.follow(http.MethodPost, listen, header...)
	gone.wants("notifications/subscriptions/acknowledged")
	gone.hangUp()
	f := s.follow(http.MethodPost, listen, header...)
	f.wants("notifications/subscriptions/acknowledged")
	core.Add(server.Tool("late", "Comes later.", func(context.Context, struct{}) (string, error) { return "", nil }))
	f.wants("notifications/tools/list_changed")
	done := make(chan error, 1)
	go func() { done <- s.h.Shutdown(context.Background()) }()
	f.wants(`"id":1`, `"result"`)
	f.ends()
	if err := within(t, "the end of Shutdown", done); err != nil {
		t.Error(err)
	}
	if err := core.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// HTTP/2 has deadlines of another kind.
func TestModernHTTP2(t *testing.T) {
	mcptest.NoLeaks(t)
	g := newGate()
	h := streamable.NewHandler(newPeer(map[string]method{"count": count(100), "wait": g.wait, "begin": func(ctx context.Context, x *transport.Exchange) (jsonrpc.Body, error) {
		if err := notify(ctx, x.Out, 0); err != nil {
			return nil, err
		}
		return g.wait(ctx, x)
	}}), asUser(nil))
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	s := &site{TB: t, h: h, url: srv.URL, client: srv.Client(), user: "ada"}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		srv.Close()
	})
	r, err := s.do(t.Context(), http.MethodPost, modernBody(1, "echo", ""))
	if err != nil || r.ProtoMajor != 2 {
		t.Fatalf("response %v, error %v, want HTTP/2", r, err)
	}
	r.Body.Close()
	s.check("echo", s.modern("echo", ""), 200, `"result"`)
	s.check("large", s.send(http.MethodPost, padded(300<<10)), 200, strings.Repeat("x", 299<<10))
	s.check("count", s.modern("count", ""), 200, noted(99), `"result"`)
	id := s.open(v2511)
	s.check("session", s.send(http.MethodPost, rpc(1, "count", ""), "Mcp-Session-Id", id), 200, noted(99), `"result"`)

	f := s.follow(http.MethodPost, modernBody(1, "begin", ""))
	f.wants(noted(0))
	ctx := within(t, "the request", g.entered)
	f.hangUp()
	within(t, "the end of the request", ctx.Done())

	// What does not end is cut off.
	for _, name := range []string{"wait", "begin"} {
		go func() {
			if r, err := s.do(context.Background(), http.MethodPost, modernBody(1, name, "")); err == nil {
				_, _ = io.Copy(io.Discard, r.Body) // until it is cut off: who closes it cancels
				r.Body.Close()
			}
		}()
		within(t, "the request", g.entered)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Shutdown(ended); err == nil {
		t.Error("Shutdown did not need to cut anything off")
	}
}
