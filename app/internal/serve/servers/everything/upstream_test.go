package everything_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Reports about the original that no other test covers. The name of each is its number in
// modelcontextprotocol/servers; ../testdata/reports.txt lists all reports.
func TestUpstreamReports(t *testing.T) {
	t.Run("2818", reportNoRoots)
	t.Run("3234", reportReconnect)
}

// A client without roots gets an error of get-roots-list, and can go on.
func reportNoRoots(t *testing.T) {
	mcptest.EachEra(t, build, nil, func(t *testing.T, _ mcptest.Era, c *client.Client) {
		if res, err := c.CallTool(t.Context(), "get-roots-list", mcp.RawValue(`{}`), nil); err == nil && !res.IsError {
			t.Errorf("%+v, want a failure", res)
		}
		if got := call(t, c, "echo", `{"message":"on"}`); got != "on" {
			t.Errorf("echo: %q", got)
		}
	})
}

// Clients that come and go, with roots and with logging under way, do the server no harm.
func reportReconnect(t *testing.T) {
	h := streamable.NewHandler(everything.New("1.0.0", nil), nil)
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	roots := func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///work"}}, nil }
	for i := range 20 {
		c, err := client.Connect(t.Context(), streamable.URL(web.URL), &client.Options{
			Versions: []string{"2025-11-25"}, OnRoots: roots, LogLevel: mcp.LogDebug,
			OnLog: func(context.Context, *mcp.LogParams) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // the others close at once
			if got := call(t, c, "toggle-simulated-logging", `{}`); strings.HasPrefix(got, "failed") {
				t.Error(got)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c, err := client.Connect(t.Context(), streamable.URL(web.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := call(t, c, "echo", `{"message":"still here"}`); got != "still here" {
		t.Errorf("echo: %q", got)
	}
}
