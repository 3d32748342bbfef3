package interop_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/app/interop/script"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/websocket"
)

// seen are the revisions in which our server was spoken to, and the most rounds
// that one request took because of what it asked.
type seen struct {
	mu       sync.Mutex
	versions []string
	rounds   int
}

// note is middleware that notes the revision of each request.
func (s *seen) note(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		s.mu.Lock()
		if !slices.Contains(s.versions, c.Version()) {
			s.versions = append(s.versions, c.Version())
		}
		s.rounds = max(s.rounds, c.Round())
		s.mu.Unlock()
		return next(c)
	}
}

// check checks that nothing but version was spoken, and that the two questions
// of the script took a round each in the stateless era, and none before it.
func (s *seen) check(t *testing.T, version string) {
	t.Helper()
	s.checkVersion(t, version)
	want := 0
	if version == modern {
		want = 2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rounds != want {
		t.Errorf("%d rounds, want %d", s.rounds, want)
	}
}

// checkVersion checks that nothing but version was spoken.
func (s *seen) checkVersion(t *testing.T, version string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.versions, []string{version}) {
		t.Errorf("our server was spoken to in %v, want %s alone", s.versions, version)
	}
}

// An endpoint is our server over Streamable HTTP.
type endpoint struct {
	url     string
	seen    seen
	traffic traffic
}

// serveOurs starts an endpoint that serves the revisions given, or all; it ends
// with the test.
func serveOurs(t *testing.T, versions ...string) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.serve(t, ours.NewServer(versions, e.seen.note), nil)
	return e
}

// servePolling starts an endpoint that sends clients away from calls that take
// long, to come back for the answer. A call of Echo takes until somebody did.
func servePolling(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.traffic.resumed = make(chan struct{})
	hold := func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			if c.Target() == script.Echo {
				select {
				case <-e.traffic.resumed:
				case <-c.Done():
					return nil, context.Cause(c)
				}
			}
			return next(c)
		}
	}
	e.serve(t, ours.NewServer(nil, hold, e.seen.note), &streamable.Options{PollAfter: 50 * time.Millisecond, Retry: 10 * time.Millisecond})
	return e
}

func (e *endpoint) serve(t *testing.T, s *server.Server, o *streamable.Options) {
	t.Helper()
	h := streamable.NewHandler(s, o)
	e.url = listen(t, e.traffic.server(h))
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
}

// serveSSE starts our server over HTTP+SSE, which ends with the test.
func serveSSE(t *testing.T) (url string) {
	t.Helper()
	h := sse.NewHandler(ours.NewServer(nil), nil)
	url = listen(t, h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return url
}

// serveWebSocket starts our server over WebSocket, which ends with the test.
func serveWebSocket(t *testing.T) (url string) {
	t.Helper()
	h := websocket.NewHandler(ours.NewServer(nil), nil)
	url = listen(t, h)
	t.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return "ws" + strings.TrimPrefix(url, "http")
}

// listen serves h on the loopback interface until the test has ended.
func listen(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// dialer leads our client to url, and records what goes there.
func dialer(t *testing.T, url string) (*streamable.Dialer, *traffic) {
	t.Helper()
	log := &traffic{}
	d := streamable.URL(url)
	d.Client = log.client(t)
	return d, log
}
