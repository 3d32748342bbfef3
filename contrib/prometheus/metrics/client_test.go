package metrics_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/contrib/prometheus/metrics"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// A client's requests are counted once each, with all their rounds; names that
// the server does not know are no labels.
func TestClient(t *testing.T) {
	type form struct {
		OK bool `json:"ok"`
	}
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(nil)
		s := newServer(
			metrics.New(nil), tool("fine", nil), tool("wrong", mcp.Errorf("told")), tool("coded", mcp.NewError(-7, "coded")),
			server.Prompt("prompt", "", func(context.Context, mcp.None) (string, error) { return "", errors.New("hidden") }),
			server.Tool("asks", "", func(ctx context.Context, _ none) (string, error) {
				_, err := server.Elicit[form](ctx, "well?")
				return "", err
			}),
			server.Tool("slow", "", func(ctx context.Context, _ none) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}),
		)
		c := mcptest.Client(t, s, &client.Options{
			Middleware: []client.Middleware{m.Client()},
			OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return client.Accept(form{true})
			},
		})
		for _, name := range []string{"fine", "fine", "wrong", "coded", "asks", "absent"} {
			_, _ = c.CallTool(t.Context(), name, nil, nil) // the counts tell
		}
		_, _ = c.GetPrompt(t.Context(), "prompt", nil, nil)
		_, _ = c.CallTool(t.Context(), "slow", nil, &client.CallOptions{Timeout: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _ = c.CallTool(ctx, "slow", nil, nil)
		got := values(parse(t, m), "mcp_client_request_duration_seconds_count")
		maps.DeleteFunc(got, func(k string, _ float64) bool { return strings.HasPrefix(k, "method=server/discover") })
		want := map[string]float64{
			"method=tools/call outcome=ok revision=2026-07-28 target=fine":          2,
			"method=tools/call outcome=tool_error revision=2026-07-28 target=wrong": 1,
			"method=tools/call outcome=refused revision=2026-07-28 target=coded":    1,
			"method=tools/call outcome=refused revision=2026-07-28 target=other":    1,
			"method=tools/call outcome=ok revision=2026-07-28 target=asks":          1,
			"method=prompts/get outcome=failed revision=2026-07-28 target=prompt":   1,
			"method=tools/call outcome=timed_out revision=2026-07-28 target=slow":   1,
			"method=tools/call outcome=cancelled revision=2026-07-28 target=slow":   1,
		}
		if !maps.Equal(got, want) {
			t.Errorf("counted %v\nwant %v", got, want)
		}
		for labels, n := range values(parse(t, m), "mcp_client_requests_in_flight") {
			if n != 0 {
				t.Errorf("%v requests under way: %s", n, labels)
			}
		}
	})
}
