package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
)

// What was asked by rounds and done once before Begin survives a restart.
func TestBeginSurvives(t *testing.T) {
	for what, tool := range map[string]tasks.Tool{
		"Begins": {Mode: tasks.May, Begins: true, Repeatable: true},
		"After":  {Mode: tasks.May, After: time.Hour, Repeatable: true},
	} {
		each(t, what, func(t *testing.T) {
			var once, kept atomic.Int32
			store := &faulty{Store: tasks.Memory(), durable: true}
			feature := server.Tool("compose", "", func(ctx context.Context, _ mcp.None) (string, error) {
				n, err := server.Once(ctx, "ticket", func() (int32, error) { return once.Add(1), nil })
				if err != nil {
					return "", err
				}
				if what == "Begins" {
					if _, err := server.Elicit[naming](ctx, "Who?", &server.AskOptions{Key: "who"}); err != nil {
						return "", err
					}
				}
				if err := server.Keep(ctx, "k", kept.Add(1)); err != nil {
					return "", err
				}
				if err := tasks.Begin(ctx); err != nil {
					return "", err
				}
				m, err := server.Once(ctx, "second", func() (int32, error) { return once.Add(1), nil })
				if err != nil {
					return "", err
				}
				sure, err := server.Elicit[confirmation](ctx, "Sure?")
				return fmt.Sprint(n, m, sure.Value.Confirm), err
			})
			o := func() *tasks.Options { return &tasks.Options{Others: tool} }
			first := serverOf(t, "tests", nil, store, o(), feature)
			answer := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return client.Accept(naming{"Alice"})
			}
			p := &peer{reconnect(t, first, client.Options{Extensions: []client.Extension{knows(nil)}, OnElicit: answer}), t}
			id := p.start("compose", nil).TaskID
			waiting := p.until(id, "input_required")
			if err := first.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := serverOf(t, "tests", nil, store, o(), feature)
			second.Start()
			p = connect(t, second)
			synctest.Wait()
			if err := p.update(id, answerAll(waiting, given)); err != nil {
				t.Fatal(err)
			}
			if got := p.until(id, "completed"); got.output() != "1 2 true" || once.Load() != 2 {
				t.Errorf("%s, Once ran %d times", got.text, once.Load())
			}
		})
	}
}

// A handler that asks in one goroutine and begins in another.
func TestBeginWhileAsking(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: tasks.May, Begins: true}}, server.Tool("both", "", func(ctx context.Context, _ mcp.None) (string, error) {
			var wg sync.WaitGroup
			var e1, e2 error
			var who server.Answer[naming]
			wg.Go(func() { who, e1 = server.Elicit[naming](ctx, "Who?") })
			wg.Go(func() { e2 = tasks.Begin(ctx) })
			wg.Wait()
			return who.Value.Name, errors.Join(e1, e2)
		}))
		answer := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			return client.Accept(naming{"Alice"})
		}
		p := &peer{reconnect(t, s, client.Options{Extensions: []client.Extension{knows(nil)}, OnElicit: answer}), t}
		if got := p.until(p.start("both", nil).TaskID, "completed"); got.output() != "Alice" {
			t.Errorf("%s", got.text)
		}
	})
}

// Cancels, answers and ends at the same time, many times: no task is without an end, and the
// state does not change after it.
func TestStorm(t *testing.T) {
	store := tasks.Memory()
	s := serverOf(t, "tests", &server.Options{Limits: server.Limits{ToolRate: -1, MaxDetached: -1}}, store, &tasks.Options{Others: atOnce}, server.Tool("ask", "", func(ctx context.Context, _ mcp.None) (string, error) {
		_ = server.Progress(ctx, 1, 2, "half")
		a, err := server.Elicit[naming](ctx, "Who?")
		return a.Value.Name, err
	}))
	var wg sync.WaitGroup
	for range 8 {
		p := connect(t, s)
		wg.Go(func() {
			for i := range 40 {
				got, err := p.call("ask", nil)
				if err != nil {
					t.Error(err)
					return
				}
				for got.Status == "working" {
					if got, err = p.get(got.TaskID); err != nil {
						t.Error(err)
						return
					}
				}
				var both sync.WaitGroup
				both.Go(func() { _ = p.update(got.TaskID, answerAll(got, given)) })
				if i%2 == 0 {
					both.Go(func() { _ = p.cancel(got.TaskID) })
				}
				both.Wait()
				var end *state
				for range 2000 {
					if end, err = p.get(got.TaskID); err != nil || end.Status != "working" {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if err != nil || end.Status != "completed" && end.Status != "cancelled" {
					t.Errorf("%v %+v", err, end)
				}
			}
		})
	}
	wg.Wait()
}

// A store that says once that a task is unknown (a replica that lags): the handler is stopped,
// and the task never ends.
func TestUnknownOnce(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory()}
		var lied atomic.Bool
		store.get = func(ctx context.Context, _ string) error {
			if server.CallFrom(ctx) == nil && lied.CompareAndSwap(false, true) {
				return tasks.ErrUnknown
			}
			return nil
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, sleeper("sleep", time.Second))
		endsWithinAnHour(t, s)
	})
}

