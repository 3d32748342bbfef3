package cli_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// serveAt serves a server over Streamable HTTP until the test ends, and returns its URL.
func serveAt(t *testing.T, s *server.Server) (url string) {
	t.Helper()
	h := streamable.NewHandler(s, nil)
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		_ = h.Shutdown(context.Background())
		ts.Close()
	})
	return ts.URL + streamable.Path
}

// Calls of one client of a bridge run at once at a server of any revision, also while another
// one hangs, whose cancellation reaches the server.
//
// Proves: FLOW-CANCEL.
func TestBridgeCallsAtOnce(t *testing.T) {
	const calls = 3
	for _, behind := range bridgedEras {
		for _, caller := range bridgedEras {
			t.Run("server "+behind+", client "+caller, func(t *testing.T) {
				t.Parallel()
				var arrived atomic.Int32
				all, hangs, cancelled := make(chan struct{}), make(chan struct{}), make(chan struct{})
				s := server.New("meeting", "1", nil)
				s.Add(
					server.Tool("meet", "Waits until all calls are here.", func(ctx context.Context, _ mcp.None) (string, error) {
						if arrived.Add(1) == calls {
							close(all)
						}
						select {
						case <-all:
							return "met", nil
						case <-ctx.Done():
							return "", ctx.Err()
						}
					}),
					server.Tool("hang", "Waits for the end of the call.", func(ctx context.Context, _ mcp.None) (string, error) {
						close(hangs)
						<-ctx.Done()
						close(cancelled)
						return "", ctx.Err()
					}),
				)
				c := joinBridge(t, bridgeCommand("--stdio", "--protocol", behind, serveAt(t, s)), caller)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var hanging, meeting sync.WaitGroup
				hanging.Go(func() {
					if _, err := c.CallTool(ctx, "hang", nil, nil); !errors.Is(err, context.Canceled) {
						t.Errorf("the call that hangs: %v", err)
					}
				})
				<-hangs
				for range calls {
					meeting.Go(func() { c.calls("meet", "met", nil) })
				}
				meeting.Wait()
				cancel()
				hanging.Wait()
				<-cancelled
			})
		}
	}
}

// A tool whose schemas have a pattern that RE2 does not take is listed, called and passed on as
// it is, and the server judges the arguments.
//
// Proves: Ruling 38.
func TestPatternsOfOtherServers(t *testing.T) {
	const (
		input  = `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)a"}},"patternProperties":{"^\\u4e00":{}},"additionalProperties":false}`
		output = `{"type":"object","properties":{"b":{"type":"string","pattern":"(?<=y)z"}}}`
	)
	def := mcp.Tool{Name: "look", InputSchema: mcp.RawValue(input), OutputSchema: mcp.RawValue(output)}
	s := server.New("others", "1", nil)
	s.Add(server.UncheckedTool(def, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("got " + string(arguments))}, StructuredContent: mcp.RawValue(`{"b":"z"}`)}, nil
	}))
	url := serveAt(t, s)
	if code, out, said := command(t, "tools", "--server", url); code != 0 || !strings.Contains(out, "look") {
		t.Errorf("tools ended with %d\n%s%s", code, out, said)
	}
	if code, out, said := command(t, "call", "look", "a=xa", "--server", url); code != 0 || !strings.Contains(out, `got {"a":"xa"}`) {
		t.Errorf("call ended with %d\n%s%s", code, out, said)
	}
	for _, version := range bridgedEras {
		c := joinBridge(t, bridgeCommand("--stdio", "--protocol", version, url), version)
		c.calls("look", "got {}", nil)
		var schemas []string
		for tool, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			schemas = append(schemas, string(tool.InputSchema), string(tool.OutputSchema))
		}
		if !slices.Equal(schemas, []string{input, output}) {
			t.Errorf("through a bridge the schemas are %q", schemas)
		}
	}
}
