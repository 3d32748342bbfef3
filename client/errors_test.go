package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// An error for want of a capability names it, and what would declare it.
func TestCapabilityError(t *testing.T) {
	for data, want := range map[string]string{
		`{"requiredCapabilities":{"elicitation":{}}}`:                   "elicitation.form (set Options.OnElicit)",
		`{"requiredCapabilities":{"elicitation":{"url":{}}}}`:           "not declare elicitation.url (set Options.OnElicitURL)",
		`{"requiredCapabilities":{"sampling":{"tools":{}},"roots":{}}}`: "sampling (set Options.OnSample), sampling.tools (set Options.SampleTools), roots (set Options.OnRoots)",
		`{"requiredCapabilities":{"sampling":{"context":{}}}}`:          "sampling.context (set Options.SampleContext)",
		`{"requiredCapabilities":{"extensions":{"a/b":{},"a/a":{}}}}`:   `extension "a/a" (set Options.Extensions), extension "a/b"`,
		`{"requiredCapabilities":{"experimental":{"x":{}}}}`:            `experimental "x" (set Options.Experimental)`,
		`{"requiredCapabilities":{}}`:                                   "no (code -32021)",
		`{"requiredCapabilities":7}`:                                    "no (code -32021)",
		`{"requiredCapabilities":{"elicitation":{"form":{},"url":{}}}}`: "elicitation.form (set Options.OnElicit), elicitation.url (set Options.OnElicitURL)",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{on: tool(func(*req) (any, error) {
				return nil, &jsonrpc.Error{Code: mcp.CodeMissingClientCapability, Message: "no", Data: raw(data)}
			})}
			_, err := connect(t, s, nil).CallTool(t.Context(), "t", nil, nil)
			var peer *jsonrpc.Error
			if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &peer) || peer.Code != mcp.CodeMissingClientCapability {
				t.Errorf("%s: %v, want %s", data, err, want)
			}
		})
	}
	// And so with a server that asks what nobody declared.
	s := server.New("asks", "1", nil)
	s.Add(server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
		_, err := server.Elicit[mcp.None](ctx, "?")
		return "", err
	}))
	_, err := dial(t, mem.New(s, nil), nil).CallTool(t.Context(), "ask", nil, nil)
	var missing *client.CapabilityError
	if !errors.As(err, &missing) || missing.Required.Elicitation == nil || !errors.Is(err, client.ErrNotCapable) {
		t.Errorf("error %v", err)
	}
}
