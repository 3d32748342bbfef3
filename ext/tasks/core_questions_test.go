package tasks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A question that another client of the same caller has answered is taken back, and what comes
// of it then does not end the task.
func TestCoreStaleQuestion(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, server.Tool("ask", "", func(ctx context.Context, _ mcp.None) (string, error) {
			a, err := server.Elicit[naming](ctx, "Who?")
			time.Sleep(time.Hour)
			return a.Value.Name, err
		}))
		late, ended := make(chan struct{}), make(chan struct{}, 1)
		slow := connectCore(t, s, ada, client.Options{OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			select {
			case <-late:
			case <-ctx.Done():
				ended <- struct{}{}
			}
			return nil, client.ErrRefused
		}})
		quick := connectCore(t, s, ada, client.Options{OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(naming{"Alice"})
		}})
		id := slow.start("ask", map[string]any{}).TaskID
		go func() { _ = slow.request("tasks/result", map[string]any{"taskId": id}, new(mcp.RawValue)) }()
		time.Sleep(time.Second)
		go func() { _ = quick.request("tasks/result", map[string]any{"taskId": id}, new(mcp.RawValue)) }()
		time.Sleep(time.Minute)
		close(late)
		time.Sleep(time.Minute)
		if got := quick.get(id); got.Status != "working" {
			t.Errorf("an answered question was refused elsewhere: %+v", got)
		}
		if len(ended) != 1 {
			t.Error("the question that was answered elsewhere was not taken back")
		}
	})
}

// A client that leaves while it is asked does not end its task.
func TestCoreLeavesWhileAsked(t *testing.T) {
	for _, way := range []string{"closes", "gives up"} {
		each(t, way, func(t *testing.T) {
			s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, asker("ask"))
			asked := make(chan struct{})
			p := connectCore(t, s, ada, client.Options{OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
				close(asked)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}})
			id := p.start("ask", map[string]any{}).TaskID
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_ = p.Request(ctx, "tasks/result", map[string]any{"taskId": id}, new(mcp.RawValue), nil)
			}()
			<-asked
			synctest.Wait()
			if way == "closes" {
				_ = p.Close()
			}
			cancel()
			time.Sleep(time.Minute)
			if got := connectCore(t, s, ada, client.Options{}).get(id); got.Status != "input_required" {
				t.Errorf("%s: %+v", way, got)
			}
		})
	}
}
