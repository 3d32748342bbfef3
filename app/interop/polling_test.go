package interop_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/gosdk"
	"github.com/parley-mcp/parley/app/interop/mcpgo"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/client"
)

// Clients whose call takes longer than our server holds a response for come
// back for the answer (spec 2025-11-25, basic/transports: polling). The rest of
// the script goes on meanwhile as ever.
func TestPollingOurServer(t *testing.T) {
	t.Run("go-sdk", func(t *testing.T) {
		t.Parallel()
		e := servePolling(t)
		check(t, gosdk.Run(bounded(t), &mcp.StreamableClientTransport{Endpoint: e.url}, legacy), want(legacy))
		e.traffic.check(t, legacy)
	})
	t.Run("mcp-go", func(t *testing.T) {
		t.Parallel()
		e := servePolling(t)
		e.traffic.looseGET = true
		c := dialMCPGo(t, e.url, transport.WithContinuousListening())
		check(t, mcpgo.Run(bounded(t), c, legacy, script.StepCancel), script.Want(legacy, script.StepCancel))
		e.traffic.check(t, legacy)
	})
	for file, more := range map[string]map[string]any{"v1-client.mjs": nil, "v2-client.mjs": {"mode": "legacy"}} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			peersDir(t)
			e := servePolling(t)
			options := map[string]any{"transport": "http", "url": e.url}
			for k, v := range more {
				options[k] = v
			}
			check(t, runClient(t, file, options), want(legacy))
			e.traffic.check(t, legacy)
		})
	}
}

// Our client comes back for an answer of the official Go SDK's server, which
// ends the response before it.
func TestPollingOurClient(t *testing.T) {
	t.Parallel()
	s := gosdk.NewServer()
	mcp.AddTool(s, &mcp.Tool{Name: "poll"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: script.EchoText}}}, nil, nil
	})
	d, log := dialer(t, listen(t, mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)},
	)))
	ctx := bounded(t)
	c, err := client.Connect(ctx, d, &client.Options{Versions: []string{legacy}, Eras: client.NewEraMemory()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Call[string](ctx, c, "poll", nil)
	if err != nil || got != script.EchoText {
		t.Errorf("poll: %q, %v", got, err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if !slices.ContainsFunc(log.entries(), func(e entry) bool { return e.Method == http.MethodGet && e.Resumed }) {
		t.Errorf("no stream was resumed: %+v", log.entries())
	}
}
