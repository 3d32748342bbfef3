// Command manyservers joins the tools of several servers, over whatever
// transport each of them speaks, under names that are unique and that models
// take. See docs/guide/clients.md.
//
//	manyservers hello=hello notes='notes -db n.db' web=https://example.com/mcp
//	manyservers -for anthropic hello=hello
//	manyservers -call hello__greet -with '{"name":"Ada"}' hello=hello
//	manyservers -call hello__greet -with '{"name":"Ada"}' -for openai hello=hello
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

func main() {
	provider := flag.String("for", "", "print the tools, or the result of the call, as a model provider wants them: anthropic, openai or gemini")
	call := flag.String("call", "", "tool to call, by its joined name")
	with := flag.String("with", "{}", "arguments of the call, in JSON")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *provider, *call, *with, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, provider, call, with string, servers []string) error {
	h, err := join(servers)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	catalog := h.Settle(ctx, time.Minute)
	for _, down := range catalog.Down { // the others are usable
		log.Print(down)
	}
	define, answer := providers[provider], results[provider]
	if provider != "" && define == nil {
		return fmt.Errorf("-for %q: write anthropic, openai or gemini", provider)
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	switch {
	case call != "":
		result, err := callTool(ctx, h, catalog, call, with)
		if err != nil {
			return err
		}
		if provider != "" {
			return e.Encode(answer("call_1", call, result))
		}
		if result.IsError {
			return errors.New(text(result))
		}
		_, err = fmt.Fprintln(out, text(result))
		return err
	case provider != "":
		return e.Encode(define(catalog.Tools))
	}
	for _, t := range catalog.Tools {
		if _, err := fmt.Fprintf(out, "%s  %s\n", t.ModelName, t.Def.Description); err != nil {
			return err
		}
	}
	return nil
}

// join makes a host of servers that are written as NAME=COMMAND or NAME=URL.
// It connects to none of them yet.
func join(servers []string) (*host.Host, error) {
	h := host.New(nil)
	for _, entry := range servers {
		name, target, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, fmt.Errorf("%q: write NAME=COMMAND or NAME=URL", entry)
		}
		if err := h.Add(host.Server{Name: name, Dialer: dialer(target)}); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// dialer reaches a server by its URL, also one of the first revision, or starts
// it as a child process.
func dialer(target string) transport.Dialer {
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return transport.First(streamable.URL(target), sse.URL(target))
	}
	words := strings.Fields(target)
	return stdio.Command(words[0], words[1:]...)
}

// callTool calls a tool by the name that the model knows.
func callTool(ctx context.Context, h *host.Host, catalog *host.Catalog, name, arguments string) (*mcp.CallToolResult, error) {
	tool, ok := catalog.Named(name)
	if !ok {
		return nil, fmt.Errorf("no tool %q", name)
	}
	c, err := h.Client(ctx, tool.Server)
	if err != nil {
		return nil, err
	}
	return c.CallTool(ctx, tool.Def.Name, mcp.RawValue(arguments), nil)
}
