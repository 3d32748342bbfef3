package proxy_test

import (
	"context"
	"fmt"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/proxy"
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
