package tasks_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/server"
)

// The store's clock jumps ahead, as it seems to a process that was stopped for a while: the
// leases have ended. A process does not take up what it runs, nor has it fail.
func TestClockJumps(t *testing.T) {
	for name, repeatable := range map[string]bool{"repeatable": true, "not repeatable": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { clockJumps(t, repeatable) })
		})
	}
}

func clockJumps(t *testing.T, repeatable bool) {
	var ahead atomic.Int64
	store := tasks.MemoryAt(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	w := &site{causes: make(chan error, 100)}
	s := newServer(t, server.Tool("work", "Works.", w.work))
	tasks.Enable(s, &handle{Store: store}, &tasks.Options{
		Others: tasks.Tool{Mode: tasks.May, Repeatable: repeatable}, Lease: lease, Log: slog.New(slog.DiscardHandler),
	})
	p := connect(t, s)
	id := p.start("work", nil).TaskID
	p.until(id, "input_required")
	for range 20 {
		ahead.Add(int64(2 * lease))
		time.Sleep(lease)
		synctest.Wait()
	}
	if n := w.runs.Load(); n != 1 || len(w.causes) > 0 {
		t.Fatalf("%d runs, of which %d were stopped; it is %s", n, len(w.causes), p.mustGet(id).text)
	}
	p.answer(id)
	synctest.Wait()
	p.answer(id)
	if got := p.until(id, "completed"); got.output() != "Alice true 1" {
		t.Error(got.text)
	}
}
