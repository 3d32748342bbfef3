package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// connected joins a client to a server in one process.
func connected(s *server.Server, o *client.Options) (*client.Client, func()) {
	c, err := client.Connect(context.Background(), mem.New(s, nil), o)
	if err != nil {
		panic(err)
	}
	return c, func() { _ = c.Close() }
}

func Example() {
	type args struct {
		Name string `json:"name" desc:"Who is greeted."`
	}
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets a person by name.", func(_ context.Context, in args) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))

	ctx := context.Background()
	c, end := connected(s, nil)
	defer end()
	text, err := client.Call[string](ctx, c, "greet", args{Name: "Ada"})
	fmt.Println(text, err)
	_, err = client.Call[string](ctx, c, "greet", map[string]int{"name": 7})
	fmt.Println(err)
	// Output:
	// Hello, Ada! <nil>
	// tool "greet": invalid arguments: /name: expected string, got number
}

func ExampleElicit() {
	type confirm struct {
		Sure bool `json:"sure" desc:"Really drop it?"`
	}
	s := server.New("tables", "1", nil)
	s.Add(server.Tool("drop", "Drops a table.", func(ctx context.Context, in struct {
		Table string `json:"table"`
	},
	) (string, error) {
		answer, err := server.Elicit[confirm](ctx, "Drop table "+in.Table+"?")
		if err != nil {
			return "", err
		}
		if !answer.Accepted() || !answer.Value.Sure {
			return "kept " + in.Table, nil
		}
		return "dropped " + in.Table, nil
	}))

	c, end := connected(s, &client.Options{OnElicit: func(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println(r.Params.Message)
		return client.Accept(confirm{Sure: true})
	}})
	defer end()
	text, err := client.Call[string](context.Background(), c, "drop", map[string]string{"table": "orders"})
	fmt.Println(text, err)
	// Output:
	// Drop table orders?
	// dropped orders <nil>
}

// Middleware hands a user on to handlers with [server.Call.WithContext].
func ExampleCall_WithContext() {
	type userKey struct{}
	s := server.New("who", "1", nil)
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			return next(c.WithContext(context.WithValue(c, userKey{}, "ada")))
		}
	})
	s.Add(server.Tool("whoami", "Tells the user.", func(ctx context.Context, _ mcp.None) (string, error) {
		return ctx.Value(userKey{}).(string), nil
	}))

	c, end := connected(s, nil)
	defer end()
	fmt.Println(client.Call[string](context.Background(), c, "whoami", nil))
	// Output: ada <nil>
}

// A measure of every request: what it was, in which session, and how it went. A
// question to the client is no failure.
func ExampleOutcomeOf() {
	s := server.New("shop", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Use(func(next server.Func) server.Func {
		return func(c *server.Call) (server.Result, error) {
			res, err := next(c)
			if c.Method() == "tools/call" {
				fmt.Printf("%s %s over %s, in a session: %t, %s: %v\n",
					c.Method(), c.Target(), c.Transport(), c.SessionID() != "", c.Version(), server.OutcomeOf(c, res, err))
			}
			return res, err
		}
	})
	s.Add(
		server.Tool("pay", "Pays.", func(ctx context.Context, _ mcp.None) (string, error) {
			_, err := server.Elicit[struct {
				Sure bool `json:"sure"`
			}](ctx, "Pay?")
			return "paid", err
		}),
		server.Tool("broken", "Fails.", func(context.Context, mcp.None) (string, error) { return "", errors.New("disk full") }),
	)

	ctx := context.Background()
	c, end := connected(s, &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(map[string]bool{"sure": true})
	}})
	defer end()
	_, _ = client.Call[string](ctx, c, "pay", nil)
	_, _ = client.Call[string](ctx, c, "broken", nil)
	// Output:
	// tools/call pay over memory, in a session: false, 2026-07-28: input required
	// tools/call pay over memory, in a session: false, 2026-07-28: ok
	// tools/call broken over memory, in a session: false, 2026-07-28: failed
}

// A typed handler with a schema whose enum is known at run time only.
func ExampleToolOptions_inputSchema() {
	type args struct {
		Team string `json:"team"`
	}
	teams := []string{"red", "blue"} // from a database
	s := server.New("teams", "1", nil)
	s.Add(server.Tool("join", "Joins a team.", func(_ context.Context, in args) (string, error) {
		return "joined " + in.Team, nil
	}).With(server.ToolOptions{
		InputSchema: mcp.RawValue(`{"type":"object","properties":{"team":{"type":"string","enum":["` + strings.Join(teams, `","`) + `"]}},"required":["team"]}`),
	}))

	c, end := connected(s, nil)
	defer end()
	fmt.Println(client.Call[string](context.Background(), c, "join", args{"blue"}))
	_, err := client.Call[string](context.Background(), c, "join", args{"green"})
	fmt.Println(err)
	// Output:
	// joined blue <nil>
	// tool "join": invalid arguments: /team: must be one of "red", "blue"
}

// A gateway hands on tools that it does not check, under names that are legal.
func ExampleUncheckedTool() {
	s := server.New("gateway", "1", nil)
	for _, name := range []string{"get user", "delete user"} { // of some other system
		def := mcp.Tool{Name: server.LegalName(name), InputSchema: mcp.RawValue(`{"type":"object"}`)}
		f, err := server.NewUncheckedTool(def, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(name + " " + string(arguments))}}, nil
		})
		if err != nil {
			fmt.Println(err)
			continue
		}
		s.Add(f)
	}

	c, end := connected(s, nil)
	defer end()
	fmt.Println(client.Call[string](context.Background(), c, "get_user", map[string]int{"id": 7}))
	// Output: get user {"id":7} <nil>
}

func ExampleRawPrompt() {
	s := server.New("prompts", "1", nil)
	s.Add(server.RawPrompt(mcp.Prompt{Name: "review", Arguments: []mcp.PromptArgument{{Name: "code", Required: true}}},
		func(_ context.Context, arguments map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{
				{Role: mcp.RoleUser, Content: mcp.Text("Review this:\n" + arguments["code"])},
			}}, nil
		}))

	c, end := connected(s, nil)
	defer end()
	res, err := c.GetPrompt(context.Background(), "review", map[string]string{"code": "f()"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Messages[0].Content.(*mcp.TextContent).Text)
	// Output:
	// Review this:
	// f()
}

func ExampleTemplate() {
	type repo struct {
		Owner string `uri:"owner"`
		Name  string `uri:"name"`
	}
	s := server.New("repos", "1", nil)
	s.Add(server.Template("repo://{owner}/{name}", "Repository", func(_ context.Context, r repo) (string, error) {
		return r.Name + " of " + r.Owner, nil
	}))

	c, end := connected(s, nil)
	defer end()
	res, err := c.ReadResource(context.Background(), "repo://ada/engine", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Contents[0].Text)
	// Output: engine of ada
}

// What a program knows about its errors may be shown to the caller; all others
// are hidden behind a reference that the log has too.
func ExampleOptions_mapError() {
	errNoRows := errors.New("no rows")
	s := server.New("orders", "1", &server.Options{MapError: func(_ context.Context, err error) error {
		if errors.Is(err, errNoRows) {
			return mcp.Errorf("no such order")
		}
		return nil
	}})
	s.Add(server.Tool("order", "Shows an order.", func(context.Context, mcp.None) (string, error) { return "", errNoRows }))

	c, end := connected(s, nil)
	defer end()
	_, err := client.Call[string](context.Background(), c, "order", nil)
	fmt.Println(err)
	// Output: tool "order": no such order
}
