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

// A client that prints each message as it is on the wire. What a tap is shown
// has secrets in it: this one is for a terminal, not for a log.
func ExampleTap() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	endpoint := streamable.NewHandler(s, nil)
	far := httptest.NewServer(endpoint)
	defer far.Close()

	d := streamable.URL(far.URL)
	d.Tap = func(e transport.TapEvent) {
		if e.Kind == transport.TapSent || e.Kind == transport.TapReceived {
			fmt.Printf("%s %.60s\n", e.Kind, e.Data)
		}
	}
	ctx := context.Background()
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err, c.Close(), endpoint.Shutdown(ctx))
	// Output:
	// sent {"jsonrpc":"2.0","id":1,"method":"server/discover","params":
	// received {"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextp
	// sent {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"nam
	// received {"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.modelcontextp
	// Hello, Ada! <nil> <nil> <nil>
}
