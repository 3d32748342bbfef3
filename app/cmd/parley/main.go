// Command parley uses MCP servers from a terminal: it lists and calls what
// they offer, and lets a model work with them under a person's eyes.
package main

import (
	"context"
	"os"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], kit.Standard()))
}
