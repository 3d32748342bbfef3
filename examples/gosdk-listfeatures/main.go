// Command gosdk-listfeatures lists what a server offers, as the example
// listfeatures of go-sdk does. See docs/guide/migration-go-sdk.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: listfeatures -http URL | COMMAND [ARGUMENT...]")
	}
	var dialer transport.Dialer = stdio.Command(os.Args[1], os.Args[2:]...)
	if os.Args[1] == "-http" {
		dialer = streamable.URL(os.Args[2])
	}
	ctx := context.Background()
	c, err := client.Connect(ctx, dialer, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	list("tools", c.Tools(ctx), func(t *mcp.Tool) string { return t.Name })
	list("resources", c.Resources(ctx), func(r *mcp.Resource) string { return r.Name })
	list("resource templates", c.ResourceTemplates(ctx), func(r *mcp.ResourceTemplate) string { return r.Name })
	list("prompts", c.Prompts(ctx), func(p *mcp.Prompt) string { return p.Name })
}

func list[T any](kind string, items iter.Seq2[T, error], name func(T) string) {
	fmt.Println(kind + ":")
	for item, err := range items {
		if errors.Is(err, client.ErrNotCapable) {
			return // the server has none of these
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("\t" + name(item))
	}
}
