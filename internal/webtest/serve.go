// Package webtest serves HTTP until a test ends, on the loopback interface or in memory, and sends
// requests.
package webtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Serve serves h on the loopback interface.
func Serve(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s
}

// keeper is a transport whose idle connections nobody closes.
type keeper struct{ http.RoundTripper }

// KeepIdle is for TestMain. The end of each httptest.Server closes the idle connections of
// http.DefaultTransport. A request of another test that has just taken one of them, or whose response
// has no body, would fail.
func KeepIdle() { http.DefaultTransport = keeper{http.DefaultTransport} }

// ServeOwn serves a handler that is made for its own URL with a path, and returns the URL.
func ServeOwn(tb testing.TB, path string, handler func(url string) http.Handler) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(nil)
	tb.Cleanup(s.Close)
	url := "http://" + s.Listener.Addr().String() + path
	s.Config.Handler = handler(url)
	s.Start()
	return url
}

// ShutDown calls functions such as http.Server.Shutdown in order when the test ends, and waits for
// them. An error fails the test.
func ShutDown(tb testing.TB, functions ...func(context.Context) error) {
	tb.Cleanup(func() {
		for _, f := range functions {
			if err := f(context.Background()); err != nil {
				tb.Errorf("shutting down: %v", err)
			}
		}
	})
}

// Abort calls functions such as http.Server.Shutdown in order when the test ends, with a context
// that has ended, so that they wait for nothing.
func Abort(tb testing.TB, functions ...func(context.Context) error) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for _, f := range functions {
			_ = f(ctx) // the error is that of ctx
		}
	})
}

// A Memory is a server in memory, so that a test in a bubble of synctest owns its time. It is a
// net.Listener.
type Memory struct {
	tb     testing.TB
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewMemory returns a server in memory that ServeOn serves.
func NewMemory(tb testing.TB) *Memory {
	return &Memory{tb: tb, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// ServeMemory serves h in memory.
func ServeMemory(tb testing.TB, h http.Handler) *Memory {
	tb.Helper()
	m := NewMemory(tb)
	ServeOn(tb, m, &http.Server{Handler: h, ReadHeaderTimeout: time.Minute})
	return m
}

// ServeOn has a server serve a listener, and closes it when the test ends.
func ServeOn(tb testing.TB, l net.Listener, s *http.Server) {
	tb.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	tb.Cleanup(func() {
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("serving: %v", err)
		}
	})
}

// Accept returns the server's end of a new connection.
func (m *Memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (m *Memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

// Addr returns an address that leads nowhere.
func (*Memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// Dial returns the client's end of a new connection.
func (m *Memory) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-m.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Conn is Dial for a connection that is closed when the test ends.
func (m *Memory) Conn() net.Conn {
	m.tb.Helper()
	c, err := m.Dial(m.tb.Context())
	if err != nil {
		m.tb.Fatal(err)
	}
	m.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Client returns a client that reaches the server under every name, over HTTP. Its idle connections
// are closed when the test ends.
func (m *Memory) Client() *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return m.Dial(ctx) }}
	m.tb.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A Switch is a handler that counts its requests and can be replaced between them.
type Switch struct {
	current atomic.Pointer[http.HandlerFunc]
	hits    atomic.Int32
}

// Set makes h the handler of the requests that come.
func (s *Switch) Set(h http.HandlerFunc) { s.current.Store(&h) }

// Hits returns how many requests there were.
func (s *Switch) Hits() int32 { return s.hits.Load() }

// ServeHTTP counts the request and has the handler answer it.
func (s *Switch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.hits.Add(1)
	(*s.current.Load())(w, r)
}

// Answer is a handler that answers with a text of JSON. The headers are pairs of names and values.
func Answer(status int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}
