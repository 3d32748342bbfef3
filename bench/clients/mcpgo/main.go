// Command mcpgo measures the client of mcp-go.
package main

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/parley-mcp/parley/bench/clients/calling"
	"github.com/parley-mcp/parley/bench/fixture"
)

func main() { calling.Main(connect) }

func connect(ctx context.Context, t calling.Target) (*calling.Client, error) {
	var to transport.Interface = transport.NewStdio(t.Command, nil, "-stdio")
	if t.URL != "" {
		var err error
		if to, err = transport.NewStreamableHTTP(t.URL, transport.WithHTTPBasicClient(calling.HTTP())); err != nil {
			return nil, err
		}
	}
	c := client.NewClient(to, client.WithProtocolVersion(t.Version))
	// The relation outlives the time for connecting.
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	var req mcp.InitializeRequest
	req.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, req); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &calling.Client{
		Run: calling.Each(func(ctx context.Context) error {
			var req mcp.CallToolRequest
			req.Params.Name = fixture.Echo
			req.Params.Arguments = fixture.EchoIn{Text: fixture.Text}
			r, err := c.CallTool(ctx, req)
			if err != nil {
				return err
			}
			return check(r)
		}),
		Close: c.Close,
	}, nil
}

func check(r *mcp.CallToolResult) error {
	if r.IsError || len(r.Content) != 1 {
		return errors.New("not one content")
	}
	text, ok := r.Content[0].(mcp.TextContent)
	if !ok {
		return errors.New("no text")
	}
	return calling.Check(text.Text)
}
