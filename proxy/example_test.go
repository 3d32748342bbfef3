package proxy_test

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/schema/provider"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A program that offers what gh-mcp does, beside tools of its own, over standard
// input and output.
func Example() {
	run := func(ctx context.Context) error {
		gh, err := proxy.Connect(ctx, stdio.Command("gh-mcp"), nil)
		if err != nil {
			return err
		}
		defer gh.Close()
		top := server.New("tools", "1.0.0", nil)
		top.Mount("gh", gh.Server())
		return stdio.Serve(ctx, top)
	}
	_ = run // main calls it
}

// The server behind the proxy asks, and the person at the client answers.
func ExampleConnect() {
	ctx := context.Background()
	bakery := server.New("bakery", "1.0.0", nil)
	bakery.Add(server.Tool("order", "Orders a cake.", func(ctx context.Context, in struct {
		Cake string `json:"cake"`
	},
	) (string, error) {
		answer, err := server.Elicit[struct {
			Candles int `json:"candles"`
		}](ctx, "How many candles?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s with %d candles", in.Cake, answer.Value.Candles), nil
	}))

	p, err := proxy.Connect(ctx, mem.New(bakery, nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	top := server.New("shops", "1.0.0", nil)
	top.Mount("bakery", p.Server())

	c, err := client.Connect(ctx, mem.New(top, nil), &client.Options{OnElicit: answerSeven})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "bakery_order", map[string]string{"cake": "Sacher"}))
	// Output: Sacher with 7 candles <nil>
}

// Clients that hand schemas on to their provider as they are get what it takes; calls are
// checked against the whole schema all the same.
func ExampleOptions_schemas() {
	ctx := context.Background()
	def := mcp.Tool{Name: "order", Description: "Orders a cake.", InputSchema: mcp.RawValue(
		`{"type":"object","properties":{"cake":{"type":"string"},"candles":{"type":"integer","exclusiveMinimum":0}}}`)}
	bakery := server.New("bakery", "1.0.0", nil)
	bakery.Add(server.RawTool(def, func(context.Context, mcp.RawValue) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("ordered")}}, nil
	}))

	p, err := proxy.Connect(ctx, mem.New(bakery, nil), &proxy.Options{Schemas: &provider.Gemini})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	c, err := client.Connect(ctx, mem.New(p.Server(), nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for t, err := range c.Tools(ctx) {
		fmt.Println(string(t.InputSchema), err)
	}
	_, err = client.Call[string](ctx, c, "order", map[string]any{"cake": "Sacher", "candles": 0})
	fmt.Println(err)
	// Output:
	// {"properties":{"cake":{"type":"string"},"candles":{"description":"(exclusiveMinimum: 0)","minimum":0,"type":"integer"}},"type":"object"} <nil>
	// tool "order": invalid arguments: /candles: must be above 0
}
