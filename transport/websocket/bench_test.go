package websocket_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/websocket"
)

// One request and its answer over a loopback connection, both ends measured.
func BenchmarkEcho(b *testing.B) {
	endpoint := websocket.NewHandler(mcptest.TransportPeer(), nil)
	s := httptest.NewServer(endpoint)
	defer s.Close()
	link, err := websocket.URL("ws"+strings.TrimPrefix(s.URL, "http")).Dial(b.Context(), linktest.NewInbox())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for id := int64(1); b.Loop(); id++ {
		if _, err := link.Do(b.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(id), Method: "kit/echo"}, transport.Route{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := link.Close(context.Background()); err != nil {
		b.Error(err)
	}
	if err := endpoint.Shutdown(context.Background()); err != nil {
		b.Error(err)
	}
}
