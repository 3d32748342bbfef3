package websocket_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/websocket"
)

func Example() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	endpoint := websocket.NewHandler(s, nil)
	web := httptest.NewServer(endpoint) // or web.Serve, of package transport/web
	defer web.Close()

	ctx := context.Background()
	c, err := client.Connect(ctx, websocket.URL("ws"+strings.TrimPrefix(web.URL, "http")), nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err, c.Close(), endpoint.Shutdown(ctx))
	// Output: Hello, Ada! <nil> <nil> <nil>
}
