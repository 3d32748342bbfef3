package chaos_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A site is an HTTP server in memory, in the time of a bubble.
type site struct {
	conns  chan net.Conn
	ended  chan struct{}
	server *http.Server
	served chan struct{}
}

func newSite(h http.Handler) *site {
	s := &site{conns: make(chan net.Conn), ended: make(chan struct{}), served: make(chan struct{})}
	s.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(s) // it says that it was closed
	}()
	return s
}

func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}

func (s *site) Close() error   { close(s.ended); return nil }
func (s *site) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// transport is a transport for HTTP that connects to the site.
func (s *site) transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case s.conns <- far:
			return near, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.ended:
			return nil, net.ErrClosed
		}
	}}
}

// close ends the site and its connections.
func (s *site) close() {
	_ = s.server.Close() // the connections are in memory
	<-s.served
}

// A client behind HTTP with faults recovers, or returns an error that says what happened, in its
// time, and never runs a call twice.
func TestClientOverHTTP(t *testing.T) {
	t.Parallel()
	target, err := url.Parse("http://127.0.0.1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	list := scenarios(func(f chaos.Description) bool { return f.HTTP })
	eachTrial(t, list, func(ctx context.Context, x *trial, p *chaos.Proxy, version string) {
		endpoint := streamable.NewHandler(x.counter, &streamable.Options{Logger: quiet})
		upstream := newSite(endpoint)
		toServer := upstream.transport()
		front := newSite(p.Handler(target, toServer))
		toFront := front.transport()
		d := streamable.URL("http://localhost/mcp")
		d.Client = &http.Client{Transport: toFront}
		x.run(d, version)
		toFront.CloseIdleConnections()
		front.close()
		toServer.CloseIdleConnections()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = endpoint.Shutdown(ended) // the error is that of its context
		upstream.close()
	})
}
