package parley_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/signal"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// A server that a client starts as a child process.
func Example_server() {
	type Person struct {
		Name string `json:"name" desc:"whom to greet" minlen:"1"`
	}
	greet := func(_ context.Context, in Person) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", greet))
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}

// The same server over HTTP, for clients of every revision at one address.
func Example_http() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := server.New("hello", "1.0.0", nil)
	// At http://127.0.0.1:8080/mcp. NewHandler makes an http.Handler for a
	// server of your own instead.
	if err := streamable.Serve(ctx, "127.0.0.1:8080", s, nil); err != nil {
		log.Fatal(err)
	}
}

// A client of a server at a URL. One that speaks only the transport of the
// first revision is found as well.
func Example_remote() {
	ctx := context.Background()
	const url = "https://mcp.example.com/mcp"
	c, err := client.Connect(ctx, transport.First(streamable.URL(url), sse.URL(url)), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name)
	}
}

// A client of a server in another process.
func Example_client() {
	ctx := context.Background()
	c, err := client.Connect(ctx, stdio.Command("./hello"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "greet", map[string]string{"name": "Ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

// A server in front of another one, whose tools it offers beside its own.
func Example_frontServer() {
	ctx := context.Background()
	gh, err := proxy.Connect(ctx, stdio.Command("gh-mcp"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer gh.Close()
	top := server.New("tools", "1.0.0", nil)
	top.Mount("gh", gh.Server())
	if err := stdio.Serve(ctx, top); err != nil {
		log.Fatal(err)
	}
}

// Both ends in one process, as in a test.
func Example() {
	type Sum struct {
		Total float64 `json:"total"`
	}
	add := func(_ context.Context, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	},
	) (Sum, error) {
		return Sum{in.A + in.B}, nil
	}
	s := server.New("calculator", "1.0.0", nil)
	s.Add(server.Tool("add", "Adds two numbers.", add))

	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sum, err := client.Call[Sum](ctx, c, "add", map[string]float64{"a": 2, "b": 3})
	fmt.Println(sum.Total, err)
	// Output: 5 <nil>
}

// A handler that asks the person before it acts. It is written as one straight
// line and serves every revision: where there is no session, the handler runs
// again when the answer is there, and Once keeps the ticket from being opened
// twice.
func Example_asking() {
	type Confirm struct {
		Reason string `json:"reason" desc:"why it has to go"`
	}
	openTicket := func() (int, error) { return 42, nil }
	drop := func(ctx context.Context, in struct {
		Table string `json:"table"`
	},
	) (string, error) {
		ticket, err := server.Once(ctx, "ticket", openTicket)
		if err != nil {
			return "", err
		}
		ans, err := server.Elicit[Confirm](ctx, "Drop table "+in.Table+"?")
		if err != nil {
			return "", err
		}
		if !ans.Accepted() {
			return "kept " + in.Table, nil
		}
		return fmt.Sprintf("dropped %s: %s (ticket %d)", in.Table, ans.Value.Reason, ticket), nil
	}
	s := server.New("db", "1.0.0", nil)
	s.Add(server.Tool("drop", "Drops a table.", drop))

	person := &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println(r.Params.Message)
		return client.Accept(Confirm{Reason: "obsolete"})
	}}
	ctx := context.Background()
	c, err := client.Connect(ctx, mem.New(s, nil), person)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "drop", map[string]string{"table": "logs"})
	fmt.Println(text, err)
	// Output:
	// Drop table logs?
	// dropped logs: obsolete (ticket 42) <nil>
}

// A server that lets in who has a token of an authorization server for it. The
// tool needs a scope, which clients ask for when they are told.
func Example_guarded() {
	const url, issuer = "https://api.example/mcp", "https://issuer.example"
	greet := func(ctx context.Context, _ struct{}) (string, error) {
		return "Hello " + server.Caller(ctx).Subject + "!", nil
	}
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets whoever calls.", greet).With(server.ToolOptions{Scopes: []string{"greet"}}))
	g, err := guard.New(url, guard.JWT(issuer, nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", g.Handler(streamable.NewHandler(s, nil))))
}

// A server behind a reverse proxy.
func Example_proxied() {
	s := server.New("hello", "1.0.0", nil)
	access := web.Access{
		Hosts:          []string{"mcp.example"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}
	h := streamable.NewHandler(s, &streamable.Options{Access: access})
	log.Fatal(http.ListenAndServe("10.1.2.3:8080", h))
}

// A client that signs in when a server wants to know who calls: in the
// person's browser, unless there is a token already.
func Example_signIn() {
	ctx := context.Background()
	d := streamable.URL("https://api.example/mcp")
	d.Client = login.New(&login.Options{ClientName: "Hello"}).HTTPClient(nil)
	c, err := client.Connect(ctx, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}
