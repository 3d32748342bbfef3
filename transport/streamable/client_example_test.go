package streamable_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

func ExampleURL() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	far := httptest.NewServer(streamable.NewHandler(s, nil))
	defer far.Close()

	ctx := context.Background()
	c, err := client.Connect(ctx, streamable.URL(far.URL), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	fmt.Println(text, err)
	// Output: Hello, Ada! <nil>
}
