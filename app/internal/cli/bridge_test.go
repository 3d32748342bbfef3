package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// bridgedEras are a revision with a handshake and the stateless one.
var bridgedEras = []string{"2025-11-25", stateless}

// interviewerMain is the interviewer as a program. Its argument is the folder, whose census counts it.
func interviewerMain() {
	if err := joinCensus(os.Args[1]); err != nil {
		os.Exit(2)
	}
	if err := stdio.Serve(context.Background(), newInterviewer(os.Args[1])); err != nil {
		os.Exit(1)
	}
}

// newInterviewer is an actor that also asks twice in one call, tells of changes, and dies.
func newInterviewer(dir string) *server.Server {
	s := newActor(dir)
	s.Add(newMeeting().features()...)
	s.Add(
		server.Tool("interview", "Asks twice.", interview),
		server.Tool("touch", "Changes what is noted.", func(context.Context, mcp.None) (string, error) {
			s.ResourceUpdated("memo://now")
			return "touched", nil
		}),
		server.Tool("die", "Ends the server.", func(context.Context, mcp.None) (string, error) {
			f, err := os.OpenFile(filepath.Join(dir, "deaths"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return "", err
			}
			_, _ = f.WriteString("died\n")
			os.Exit(3)
			return "", nil
		}),
		server.Tool("pid", "Tells which process it is.", func(context.Context, mcp.None) (string, error) {
			return fmt.Sprint(os.Getpid()), nil
		}),
	)
	return s
}

func interview(ctx context.Context, _ mcp.None) (string, error) {
	type name struct {
		Name string `json:"name"`
	}
	first, err := server.Elicit[name](ctx, "First name?")
	if err != nil {
		return "", err
	}
	last, err := server.Elicit[name](ctx, "Last name?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s, %s %s", first.Action, first.Value.Name, last.Action, last.Value.Name), nil
}

// A bridged client is one of a server at the other end of a bridge.
type bridgedClient struct {
	*client.Client
	t *testing.T

	mu               sync.Mutex
	asked, logs      []string
	updated, changed chan struct{} // have an element when that was told
}

// joinBridge connects a client that answers all questions.
func joinBridge(t *testing.T, d transport.Dialer, version string) *bridgedClient {
	t.Helper()
	c := &bridgedClient{t: t, updated: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	made, err := client.Connect(t.Context(), d, c.options(version))
	if err != nil {
		t.Fatal(err)
	}
	c.Client = made
	t.Cleanup(func() { _ = made.Close() })
	return c
}

func (c *bridgedClient) options(version string) *client.Options {
	tell := func(to chan struct{}) {
		select {
		case to <- struct{}{}:
		default:
		}
	}
	return &client.Options{
		Versions: []string{version},
		LogLevel: mcp.LogDebug,
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.asked = append(c.asked, r.Params.Message)
			return client.Accept(map[string]any{"name": fmt.Sprint("answer ", len(c.asked))})
		},
		OnSample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: mcp.RoleAssistant, Content: mcp.Contents{mcp.Text("not much")}}, nil
		},
		OnRoots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///home/ada"}}, nil },
		OnLog: func(_ context.Context, p *mcp.LogParams) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.logs = append(c.logs, string(p.Level))
		},
		OnResourceUpdated: func(context.Context, string) { tell(c.updated) },
		OnToolsChanged:    func(context.Context) { tell(c.changed) },
	}
}

// calls calls a tool, and checks its text.
func (c *bridgedClient) calls(tool, want string, o *client.CallOptions) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), tool, nil, o)
	if err != nil {
		c.t.Errorf("%s: %v", tool, err)
		return
	}
	if got := host.ContentText(r.Content[0]); got != want {
		c.t.Errorf("%s: %q, want %q", tool, got, want)
	}
}

// told waits for a notice.
func (c *bridgedClient) told(what string, notice <-chan struct{}) {
	c.t.Helper()
	select {
	case <-notice:
	case <-c.t.Context().Done():
		c.t.Fatalf("no notice of %s", what)
	case <-time.After(patience):
		c.t.Fatalf("no notice of %s in %v", what, patience)
	}
}

// everything does all that travels through a bridge.
func (c *bridgedClient) everything() {
	c.t.Helper()
	c.calls("interview", "accept answer 1, accept answer 2", nil)
	if want := []string{"First name?", "Last name?"}; !slices.Equal(c.asked, want) {
		c.t.Errorf("asked %q, want %q", c.asked, want)
	}
	c.calls("consult", "it answered: not much", nil)
	c.calls("where", "directories: ada", nil)
	last := 0.0
	c.calls("steps", "all steps done", &client.CallOptions{OnProgress: func(n, _ float64, _ string) { last = n }})
	if last != 5000 {
		c.t.Errorf("the last progress is %v of 5000", last)
	}
	c.calls("chatter", "it was said", nil)
	if err := c.Drain(c.t.Context()); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	for _, level := range mcp.LogLevels() {
		if !slices.Contains(c.logs, string(level)) {
			c.t.Errorf("no log message of level %s in %q", level, c.logs)
		}
	}
	c.mu.Unlock()
	c.subscription()
	c.listChange()
	c.cancellation()
}

