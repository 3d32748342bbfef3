package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// The schema and the defaults are made of the type, and arguments are checked
// before the function runs.
func ExampleTool() {
	type args struct {
		Query string `json:"query" desc:"words to look for" minlen:"1"`
		Limit int    `json:"limit" min:"1" max:"50" default:"10"`
	}
	type result struct {
		Hits []string `json:"hits"`
	}
	search := func(_ context.Context, in args) (result, error) {
		return result{Hits: []string{fmt.Sprintf("one of %d for %s", in.Limit, in.Query)}}, nil
	}
	s := server.New("search", "1", nil)
	s.Add(server.Tool("search", "Searches.", search))

	ctx := context.Background()
	c, end := connected(s, nil)
	defer end()
	out, err := client.Call[result](ctx, c, "search", map[string]string{"query": "bridges"})
	fmt.Println(out.Hits, err)
	_, err = client.Call[result](ctx, c, "search", map[string]any{"query": "", "limit": 99})
	fmt.Println(err)
	// Output:
	// [one of 10 for bridges] <nil>
	// tool "search": invalid arguments: /limit: must be between 1 and 50; /query: must have at least 1 character, has 0
}

// A value for programs, and other words for the model.
func ExampleTool_content() {
	type sum struct {
		Total int `json:"total"`
	}
	s := server.New("till", "1", nil)
	s.Add(server.Tool("total", "Adds up.", func(context.Context, mcp.None) (mcp.With[sum], error) {
		return mcp.With[sum]{Value: sum{42}, Content: []mcp.Content{mcp.Text("It makes 42 euro.")}}, nil
	}))

	c, end := connected(s, nil)
	defer end()
	res, err := c.CallTool(context.Background(), "total", nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(res.StructuredContent), res.Content[0].(*mcp.TextContent).Text)
	// Output: {"total":42} It makes 42 euro.
}

