package tasks_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
)

// usual is the lease of tests in which no process is lost, also where the machine is busy.
const usual = 10 * time.Minute

// create has a task made of a call.
func (s *servers) create(ctx context.Context, c *client.Client, tool string, n int) *tasks.Handle[string] {
	s.t.Helper()
	h, err := tasks.Start[string](ctx, c, tool, job{n}, nil)
	if err != nil {
		s.t.Fatalf("%s %d: %v", tool, n, err)
	}
	return h
}

// through is a handle of the same task with another client.
func (s *servers) through(c *client.Client, h *tasks.Handle[string]) *tasks.Handle[string] {
	s.t.Helper()
	other, err := tasks.Open[string](c, h.ID(), h.Tool(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return other
}

// state is what the server says of a task.
func (s *servers) state(ctx context.Context, h *tasks.Handle[string]) *tasks.Task {
	s.t.Helper()
	state, err := h.Status(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

// Either of two processes with one database answers get, update and cancel for the tasks
// of both; a cancellation through one ends the handler in the other.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			s := newServers(t, dsn(t), usual)
			processes := []*process{s.start(ctx), s.start(ctx)}
			clients := []*client.Client{processes[0].at(ctx), processes[1].at(ctx)}
			for i, own := range clients {
				p, other := processes[i], clients[1-i]

				const asking = 10
				h := s.create(ctx, own, "steady", asking+2*i)
				there := s.through(other, h)
				if got := wait(ctx, there); got.result != done(asking+2*i) {
					t.Errorf("through the other process: %+v", got)
				}
				s.await(ctx, "end", asking+2*i, p.pid())
				if a, b := s.state(ctx, h), s.state(ctx, there); !reflect.DeepEqual(a, b) || a.Status != tasks.Completed {
					t.Errorf("the processes say\n%+v and\n%+v", a, b)
				}

				const cancelled = 20
				h = s.create(ctx, own, "gated", cancelled+i)
				s.await(ctx, "start", cancelled+i, p.pid())
				if err := s.through(other, h).Cancel(ctx); err != nil {
					t.Error(err)
				}
				if e := s.await(ctx, "stopped", cancelled+i, p.pid()); e.value != tasks.ErrCancelled.Error() {
					t.Errorf("the handler was stopped by %q", e.value)
				}
				if got := s.state(ctx, h); got.Status != tasks.Cancelled {
					t.Errorf("it is %+v", got)
				}
			}
			for _, p := range processes {
				p.shutdown()
			}
		})
	}
}

// A subscription at one process hears of changes that another makes: of the handler's and
// of a cancellation.
func TestTwoServersTell(t *testing.T) {
	t.Parallel()
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			s := newServers(t, dsn(t), usual)
			a, b := s.start(ctx), s.start(ctx)
			own := a.at(ctx)
			other := s.connect(ctx, func() string { return b.addr }, client.Options{Extensions: []client.Extension{{
				ID: tasks.ID, Notifications: []client.ExtensionNotification{{Name: tasks.Notify, Filter: "taskIds"}},
			}}})
			passes, cancelled := s.create(ctx, own, "gated", 1), s.create(ctx, own, "gated", 2)
			type told struct {
				ID      string       `json:"taskId"`
				Status  tasks.Status `json:"status"`
				Message string       `json:"statusMessage"`
			}
			heard := make(chan told, 100)
			_, err := other.SubscribeExtension(ctx, tasks.ID, map[string]any{"taskIds": []string{passes.ID(), cancelled.ID()}},
				func(_ context.Context, n *client.Notification) {
					var state told
					if err := json.Unmarshal(n.Params, &state); err != nil {
						t.Error(err)
					}
					heard <- state
				})
			if err != nil {
				t.Fatal(err)
			}
			hears := func(id string, status tasks.Status) {
				t.Helper()
				for {
					select {
					case state := <-heard:
						if state.ID == id && state.Status == status {
							return
						}
					case <-ctx.Done():
						t.Fatalf("it was not told that a task is %s", status)
					}
				}
			}
			s.open(1)
			hears(passes.ID(), tasks.Completed)
			if err := cancelled.Cancel(ctx); err != nil {
				t.Error(err)
			}
			hears(cancelled.ID(), tasks.Cancelled)
			b.shutdown()
			a.shutdown()
		})
	}
}
