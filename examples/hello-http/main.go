// Command hello-http is the server of hello over HTTP. See docs/guide/start.md.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

type person struct {
	Name string `json:"name" desc:"whom to greet" minlen:"1"`
}

func greet(_ context.Context, in person) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

func newServer() *server.Server {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", greet))
	return s
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "address to serve http://ADDRESS/mcp on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := streamable.Serve(ctx, *addr, newServer(), nil); err != nil {
		log.Fatal(err)
	}
}
