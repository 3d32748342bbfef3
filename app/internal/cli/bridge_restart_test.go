package cli_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A restarting server is replaced by a new one, which knows no sessions, at each call of restart.
type restarting struct {
	forgotten func(w http.ResponseWriter, r *http.Request) // answers what belongs to an unknown session; nil: the endpoint does
	current   atomic.Pointer[streamable.Handler]
}

// restart puts a new server in the place of the last one.
func (x *restarting) restart() {
	s := server.New("restarting", "1", nil)
	s.Add(
		server.Tool("hi", "Greets.", func(ctx context.Context, _ mcp.None) (string, error) {
			return "hello", server.Log(ctx, mcp.LogDebug, "l", "said")
		}),
		server.Tool("touch", "Changes a resource.", func(context.Context, mcp.None) (string, error) {
			s.ResourceUpdated("memo://now")
			return "touched", nil
		}),
		server.Text("memo://now", "now", "text"),
	)
	if former := x.current.Swap(streamable.NewHandler(s, nil)); former != nil {
		_ = former.Shutdown(context.Background()) // nothing is under way but streams
	}
}

// serveRestarting serves x until the test ends, and returns its URL.
func serveRestarting(t *testing.T, x *restarting, around func(next http.Handler) http.Handler) string {
	t.Helper()
	x.restart()
	ts := httptest.NewServer(around(x))
	t.Cleanup(func() {
		_ = x.current.Load().Shutdown(context.Background())
		ts.CloseClientConnections()
		ts.Close()
	})
	return ts.URL + streamable.Path
}

// ServeHTTP serves a request, and answers in other words for the endpoint that a session is unknown.
func (x *restarting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if x.forgotten == nil || r.Method != http.MethodPost || r.Header.Get("Mcp-Session-Id") == "" {
		x.current.Load().ServeHTTP(w, r)
		return
	}
	try := httptest.NewRecorder()
	x.current.Load().ServeHTTP(try, r)
	if try.Code == http.StatusNotFound {
		x.forgotten(w, r)
		return
	}
	for name, values := range try.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(try.Code)
	_, _ = try.Body.WriteTo(w) // a client that has gone needs no answer
}

// refuseWith answers with a status and a body.
func refuseWith(status int, body string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// A bridge to a server that was restarted, and does not know its session any more, begins another
// one by itself: the client's next request is answered, what it subscribed to is told, the level of
// logs is what it was, and the person reads one line about it.
//
// Proves: ruling 40 (punkpeye/mcp-remote#106 and #307, TypingMind/typingmind-mcp#22, punkpeye/fastmcp#121,
// liliMozi/openhanako#1442).
func TestBridgeToRestartedServer(t *testing.T) {
	for name, test := range map[string]struct {
		forgotten func(w http.ResponseWriter, r *http.Request)
		harmless  bool // a call may have run, so that a list comes first
	}{
		"404":               {nil, false},
		"404 with a page":   {refuseWith(404, "<html>gone</html>"), false},
		"400 with words":    {refuseWith(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`), true},
		"400, no message":   {refuseWith(400, `{"error":"Invalid session ID"}`), true},
		"200 with an error": {refuseWith(200, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`), true},
	} {
		for _, behind := range allRevisions[1:4] {
			for _, caller := range bridgedEras {
				t.Run(name+", server "+behind+", client "+caller, func(t *testing.T) {
					t.Parallel()
					x := &restarting{forgotten: test.forgotten}
					said := new(output)
					d := bridgeCommand("--stdio", "--protocol", behind, serveRestarting(t, x, func(next http.Handler) http.Handler { return next }))
					d.Stderr = said
					c := joinBridge(t, d, caller)
					if err := c.SetLogLevel(t.Context(), mcp.LogDebug); err != nil {
						t.Fatal(err)
					}
					watching, err := c.Subscribe(t.Context(), "memo://now")
					if err != nil {
						t.Fatal(err)
					}
					defer watching.Close()
					c.hearsChange()
					x.restart()
					if test.harmless {
						if _, err := c.ReadResource(t.Context(), "memo://now", nil); err != nil {
							t.Errorf("reading after the restart: %v", err)
						}
					}
					c.calls("hi", "hello", nil)
					c.hearsChange()
					if err := c.Drain(t.Context()); err != nil {
						t.Error(err)
					}
					c.mu.Lock()
					logs := len(c.logs)
					c.mu.Unlock()
					if logs == 0 {
						t.Error("no log messages after the restart")
					}
					if n := strings.Count(said.String(), "the connection to the server has ended"); n != 1 {
						t.Errorf("the log says so %d times:\n%s", n, said)
					}
					if strings.Contains(said.String(), "check the URL") {
						t.Errorf("the log advises to check the URL, which is right:\n%s", said)
					}
				})
			}
		}
	}
}

// A server that forgets each session at once, or answers 404 whatever it is asked, makes an error
// after a bounded number of requests.
//
// Proves: ruling 40.
func TestServerWithoutMemory(t *testing.T) {
	for name, handler := range map[string]func(h http.Handler, w http.ResponseWriter, r *http.Request){
		"each session is forgotten": func(h http.Handler, w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			if err != nil || strings.Contains(string(data), `"tools/`) {
				http.Error(w, "no such session", http.StatusNotFound)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(data)))
			h.ServeHTTP(w, r)
		},
		"404 always": func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			url := serveRestarting(t, new(restarting), func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					handler(next, w, r)
				})
			})
			code, _, said := command(t, "call", "hi", "--protocol", "2025-11-25", "--server", url)
			if code == 0 || !strings.Contains(said, "404") {
				t.Errorf("ended with %d\n%s", code, said)
			}
			if n := requests.Load(); n > 40 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
