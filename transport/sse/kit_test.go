package sse_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
)

// serve serves h on the loopback interface until the test ends.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// Proves: SEC-DOS-1, FLOW-SHUTDOWN.
func TestKit(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		return sse.URL(serve(t, sse.NewHandler(h, &sse.Options{MaxMessage: o.MaxMessage})).URL)
	})
}

// A client of one's own is used for all requests, and left as it is.
func TestKitClient(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		s := serve(t, sse.NewHandler(h, &sse.Options{MaxMessage: o.MaxMessage}))
		d := sse.URL(s.URL + "/sse?tenant=7")
		d.Client = s.Client()
		return d
	})
}
