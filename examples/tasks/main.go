// Command tasks serves a tool that takes long. Clients that know tasks get a task instead of
// waiting: it outlives their request, asks its questions when they look, and is cancelled by
// a request of its own. With -ask it is a client of itself. See docs/guide/tasks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
)

func newServer(store tasks.Store) *server.Server {
	s := server.New("reports", "1.0.0", nil)
	s.Add(server.Tool("report", "Writes a report about a topic, which takes a while.", report))
	tasks.Enable(s, store, &tasks.Options{Tools: map[string]tasks.Tool{
		"report": {Mode: tasks.May, Repeatable: true},
	}})
	return s
}

// report is an ordinary tool. It knows nothing of tasks.
func report(ctx context.Context, in struct {
	Topic string `json:"topic"`
},
) (string, error) {
	number, err := server.Once(ctx, "number", func() (int64, error) { return time.Now().Unix(), nil })
	if err != nil {
		return "", err
	}
	for i, step := range []string{"reading", "thinking", "writing"} {
		if err := server.Progress(ctx, float64(i+1), 3, step); err != nil {
			return "", err
		}
		if err := work(ctx, time.Second); err != nil {
			return "", err
		}
	}
	style, err := server.Elicit[struct {
		Style string `json:"style" enum:"short,long"`
	}](ctx, "Which style?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Report %d, %s: %s.", number, style.Value.Style, in.Topic), nil
}

// work ends early if the task is cancelled.
func work(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask calls the tool of a server, and shows how its task goes on.
func ask(ctx context.Context, c *client.Client, topic string) (string, error) {
	started, err := tasks.Start[string](ctx, c, "report", map[string]string{"topic": topic}, nil)
	if err != nil {
		return "", err
	}
	for state, err := range started.Updates(ctx) {
		if err != nil {
			return "", err
		}
		log.Print(state.Status, " ", state.Message)
	}
	return started.Wait(ctx)
}

func main() {
	topic := flag.String("ask", "", "ask a server, which is started for it, for a report about this topic")
	flag.Parse()
	if err := run(context.Background(), *topic); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, topic string) (err error) {
	if topic == "" {
		return stdio.Serve(ctx, newServer(tasks.Memory()))
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, stdio.Command(program), &client.Options{
		Extensions: []client.Extension{tasks.Client(nil)},
		OnElicit:   long,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	text, err := ask(ctx, c, topic)
	if err == nil {
		fmt.Println(text)
	}
	return err
}

// long answers every question for a style.
func long(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return client.Accept(map[string]string{"style": "long"})
}
