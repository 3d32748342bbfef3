// Command serve serves the script over standard input and output, as written
// with the library that its only argument names: the child process of the
// tests over stdio.
//
//	serve ours|go-sdk|mcp-go
//
// With "count" it serves a tool that adds its argument to a file, a line for each call:
//
//	serve count FILE
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/app/interop/gosdk"
	"github.com/parley-mcp/parley/app/interop/mcpgo"
	"github.com/parley-mcp/parley/app/interop/ours"
	"github.com/parley-mcp/parley/transport/stdio"
)

func main() {
	if err := serve(context.Background(), os.Args[1:]); err != nil {
		log.Fatal("serve: ", err)
	}
}

var errUsage = errors.New("usage: serve ours|go-sdk|mcp-go|count FILE")

func serve(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "count" {
		return stdio.Serve(ctx, ours.NewCounter(ours.CountInFile(args[1])))
	}
	if len(args) != 1 {
		return errUsage
	}
	switch args[0] {
	case "ours":
		return stdio.Serve(ctx, ours.NewServer(nil))
	case "go-sdk":
		return gosdk.NewServer().Run(ctx, &mcp.StdioTransport{})
	case "mcp-go":
		return server.ServeStdio(mcpgo.NewServer())
	default:
		return errUsage
	}
}
