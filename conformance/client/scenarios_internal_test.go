package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// serve returns what builds a server of features.
func serve(features ...server.Feature) mcptest.Build {
	return func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("suite", "1", o)
		s.Add(features...)
		return s
	}
}

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

func add(text string) server.Feature {
	return server.Tool("add_numbers", "Adds.", func(_ context.Context, in addIn) (string, error) {
		return fmt.Sprintf(text, in.A, in.B, in.A+in.B), nil
	})
}

// Proves: FLOW-TOOL-P, FLOW-INIT. The scenarios do what the suite looks for, in
// every revision, and tell when they cannot.
func TestScenarios(t *testing.T) {
	taker := func(name string) server.Feature {
		return server.RawTool(mcp.Tool{Name: name, Description: "Takes anything.", InputSchema: mcp.RawValue(`{"type":"object"}`)},
			func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(arguments))}}, nil
			})
	}
	text := server.Text("test://a%20b?c", "text", "text")
	prompt := server.Prompt("prompt", "A prompt.", func(context.Context, mcp.None) (string, error) { return "text", nil })
	for _, test := range []struct {
		scenario string
		build    mcptest.Build
		failure  string
	}{
		{"initialize", serve(), ""},
		{"request-metadata", serve(taker("tool")), ""},
		{"tools_call", serve(add("The sum of %d and %d is %d")), ""},
		{"tools_call", serve(add("%d and %d are %d")), `want "The sum`},
		{"tools_call", serve(taker("other")), "add_numbers"},
		{"sse-retry", serve(taker("test_reconnection")), ""},
		{"sse-retry", serve(taker("other")), "no such tool"},
		{"http-standard-headers", serve(taker("tool"), text, prompt), ""},
		{"http-standard-headers", serve(taker("tool"), text), "capability not declared"},
		{"http-invalid-tool-headers", serve(taker("one"), taker("two")), ""},
		{"json-schema-2020-12-preservation", serve(taker("json_schema_2020_12_tool"), taker("json_schema_echo")), ""},
		{"json-schema-2020-12-preservation", serve(taker("json_schema_echo")), "no such tool"},
		{"http-custom-headers", serve(taker("tool")), "names no tool calls"},
	} {
		t.Run(test.scenario, func(t *testing.T) {
			mcptest.EachEra(t, test.build, options(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
				err := scenarios[test.scenario](t.Context(), c)
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("the error is %v, want %q", err, test.failure)
				}
			})
		})
	}
}

// A server that a busy machine keeps from answering for long is spoken to in its own revision.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New("suite", "1", nil)
		s.Use(func(next server.Func) server.Func {
			return func(call *server.Call) (server.Result, error) {
				time.Sleep(30 * time.Second) // of the test's own clock
				return next(call)
			}
		})
		c, err := client.Connect(t.Context(), mem.New(s, nil), options())
		if err != nil {
			t.Fatal(err)
		}
		if !c.Modern() {
			t.Errorf("it is spoken to in revision %s", c.Version())
		}
		if err := errors.Join(c.Close(), s.Shutdown(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// The arguments reach the tool as the suite gives them, null and all.
func TestCallAsTold(t *testing.T) {
	t.Setenv("MCP_CONFORMANCE_CONTEXT",
		`{"name":"http-custom-headers","toolCalls":[{"name":"told","arguments":{"a":null,"b":" x\r\n"}},{"name":"told","arguments":{"c":1}}]}`)
	var got []string
	build := serve(server.RawTool(mcp.Tool{Name: "told", Description: "Listens.", InputSchema: mcp.RawValue(`{"type":"object"}`)},
		func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
			got = append(got, string(arguments))
			return new(mcp.CallToolResult), nil
		}))
	mcptest.EachEra(t, build, options(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		got = nil
		if err := callAsTold(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if want := []string{`{"a":null,"b":" x\r\n"}`, `{"c":1}`}; !slices.Equal(got, want) {
			t.Errorf("the tool was called with %q, want %q", got, want)
		}
	})
}

func TestReadContextRefuses(t *testing.T) {
	t.Setenv("MCP_CONFORMANCE_CONTEXT", `{"toolCalls":`)
	if _, err := readContext(); err == nil {
		t.Error("half a context was taken")
	}
}

type form struct {
	Name      string  `json:"name" default:"John Doe"`
	Age       int     `json:"age" default:"30"`
	Score     float64 `json:"score" default:"95.5"`
	Status    string  `json:"status" enum:"active,inactive" default:"active"`
	Verified  bool    `json:"verified" default:"true"`
	Confirmed bool    `json:"confirmed,omitzero"`
}

// Proves: FLOW-ELICIT-P. A form comes back with its defaults, filled in by the
// library, and with "yes" where it asks to confirm (SEP-1034).
func TestFillIn(t *testing.T) {
	want := form{Name: "John Doe", Age: 30, Score: 95.5, Status: "active", Verified: true, Confirmed: true}
	build := serve(server.Tool("test_client_elicitation_defaults", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		answer, err := server.Elicit[form](ctx, "Please fill this in.")
		if errors.Is(err, server.ErrNotCapable) {
			return "this revision has no forms", nil
		}
		if err != nil {
			return "", err
		}
		if answer.Value != want {
			return "", mcp.Errorf("filled in: %+v, want %+v", answer.Value, want)
		}
		return "as it should be", nil
	}))
	mcptest.EachEra(t, build, options(), func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if err := scenarios["elicitation-sep1034-client-defaults"](t.Context(), c); err != nil {
			t.Error(err)
		}
	})
}
