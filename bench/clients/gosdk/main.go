// Command gosdk measures the client of the official Go SDK.
package main

import (
	"context"
	"errors"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-mcp/parley/bench/clients/calling"
	"github.com/parley-mcp/parley/bench/fixture"
)

func main() { calling.Main(connect) }

func connect(ctx context.Context, t calling.Target) (*calling.Client, error) {
	// It ends with its input, when the client is closed.
	var to mcp.Transport = &mcp.CommandTransport{Command: exec.CommandContext(context.WithoutCancel(ctx), t.Command, "-stdio")}
	if t.URL != "" {
		to = &mcp.StreamableClientTransport{Endpoint: t.URL, HTTPClient: calling.HTTP()}
	}
	// The relation outlives the time for connecting.
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := c.Connect(context.WithoutCancel(ctx), to, &mcp.ClientSessionOptions{ProtocolVersion: t.Version})
	if err != nil {
		return nil, err
	}
	return &calling.Client{
		Run: calling.Each(func(ctx context.Context) error {
			r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: fixture.Echo, Arguments: fixture.EchoIn{Text: fixture.Text}})
			if err != nil {
				return err
			}
			return check(r)
		}),
		Close: session.Close,
	}, nil
}

func check(r *mcp.CallToolResult) error {
	if r.IsError || len(r.Content) != 1 {
		return errors.New("not one content")
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return errors.New("no text")
	}
	return calling.Check(text.Text)
}
