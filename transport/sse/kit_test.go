package sse_test

import (
	"testing"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
)

// Proves: SEC-DOS-1, FLOW-SHUTDOWN.
func TestKit(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		return sse.URL(webtest.Serve(t, sse.NewHandler(h, &sse.Options{MaxMessage: o.MaxMessage})).URL)
	})
}

// A client of one's own is used for all requests, and left as it is.
func TestKitClient(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		s := webtest.Serve(t, sse.NewHandler(h, &sse.Options{MaxMessage: o.MaxMessage}))
		d := sse.URL(s.URL + "/sse?tenant=7")
		d.Client = s.Client()
		return d
	})
}
