package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// An alone is the transport of one self-contained request.
type alone struct {
	sent   []string
	answer *jsonrpc.Outgoing
}

func (a *alone) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	a.sent = append(a.sent, m.Method)
	return nil
}

func (a *alone) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	if a.answer != nil {
		return jsonrpc.ErrEnded
	}
	a.answer = m
	return nil
}

// carry has a server handle one self-contained request with a route.
func carry(t *testing.T, s *server.Server, r transport.Route, method, params string) *alone {
	t.Helper()
	return carryUntil(t, s, r, method, params, nil)
}

func carryUntil(t *testing.T, s *server.Server, r transport.Route, method, params string, ending <-chan struct{}) *alone {
	t.Helper()
	in, err := jsonrpc.Parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), jsonrpc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a := &alone{}
	s.Serve(t.Context(), &transport.Exchange{In: in, Route: r, Principal: principal.Local, Out: a, Ending: ending})
	if a.answer == nil {
		t.Fatalf("%s was not answered", method)
	}
	return a
}

const newestMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

type routed struct {
	Region string `json:"region,omitzero" header:"Region"`
	Deep   struct {
		Count *int  `json:"count,omitzero" header:"Count"`
		Dry   *bool `json:"dry,omitzero" header:"Dry-Run"`
	} `json:"deep,omitzero"`
	Free string `json:"free,omitzero"`
}

func routedServer() *server.Server {
	return newServer(unlimited(),
		server.Tool("route", "Says where it ran.", func(_ context.Context, in routed) (string, error) { return "in " + in.Region, nil }))
}

