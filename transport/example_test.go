package transport_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A client of a URL, behind which may be an old server: here there is one that
// speaks HTTP+SSE alone.
func ExampleFirst() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	endpoint := sse.NewHandler(s, nil)
	far := httptest.NewServer(endpoint)
	defer far.Close()

	ctx := context.Background()
	c, err := client.Connect(ctx, transport.First(streamable.URL(far.URL), sse.URL(far.URL)), nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err, c.Close(), endpoint.Shutdown(ctx))
	// Output: Hello, Ada! <nil> <nil> <nil>
}