// Errors of package mcp are for the model; all others stay in the log.
func ExampleTool_errors() {
	s := server.New("shop", "1", &server.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Add(server.Tool("buy", "Buys.", func(_ context.Context, in struct {
		Item string `json:"item"`
	},
	) (string, error) {
		if in.Item == "bridge" {
			return "", mcp.Errorf("%s is sold out; try another item", in.Item)
		}
		return "", errors.New("open /srv/stock.db: permission denied")
	}))

	ctx := context.Background()
	c, end := connected(s, nil)
	defer end()
	_, err := client.Call[string](ctx, c, "buy", map[string]string{"item": "bridge"})
	fmt.Println(err)
	_, err = client.Call[string](ctx, c, "buy", map[string]string{"item": "boat"})
	fmt.Println(err.Error()[:len(`tool "buy": internal error`)])
	// Output:
	// tool "buy": bridge is sold out; try another item
	// tool "buy": internal error
}

// A tool whose definition is known at run time only. An error is returned where
// RawTool would panic.
func ExampleNewRawTool() {
	s := server.New("api", "1", nil)
	for _, name := range []string{"get user", "?"} {
		def := mcp.Tool{
			Name:        server.LegalName(name),
			InputSchema: mcp.RawValue(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`),
		}
		tool, err := server.NewRawTool(def, func(_ context.Context, arguments mcp.RawValue) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(string(arguments))}}, nil
		})
		if err == nil {
			err = s.TryAdd(tool)
		}
		if err != nil {
			fmt.Println(err)
		}
	}

	c, end := connected(s, nil)
	defer end()
	fmt.Println(client.Call[string](context.Background(), c, "get_user", map[string]int{"id": 7}))
	_, err := client.Call[string](context.Background(), c, "get_user", nil)
	fmt.Println(err)
	// Output:
	// {"id":7} <nil>
	// tool "get_user": invalid arguments: member "id" is required
}

func ExampleResource() {
	visits := 0
	s := server.New("site", "1", nil)
	s.Add(server.Resource("site:///visits", "visits", func(context.Context) (string, error) {
		visits++
		return fmt.Sprint(visits), nil
	}))

	c, end := connected(s, nil)
	defer end()
	for range 2 {
		res, err := c.ReadResource(context.Background(), "site:///visits", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Contents[0].Text)
	}
	// Output:
	// 1
	// 2
}

func ExampleDirectory() {
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "intro.md"), []byte("# Intro"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = root.Close() }()
	s := server.New("docs", "1", nil)
	s.Add(server.Directory("docs:///", root))

	c, end := connected(s, nil)
	defer end()
	for r, err := range c.Resources(context.Background()) {
		fmt.Println(r.URI, err)
	}
	_, err = c.ReadResource(context.Background(), "docs:///../secret", nil)
	fmt.Println(err != nil)
	// Output:
	// docs:///intro.md <nil>
	// true
}

func ExamplePrompt() {
	type args struct {
		Language string `json:"language" enum:"go,rust"`
	}
	s := server.New("prompts", "1", nil)
	s.Add(server.Prompt("review", "Reviews code.", func(_ context.Context, in args) (string, error) {
		return "Review this " + in.Language + " code.", nil
	}))

	ctx := context.Background()
	c, end := connected(s, nil)
	defer end()
	res, err := c.GetPrompt(ctx, "review", map[string]string{"language": "go"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Messages[0].Content.(*mcp.TextContent).Text)
	found, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref: mcp.PromptRef("review"), Argument: mcp.CompletionArgument{Name: "language", Value: "r"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Values)
	// Output:
	// Review this go code.
	// [rust]
}

func ExampleProgress() {
	s := server.New("copier", "1", nil)
	s.Add(server.Tool("copy", "Copies.", func(ctx context.Context, _ mcp.None) (string, error) {
		for i, file := range []string{"a", "b"} {
			if err := server.Progress(ctx, float64(i+1), 2, "copied "+file); err != nil {
				return "", err
			}
		}
		return "done", nil
	}))

	c, end := connected(s, nil)
	defer end()
	_, err := c.CallTool(context.Background(), "copy", nil, &client.CallOptions{
		OnProgress: func(progress, total float64, message string) { fmt.Println(progress, total, message) },
	})
	fmt.Println(err)
	// Output:
	// 1 2 copied a
	// 2 2 copied b
	// <nil>
}

// In the stateless revision the handler runs again when the answer is there.
// What Once did is not done again.
func ExampleOnce() {
	tickets := 0
	s := server.New("desk", "1", nil)
	s.Add(server.Tool("close", "Closes a shop.", func(ctx context.Context, _ mcp.None) (string, error) {
		ticket, err := server.Once(ctx, "ticket", func() (int, error) {
			tickets++
			return 1000 + tickets, nil
		})
		if err != nil {
			return "", err
		}
		answer, err := server.Elicit[struct {
			Sure bool `json:"sure"`
		}](ctx, "Close it?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("closed: %t, ticket %d", answer.Value.Sure, ticket), nil
	}))

	c, end := connected(s, &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(map[string]bool{"sure": true})
	}})
	defer end()
	text, err := client.Call[string](context.Background(), c, "close", nil)
	fmt.Println(text, err, tickets)
	// Output: closed: true, ticket 1001 <nil> 1
}

// Questions of several goroutines reach the client together. Two that ask for
// the same have a key each.
func ExampleAskOptions() {
	type date struct {
		Day string `json:"day" format:"date"`
	}
	s := server.New("travel", "1", nil)
	s.Add(server.Tool("trip", "Plans a trip.", func(ctx context.Context, _ mcp.None) (string, error) {
		var there, back server.Answer[date]
		var errThere, errBack error
		var both sync.WaitGroup
		both.Go(func() { there, errThere = server.Elicit[date](ctx, "When?", &server.AskOptions{Key: "there"}) })
		both.Go(func() { back, errBack = server.Elicit[date](ctx, "When?", &server.AskOptions{Key: "back"}) })
		both.Wait()
		return there.Value.Day + " to " + back.Value.Day, errors.Join(errThere, errBack)
	}))

	c, end := connected(s, &client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
		return client.Accept(date{Day: "2026-12-24"})
	}})
	defer end()
	fmt.Println(client.Call[string](context.Background(), c, "trip", nil))
	// Output: 2026-12-24 to 2026-12-24 <nil>
}

// Every caller sees the tools that are for it.
func ExampleServer_Visible() {
	s := server.New("office", "1", nil)
	s.Add(
		server.Tool("read", "Reads.", func(context.Context, mcp.None) (string, error) { return "", nil }),
		server.Tool("erase", "Erases.", func(context.Context, mcp.None) (string, error) { return "", nil }).
			With(server.ToolOptions{Labels: []string{"admin"}}),
	)
	s.Visible(func(ctx context.Context, it server.Item) bool {
		return len(it.Labels) == 0 || server.Caller(ctx).Subject == "root"
	})

	c, end := connected(s, nil)
	defer end()
	for tool, err := range c.Tools(context.Background()) {
		fmt.Println(tool.Name, err)
	}
	// Output: read <nil>
}

// The features of another server, under a prefix.
func ExampleServer_Mount() {
	other := server.New("weather", "1", nil)
	other.Add(server.Tool("today", "Tells the weather.", func(context.Context, mcp.None) (string, error) { return "sun", nil }))
	s := server.New("all", "1", nil)
	s.Mount("weather", other)

	c, end := connected(s, nil)
	defer end()
	fmt.Println(client.Call[string](context.Background(), c, "weather_today", nil))
	// Output: sun <nil>
}
