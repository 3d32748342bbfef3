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

// allRevisions are all that a server can speak.
var allRevisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", stateless}

// meetingCalls is how many calls of "meet" wait for each other.
const meetingCalls = 3

// A meeting has tools whose calls must run at once.
type meeting struct {
	arrived   atomic.Int32
	two, all  chan struct{} // closed when two calls of "meet" are here, and all
	hangs     chan struct{} // closed when "stay" runs
	cancelled chan struct{} // closed when that was cancelled
}

func newMeeting() *meeting {
	return &meeting{two: make(chan struct{}), all: make(chan struct{}), hangs: make(chan struct{}), cancelled: make(chan struct{})}
}

func (m *meeting) features() []server.Feature {
	return []server.Feature{
		server.Tool("meet", "Waits until three calls are here.", func(ctx context.Context, _ mcp.None) (string, error) {
			switch m.arrived.Add(1) {
			case meetingCalls - 1:
				close(m.two)
			case meetingCalls:
				close(m.all)
			}
			return after(m.all, "met")(ctx, mcp.None{})
		}),
		server.Tool("met", "Waits until two calls are here.", after(m.two, "two")),
		server.Tool("stay", "Waits for the end of the call.", func(ctx context.Context, _ mcp.None) (string, error) {
			close(m.hangs)
			<-ctx.Done()
			close(m.cancelled)
			return "", ctx.Err()
		}),
		server.Tool("stays", "Waits until stay runs.", after(m.hangs, "it stays")),
		server.Tool("left", "Waits until stay was cancelled.", after(m.cancelled, "it has left")),
	}
}

// after is a tool that waits until a channel is closed.
func after(closed <-chan struct{}, said string) func(context.Context, mcp.None) (string, error) {
	return func(ctx context.Context, _ mcp.None) (string, error) {
		select {
		case <-closed:
			return said, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// callsAtOnce has calls run at once at the server behind a bridge. While one call hangs and two
// wait for a third, the one that hangs is cancelled, and its server and its caller get to know.
func (c *bridgedClient) callsAtOnce() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var staying, meeting sync.WaitGroup
	staying.Go(func() {
		if _, err := c.CallTool(ctx, "stay", nil, nil); !errors.Is(err, context.Canceled) {
			c.t.Errorf("the call that was cancelled: %v", err)
		}
	})
	c.calls("stays", "it stays", nil)
	for range meetingCalls - 1 {
		meeting.Go(func() { c.calls("meet", "met", nil) })
	}
	c.calls("met", "two", nil)
	cancel()
	staying.Wait()
	c.calls("left", "it has left", nil)
	c.calls("meet", "met", nil)
	meeting.Wait()
}

// Calls of one client of a bridge run at once at a server of any revision, and are cancelled while
// others run: at a remote server, and at a program, which stands behind a bridge over HTTP.
//
// Proves: FLOW-CANCEL, C23 (joshrotenberg/tower-mcp#1231, omnigent-ai/omnigent#2812).
func TestBridgeCallsAtOnce(t *testing.T) {
	for _, behind := range allRevisions {
		for _, caller := range bridgedEras {
			t.Run("stdio, server "+behind+", client "+caller, func(t *testing.T) {
				t.Parallel()
				s := server.New("meeting", "1", nil)
				s.Add(newMeeting().features()...)
				joinBridge(t, bridgeCommand("--stdio", "--protocol", behind, serveAt(t, s)), caller).callsAtOnce()
			})
			t.Run("http, server "+behind+", client "+caller, func(t *testing.T) {
				t.Parallel()
				// Clients without a session are one only where the person says so.
				url, _ := startBridge(t, []string{"--protocol", behind, "--single-user"}, "interviewer", t.TempDir())
				joinBridge(t, streamable.URL(url), caller).callsAtOnce()
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
