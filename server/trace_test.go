package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Trace context is carried to the handler; bad values are dropped with a log
// line, one by one. Ruling 27.
func TestTrace(t *testing.T) {
	var text logtest.Log
	var got server.Trace
	o := unlimited()
	o.Logger = text.Logger()
	s := newServer(o, server.Tool("t", "", func(ctx context.Context, _ none) (string, error) {
		got = server.TraceFrom(ctx)
		return "", nil
	}))
	long := strings.Repeat("x", 9000)
	each(t, bothEras, func(t *testing.T, v string) {
		l := join(t, s, v)
		for _, c := range []struct {
			parent, state, baggage string
			want                   server.Trace
		}{
			{parent, "a=1,b=2", "user=ada", server.Trace{Parent: parent, State: "a=1,b=2", Baggage: "user=ada"}},
			{parent, "", "", server.Trace{Parent: parent}},
			{"", "a=1", "k=v", server.Trace{Baggage: "k=v"}}, // a state needs its parent
			{strings.ToUpper(parent), "a=1", "", server.Trace{}},
			{parent + "-extra", "", "", server.Trace{}},
			{"ff" + parent[2:], "", "", server.Trace{}},
			{"01" + parent[2:] + "-extra", "", "", server.Trace{Parent: "01" + parent[2:] + "-extra"}}, // of a version to come
			{parent, "a=1,\tb=2", "k=v;\tp, l=w", server.Trace{Parent: parent, State: "a=1,\tb=2", Baggage: "k=v;\tp, l=w"}},
			{parent, "a", "k", server.Trace{Parent: parent}},
			{"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "", "", server.Trace{}},
			{"00-4bf92f3577b34da6a3ce929d0e0e4736-" + strings.Repeat("0", 16) + "-01", "", "", server.Trace{}},
			{parent, "a=1\u0007", "", server.Trace{Parent: parent}},
			{parent, long, "", server.Trace{Parent: parent}},
			{parent, "", "k=v\u007f", server.Trace{Parent: parent}},
			{parent, "", long, server.Trace{Parent: parent}},
		} {
			l.meta = `"traceparent":` + string(mustJSON(t, c.parent)) + `,"tracestate":` + string(mustJSON(t, c.state)) + `,"baggage":` + string(mustJSON(t, c.baggage))
			l.text(l.tool("t", emptyBody))
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%.80q: %s", c, d)
			}
		}
		l.meta = ""
		l.text(l.tool("t", emptyBody))
		if got != (server.Trace{}) {
			t.Errorf("left over: %+v", got)
		}
	})
	for _, what := range []string{"traceparent", "tracestate", "baggage"} {
		if !strings.Contains(text.String(), "malformed "+what) {
			t.Errorf("no log line for %s", what)
		}
	}
	if server.TraceFrom(t.Context()) != (server.Trace{}) {
		t.Error("a trace outside of a request")
	}
}

// From the client's context to the handler, in every revision.
func TestTraceEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("t", "", func(ctx context.Context, _ none) (string, error) { return server.TraceFrom(ctx).Parent, nil }))
		return s
	}
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		got, err := client.Call[string](client.WithTrace(t.Context(), parent, "a=1", ""), c, "t", nil)
		if err != nil || got != parent {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// The author's own `_meta` is kept, and the protocol's is the server's.
func TestResultMeta(t *testing.T) {
	res := &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("x")}}
	res.Meta.Extra = map[string]mcp.RawValue{"com.example/cost": mcp.RawValue("5")}
	s := newServer(nil, give("t", res))
	for _, v := range versions {
		l := join(t, s, v)
		got := l.toolResult(l.tool("t", emptyBody))
		if string(got.Meta["com.example/cost"]) != "5" {
			t.Errorf("%s: %v", v, got.Meta)
		}
		if _, info := got.Meta[mcp.MetaServerInfo]; info != (v == v2607) {
			t.Errorf("%s: server info %v", v, got.Meta)
		}
	}
}
