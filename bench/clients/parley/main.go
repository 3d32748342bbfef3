// Command parley measures our client.
package main

import (
	"context"

	"github.com/parley-mcp/parley/bench/clients/calling"
	"github.com/parley-mcp/parley/bench/fixture"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

func main() { calling.Main(connect) }

func connect(ctx context.Context, t calling.Target) (*calling.Client, error) {
	var d transport.Dialer = stdio.Command(t.Command, "-stdio")
	if t.URL != "" {
		d = &streamable.Dialer{URL: t.URL, Client: calling.HTTP()}
	}
	c, err := client.Connect(ctx, d, &client.Options{Versions: []string{t.Version}, Eras: client.NewEraMemory()})
	if err != nil {
		return nil, err
	}
	return &calling.Client{
		Run: calling.Each(func(ctx context.Context) error {
			text, err := client.Call[string](ctx, c, fixture.Echo, fixture.EchoIn{Text: fixture.Text})
			if err != nil {
				return err
			}
			return calling.Check(text)
		}),
		Close: c.Close,
	}, nil
}
