package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// enableTasks has the tools of taskTools become tasks, as the suite's scenarios for the
// extension want it.
func enableTasks(s *server.Server) {
	s.Add(taskTools()...)
	may := tasks.Tool{Mode: tasks.May}
	tasks.Enable(s, tasks.Memory(), &tasks.Options{
		Tools: map[string]tasks.Tool{
			"slow_compute": may, "protocol_error_job": may, "confirm_delete": may, "multi_input": may,
			"failing_job":         {Mode: tasks.Must},
			"test_tool_with_task": {Mode: tasks.Must, Begins: true},
		},
		PollInterval: 200 * time.Millisecond,
	})
}

type greetIn struct {
	Name string `json:"name" desc:"Whom to greet."`
}

type computeIn struct {
	Seconds float64 `json:"seconds,omitzero" desc:"How long it takes." min:"0" max:"600"`
	Label   string  `json:"label,omitzero" desc:"What the result is called."`
}

type deleteIn struct {
	Filename string `json:"filename,omitzero" desc:"What to delete."`
}

type confirmForm struct {
	Confirm bool `json:"confirm" desc:"Whether to go on."`
}

type nameForm struct {
	Name string `json:"name" desc:"A name."`
}

// taskTools are what the suite calls as tasks. They know nothing of them, but for one.
func taskTools() []server.Feature {
	return []server.Feature{
		server.Tool("greet", "Greets at once.", func(_ context.Context, in greetIn) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}),
		server.Tool("slow_compute", "Computes for a while.", func(ctx context.Context, in computeIn) (string, error) {
			return "computed " + in.Label, wait(ctx, time.Duration(in.Seconds*float64(time.Second)))
		}),
		server.Tool("failing_job", "Fails after a second.", func(ctx context.Context, _ mcp.None) (string, error) {
			if err := wait(ctx, time.Second); err != nil {
				return "", err
			}
			return "", mcp.Errorf("the job failed, as it always does")
		}),
		server.Tool("protocol_error_job", "Ends in an error of the protocol.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.NewError(mcp.CodeInternalError, "the job broke, as it always does")
		}),
		server.Tool("confirm_delete", "Asks before it deletes nothing.", func(ctx context.Context, in deleteIn) (string, error) {
			a, err := server.Elicit[confirmForm](ctx, "Delete "+in.Filename+"?")
			return fmt.Sprintf("deleted %s: %t", in.Filename, a.Accepted() && a.Value.Confirm), err
		}),
		server.Tool("multi_input", "Asks two questions at once.", multiInput),
		server.Tool("test_tool_with_task", "Asks, and then works as a task.", func(ctx context.Context, _ mcp.None) (string, error) {
			a, err := server.Elicit[nameForm](ctx, "What is your name?", &server.AskOptions{Key: "user_name"})
			if err != nil {
				return "", err
			}
			if err := tasks.Begin(ctx); err != nil {
				return "", err
			}
			return "Hello, " + a.Value.Name + "!", nil
		}),
	}
}

func multiInput(ctx context.Context, _ mcp.None) (string, error) {
	var (
		wg              sync.WaitGroup
		name            server.Answer[nameForm]
		sure            server.Answer[confirmForm]
		unnamed, unsure error
	)
	wg.Go(func() { name, unnamed = server.Elicit[nameForm](ctx, "What is your name?") })
	wg.Go(func() { sure, unsure = server.Elicit[confirmForm](ctx, "Go on?") })
	wg.Wait()
	return fmt.Sprintf("%s, %t", name.Value.Name, sure.Value.Confirm), errors.Join(unnamed, unsure)
}
