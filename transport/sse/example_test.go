package sse_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
)

// An endpoint for clients that know HTTP+SSE alone, beside the one for all others.
func ExampleNewHandler() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	old := sse.NewHandler(s, nil)
	mux := http.NewServeMux()
	mux.Handle("/sse", old)
	mux.Handle("/mcp", streamable.NewHandler(s, nil))
	site := httptest.NewServer(mux)
	defer site.Close()

	ctx := context.Background()
	c, err := client.Connect(ctx, sse.URL(site.URL+"/sse"), nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err, c.Close(), old.Shutdown(ctx))
	// Output: Hello, Ada! <nil> <nil> <nil>
}
