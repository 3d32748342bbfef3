// Command hello is the smallest server: one tool, over standard input and
// output. See docs/guide/start.md.
package main

import (
	"context"
	"log"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

type person struct {
	Name string `json:"name" desc:"whom to greet" minlen:"1"`
}

func greet(_ context.Context, in person) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

func main() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", greet))
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}
