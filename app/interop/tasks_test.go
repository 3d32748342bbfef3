package interop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// taskForms answers the forms of the server of tasks, and notes for which tool.
type taskForms struct {
	mu    sync.Mutex
	asked []string
}

func (f *taskForms) answer(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Target+": "+r.Params.Message)
	if _, ok := r.Form().Properties.Lookup("name"); ok {
		return client.Accept(map[string]string{"name": "Alice"})
	}
	return client.Accept(map[string]bool{"confirm": true})
}

// ofTasks is a client of the server of tasks that peers/tasks-server.mjs is.
func ofTasks(t *testing.T, url string, f *taskForms, o *tasks.WaitOptions) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), streamable.URL(url), &client.Options{
		Extensions: []client.Extension{tasks.Client(o)}, OnElicit: f.answer, DiscoverProbe: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Our client and a server of tasks that was written from the text of the specification,
// and that the official suite passes: results, failures, questions, with notifications
// and without.
func TestTasksServer(t *testing.T) {
	t.Parallel()
	url := startServer(t, nil, "tasks-server.mjs")
	for name, o := range map[string]*tasks.WaitOptions{"notifications": nil, "polling": {PollOnly: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f taskForms
			c := ofTasks(t, url, &f, o)
			for _, call := range []struct {
				tool, args, want string
				asked            []string
			}{
				{"greet", `{"name":"Ada"}`, "Hello, Ada!", nil},
				{"slow_compute", `{"seconds":1,"label":"x"}`, "computed x", nil},
				{"confirm_delete", `{"filename":"f"}`, "deleted f", []string{"confirm_delete: Delete f?"}},
				{"multi_input", `{}`, "Alice true", []string{"multi_input: Go on?", "multi_input: Your name?"}},
				{"test_tool_with_task", `{}`, "Hello, Alice!", []string{"test_tool_with_task: What is your name?"}},
			} {
				f.asked = nil
				got, err := client.Call[string](bounded(t), c, call.tool, mcp.RawValue(call.args))
				if err != nil || got != call.want {
					t.Errorf("%s: %q, %v", call.tool, got, err)
				}
				checkAsked(t, call.tool, f.asked, call.asked)
			}
			if r, err := c.CallTool(bounded(t), "failing_job", nil, nil); err != nil || !r.IsError {
				t.Errorf("failing_job: %+v, %v", r, err)
			}
			_, err := c.CallTool(bounded(t), "protocol_error_job", nil, nil)
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != mcp.CodeInternalError || !strings.Contains(err.Error(), "the job broke") {
				t.Errorf("protocol_error_job: %v", err)
			}
		})
	}
}

// checkAsked compares questions in any order.
func checkAsked(t *testing.T, tool string, got, want []string) {
	t.Helper()
	left := make(map[string]int)
	for _, q := range got {
		left[q]++
	}
	for _, q := range want {
		left[q]--
	}
	for q, n := range left {
		if n != 0 {
			t.Errorf("%s: %q was asked %+d times more than wanted", tool, q, n)
		}
	}
}

// Handles: what is started is cancelled, or taken up by another client.
func TestTasksServerHandles(t *testing.T) {
	t.Parallel()
	url := startServer(t, nil, "tasks-server.mjs")
	var f taskForms
	c := ofTasks(t, url, &f, nil)
	slow, err := tasks.Start[string](bounded(t), c, "slow_compute", mcp.RawValue(`{"seconds":60,"label":"x"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := slow.Status(bounded(t)); err != nil || state.Status != tasks.Working || state.TTL != time.Hour || state.Message == "" {
		t.Errorf("%+v, %v", state, err)
	}
	for range 2 { // "always acknowledged, on terminal tasks too"
		if err := slow.Cancel(bounded(t)); err != nil {
			t.Error(err)
		}
		if _, err := slow.Wait(bounded(t)); !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("a task that was cancelled: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(bounded(t))
	asks, err := tasks.Start[string](ctx, c, "confirm_delete", mcp.RawValue(`{"filename":"f"}`), nil)
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	saved, err := asks.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again, err := tasks.Resume[string](bounded(t), ofTasks(t, url, &f, nil), saved, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Wait(bounded(t)); err != nil || got != "deleted f" || len(f.asked) != 1 {
		t.Errorf("%q, %v, asked %q", got, err, f.asked)
	}
	plain, err := tasks.Start[string](bounded(t), c, "greet", mcp.RawValue(`{"name":"Ada"}`), nil)
	if err != nil || plain.ID() != "" {
		t.Errorf("greet became a task: %v", err)
	}
	foreign := strings.Replace(string(saved), again.ID(), strings.Repeat("0", 32), 1)
	if _, err := tasks.Resume[string](bounded(t), c, []byte(foreign), nil); !errors.Is(err, tasks.ErrUnknown) {
		t.Errorf("a task that never was: %v", err)
	}
}
