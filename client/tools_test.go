package client_test

import (
	"cmp"
	"context"
	"errors"
	"reflect"
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

// oddSchemas are schemas of tools, what becomes of the definition, and the places of problems.
var oddSchemas = map[string]struct {
	input, output string // as sent; "" is absent
	shown         string // the input schema that is handed out, if it is not the one that was sent
	dropped       bool   // the output schema is
	want          []string
}{
	"object":            {input: `{"type":"object"}`},
	"draft-07":          {input: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`},
	"draft-07 by https": {input: `{"$schema":"https://json-schema.org/draft-07/schema","type":"object","properties":{"a":{"type":"string"}}}`},
	"draft-06":          {input: `{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{"a":{"exclusiveMinimum":0}}}`},
	"draft-04":          {input: `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`},
	"2020-12 by http":   {input: `{"$schema":"http://json-schema.org/draft/2020-12/schema#","type":"object"}`},
	"no version":        {input: `{"$schema":"http://json-schema.org/schema#","type":"object"}`},
	"pattern":           {input: `{"type":"object","properties":{"a":{"pattern":"^(?!x)a"}},"patternProperties":{"(?=b)":{}}}`, output: `{"type":"object","properties":{"c":{"pattern":"(d)\\1"}}}`},
	"null keywords":     {input: `{"type":"object","$schema":null,"title":null,"required":null,"properties":{"a":{"type":"string","enum":null,"items":null,"default":null},"b":null},"additionalProperties":null,"allOf":null,"$defs":null}`},
	"null output":       {input: `{"type":"object"}`, output: `null`},
	"arrays of PHP":     {input: `{"type":"object","properties":[],"definitions":[]}`, output: `{"type":"object","properties":{"a":[]}}`},
	"unknown keyword":   {input: `{"type":"object","x-order":7,"nullable":true,"example":null}`},

	"absent":          {input: ``, shown: `{"type":"object"}`, want: []string{"inputSchema: it is missing"}},
	"null":            {input: `null`, shown: `{"type":"object"}`, want: []string{"inputSchema: it is missing"}},
	"true":            {input: `true`, shown: `{"type":"object"}`, want: []string{"inputSchema: expected an object, got boolean"}},
	"array":           {input: `[]`, shown: `{"type":"object"}`, want: []string{"inputSchema: expected an object, got array"}},
	"text":            {input: `"object"`, shown: `{"type":"object"}`, want: []string{"inputSchema: expected an object, got string"}},
	"of a string":     {input: `{"type":"string"}`, shown: `{"type":"object"}`, want: []string{`inputSchema: its type must be "object"`}},
	"without type":    {input: `{"properties":{"a":{"type":"string"}}}`, shown: `{"type":"object","properties":{"a":{"type":"string"}}}`, want: []string{`inputSchema: its type must be "object"`}},
	"null type":       {input: `{"type":null}`, shown: `{"type":"object"}`, want: []string{`inputSchema: its type must be "object"`}},
	"two types":       {input: `{"type":["object","null"],"minProperties":1}`, shown: `{"type":"object","minProperties":1}`, want: []string{`inputSchema: its type must be "object"`}},
	"unknown dialect": {input: `{"$schema":"https://example.com/dialect","type":"object"}`, want: []string{"inputSchema: "}},
	"unknown type":    {input: `{"type":"object","properties":{"a":{"type":"int"}}}`, want: []string{"inputSchema: "}},
	"required":        {input: `{"type":"object","properties":{"a":{"required":true}}}`, want: []string{"inputSchema: "}},
	"nowhere":         {input: `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, want: []string{"inputSchema: "}},
	"remote":          {input: `{"type":"object","properties":{"a":{"$ref":"https://evil.example/s.json"}}}`, want: []string{"inputSchema: "}},
	"many values":     {input: `{"type":"object","properties":{"a":{"enum":[` + strings.Repeat(`"v",`, 20_000) + `"w"]}}}`, want: []string{"inputSchema: "}},
	"output type":     {input: `{"type":"object"}`, output: `{"type":7}`, dropped: true, want: []string{"outputSchema: "}},
	"output text":     {input: `{"type":"object"}`, output: `"x"`, dropped: true, want: []string{"outputSchema: expected an object, got string"}},
	"output nowhere":  {input: `{"type":"object"}`, output: `{"$ref":"#/$defs/none"}`, dropped: true, want: []string{"outputSchema: "}},
	"both":            {input: `{"type":"objekt"}`, output: `[]`, shown: `{"type":"object"}`, dropped: true, want: []string{"inputSchema: ", "outputSchema: "}},
}

// A schema that cannot be used does not cost the tool: it is listed and called, and a problem says what is
// not checked. Ruling 38.
func TestOddSchemas(t *testing.T) {
	eras(t, func(t *testing.T, versions []string) {
		for name, test := range oddSchemas {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					definition := `{"name":"t"`
					if test.input != "" {
						definition += `,"inputSchema":` + test.input
					}
					if test.output != "" {
						definition += `,"outputSchema":` + test.output
					}
					s := &script{versions: versions, on: map[string]func(*req) (any, error){
						mcp.MethodToolsList: func(*req) (any, error) {
							return raw(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[` + definition + `}]}`), nil
						},
						mcp.MethodToolsCall: func(*req) (any, error) {
							return raw(`{"resultType":"complete","content":[],"structuredContent":{"a":1}}`), nil
						},
					}}
					c := connect(t, s, nil)
					tool, err := c.Tool(t.Context(), "t")
					if err != nil {
						t.Fatal(err)
					}
					if want := cmp.Or(test.shown, test.input); string(tool.InputSchema) != want {
						t.Errorf("the input schema is %.200s, want %.200s", tool.InputSchema, want)
					}
					if c.Modern() && test.output != "" && test.output != "null" && (tool.OutputSchema == nil) != test.dropped {
						t.Errorf("the output schema is %s", tool.OutputSchema)
					}
					if _, err := c.CallTool(t.Context(), "t", map[string]any{"a": 5}, nil); err != nil {
						t.Error(err)
					}
					got := c.Problems()
					if len(got) != len(test.want) {
						t.Fatalf("problems %v, want %q", got, test.want)
					}
					for i, want := range test.want {
						if text := got[i].String(); got[i].Subject != "t" || !strings.HasPrefix(text, `tools/list "t": /tools/0/`+want) {
							t.Errorf("problem %q, want %q", text, want)
						}
					}
				})
			})
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
			if _, err := client.Call[mcp.CallToolResult](t.Context(), c, "add", nil); !fits && !errors.Is(err, client.ErrOutput) {
				t.Errorf("%s: a typed call: %v", result, err)
			}
			r, err := c.CallTool(t.Context(), "add", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			problems := c.Problems()
			if fits {
				if len(problems) > 0 {
					t.Errorf("%s: problems %v", result, problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Place != "/structuredContent" || problems[0].Subject != "add" || r.StructuredContent != nil {
				t.Errorf("%s: problems %v, result %+v", result, problems, r)
			}
			if untold := strings.Contains(result, "structuredContent"); untold != (len(r.Content) == 1) {
				t.Errorf("%s: content %v", result, r.Content)
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
