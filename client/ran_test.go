package client_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// Rulings 16 and 31: a tool of which something was heard has run, whatever it
// then answers. It is not called again; one that said nothing, and one that may
// be called twice, are.
func TestRefusedAfterItRan(t *testing.T) {
	var ran atomic.Int32
	refused := mcp.NewError(mcp.CodeRateLimited, "not now").With(mcp.RetryData{RetryAfterMs: 1})
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("busy", "1", o)
		reports := func(ctx context.Context, _ mcp.None) (string, error) {
			ran.Add(1)
			if err := server.Progress(ctx, 1, 2, "half"); err != nil {
				return "", err
			}
			return "", refused
		}
		s.Add(
			server.Tool("reports", "Reports, and is refused.", reports),
			server.Tool("safe", "Reports, and may run twice.", reports).With(server.ToolOptions{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)}}),
			server.Tool("silent", "Says nothing.", func(context.Context, mcp.None) (string, error) {
				ran.Add(1)
				return "", refused
			}),
			server.Tool("asks", "Asks, and is refused.", func(ctx context.Context, _ mcp.None) (string, error) {
				ran.Add(1)
				if _, err := server.ElicitForm(ctx, "Sure?", &mcp.ElicitSchema{}); err != nil {
					return "", err
				}
				return "", refused
			}),
		)
		return s
	}
	o := &client.Options{Retries: 1, TrustAnnotations: true, OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	}}
	mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		for _, err := range c.Tools(t.Context()) { // whose annotations count
			if err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]int32{"reports": 1, "safe": 2, "silent": 2, "asks": 1}
		if era.Version == "2024-11-05" { // without annotations
			want["safe"] = 1
		}
		if era.Transport != "streamable" || era.Version != newest && era.Version != "2025-06-18" {
			delete(want, "asks") // it cannot, or ends its run, or nobody can tell who asks
		}
		for name, want := range want {
			ran.Store(0)
			_, err := c.CallTool(t.Context(), name, nil, &client.CallOptions{OnProgress: func(float64, float64, string) {}})
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != mcp.CodeRateLimited {
				t.Errorf("%s: %v", name, err)
			}
			if n := ran.Load(); n != want {
				t.Errorf("%s ran %d times, want %d", name, n, want)
			}
		}
	})
}
