package mcptest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

type sure struct {
	Sure bool `json:"sure"`
}

// Proves: FLOW-ELICIT-P, with two questions in one handler.
func TestEachEra(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("eras", "1", o)
		s.Add(server.Tool("drop", "Asks twice.", func(ctx context.Context, _ struct{}) (string, error) {
			n, err := server.Once(ctx, "ticket", func() (int, error) { return 7, nil })
			if err != nil {
				return "", err
			}
			for i := range 2 {
				a, err := server.Elicit[sure](ctx, fmt.Sprintf("question %d", i))
				if err != nil {
					return "", err
				}
				if !a.Accepted() || !a.Value.Sure {
					return "kept", nil
				}
			}
			return fmt.Sprintf("dropped with ticket %d", n), nil
		}))
		return s
	}
	opts := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(sure{Sure: true})
	}}
	mcptest.EachEra(t, build, opts, func(t *testing.T, era mcptest.Era, c *client.Client) {
		got, err := client.Call[string](t.Context(), c, "drop", nil)
		switch {
		case era.Version < "2025-06-18":
			if err == nil {
				t.Errorf("a client without elicitation got %q", got)
			}
		case err != nil || got != "dropped with ticket 7":
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A Build that ignores its options is named as the likely cause, where each
// request has a server of its own.
func TestBuildIgnoresOptions(t *testing.T) {
	build := func(testing.TB, *server.Options) *server.Server {
		s := server.New("eras", "1", nil)
		s.Add(server.Tool("ask", "", func(ctx context.Context, _ struct{}) (string, error) {
			_, err := server.Elicit[sure](ctx, "?")
			return "", err
		}))
		return s
	}
	opts := &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(sure{Sure: true})
	}}
	ran := 0
	mcptest.EachEra(t, build, opts, func(t *testing.T, era mcptest.Era, c *client.Client) {
		ran++
		if _, err := client.Call[string](t.Context(), c, "ask", nil); err == nil || !strings.Contains(err.Error(), "does Build give the options") {
			t.Errorf("got %v", err)
		}
	}, func(era mcptest.Era) bool { return era.Fresh })
	if ran == 0 {
		t.Error("no era was run")
	}
}
