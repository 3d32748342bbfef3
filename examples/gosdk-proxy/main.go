// Command gosdk-proxy hands headers on to the server behind it, as the example
// proxy of go-sdk does. See docs/guide/migration-go-sdk.md.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

const header = "X-Tenant"

func backend() *server.Server {
	s := server.New("backend-server", "1.0.0", nil)
	s.Add(server.Tool("tenant", "Tells whose data it works on.", func(ctx context.Context, _ mcp.None) (string, error) {
		return "tenant " + streamable.Header(ctx, header), nil
	}))
	return s
}

func proxy(behind *client.Client) *server.Server {
	s := server.New("proxy-server", "1.0.0", nil)
	s.Add(server.Tool("forward", "Asks the server behind.", func(ctx context.Context, _ mcp.None) (*mcp.CallToolResult, error) {
		return behind.CallTool(ctx, "tenant", nil, nil)
	}))
	return s
}

// connect serves s, and returns a client that sends the header that tenant tells.
func connect(ctx context.Context, s *server.Server, tenant func(context.Context) string) *client.Client {
	d := streamable.URL(httptest.NewServer(streamable.NewHandler(s, nil)).URL)
	d.Header = func(ctx context.Context) (http.Header, error) { return http.Header{header: {tenant(ctx)}}, nil }
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func main() {
	ctx := context.Background()
	behind := connect(ctx, backend(), func(ctx context.Context) string { return streamable.Header(ctx, header) })
	front := connect(ctx, proxy(behind), func(context.Context) string { return "acme" })
	fmt.Println(client.Call[string](ctx, front, "forward", nil))
}
