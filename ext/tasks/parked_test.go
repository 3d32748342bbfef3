package tasks_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A task that waits for an answer costs one goroutine.
func TestParkedTaskGoroutines(t *testing.T) {
	const (
		parked = 100
		others = 5 // of the server, for all tasks together
	)
	stores := map[string]func() tasks.Store{
		"memory":  tasks.Memory,
		"durable": func() tasks.Store { return &handle{Store: tasks.Memory()} },
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
					who, err := server.Elicit[naming](ctx, "Who?")
					return who.Value.Name, err
				}))
				tasks.Enable(s, store(), &tasks.Options{Others: tasks.Tool{Mode: tasks.May, Repeatable: true}})
				p := connect(t, s)
				p.until(p.start("ask", nil).TaskID, "input_required") // what is begun for the first
				synctest.Wait()
				before := runtime.NumGoroutine()
				var ids []string
				for range parked - 1 {
					ids = append(ids, p.start("ask", nil).TaskID)
				}
				for _, id := range ids {
					p.until(id, "input_required")
				}
				synctest.Wait()
				added := runtime.NumGoroutine() - before
				t.Logf("%d parked tasks have %d goroutines", len(ids), added)
				if added > len(ids)+others {
					t.Errorf("%d parked tasks have %d goroutines", len(ids), added)
				}
			})
		})
	}
}
