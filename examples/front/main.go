// Command front is one server in front of several: it offers what they offer,
// each under a prefix. See docs/guide/proxies.md.
//
//	front hello=hello web=https://example.com/mcp
//	front -http 127.0.0.1:8080 -hide notes_edit_note hello=hello notes='notes -db n.db'
//	front -for gemini hello=hello
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/schema/provider"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

func main() {
	addr := flag.String("http", "", "address to serve http://ADDRESS/mcp on; without it standard input and output")
	hide := flag.String("hide", "", "names, with their prefix, that nobody may see: NAME,NAME")
	model := flag.String("for", "", "who runs the callers' models: anthropic, openai or gemini; tools get schemas that it takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *hide, *model, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// profiles say which schemas a provider of models takes.
var profiles = map[string]*provider.Profile{
	"": nil, "anthropic": &provider.Anthropic, "openai": &provider.OpenAI, "gemini": &provider.Gemini,
}

func run(ctx context.Context, addr, hide, model string, upstreams []string) error {
	schemas, known := profiles[model]
	if !known {
		return fmt.Errorf("-for %q: write anthropic, openai or gemini", model)
	}
	top, closeAll, err := join(ctx, schemas, upstreams)
	if err != nil {
		return err
	}
	hidden := strings.Split(hide, ",")
	top.Visible(func(_ context.Context, it server.Item) bool { return !slices.Contains(hidden, it.Name) })
	if addr == "" {
		err = stdio.Serve(ctx, top)
	} else {
		err = streamable.Serve(ctx, addr, top, nil)
	}
	return errors.Join(err, closeAll())
}

// join makes one server of several that are written as PREFIX=COMMAND or
// PREFIX=URL. closeAll ends the connections, and the processes.
func join(ctx context.Context, schemas *provider.Profile, upstreams []string) (top *server.Server, closeAll func() error, err error) {
	var open []*proxy.Proxy
	closeAll = func() error {
		var errs []error
		for _, p := range open {
			errs = append(errs, p.Close())
		}
		return errors.Join(errs...)
	}
	top = server.New("front", "1.0.0", nil)
	for _, entry := range upstreams {
		prefix, target, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, nil, errors.Join(fmt.Errorf("%q: write PREFIX=COMMAND or PREFIX=URL", entry), closeAll())
		}
		p, err := proxy.Connect(ctx, dialer(target), &proxy.Options{Schemas: schemas})
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", prefix, err), closeAll())
		}
		open = append(open, p)
		top.Mount(prefix, p.Server())
	}
	return top, closeAll, nil
}

func dialer(target string) transport.Dialer {
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return transport.First(streamable.URL(target), sse.URL(target))
	}
	words := strings.Fields(target)
	return stdio.Command(words[0], words[1:]...)
}
