package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// One handler with two questions, progress and a result that is made once runs unchanged in every
// revision, over every transport, and as a task, with the same result; and it hears of a
// cancellation in each.
func TestOneHandlerEverywhere(t *testing.T) {
	var once atomic.Int32
	cancelled := make(chan error, 1)
	handler := func(ctx context.Context, in labelled) (string, error) {
		if in.Label == "wait" {
			if err := server.Progress(ctx, 1, 0, "waiting"); err != nil {
				return "", err
			}
			<-ctx.Done()
			cancelled <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}
		ticket, err := server.Once(ctx, "ticket", func() (int32, error) { return once.Add(1), nil })
		if err != nil {
			return "", err
		}
		who, err := sample(ctx, "Who?")
		if err != nil {
			return "", err
		}
		if err := server.Progress(ctx, 1, 2, "half"); err != nil {
			return "", err
		}
		sure, err := sample(ctx, "Sure?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s %t", who, sure, ticket > 0), nil
	}
	for _, mode := range []tasks.Mode{tasks.Never, tasks.May} {
		build := func(_ testing.TB, o *server.Options) *server.Server {
			s := server.New("tests", "1", o)
			s.Add(server.Tool("work", "Works.", handler))
			tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: mode}})
			return s
		}
		o := &client.Options{
			Extensions: []client.Extension{tasks.Client(nil)},
			OnSample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				text := "yes"
				if p.Messages[0].Content[0].(*mcp.TextContent).Text == "Who?" {
					text = "Alice"
				}
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "none", Content: mcp.Contents{mcp.Text(text)}}, nil
			},
		}
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			mcptest.EachEra(t, build, o, func(t *testing.T, era mcptest.Era, c *client.Client) {
				once.Store(0)
				got, err := client.Call[string](t.Context(), c, "work", labelled{})
				if err != nil || got != "Alice yes true" || once.Load() != 1 {
					t.Errorf("got %q, %v; Once ran %d times", got, err, once.Load())
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				o := &client.CallOptions{OnProgress: func(_, _ float64, _ string) { cancel(errLeft) }}
				if _, err := c.CallTool(ctx, "work", labelled{"wait"}, o); !errors.Is(err, errLeft) {
					t.Errorf("a cancelled call: %v", err)
				}
				if <-cancelled == nil {
					t.Error("the handler was not cancelled")
				}
			}, func(era mcptest.Era) bool { return !era.Fresh || mode == tasks.Never })
		})
	}
}

// sample asks the client's model, which clients of all revisions can have.
func sample(ctx context.Context, text string) (string, error) {
	r, err := server.Sample(ctx, &mcp.CreateMessageParams{MaxTokens: 10, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.Contents{mcp.Text(text)}}}})
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}
