package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/netguard"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A failure is how a request fails.
type failure func(t *testing.T) transport.Dialer

// byRoundTrip fails over Streamable HTTP as a RoundTripper does.
func byRoundTrip(f func(*http.Request) (*http.Response, error)) failure {
	return func(*testing.T) transport.Dialer {
		return &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: roundTrip(f)}}
	}
}

// byServer fails over Streamable HTTP as a server does.
func byServer(f http.HandlerFunc) failure {
	return func(t *testing.T) transport.Dialer { return streamable.URL(serveOnce(t, f).URL + "/mcp") }
}

func serveOnce(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	ts := httptest.NewServer(f)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	return ts
}

// status answers with a status and nothing else.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// breakOff ends the connection after the request was read.
func breakOff(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // it ends in any case
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// A roundTrip is a RoundTripper that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bySSE fails over HTTP+SSE: post answers the message. It may end the stream.
func bySSE(post func(r *http.Request, end func()) (*http.Response, error)) failure {
	return func(*testing.T) transport.Dialer {
		in, out := io.Pipe()
		return &sse.Dialer{URL: "http://far.example/sse", Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				return post(r, func() { _ = out.Close() })
			}
			go func() { _, _ = io.WriteString(out, "event: endpoint\ndata: /post\n\n") }()
			context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(net.ErrClosed) })
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in, ContentLength: -1, Request: r}, nil
		})}}
	}
}

// answered is a response to a message over HTTP+SSE.
func answered(r *http.Request, code int) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body) // in memory
	return &http.Response{StatusCode: code, Body: http.NoBody, Request: r}, nil
}

// A stream is a pipe to a program: its Write is a function, and its Read ends with it.
type stream struct {
	write func(p []byte) (n int, end bool, err error)
	over  chan struct{}
	once  sync.Once
}

func byLine(write func(p []byte) (n int, end bool, err error)) failure {
	return func(*testing.T) transport.Dialer {
		return stdio.Conn(&stream{write: write, over: make(chan struct{})})
	}
}

func (s *stream) Read([]byte) (int, error) {
	<-s.over
	return 0, io.EOF
}

func (s *stream) Write(p []byte) (int, error) {
	n, end, err := s.write(p)
	if end {
		_ = s.Close()
	}
	return n, err
}

func (s *stream) Close() error {
	s.once.Do(func() { close(s.over) })
	return nil
}

var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "far.example", IsNotFound: true}}