// What a transport says outside the body must say the same as the body. Proves:
// SEC-HTTP-1 (header and body agree). Rulings 1, 2, 12, 15.
func TestRoute(t *testing.T) {
	s := routedServer()
	call := func(arguments string) string {
		return `{"name":"route","arguments":` + arguments + `,` + newestMeta + `}`
	}
	good := transport.Route{Carried: true, Version: v2607, Method: mcp.MethodToolsCall, Name: "route"}
	with := func(change func(r *transport.Route)) transport.Route {
		r := good
		change(&r)
		return r
	}
	fields := func(pairs ...string) transport.Route {
		return with(func(r *transport.Route) {
			r.Fields = map[string][]string{}
			for i := 0; i < len(pairs); i += 2 {
				r.Fields[pairs[i]] = append(r.Fields[pairs[i]], pairs[i+1])
			}
		})
	}
	const wrong = mcp.CodeHeaderMismatch
	for name, tt := range map[string]struct {
		route  transport.Route
		params string
		code   int64  // 0 is a result
		words  string // of the error
	}{
		"all there":               {good, call(`{}`), 0, ""},
		"no place for it":         {transport.Route{}, call(`{"region":"eu"}`), 0, ""},
		"version missing":         {with(func(r *transport.Route) { r.Version = "" }), call(`{}`), wrong, "MCP-Protocol-Version is missing"},
		"version differs":         {with(func(r *transport.Route) { r.Version = "2025-11-25" }), call(`{}`), wrong, `"2025-11-25"`},
		"version of nobody":       {with(func(r *transport.Route) { r.Version = "v999" }), strings.ReplaceAll(call(`{}`), v2607, "v999"), mcp.CodeUnsupportedVersion, ""},
		"version alone":           {good, `{"name":"route"}`, mcp.CodeInvalidParams, mcp.MetaProtocolVersion},
		"no capabilities":         {good, `{"name":"route","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, mcp.CodeInvalidParams, mcp.MetaClientCapabilities},
		"method missing":          {with(func(r *transport.Route) { r.Method = "" }), call(`{}`), wrong, "Mcp-Method is missing"},
		"method differs":          {with(func(r *transport.Route) { r.Method = "TOOLS/CALL" }), call(`{}`), wrong, `"TOOLS/CALL"`},
		"name missing":            {with(func(r *transport.Route) { r.Name = "" }), call(`{}`), wrong, "Mcp-Name is missing"},
		"name differs":            {with(func(r *transport.Route) { r.Name = "other" }), call(`{}`), wrong, `"other"`},
		"unreadable":              {with(func(r *transport.Route) { r.Invalid = "Mcp-Name is there twice" }), call(`{}`), wrong, "there twice"},
		"field":                   {fields("region", "eu"), call(`{"region":"eu"}`), 0, ""},
		"field differs":           {fields("region", "eu"), call(`{"region":"us"}`), wrong, "Mcp-Param-Region does not match"},
		"field twice":             {fields("region", "eu", "region", "eu"), call(`{"region":"eu"}`), wrong, "2 times"},
		"field missing":           {good, call(`{"region":"eu"}`), wrong, "Mcp-Param-Region is missing"},
		"field without argument":  {fields("region", "eu"), call(`{}`), wrong, "has none"},
		"empty string is a value": {good, call(`{"region":""}`), wrong, "is missing"},
		"empty string":            {fields("region", ""), call(`{"region":""}`), 0, ""},
		"numbers":                 {fields("count", "42.0"), call(`{"deep":{"count":42}}`), 0, ""},
		"other numbers":           {fields("count", "42.5"), call(`{"deep":{"count":42}}`), wrong, "Mcp-Param-Count"},
		"flag":                    {fields("dry-run", "true"), call(`{"deep":{"dry":true}}`), 0, ""},
		"flag differs":            {fields("dry-run", "True"), call(`{"deep":{"dry":true}}`), wrong, "Mcp-Param-Dry-Run"},
		"nobody's field":          {fields("x", "y"), call(`{"free":"a"}`), 0, ""},
		"wrong type":              {good, call(`{"region":5}`), 0, ""}, // a result with isError
	} {
		t.Run(name, func(t *testing.T) {
			a := carry(t, s, tt.route, mcp.MethodToolsCall, tt.params)
			e := a.answer.Error
			switch {
			case tt.code == 0 && e != nil:
				t.Errorf("refused: %v", e)
			case tt.code != 0 && e == nil:
				t.Error("it was served")
			case e != nil && (e.Code != tt.code || !strings.Contains(e.Message, tt.words)):
				t.Errorf("answer is %v, want code %d and %q", e, tt.code, tt.words)
			}
		})
	}
}

// The name of an unknown method's target is nobody's business; what has no
// target needs no name. Rulings 1 and 12: 404 comes from -32601.
func TestRouteOfOtherMethods(t *testing.T) {
	s := routedServer()
	for method, code := range map[string]int64{
		mcp.MethodToolsList:  0,
		mcp.MethodDiscover:   0,
		mcp.MethodPing:       jsonrpc.CodeMethodNotFound,
		mcp.MethodInitialize: jsonrpc.CodeMethodNotFound,
		"nobody/knows":       jsonrpc.CodeMethodNotFound,
	} {
		a := carry(t, s, transport.Route{Carried: true, Version: v2607, Method: method}, method, `{`+newestMeta+`}`)
		var got int64
		if a.answer.Error != nil {
			got = a.answer.Error.Code
		}
		if got != code {
			t.Errorf("%s: %v, want code %d", method, a.answer.Error, code)
		}
	}
}

// A transport that is about to end ends subscriptions in good order. Ruling 24.
func TestListenEndsWithItsTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := make(chan struct{})
		go func() {
			synctest.Wait() // the subscription is acknowledged, and waits
			close(ending)
		}()
		a := carryUntil(t, routedServer(), transport.Route{}, mcp.MethodListen,
			`{"notifications":{"toolsListChanged":true},`+newestMeta+`}`, ending)
		if a.answer.Error != nil || len(a.sent) != 1 || a.sent[0] != mcp.NotifySubscriptionsAcknowledged {
			t.Errorf("it sent %v and answered %v", a.sent, a.answer.Error)
		}
	})
}

// A key that dies with the process is warned of where clients may come to
// another one: over HTTP, and once.
func TestWarnsOfRandomStateKeys(t *testing.T) {
	for _, carried := range []bool{true, false} {
		text := new(logtest.Log)
		o := unlimited()
		o.Logger, o.Limits.PageSize = text.Logger(), 1
		s := newServer(o, echo(), server.Tool("other", "Another.", func(context.Context, struct{}) (string, error) { return "", nil }))
		for range 2 {
			carry(t, s, transport.Route{Carried: carried, Version: v2607, Method: mcp.MethodToolsList}, mcp.MethodToolsList, `{`+newestMeta+`}`)
		}
		want := 0
		if carried {
			want = 1
		}
		if n := strings.Count(text.String(), "StateKeys"); n != want {
			t.Errorf("carried by HTTP %t: %d warnings, want %d:\n%s", carried, n, want, text)
		}
	}
}