// subscription hears of a change.
func (c *bridgedClient) subscription() {
	c.t.Helper()
	sub, err := c.Subscribe(c.t.Context(), "memo://now")
	if err != nil {
		c.t.Errorf("subscribing: %v", err)
		return
	}
	defer sub.Close()
	c.hearsChange()
}

// hearsChange waits until a change is told. When the server has agreed to tell the bridge is not known, so
// that there is a change again and again.
func (c *bridgedClient) hearsChange() {
	c.t.Helper()
	for late := time.Now().Add(patience); time.Now().Before(late); {
		c.calls("touch", "touched", nil)
		select {
		case <-c.updated:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	c.t.Errorf("no notice of a changed resource in %v", patience)
}

func (c *bridgedClient) listChange() {
	c.t.Helper()
	c.calls("grow", "there is more now", nil)
	for {
		for tool, err := range c.Tools(c.t.Context()) {
			if err != nil {
				c.t.Fatal(err)
			}
			if tool.Name == "blossom" {
				c.calls("blossom", "in bloom", nil)
				return
			}
		}
		c.told("a changed list of tools", c.changed)
	}
}

func (c *bridgedClient) cancellation() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	_, err := c.CallTool(ctx, "hang", nil, &client.CallOptions{OnProgress: func(float64, float64, string) { cancel() }})
	if err == nil || c.t.Context().Err() != nil {
		c.t.Errorf("a cancelled call: %v", err)
	}
	c.calls("await", "it has ended", nil)
}

// startBridge starts a bridge over HTTP in front of a command, and returns its URL.
func startBridge(t *testing.T, flags []string, command ...string) (url string, stop func()) {
	t.Helper()
	args := append([]string{"bridge", "--http", "127.0.0.1:0"}, flags...)
	address, stop := start(t, `http://([^/]+)/mcp;`, io.Discard, append(append(args, "--"), command...)...)
	t.Cleanup(stop)
	return "http://" + address + streamable.Path, stop
}

// Everything goes through a bridge from a program to HTTP and back, from each era to each, and by
// each transport.
//
// Proves: FLOW-ELICIT, FLOW-SAMPLE, FLOW-ROOTS, FLOW-PROGRESS, FLOW-LOG, FLOW-SUB,
// FLOW-LIST-CHANGED, FLOW-CANCEL.
func TestBridge(t *testing.T) {
	for i, behind := range bridgedEras {
		for _, caller := range bridgedEras {
			t.Run("http, server "+behind+", client "+caller, func(t *testing.T) {
				t.Parallel()
				url, _ := startBridge(t, []string{"--protocol", behind}, "interviewer", t.TempDir())
				joinBridge(t, streamable.URL(url), caller).everything()
			})
			t.Run("stdio, server "+behind+", client "+caller, func(t *testing.T) {
				t.Parallel()
				joinBridge(t, bridgeCommand("--stdio", "--protocol", behind, serveBehind(t, "http")), caller).everything()
			})
		}
		other := bridgedEras[1-i]
		for _, by := range []string{"sse", "ws"} {
			t.Run(by+", server "+behind+", client "+other, func(t *testing.T) {
				t.Parallel()
				url, _ := startBridge(t, []string{"--protocol", behind}, "interviewer", t.TempDir())
				joinBridge(t, dialerBy(by, strings.TrimSuffix(url, streamable.Path)+"/"+by), other).everything()
			})
		}
		t.Run("stdio, server "+behind+" by ws, client "+other, func(t *testing.T) {
			t.Parallel()
			joinBridge(t, bridgeCommand("--stdio", "--protocol", behind, serveBehind(t, "ws")), other).everything()
		})
		t.Run("stdio, server by sse, client "+other, func(t *testing.T) { // the transport is found out
			t.Parallel()
			joinBridge(t, bridgeCommand("--stdio", serveBehind(t, "sse")), other).everything()
		})
	}
}

// dialerBy dials a URL by one transport.
func dialerBy(by, url string) transport.Dialer {
	switch by {
	case "sse":
		return sse.URL(url)
	case "ws":
		return websocket.URL("ws" + strings.TrimPrefix(url, "http"))
	}
	return streamable.URL(url)
}

// serveBehind serves an interviewer by one transport alone, and returns its URL.
func serveBehind(t *testing.T, by string) (url string) {
	t.Helper()
	s := newInterviewer(t.TempDir())
	var h interface {
		http.Handler
		Shutdown(ctx context.Context) error
	}
	switch by {
	case "sse":
		h = sse.NewHandler(s, nil)
	case "ws":
		h = websocket.NewHandler(s, nil)
	default:
		h = streamable.NewHandler(s, nil)
	}
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		_ = h.Shutdown(context.Background())
		ts.Close()
	})
	if by == "ws" {
		return "ws" + strings.TrimPrefix(ts.URL, "http")
	}
	return ts.URL + streamable.Path
}

// bridgeCommand dials a bridge that is a program.
func bridgeCommand(args ...string) *stdio.CommandDialer {
	d := stdio.Command("parley", append([]string{"bridge"}, args...)...)
	d.ExtraEnv = []string{"GORACE=atexit_sleep_ms=0"}
	return d
}
