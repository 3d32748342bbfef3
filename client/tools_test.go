package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// Proves: SEC-TOOL-1 (the client's part). Rulings, end of the table: tools whose
// schemas cannot be used are left out with a warning, the others stay. Ruling 38: a
// pattern that cannot be judged here makes no schema unusable.
func TestToolsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{on: map[string]func(*req) (any, error){mcp.MethodToolsList: func(*req) (any, error) {
			return raw(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
				{"name":"good","inputSchema":{"type":"object"}},
				{"name":"old","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}},
				{"name":"pattern","inputSchema":{"type":"object","properties":{"a":{"pattern":"^(?!x)a"}},"patternProperties":{"(?=b)":{}}},"outputSchema":{"type":"object","properties":{"c":{"pattern":"(d)\\1"}}}},
				{"name":"dialect","inputSchema":{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}},
				{"name":"broken","inputSchema":{"type":"objekt"}},
				{"name":"text","inputSchema":{"type":"string"}},
				{"name":"untyped","inputSchema":{"properties":{"a":{"type":"string"}}}},
				{"name":"anything","inputSchema":true},
				{"name":"remote","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://evil.example/s.json"}}}},
				{"name":"output","inputSchema":{"type":"object"},"outputSchema":{"type":7}},
				{"name":"header","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`), nil
		}}}
		var log bytes.Buffer
		c := connect(t, s, &client.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 {
			var names []string
			for tool, err := range c.Tools(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			// This transport has no headers, so that annotations do not matter.
			if !slices.Equal(names, []string{"good", "old", "pattern", "header"}) {
				t.Errorf("tools %v", names)
			}
		}
		for _, name := range []string{"dialect", "broken", "text", "untyped", "anything", "remote", "output"} {
			if !strings.Contains(log.String(), "subject="+name) {
				t.Errorf("no warning about %s in %s", name, log.String())
			}
		}
		if tool, err := c.Tool(t.Context(), "old"); err != nil || tool.Name != "old" {
			t.Errorf("%+v, %v", tool, err)
		}
		for _, name := range []string{"dialect", "nowhere"} {
			if _, err := c.Tool(t.Context(), name); !errors.Is(err, client.ErrNoTool) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Proves: SEC-TOOL-3 (the client's part). Structured results are checked with
// the schema that the tool was listed with.
func TestOutputSchema(t *testing.T) {
	for result, fits := range map[string]bool{
		`{"content":[],"structuredContent":{"sum":5}}`:                 true,
		`{"content":[],"structuredContent":{"sum":"5"}}`:               false,
		`{"content":[],"structuredContent":{}}`:                        false,
		`{"content":[]}`:                                               false,
		`{"content":[{"type":"text","text":"failed"}],"isError":true}`: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{on: map[string]func(*req) (any, error){
				mcp.MethodToolsCall: func(*req) (any, error) { return raw(result), nil },
				mcp.MethodToolsList: func(*req) (any, error) {
					return raw(`{"tools":[{"name":"add","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}]}`), nil
				},
			}}
			c := connect(t, s, nil)
			if _, err := c.CallTool(t.Context(), "add", nil, nil); err != nil {
				t.Errorf("unlisted: %v", err)
			}
			if _, err := c.Tool(t.Context(), "add"); err != nil {
				t.Fatal(err)
			}
			r, err := c.CallTool(t.Context(), "add", nil, nil)
			if (err == nil) != fits || err != nil && !errors.Is(err, client.ErrOutput) || r == nil {
				t.Errorf("%s: %v, %v", result, r, err)
			}
		})
	}
}

// routed is a transport that repeats parts of requests in headers.
type routed struct {
	transport.Dialer
	traits transport.Traits
	mu     sync.Mutex
	routes map[string][]transport.Route
}

func (d *routed) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	l, err := d.Dialer.Dial(ctx, in)
	return &routedLink{l, d}, err
}

type routedLink struct {
	transport.Link
	d *routed
}

func (l *routedLink) Traits() transport.Traits { return l.d.traits }

func (l *routedLink) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	l.d.mu.Lock()
	l.d.routes[m.Method] = append(l.d.routes[m.Method], r)
	l.d.mu.Unlock()
	return l.Link.Do(ctx, m, r)
}

// Ruling 15; spec 2026-07-28, basic/transports/streamable-http: what a transport
// with headers repeats, tools with wrong annotations, and the second try after
// -32020 with the definition read anew.
func TestRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := true
		s := &script{on: map[string]func(*req) (any, error){
			mcp.MethodToolsList: func(*req) (any, error) {
				return raw(`{"resultType":"complete","ttlMs":600000,"cacheScope":"private","tools":[
					{"name":"q","inputSchema":{"type":"object","properties":{
						"region":{"type":"string","x-mcp-header":"Region"},
						"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
						"none":{"type":"string","x-mcp-header":"None"}}}},
					{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}]}`), nil
			},
			mcp.MethodToolsCall: func(*req) (any, error) {
				if refuse {
					refuse = false
					return nil, jsonrpc.NewError(mcp.CodeHeaderMismatch, "headers")
				}
				return raw(done), nil
			},
			mcp.MethodResourcesRead: func(*req) (any, error) { return raw(`{"contents":[]}`), nil },
		}}
		d := &routed{Dialer: mem.New(s, nil), traits: transport.Traits{Routes: true, Abandons: true}, routes: map[string][]transport.Route{}}
		c := dial(t, d, nil)
		args := map[string]any{"region": "", "deep": map[string]any{"n": 42}, "none": nil}
		if _, err := c.CallTool(t.Context(), "q", args, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ReadResource(t.Context(), "a:b", nil); err != nil {
			t.Fatal(err)
		}
		want := map[string][]transport.Route{
			mcp.MethodDiscover:  {{Carried: true, Version: modern, Method: mcp.MethodDiscover}},
			mcp.MethodToolsList: {{Carried: true, Version: modern, Method: mcp.MethodToolsList}},
			mcp.MethodToolsCall: {
				{Carried: true, Version: modern, Method: mcp.MethodToolsCall, Name: "q"},
				{Carried: true, Version: modern, Method: mcp.MethodToolsCall, Name: "q", Fields: map[string][]string{"Region": {""}, "N": {"42"}}},
			},
			mcp.MethodResourcesRead: {{Carried: true, Version: modern, Method: mcp.MethodResourcesRead, Name: "a:b"}},
		}
		if !reflect.DeepEqual(d.routes, want) {
			t.Errorf("routes\n%+v, want\n%+v", d.routes, want)
		}
		if _, err := c.Tool(t.Context(), "bad"); !errors.Is(err, client.ErrNoTool) {
			t.Errorf("a tool with a wrong annotation: %v", err)
		}
	})
}

// Ruling 13: a transport that abandons by itself needs no notification in the
// modern era; in the handshake era it is sent nevertheless.
func TestAbandons(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{versions: versions, on: tool(func(*req) (any, error) { return nil, errSilent })}
			d := &routed{Dialer: mem.New(s, nil), traits: transport.Traits{Routes: true, Abandons: true}, routes: map[string][]transport.Route{}}
			c := dial(t, d, nil)
			if _, err := c.CallTool(t.Context(), "t", nil, nil); !errors.Is(err, client.ErrTimeout) {
				t.Errorf("error %v", err)
			}
			synctest.Wait()
			if n := len(s.got(mcp.NotifyCancelled)); (n == 0) != c.Modern() {
				t.Errorf("told %d times", n)
			}
		})
	})
}