// An error says that a request may have run only if something of it may have reached the server.
//
// Proves: C18 (mcheemaa/mistri#26, nibor1896/Crow#139, tya5/reyn#2600).
func TestMayHaveRun(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct {
		fails failure
		sent  bool // it may have run
		again bool // it was not sent, and can be sent again: transport.ErrClosed
	}{
		"HTTP, refused":       {func(*testing.T) transport.Dialer { return streamable.URL(closed.URL + "/mcp") }, false, true},
		"HTTP, no such host":  {byRoundTrip(func(*http.Request) (*http.Response, error) { return nil, errDial }), false, true},
		"HTTP, TLS to none":   {tlsToNone, false, true},
		"HTTP, TLS of others": {tlsOfOthers, false, true},
		"HTTP, proxy refuses": {proxyRefuses, false, true},
		"HTTP, netguard":      {guarded, false, true},
		"HTTP, redirect": {byServer(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.example/", http.StatusTemporaryRedirect)
		}), false, false},
		"HTTP, bad header":      {badHeader, false, false},
		"HTTP, too large there": {byServer(status(413)), false, false},
		"HTTP, 429":             {byServer(status(429)), false, false},
		"HTTP, 401":             {byServer(status(401)), false, false},
		"HTTP, 404":             {byServer(status(404)), false, false},
		"HTTP, 500":             {byServer(status(500)), true, false},
		"HTTP, cut off":         {byServer(breakOff), true, false},
		"HTTP, too large here":  {tooLargeHere, true, false},
		"HTTP, says nothing":    {byRoundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("odd") }), true, false},

		"HTTP+SSE, no such host": {bySSE(func(*http.Request, func()) (*http.Response, error) { return nil, errDial }), false, true},
		"HTTP+SSE, 404":          {bySSE(func(r *http.Request, _ func()) (*http.Response, error) { return answered(r, 404) }), false, true},
		"HTTP+SSE, 413":          {bySSE(func(r *http.Request, _ func()) (*http.Response, error) { return answered(r, 413) }), false, false},
		"HTTP+SSE, 500":          {bySSE(func(r *http.Request, _ func()) (*http.Response, error) { return answered(r, 500) }), true, false},
		"HTTP+SSE, says nothing": {bySSE(func(*http.Request, func()) (*http.Response, error) { return nil, errors.New("odd") }), true, false},
		"HTTP+SSE, the end":      {bySSE(func(r *http.Request, end func()) (*http.Response, error) { end(); return answered(r, 202) }), true, false},
		"pipe, ended before":     {byLine(func([]byte) (int, bool, error) { return 0, false, syscall.EPIPE }), false, true},
		"pipe, ended at a part":  {byLine(func([]byte) (int, bool, error) { return 1, false, syscall.EPIPE }), true, false},
		"pipe, ended after":      {byLine(func(p []byte) (int, bool, error) { return len(p), true, nil }), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, err := test.fails(t).Dial(t.Context(), linktest.NewInbox())
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close(t.Context())
			m := &jsonrpc.Outgoing{ID: jsonrpc.IntID(1), Method: "tools/call", Params: jsonrpc.Empty()}
			_, err = link.Do(t.Context(), m, transport.Route{})
			if err == nil {
				t.Fatal("no error")
			}
			if got := errors.Is(err, transport.ErrInterrupted); got != test.sent || got != strings.Contains(err.Error(), "may have run") {
				t.Errorf("it may have run: %t, want %t: %v", got, test.sent, err)
			}
			if got := errors.Is(err, transport.ErrClosed) && !test.sent; got != test.again {
				t.Errorf("it can be sent again: %t, want %t: %v", got, test.again, err)
			}
		})
	}
}

// tlsToNone speaks TLS to a server that does not.
func tlsToNone(t *testing.T) transport.Dialer {
	t.Helper()
	return streamable.URL("https" + strings.TrimPrefix(serveOnce(t, status(200)).URL, "http"))
}

// tlsOfOthers meets a certificate of an authority that is not known.
func tlsOfOthers(t *testing.T) transport.Dialer {
	t.Helper()
	ts := httptest.NewTLSServer(status(200))
	t.Cleanup(ts.Close)
	return streamable.URL(ts.URL)
}

// proxyRefuses goes through a proxy that makes no connection.
func proxyRefuses(t *testing.T) transport.Dialer {
	t.Helper()
	proxy, err := url.Parse(serveOnce(t, status(403)).URL)
	if err != nil {
		t.Fatal(err)
	}
	next := &http.Transport{Proxy: http.ProxyURL(proxy)}
	t.Cleanup(next.CloseIdleConnections)
	return &streamable.Dialer{URL: "https://far.example/mcp", Client: &http.Client{Transport: next}}
}

// guarded is refused by rules about addresses.
func guarded(t *testing.T) transport.Dialer {
	t.Helper()
	next := netguard.NewTransport(nil)
	t.Cleanup(next.CloseIdleConnections)
	return &streamable.Dialer{URL: serveOnce(t, status(200)).URL, Client: &http.Client{Transport: next}}
}

func badHeader(*testing.T) transport.Dialer {
	return &streamable.Dialer{URL: "http://far.example/mcp", Header: func(context.Context) (http.Header, error) {
		return http.Header{"X-A": {"a\nb"}}, nil
	}}
}

// tooLargeHere is answered by more than the client takes.
func tooLargeHere(t *testing.T) transport.Dialer {
	t.Helper()
	return &streamable.Dialer{MaxResponse: 100, URL: serveOnce(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Repeat(" ", 1000))
	}).URL}
}
