//go:build unix

package tasks_test

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
)

// freeze stops a process while it does not write to SQLite: it would hold the lock.
// PostgreSQL ends a transaction that is stopped after 10 s.
func (p *process) freeze(ctx context.Context) {
	p.s.t.Helper()
	retry := func(try func() error) { // until the process has written
		p.s.t.Helper()
		for err := try(); err != nil; err = try() {
			if ctx.Err() != nil {
				p.s.t.Fatalf("the store cannot be written: %v", err)
			}
		}
	}
	var db *store.DB
	retry(func() (err error) {
		db, err = store.Open(ctx, p.s.dsn, &store.Options{Connections: 1, Wait: 100 * time.Millisecond})
		return err
	})
	databasetest.Opened(p.s.t, db, nil)
	write := func() error {
		_, err := db.Renew(ctx, []tasks.Lease{{ID: "none"}}, time.Second)
		return err
	}
	for {
		p.signal(syscall.SIGSTOP)
		if write() == nil {
			return
		}
		p.signal(syscall.SIGCONT)
		retry(write)
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.s.t.Helper()
	if err := p.child.Process.Signal(sig); err != nil {
		p.s.t.Fatal(err)
	}
}

// untilMessage waits for a message of a task.
func (s *servers) untilMessage(ctx context.Context, h *tasks.Handle[string], message string) {
	s.t.Helper()
	for state, err := range h.Updates(ctx) {
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(state.Message, message) {
			return
		}
	}
	s.t.Fatalf("no message has %q", message)
}

// A process is frozen past its leases. Another takes its tasks up, or has them fail if they
// are not repeatable. What the frozen one does when it wakes is too late: the contexts of
// its handlers end, and nothing of what they try is written, whether the task has ended
// meanwhile or not.
func TestFrozenServer(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			s := newServers(t, dsn(t), busyLease)
			f := &frozenTasks{servers: s, frozen: s.start(ctx), other: s.start(ctx)}
			f.create(ctx)
			f.frozen.freeze(ctx)
			for n := range brittleFrom {
				s.await(ctx, "start", n, f.other.pid())
			}
			f.endThrough(ctx, 0, endLateFrom)
			for n := brittleFrom; n < frozenCalls; n++ {
				right(t, "fragile", n, wait(ctx, f.handles[n]))
			}
			early := f.stored(ctx)

			f.frozen.signal(syscall.SIGCONT)
			for n := range f.handles {
				if e := s.await(ctx, "stopped", n, f.frozen.pid()); e.value != tasks.ErrLost.Error() {
					t.Errorf("handler %d was stopped by %q", n, e.value)
				}
			}
			f.endThrough(ctx, endLateFrom, frozenCalls)
			for n := range f.handles {
				s.await(ctx, "end", n, f.frozen.pid())
				if e := s.await(ctx, "late", n, f.frozen.pid()); n < brittleFrom && strings.HasSuffix(e.value, " <nil>") {
					t.Errorf("Once gave %q in the process that had lost the task", e.value)
				}
			}
			late := f.stored(ctx)
			f.frozen.shutdown() // all that it may write is written
			got := f.stored(ctx)
			for n := range got {
				if !reflect.DeepEqual(got[n], late[n]) || early[n].Status.Ended() && !reflect.DeepEqual(got[n], early[n]) {
					t.Errorf("task %d was %+v, then %+v, and is %+v", n, early[n], late[n], got[n])
				}
				if begun := s.saw("start", n, f.other.pid()); begun == (n >= brittleFrom) {
					t.Errorf("task %d was begun by the other process: %t", n, begun)
				}
			}
			f.other.shutdown()
		})
	}
}

// The tasks of a frozen process, by number: those before endLateFrom end before it wakes,
// and those from brittleFrom on are not repeatable.
const endLateFrom, brittleFrom, frozenCalls = 5, 10, 13

type frozenTasks struct {
	*servers
	frozen, other *process
	handles       []*tasks.Handle[string] // through the other process
}

// create creates the tasks in the process that is to be frozen.
func (f *frozenTasks) create(ctx context.Context) {
	f.t.Helper()
	own, other := f.frozen.at(ctx), f.other.at(ctx)
	for n := range frozenCalls {
		tool := "stubborn"
		if n >= brittleFrom {
			tool = "brittle"
		}
		h := f.through(other, f.servers.create(ctx, own, tool, n))
		f.untilMessage(ctx, h, "begun by "+strconv.Itoa(f.frozen.pid()))
		f.handles = append(f.handles, h)
	}
}

// endThrough opens the gates of some calls, and tests that repeatable ones end with what
// the other process has made.
func (f *frozenTasks) endThrough(ctx context.Context, from, to int) {
	f.t.Helper()
	other := strconv.Itoa(f.other.pid())
	for n := from; n < to; n++ {
		f.open(n)
		if n >= brittleFrom {
			continue
		}
		if got := wait(ctx, f.handles[n]); got.result != done(n)+" by "+other {
			f.t.Errorf("task %d came to %+v", n, got)
		}
		if e := f.await(ctx, "late", n, f.other.pid()); e.value != other+" <nil>" {
			f.t.Errorf("Once gave %q", e.value)
		}
	}
}

// stored are the tasks as they are in the store.
func (f *frozenTasks) stored(ctx context.Context) []*tasks.Task {
	f.t.Helper()
	var all []*tasks.Task
	for _, h := range f.handles {
		all = append(all, f.state(ctx, h))
	}
	return all
}

// A process that is alone is frozen past its leases again and again. It does not run a task
// that it runs already.
func TestFrozenAlone(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	const (
		calls   = 10
		freezes = 5
		lease   = time.Second
	)
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			s := newServers(t, dsn(t), lease)
			p := s.start(ctx)
			client := p.at(ctx)
			var handles []*tasks.Handle[string]
			for n := range calls {
				handles = append(handles, s.create(ctx, client, "gated", n))
				s.await(ctx, "start", n, p.pid())
			}
			for range freezes {
				p.freeze(ctx)
				<-time.After(2 * lease) // the leases end
				p.signal(syscall.SIGCONT)
				n := len(handles)
				handles = append(handles, s.create(ctx, client, "gated", n))
				s.await(ctx, "start", n, p.pid())
			}
			for n, h := range handles {
				s.open(n)
				if got := wait(ctx, h); got.result != done(n) {
					t.Errorf("task %d came to %+v", n, got)
				}
			}
			p.shutdown()
			for n := range handles {
				if s.saw("conflict", n, 0) {
					t.Errorf("call %d ran twice at a time", n)
				}
			}
		})
	}
}
