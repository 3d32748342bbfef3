package proxy_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/schema/provider"
	"github.com/parley-mcp/parley/server"
)

// measure is a schema that no provider takes whole, with an argument that travels in a
// header too.
const measure = `{"type":"object","additionalProperties":false,` +
	`"properties":{"width":{"type":"number","exclusiveMinimum":0},"radius":{"type":"number"},"region":{"type":"string","x-mcp-header":"Region"}},` +
	`"oneOf":[{"required":["width"]},{"required":["radius"]}]}`

// measuring is a server of a tool with a schema, which checks nothing and counts the calls.
func measuring(calls *atomic.Int32, raw string) *server.Server {
	s := server.New("shapes", "1.0.0", &server.Options{Logger: quiet, Limits: unlimited})
	s.Add(server.UncheckedTool(mcp.Tool{Name: "measure", InputSchema: mcp.RawValue(raw)}, func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) {
		calls.Add(1)
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("measured")}}, nil
	}))
	return s
}

// shownSchema is the input schema of a tool as a caller sees it.
func shownSchema(t *testing.T, c *client.Client, name string) string {
	t.Helper()
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.Name == name {
			return string(tool.InputSchema)
		}
	}
	t.Fatalf("no tool %q", name)
	return ""
}

// Callers see the schema that the provider takes, and nobody gets past the whole one, in all
// eras and transports.
func TestSchemas(t *testing.T) {
	for name, p := range map[string]provider.Profile{"anthropic": provider.Anthropic, "openai": provider.OpenAI, "gemini": provider.Gemini} {
		want, _, err := provider.Reduce(mcp.RawValue(measure), p)
		if err != nil || strings.Contains(string(want), `"oneOf"`) {
			t.Fatalf("%s: %v, %s", name, err, want)
		}
		for _, version := range upstreams {
			plain := func(_ testing.TB, o *server.Options) *server.Server { return server.New("top", "1.0.0", o) }
			for _, era := range mcptest.Eras(t, plain) {
				t.Run(name+" upstream "+version+" "+era.String(), func(t *testing.T) {
					mcptest.NoLeaks(t)
					var calls atomic.Int32
					gate := connect(t, measuring(&calls, measure), version, &proxy.Options{Schemas: &p})
					c := mcptest.Join(t, func(tb testing.TB, o *server.Options) *server.Server {
						top := plain(tb, o)
						top.Mount("up", gate.Server())
						return top
					}, nil, era)
					if got := shownSchema(t, c, "up_measure"); got != string(want) {
						t.Errorf("the caller sees %s\nwant %s", got, want)
					}
					for arguments, said := range map[string]string{
						`{"width":1,"region":"north"}`: "measured",
						`{"width":0}`:                  "invalid arguments: ",
						`{"width":1,"radius":1}`:       "invalid arguments: ",
						`{"width":1,"more":1}`:         "invalid arguments: ",
						`{}`:                           "invalid arguments: ",
					} {
						r, err := c.CallTool(t.Context(), "up_measure", mcp.RawValue(arguments), nil)
						if got := text(t, r, err); !strings.HasPrefix(got, said) || r.IsError != (said != "measured") {
							t.Errorf("%s: %q, error %t, want %q", arguments, got, r.IsError, said)
						}
					}
					if n := calls.Load(); n != 1 {
						t.Errorf("the upstream server was called %d times, want once", n)
					}
				})
			}
		}
	}
}

// Without the option, and for a provider that takes a schema as it is, nothing is changed,
// and the upstream server alone checks.
func TestSchemasWhole(t *testing.T) {
	const simple = `{"type":"object","properties":{"a":{"type":"string"}}}`
	long := `{"type":"object","description":"` + strings.Repeat("x", 100_000) + `"}`
	for name, test := range map[string]struct {
		profile *provider.Profile
		schema  string
	}{"not asked": {nil, measure}, "long": {nil, long}, "simple": {&provider.Gemini, simple}} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			p := connect(t, measuring(&calls, test.schema), v2607, &proxy.Options{Schemas: test.profile})
			c := join(t, p.Server(), v2607, nil)
			if got, want := shownSchema(t, c, "measure"), test.schema; got != want {
				t.Errorf("the caller sees %s, want %s", got, want)
			}
			r, err := c.CallTool(t.Context(), "measure", mcp.RawValue(`{"a":7,"width":0}`), nil)
			if got := text(t, r, err); got != "measured" || calls.Load() != 1 {
				t.Errorf("%q, called %d times", got, calls.Load())
			}
		})
	}
}

// A tool whose schema has a pattern that cannot be judged is passed on as it is, or reduced; what
// can be judged of its arguments is, the rest is the upstream server's to judge.
//
// Proves: Ruling 38.
func TestSchemasUnjudged(t *testing.T) {
	const raw = `{"type":"object","additionalProperties":false,"patternProperties":{"(?=b)":{}},` +
		`"properties":{"a":{"type":"string","pattern":"^(?!x)a"},"n":{"not":{"anyOf":[{"pattern":"\\cA"}]}}},"oneOf":[{"required":["a"]},{"required":["n"]}]}`
	for name, profile := range map[string]*provider.Profile{"as it is": nil, "anthropic": &provider.Anthropic, "openai": &provider.OpenAI, "gemini": &provider.Gemini} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			p := connect(t, measuring(&calls, raw), v2511, &proxy.Options{Schemas: profile})
			c := join(t, p.Server(), v2607, nil)
			shown := shownSchema(t, c, "measure")
			if profile == nil && shown != raw || profile != nil && strings.Contains(shown, `"patternProperties"`) {
				t.Errorf("the caller sees %s", shown)
			}
			for arguments, fits := range map[string]bool{`{"a":"xa"}`: true, `{"n":"n","b":1}`: true, `{"a":1}`: false, `{"a":"a","n":"n"}`: false} {
				r, err := c.CallTool(t.Context(), "measure", mcp.RawValue(arguments), nil)
				if got := text(t, r, err); (got == "measured") != (fits || profile == nil) {
					t.Errorf("%s: %q", arguments, got)
				}
			}
		})
	}
}

// A definition that changes is reduced, and checked, anew.
func TestSchemasThatChange(t *testing.T) {
	var calls atomic.Int32
	up := measuring(&calls, measure)
	p := connect(t, up, v2607, &proxy.Options{Schemas: &provider.Gemini})
	changed := make(chan struct{}, 1)
	c := join(t, p.Server(), v2607, &client.Options{OnToolsChanged: func(context.Context) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}})
	before := shownSchema(t, c, "measure")
	up.Add(server.UncheckedTool(mcp.Tool{Name: "measure", InputSchema: mcp.RawValue(strings.Replace(measure, `"radius"`, `"side"`, 1))}, func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("anew")}}, nil
	}))
	for shownSchema(t, c, "measure") == before {
		<-changed
	}
	for arguments, want := range map[string]bool{`{"width":1,"side":2}`: true, `{"radius":1}`: false} {
		r, err := c.CallTool(t.Context(), "measure", mcp.RawValue(arguments), nil)
		if got := text(t, r, err); (got == "anew") != want {
			t.Errorf("%s: %q", arguments, got)
		}
	}
}
