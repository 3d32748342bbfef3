package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
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

// A sum is what the tool "add" of shop takes.
type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// shop stands for a server program: usually the dialer would be
// stdio.Command("./shop") or streamable.URL("https://shop.example/mcp").
func shop() (transport.Dialer, *server.Server) {
	s := server.New("shop", "1.0.0", nil)
	s.Add(
		server.Tool("add", "Adds two numbers.", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil }),
		server.Tool("order", "Orders fruit.", func(ctx context.Context, _ mcp.None) (string, error) {
			type size struct {
				Kilos int `json:"kilos"`
			}
			answer, err := server.Elicit[size](ctx, "How many kilos?")
			if err != nil || !answer.Accepted() {
				return "nothing ordered", err
			}
			return fmt.Sprintf("%d kg are on their way", answer.Value.Kilos), nil
		}),
		server.Text("shop:///prices", "prices", "apples 3.50"),
	)
	return mem.New(s, nil), s
}

func ExampleConnect() {
	ctx := context.Background()
	dialer, _ := shop()
	c, err := client.Connect(ctx, dialer, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	fmt.Println(c.Server().Name, c.Version())
	// Output: shop 2026-07-28
}

func ExampleCall() {
	ctx := context.Background()
	dialer, _ := shop()
	c, err := client.Connect(ctx, dialer, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	n, err := client.Call[int](ctx, c, "add", sum{A: 2, B: 3})
	fmt.Println(n, err)
	// A tool that fails says why in its result, which becomes the error.
	_, err = client.Call[int](ctx, c, "add", map[string]string{"a": "two"})
	var failed *client.ToolError
	fmt.Println(errors.As(err, &failed))
	// Output:
	// 5 <nil>
	// true
}

func ExampleClient_Tools() {
	ctx := context.Background()
	dialer, _ := shop()
	c, err := client.Connect(ctx, dialer, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for tool, err := range c.Tools(ctx) { // all pages, as the loop goes on
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name, "-", tool.Description)
	}
	// Output:
	// add - Adds two numbers.
	// order - Orders fruit.
}

func ExampleClient_Subscribe() {
	ctx := context.Background()
	dialer, s := shop()
	changed := make(chan string)
	c, err := client.Connect(ctx, dialer, &client.Options{
		OnResourceUpdated: func(_ context.Context, uri string) { changed <- uri },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	prices, err := c.Subscribe(ctx, "shop:///prices")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = prices.Close() }()
	s.ResourceUpdated("shop:///prices") // the server says that it has changed
	uri := <-changed
	r, err := c.ReadResource(ctx, uri, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(uri, r.Contents[0].Text)
	// Output: shop:///prices apples 3.50
}

func ExampleElicitRequest() {
	ctx := context.Background()
	dialer, _ := shop()
	c, err := client.Connect(ctx, dialer, &client.Options{
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Printf("%s asks during %s: %s\n", r.Server.Name, r.Target, r.Params.Message)
			for _, field := range r.Form().Properties {
				fmt.Println("-", field.Name)
			}
			return client.Accept(map[string]int{"kilos": 2}) // what the person typed
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	out, err := client.Call[string](ctx, c, "order", nil)
	fmt.Println(out, err)
	// Output:
	// shop asks during order: How many kilos?
	// - kilos
	// 2 kg are on their way <nil>
}

func ExampleMiddleware() {
	logged := func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			result, err := next(ctx, r)
			fmt.Printf("%s %s %T, %d attempts, %v\n", r.Method(), r.Target(), result, r.Attempts(), err)
			return result, err
		}
	}
	traced := func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			// A tracing library gives the headers of the span that it begins here.
			return next(client.WithTrace(ctx, "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "", ""), r)
		}
	}
	ctx := context.Background()
	dialer, _ := shop()
	c, err := client.Connect(ctx, dialer, &client.Options{Middleware: []client.Middleware{logged, traced}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := client.Call[int](ctx, c, "add", sum{A: 2, B: 3}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// server/discover  *mcp.DiscoverResult, 1 attempts, <nil>
	// tools/call add *mcp.CallToolResult, 1 attempts, <nil>
}

func ExampleRequestFrom() {
	type userKey struct{}
	dialer, _ := shop()
	c, err := client.Connect(context.Background(), dialer, &client.Options{
		OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			// The context has the values of that of the call, so that a question
			// finds the person whom the call is for.
			fmt.Println("ask", ctx.Value(userKey{}), "during", client.RequestFrom(ctx).Target())
			return client.Decline()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx := context.WithValue(context.Background(), userKey{}, "Ada")
	out, err := client.Call[string](ctx, c, "order", nil)
	fmt.Println(out, err)
	// Output:
	// ask Ada during order
	// nothing ordered <nil>
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

// carelessServer stands for a server that was made without much care.
func carelessServer() transport.Dialer {
	return mem.New(&script{on: map[string]func(*req) (any, error){
		mcp.MethodToolsList: func(*req) (any, error) {
			return raw(`{"tools":[{"name":"buy","title":7,"annotations":{"readOnlyHint":"no"},"inputSchema":{"type":"object"}}]}`), nil
		},
	}}, nil)
}

func ExampleClient_Problems() {
	ctx := context.Background()
	c, err := client.Connect(ctx, carelessServer(), &client.Options{
		OnProblem: func(_ context.Context, p *client.Problem) { fmt.Println(p) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("usable:", tool.Name)
	}
	fmt.Println(len(c.Problems()), "problems")
	// Output:
	// tools/list "buy": /tools/0/title: expected string, got number
	// tools/list "buy": /tools/0/annotations/readOnlyHint: expected boolean, got string
	// usable: buy
	// 2 problems
}
