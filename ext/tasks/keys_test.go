package tasks_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A server "MUST NOT use the same key to refer to two distinct requests over a task's lifetime",
// nor "reuse a key" after its answer: a handler that asks so is told, and the client sees
// nothing of it (ext-tasks, Task Update Requests).
func TestKeysAreUsedOnce(t *testing.T) {
	in(t, func(t *testing.T) {
		var refused []error
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce},
			server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
				named := &server.AskOptions{Key: "k"}
				if _, err := server.Elicit[naming](ctx, "First?", named); err != nil {
					return "", err
				}
				_, other := server.Elicit[naming](ctx, "Second?", named)
				_, again := server.Elicit[naming](ctx, "First?", named)
				refused = append(refused, other, again)
				if _, err := server.Elicit[naming](ctx, "Third?"); err != nil {
					return "", err
				}
				_, again = server.Elicit[naming](ctx, "Third?")
				refused = append(refused, again)
				_, err := server.Elicit[naming](ctx, "Fourth?")
				return "asked", err
			}))
		p := connect(t, s)
		id := p.start("ask", nil).TaskID
		asked := make(map[string]string) // by key
		for _, want := range []string{"First?", "Third?", "Fourth?"} {
			synctest.Wait()
			waiting := p.until(id, "input_required")
			if len(waiting.InputRequests) != 1 {
				t.Fatalf("not one question: %s", waiting.text)
			}
			for key, q := range waiting.InputRequests {
				if !strings.Contains(string(q.Params), want) || asked[key] != "" {
					t.Errorf("%q asks %s, want %s; before: %q", key, q.Params, want, asked[key])
				}
				asked[key] = want
			}
			p.answer(id)
		}
		if got := p.until(id, "completed"); got.output() != "asked" || len(asked) != 3 {
			t.Errorf("at the end: %s after %v", got.text, asked)
		}
		for i, err := range refused {
			if err == nil {
				t.Errorf("question %d used a key again", i)
			}
		}
	})
}

// A handler that is begun again in another process, and asks something else than before by the
// same key, ends: the key keeps its meaning (ext-tasks, Task Update Requests).
func TestKeyInOtherProcess(t *testing.T) {
	in(t, func(t *testing.T) {
		store := tasks.Memory()
		var runs atomic.Int32
		both := func() *server.Server {
			o := &tasks.Options{Others: tasks.Tool{Mode: tasks.May, Repeatable: true}, Lease: lease}
			return serverOf(t, "tests", nil, &handle{Store: store}, o,
				server.Tool("ask", "Asks.", func(ctx context.Context, _ mcp.None) (string, error) {
					question := fmt.Sprintf("In run %d?", runs.Add(1))
					a, err := server.Elicit[naming](ctx, question, &server.AskOptions{Key: "k"})
					return a.Value.Name, err
				}))
		}
		first, second := both(), both()
		second.Start()
		a, b := connect(t, first), connect(t, second)
		id := a.start("ask", nil).TaskID
		a.until(id, "input_required")
		if err := first.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := b.until(id, "failed")
		if runs.Load() != 2 || got.Error == nil || got.StatusMessage == "" || strings.Contains(string(got.text), "In run 2?") {
			t.Errorf("after %d runs: %s", runs.Load(), got.text)
		}
	})
}
