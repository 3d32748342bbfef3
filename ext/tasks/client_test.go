package tasks_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
)

// waiting are options of a client that waits for the end of tasks by itself.
func waiting(o *tasks.WaitOptions) client.Options {
	return client.Options{Extensions: []client.Extension{tasks.Client(o)}}
}

// allTasks has every call become a task.
var allTasks = &tasks.Options{Others: tasks.Tool{Mode: tasks.Must}, PollInterval: 4 * time.Second}

// accepted answers every form.
func accepted(_ context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	if _, ok := r.Form().Properties.Lookup("name"); ok {
		return client.Accept(naming{"Ada"})
	}
	return client.Accept(confirmation{true})
}

// Those who call a tool get its result and know nothing of tasks: "a client MUST be
// prepared to handle either CallToolResult or CreateTaskResult". With notifications it
// is there when the task ends; without, at the next look.
func TestCallBecomesTask(t *testing.T) {
	for name, c := range map[string]struct {
		o    tasks.WaitOptions
		want time.Duration
	}{
		"notifications": {tasks.WaitOptions{}, 5500 * time.Millisecond},
		"polling":       {tasks.WaitOptions{PollOnly: true}, 8 * time.Second},
		"poll bound":    {tasks.WaitOptions{PollOnly: true, MaxPoll: 500 * time.Millisecond}, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, sleeper("sleep", 5750*time.Millisecond))
				tasks.Enable(s, tasks.Memory(), allTasks)
				o := waiting(&c.o)
				var seen string
				o.Middleware = []client.Middleware{func(next client.Func) client.Func {
					return func(ctx context.Context, r *client.Request) (client.Result, error) {
						res, err := next(ctx, r)
						if tool, ok := res.(*mcp.CallToolResult); ok {
							seen = tool.Content[0].(*mcp.TextContent).Text
						}
						return res, err
					}
				}}
				began := time.Now()
				got, err := client.Call[string](t.Context(), reconnect(t, s, o), "sleep", labelled{"well"})
				if err != nil || got != "slept well" || seen != got {
					t.Errorf("%q, %v; middleware saw %q", got, err, seen)
				}
				if took := time.Since(began).Truncate(500 * time.Millisecond); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// What a task comes to is what the call comes to: a failure of the tool, an error of the
// protocol, the end by somebody else. Progress of the tool is told.
func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t,
			server.Tool("fails", "Fails.", func(ctx context.Context, _ mcp.None) (string, error) {
				for i, text := range []string{"one", "two"} {
					if err := server.Progress(ctx, float64(i+1), 0, text); err != nil {
						return "", err
					}
					time.Sleep(5 * time.Second)
				}
				return "", mcp.Errorf("out of paper")
			}),
			server.Tool("breaks", "Breaks the protocol.", func(context.Context, mcp.None) (string, error) {
				time.Sleep(time.Second)
				return "", mcp.NewError(mcp.CodeInvalidParams, "no such thing")
			}),
			sleeper("sleep", time.Hour),
		)
		store := tasks.Memory()
		tasks.Enable(s, store, allTasks)
		c := reconnect(t, s, waiting(nil))
		var told []string
		r, err := c.CallTool(t.Context(), "fails", nil, &client.CallOptions{OnProgress: func(_, _ float64, message string) { told = append(told, message) }})
		if err != nil || !r.IsError {
			t.Errorf("a tool that fails: %+v, %v", r, err)
		}
		if len(told) != 2 || !strings.HasPrefix(told[0], "one") || !strings.HasPrefix(told[1], "two") {
			t.Errorf("progress: %q", told)
		}
		if _, err := c.CallTool(t.Context(), "breaks", nil, nil); code(err) != mcp.CodeInvalidParams || errors.Is(err, tasks.ErrUnknown) {
			t.Errorf("an error of the protocol: %v", err)
		}
		time.AfterFunc(time.Minute, func() {
			list, err := store.List(t.Context(), tasks.Query{All: true, Most: 1})
			if err == nil {
				_, err = store.Cancel(t.Context(), list[0].ID, ada.Identity(), "by the operator")
			}
			if err != nil {
				t.Error(err)
			}
		})
		if _, err := c.CallTool(t.Context(), "sleep", labelled{"x"}, nil); !errors.Is(err, tasks.ErrCancelled) || !strings.Contains(err.Error(), "by the operator") {
			t.Errorf("cancelled by somebody else: %v", err)
		}
	})
}

