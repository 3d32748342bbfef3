package tasks_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/mem"
)

// A client with the extension calls tools as ever. Whether a server answers with a task
// is nothing that its caller sees.
func ExampleClient() {
	ctx := context.Background()
	s := indexServer()
	defer s.Shutdown(ctx) //nolint:errcheck // the program ends
	c, err := client.Connect(ctx, mem.New(s, nil), &client.Options{Extensions: []client.Extension{tasks.Client(nil)}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	text, err := client.Call[string](ctx, c, "index", map[string]string{"repo": "a/b"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output: indexed a/b
}

// A handle waits for a task later, also in another process.
func ExampleStart() {
	ctx := context.Background()
	s := indexServer()
	defer s.Shutdown(ctx) //nolint:errcheck // the program ends
	c, err := client.Connect(ctx, mem.New(s, nil), &client.Options{Extensions: []client.Extension{tasks.Client(nil)}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	started, err := tasks.Start[string](ctx, c, "index", map[string]string{"repo": "a/b"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	saved, err := started.MarshalBinary() // keep it, for another process
	if err != nil {
		log.Fatal(err)
	}
	resumed, err := tasks.Resume[string](ctx, c, saved, nil)
	if err != nil {
		log.Fatal(err)
	}
	for state, err := range resumed.Updates(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if state.Status.Ended() {
			fmt.Println(state.Tool, state.Status)
		}
	}
	text, err := resumed.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output:
	// index completed
	// indexed a/b
}

// indexServer has a tool whose calls become tasks.
func indexServer() *server.Server {
	s := server.New("indexer", "1", nil)
	s.Add(server.Tool("index", "Indexes a repository.", func(_ context.Context, in struct {
		Repo string `json:"repo"`
	},
	) (string, error) {
		time.Sleep(10 * time.Millisecond)
		return "indexed " + in.Repo, nil
	}))
	tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"index": {Mode: tasks.May}}})
	return s
}
