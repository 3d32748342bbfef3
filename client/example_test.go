package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
)

// exampleServer stands for a server program: usually the dialer would be
// stdio.Command("./shop").
func exampleServer() transport.Dialer {
	const question = `"ok":{"method":"elicitation/create","params":{"message":"Really buy 3 apples?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}}}}}`
	return mem.New(&script{on: map[string]func(*req) (any, error){
		mcp.MethodToolsList: func(*req) (any, error) {
			return raw(`{"resultType":"complete","tools":[{"name":"buy","description":"Buys fruit.","inputSchema":{"type":"object"}}],"ttlMs":60000,"cacheScope":"public"}`), nil
		},
		mcp.MethodToolsCall: func(r *req) (any, error) {
			if text(r.in, "inputResponses") == "" {
				return raw(required(question, `"sealed"`)), nil
			}
			return raw(`{"resultType":"complete","content":[{"type":"text","text":"bought"}],"structuredContent":{"price":3.5}}`), nil
		},
		mcp.MethodResourcesRead: func(*req) (any, error) {
			return nil, jsonrpc.NewError(mcp.CodeInvalidParams, "no such resource")
		},
	}}, nil)
}

func Example() {
	ctx := context.Background()
	c, err := client.Connect(ctx, exampleServer(), &client.Options{
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(r.Server.Name, "asks:", r.Params.Message)
			return client.Accept(map[string]bool{"sure": true})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name, "-", tool.Description)
	}
	type order struct {
		Fruit string `json:"fruit"`
		Count int    `json:"count"`
	}
	type bill struct {
		Price float64 `json:"price"`
	}
	b, err := client.Call[bill](ctx, c, "buy", order{"apples", 3})
	fmt.Println(b.Price, err)
	// Output:
	// buy - Buys fruit.
	// script asks: Really buy 3 apples?
	// 3.5 <nil>
}

func ExampleClient_ReadResource() {
	ctx := context.Background()
	c, err := client.Connect(ctx, exampleServer(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.ReadResource(ctx, "shop:///prices", nil)
	fmt.Println(err)
	// Output: resources/read "shop:///prices": no such resource (code -32602)
}