// Questions of a task are answered by the ordinary handlers, which are told the tool,
// several at once, and the server has each answer when it is given: "clients MUST treat
// each entry in inputRequests as they would the equivalent standalone request".
func TestAnswersTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"))
		tasks.Enable(s, tasks.Memory(), allTasks)
		o := waiting(nil)
		var mu sync.Mutex
		asked := make(map[string]int)
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock()
			asked[r.Target+" "+r.Params.Message]++
			mu.Unlock()
			if client.RequestFrom(ctx) != r.Call || r.Method != mcp.MethodToolsCall {
				t.Errorf("the question is of %q", r.Method)
			}
			if r.Params.Message == "Who?" {
				time.Sleep(time.Minute) // a person; the other answer is sent meanwhile
			}
			return accepted(ctx, r)
		}
		c := reconnect(t, s, o)
		began := time.Now()
		got, err := client.Call[string](t.Context(), c, "ask", nil)
		if err != nil || got != "Ada true" || asked["ask Who?"] != 1 || asked["ask Sure?"] != 1 {
			t.Errorf("%q, %v, asked %v", got, err, asked)
		}
		if took := time.Since(began); took > 70*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A question that is refused ends the call, and the task: ruling 17. So does the end of
// the context, without notifications/cancelled, which "MUST NOT be used for task
// cancellation".
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"), sleeper("sleep", time.Hour))
		store := tasks.Memory()
		tasks.Enable(s, store, allTasks)
		o := waiting(nil)
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Message == "Who?" {
				return nil, client.ErrRefused
			}
			<-ctx.Done() // the other one ends
			return nil, context.Cause(ctx)
		}
		c := reconnect(t, s, o)
		newest := func() *tasks.Task {
			synctest.Wait()
			list, err := store.List(t.Context(), tasks.Query{All: true, Most: 1})
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			return list[0]
		}
		if _, err := c.CallTool(t.Context(), "ask", nil, nil); !errors.Is(err, client.ErrInputRefused) || !errors.Is(err, client.ErrRefused) {
			t.Errorf("a question that is refused: %v", err)
		}
		if got := newest(); got.Status != tasks.Cancelled || got.Tool != "ask" {
			t.Errorf("the task is %+v", got)
		}

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errLeft)
		defer cancel()
		if _, err := c.CallTool(ctx, "sleep", labelled{"x"}, nil); !errors.Is(err, errLeft) {
			t.Errorf("a context that ends: %v", err)
		}
		if got := newest(); got.Status != tasks.Cancelled || got.Tool != "sleep" {
			t.Errorf("the task is %+v", got)
		}

		if _, err := c.CallTool(t.Context(), "sleep", labelled{"x"}, nil); !errors.Is(err, client.ErrTimeout) {
			t.Errorf("a call that lasts too long: %v", err)
		}
		if got := newest(); got.Status != tasks.Cancelled {
			t.Errorf("the task is %+v", got)
		}
	})
}

// A client with the extension calls the same tools in every revision and over every
// transport; where there are no tasks the answer is the result.
func TestClientEverywhere(t *testing.T) {
	build := func(_ testing.TB, o *server.Options) *server.Server {
		s := server.New("tests", "1", o)
		s.Add(asker("ask"), sleeper("sleep", time.Millisecond))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: tasks.May}, PollInterval: 50 * time.Millisecond})
		return s
	}
	o := waiting(nil)
	o.OnElicit = accepted
	mcptest.EachEra(t, build, &o, func(t *testing.T, era mcptest.Era, c *client.Client) {
		tool, args, want := "ask", any(nil), "Ada true"
		if era.Version < "2025-06-18" { // without forms
			tool, args, want = "sleep", labelled{"well"}, "slept well"
		}
		if got, err := client.Call[string](t.Context(), c, tool, args); err != nil || got != want {
			t.Errorf("Call: %q, %v", got, err)
		}
		h, err := tasks.Start[string](t.Context(), c, tool, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Wait(t.Context()); err != nil || got != want || (h.ID() != "") != (era.Stateless || era.Version == "2025-11-25") {
			t.Errorf("Start: %q, %v, task %q", got, err, h.ID())
		}
	}, func(era mcptest.Era) bool { return !era.Fresh })
}
