// Command gosdk-middleware logs all requests, as the example middleware of
// go-sdk does. See docs/guide/migration-go-sdk.md.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

func logging(logger *slog.Logger) server.Middleware {
	return func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			begun := time.Now()
			log := logger.With("method", c.Method(), "target", c.Target())
			if p, ok := c.Params().(*mcp.CallToolParams); ok {
				log = log.With("arguments", string(p.Arguments))
			}
			log.Info("MCP method started")
			res, err := next(c)
			log.Info("MCP method completed", "outcome", server.OutcomeOf(c, res, err), "duration", time.Since(begun), "err", err)
			return res, err
		}
	}
}

type person struct {
	Name string `json:"name" desc:"Name to greet"`
}

func greet(_ context.Context, in person) (string, error) { return "Hello, " + in.Name + "!", nil }

func main() {
	s := server.New("logging-example", "1.0.0", nil)
	s.Use(logging(slog.New(slog.NewTextHandler(os.Stdout, nil))))
	s.Add(server.Tool("greet", "Greet someone with logging.", greet))
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", person{Name: "World"}))
}
