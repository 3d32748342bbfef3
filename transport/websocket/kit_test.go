package websocket_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/websocket"
)

// serve serves an endpoint until the test ends and returns a dialer for it.
func serve(t *testing.T, h transport.Handler, o *websocket.Options) (*websocket.Handler, *websocket.Dialer) {
	t.Helper()
	endpoint := websocket.NewHandler(h, o)
	s := webtest.Serve(t, endpoint)
	webtest.ShutDown(t, endpoint.Shutdown)
	d := websocket.URL("ws" + strings.TrimPrefix(s.URL, "http") + "/ws")
	tr := new(http.Transport)
	d.Client = &http.Client{Transport: tr}
	t.Cleanup(tr.CloseIdleConnections)
	return endpoint, d
}

// Proves: SEC-DOS-1, FLOW-SHUTDOWN.
func TestKit(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		_, d := serve(t, h, &websocket.Options{MaxMessage: o.MaxMessage})
		return d
	})
}