// The anonymous callers of ten addresses, with 100 x MaxKept tasks, take the tasks of all others for a day.
func TestOneCallerFillsAll(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", &server.Options{Limits: server.Limits{ToolRate: -1, MaxDetached: -1, MaxAnonymousDetached: -1}}, tasks.Memory(),
			&tasks.Options{Others: tasks.Tool{Mode: tasks.Must}, MaxKept: 10, MaxAllKept: 1000}, sleeper("sleep", 0))
		for i := range 10 {
			p := connectAs(t, s, anonymousAt(fmt.Sprintf("192.0.2.%d", i)))
			for j := range 100 {
				if _, err := p.call("sleep", nil); (err != nil) != (100*i+j >= 500) {
					t.Fatalf("task %d of address %d: %v", j, i, err)
				}
			}
		}
		if _, err := connect(t, s).call("sleep", nil); err != nil {
			t.Errorf("an identified caller, after ten addresses filled the store: %v", err)
		}
	})
}

func anonymousAt(addr string) *principal.Principal { return &principal.Principal{Remote: addr} }

// A client has gone while its task is being created: it never got the identifier, and the task is
// run to its end, parked for a day if it asks.
func TestClientLeavesDuringCreate(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory()}
		creating, goOn := make(chan struct{}), make(chan struct{})
		store.create = func(_ context.Context, next func() (*tasks.Task, tasks.Lease, error)) (*tasks.Task, tasks.Lease, error) {
			close(creating)
			<-goOn
			return next()
		}
		ended := make(chan error, 1)
		var began atomic.Bool
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, server.Tool("ask", "", func(ctx context.Context, _ mcp.None) (string, error) {
			began.Store(true)
			_, err := server.Elicit[naming](ctx, "Who?")
			ended <- err
			return "", err
		}))
		c := reconnect(t, s, client.Options{Extensions: []client.Extension{knows(nil)}, OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-creating
			cancel()
			time.Sleep(time.Second)
			close(goOn)
		}()
		if err := c.Request(ctx, mcp.MethodToolsCall, &mcp.CallToolParams{Name: "ask"}, new(mcp.RawValue), &client.CallOptions{ResultTypes: []string{"task"}}); err == nil {
			t.Fatal("the client did not leave")
		}
		time.Sleep(time.Hour)
		select {
		case err := <-ended:
			t.Logf("the handler ended: %v", err)
		default:
			if !began.Load() {
				return // it was never run
			}
			t.Error("an hour later the handler still waits for the answer of a client that has left")
		}
	})
}

// Shutdown at each millisecond of a task, with slow stores: the other process ends it, with one Once.
func TestShutdownInAnyMoment(t *testing.T) {
	for ms := range 60 {
		t.Run(fmt.Sprint(ms), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := tasks.Memory()
				slow := func() *faulty {
					f := &faulty{Store: memory, durable: true}
					f.change = func(context.Context, tasks.Change) error { time.Sleep(7 * time.Millisecond); return nil }
					f.get = func(context.Context, string) error { time.Sleep(3 * time.Millisecond); return nil }
					return f
				}
				var once atomic.Int32
				tool := server.Tool("work", "", func(ctx context.Context, _ mcp.None) (string, error) {
					n, err := server.Once(ctx, "ticket", func() (int32, error) { return once.Add(1), nil })
					if err != nil {
						return "", err
					}
					_ = server.Progress(ctx, 1, 2, "half")
					a, err := server.Elicit[naming](ctx, "Who?")
					if err != nil {
						return "", err
					}
					return fmt.Sprint(a.Value.Name, n), nil
				})
				first := serverOf(t, "tests", nil, slow(), &tasks.Options{Others: repeatable, Lease: time.Second}, tool)
				second := serverOf(t, "tests", nil, slow(), &tasks.Options{Others: repeatable, Lease: time.Second}, tool)
				second.Start()
				p, q := connect(t, first), connect(t, second)
				id := p.start("work", nil).TaskID
				go func() {
					time.Sleep(time.Duration(ms) * time.Millisecond)
					ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Duration(ms%3)*time.Millisecond)
					defer cancel()
					_ = first.Shutdown(ctx)
				}()
				if err := q.update(id, answerAll(q.until(id, "input_required"), given)); err != nil {
					t.Fatal(err)
				}
				if got := q.until(id, "completed"); got.output() != "Alice1" || once.Load() > 1 {
					t.Errorf("%s, Once ran %d times", got.text, once.Load())
				}
			})
		})
	}
}

// A token that was not granted what the tool needs reads the result of a task that another token
// of the same caller began.
func TestScopesOfGet(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, sleeper("secret", 0).With(server.ToolOptions{Scopes: []string{"secrets"}}))
		wide, narrow := *ada, *ada
		wide.Scopes, narrow.Scopes = []string{"secrets"}, []string{"other"}
		a, b := connectAs(t, s, &wide), connectAs(t, s, &narrow)
		if _, err := b.call("secret", nil); code(err) != mcp.CodeInsufficientScope {
			t.Fatalf("a call without the scope: %v", err)
		}
		id := a.start("secret", nil).TaskID
		a.until(id, "completed")
		if got, err := b.get(id); err == nil {
			t.Errorf("without the scope: %s", got.text)
		}
	})
}
