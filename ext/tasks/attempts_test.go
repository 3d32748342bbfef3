package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// holder is a tool that runs for an hour, and counts runs by label.
func holder(begun *sync.Map) server.Feature {
	return server.Tool("hold", "Holds.", func(ctx context.Context, l labelled) (string, error) {
		n, _ := begun.LoadOrStore(l.Label, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		select {
		case <-time.After(time.Hour):
			return "held " + l.Label, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
}

func count(m *sync.Map, label string) int32 {
	n, ok := m.Load(label)
	if !ok {
		return 0
	}
	return n.(*atomic.Int32).Load()
}

var repeatable = tasks.Tool{Mode: tasks.May, Repeatable: true}

// Tasks that a process cannot take up, since it is full, lose an attempt each time that it looks.
// After ten looks they fail with "begun 10 times", though they were not begun.
func TestFullProcessUsesUpAttempts(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		var begun sync.Map
		first := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(new(sync.Map)))
		p := connect(t, first)
		p.start("hold", labelled{"a"})
		waiting := p.start("hold", labelled{"b"}).TaskID
		other := connectAs(t, first, bob).start("hold", labelled{"bob"}).TaskID
		if err := first.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := serverOf(t, "tests", &server.Options{Limits: server.Limits{MaxDetached: 1}}, store, &tasks.Options{Others: repeatable}, holder(&begun))
		second.Start()
		time.Sleep(10 * time.Minute)
		if got := connect(t, second).mustGet(waiting); got.Status != "working" {
			t.Errorf("a task that waits for room, begun %d times: %s", count(&begun, "b"), got.text)
		}
		// bob has no task that runs, but is behind ada's.
		if got := connectAs(t, second, bob).mustGet(other); got.Status != "working" || count(&begun, "bob") != 1 {
			t.Errorf("the task of a caller with room, begun %d times: %s", count(&begun, "bob"), got.text)
		}
	})
}

// A process that shuts down claims its own released tasks again, and again, while it waits for
// the others, until they have no attempt left.
func TestDrainingProcessUsesUpAttempts(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		o := &tasks.Options{Tools: map[string]tasks.Tool{"hold": repeatable, "long": atOnce}}
		s := serverOf(t, "tests", nil, store, o, holder(new(sync.Map)), sleeper("long", 10*time.Minute))
		p := connect(t, s)
		id := p.start("hold", nil).TaskID
		p.start("long", nil)
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		got, err := store.Get(t.Context(), id, ada.Identity())
		if err != nil || got.Status != tasks.Working {
			t.Errorf("a released task after a shutdown that waited: %+v, %v", got, err)
		}
	})
}

// A task that waits for a person fails after ten deployments, each in good order.
func TestShutdownsUseUpAttempts(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		var id string
		for i := range 12 {
			s := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, asker("ask"))
			p := connect(t, s)
			if i == 0 {
				id = p.start("ask", nil).TaskID
			}
			time.Sleep(10 * time.Minute)
			if got := p.mustGet(id); got.Status != "input_required" {
				t.Fatalf("after %d restarts: %s", i, got.text)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A store that hangs in Renew: the worker goes on after the end of its lease, while another
// process runs the task.
func TestRenewHangs(t *testing.T) {
	in(t, func(t *testing.T) {
		var running, most, begun atomic.Int32
		tool := server.Tool("work", "Works.", func(ctx context.Context, _ mcp.None) (string, error) {
			begun.Add(1)
			n := running.Add(1)
			defer running.Add(-1)
			if n > most.Load() {
				most.Store(n)
			}
			select {
			case <-ctx.Done():
				return "", context.Cause(ctx)
			case <-time.After(5 * time.Minute):
				return "done", nil
			}
		})
		memory := tasks.Memory()
		a := &faulty{Store: memory, durable: true}
		var hangs atomic.Bool
		a.renew = func(ctx context.Context) error {
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		first := serverOf(t, "tests", nil, a, &tasks.Options{Others: repeatable}, tool)
		second := serverOf(t, "tests", nil, &faulty{Store: memory, durable: true}, &tasks.Options{Others: repeatable}, tool)
		p := connect(t, first)
		p.start("work", nil)
		time.Sleep(30 * time.Second)
		second.Start()
		hangs.Store(true)
		time.Sleep(3 * time.Minute)
		if most.Load() > 1 {
			t.Errorf("%d workers ran one task at once", most.Load())
		}
	})
}

// A quick call that a shutdown ends becomes a task, which another process takes up.
func TestShutdownHandsOver(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		late := tasks.Tool{Mode: tasks.May, After: time.Minute, Repeatable: true}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: late}, sleeper("quick", 2*time.Second))
		p := connect(t, s)
		go func() {
			time.Sleep(time.Second)
			_ = s.Shutdown(context.WithoutCancel(t.Context()))
		}()
		got, err := p.call("quick", nil)
		if err != nil || got.ResultType != "task" {
			t.Fatalf("a request under way at the shutdown: %+v, %v", got, err)
		}
		other := connect(t, serverOf(t, "tests", nil, store, &tasks.Options{Others: late}, sleeper("quick", 2*time.Second)))
		if got := other.until(got.TaskID, "completed"); got.output() != "slept " {
			t.Errorf("in another process: %s", got.text)
		}
	})
}

// The store is away for 40 seconds when a handler ends, and the lease is a minute: the result is
// lost, and the task fails with a reason that is not true.
func TestResultLostInOutage(t *testing.T) {
	in(t, func(t *testing.T) {
		var away atomic.Bool
		store := &faulty{Store: tasks.Memory(), durable: true}
		store.change = func(context.Context, tasks.Change) error {
			if away.Load() {
				return errCut
			}
			return nil
		}
		store.renew = func(context.Context) error {
			if away.Load() {
				return errCut
			}
			return nil
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, sleeper("sleep", 62*time.Second))
		p := connect(t, s)
		id := p.start("sleep", nil).TaskID
		time.Sleep(61 * time.Second)
		away.Store(true)
		time.Sleep(40 * time.Second)
		away.Store(false)
		time.Sleep(5 * time.Minute)
		if got := p.mustGet(id); got.Status != "completed" {
			t.Errorf("the handler had returned its result: %s", got.text)
		}
	})
}

// "taken up by another ... at once after Server.Shutdown": no store tells of the release, so it
// takes up to a third of the lease.
func TestReleaseIsTold(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		var begun sync.Map
		first := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(new(sync.Map)))
		second := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(&begun))
		second.Start()
		connect(t, first).start("hold", labelled{"a"})
		time.Sleep(5 * time.Second)
		if err := first.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if n := count(&begun, "a"); n != 1 {
			t.Errorf("5 seconds after the shutdown the task has been begun %d times", n)
		}
	})
}

// Two servers with one store, or an old and a new version of one: what a server cannot run is
// ended by it, instead of being left to the one that can.
func TestOtherServersTasks(t *testing.T) {
	for what, second := range map[string]struct {
		name    string
		feature server.Feature
	}{
		"another server":         {"other", holder(new(sync.Map))},
		"an older version of it": {"tests", sleeper("sleep", 0)},
	} {
		each(t, what, func(t *testing.T) {
			store := &faulty{Store: tasks.Memory(), durable: true}
			first := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(new(sync.Map)))
			serverOf(t, second.name, nil, store, &tasks.Options{Others: repeatable}, second.feature).Start()
			id := connect(t, first).start("hold", labelled{"a"}).TaskID
			if err := first.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			third := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(new(sync.Map)))
			third.Start()
			if got := connect(t, third).mustGet(id); got.Status != "working" {
				t.Errorf("%s: %s", what, got.text)
			}
		})
	}
}

// Each task that was claimed stays in memory until the process ends.
func TestClaimedTasksLeak(t *testing.T) {
	const size, n = 1 << 20, 64
	var grown int
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		for i := range n {
			nt := &tasks.NewTask{ID: fmt.Sprint("t", i), Owner: ada.Identity(), Tool: "sleep", TTL: time.Hour}
			if _, _, err := store.Create(t.Context(), nt, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		var claims atomic.Int32
		store.claim = func(_ context.Context, next func() ([]*tasks.Claimed, error)) ([]*tasks.Claimed, error) {
			list, err := next()
			for _, c := range list { // as a database gives them: in memory of their own
				c.Task.Message = strings.Repeat("x", size)
				claims.Add(1)
			}
			return list, err
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, sleeper("sleep", 0))
		before := heap()
		s.Start()
		time.Sleep(10 * time.Minute)
		if claims.Load() != n {
			t.Fatalf("%d claims", claims.Load())
		}
		grown = heap() - before
		runtime.KeepAlive(s)
	})
	if grown > n*size/2 {
		t.Errorf("%d tasks, of a MiB each, were claimed and ended; the heap has grown by %d KiB", n, grown>>10)
	}
}

// A repeatable handler that ends in good order after Shutdown began has its result thrown away
// and is run again.
func TestResultAtShutdown(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, server.Tool("ends", "", func(context.Context, mcp.None) (string, error) {
			time.Sleep(2 * time.Second) // a step that must not be interrupted
			return "done", nil
		}))
		p := connect(t, s)
		id := p.start("ends", nil).TaskID
		time.Sleep(time.Second)
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Get(t.Context(), id, ada.Identity()); err != nil || got.Status != tasks.Completed {
			t.Errorf("the handler returned its result before Shutdown did: %+v, %v", got, err)
		}
	})
}

// Enable in a mounted server "has no effect": it takes up, and ends, tasks of the store that it
// has in common with the server around it.
func TestMounted(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		inner := serverOf(t, "inner", nil, store, &tasks.Options{Others: repeatable}, sleeper("sleep", time.Second))
		first := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(new(sync.Map)))
		id := connect(t, first).start("hold", labelled{"a"}).TaskID
		if err := first.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		outer := server.New("tests", "1", nil)
		outer.Add(holder(new(sync.Map)))
		outer.Mount("in", inner)
		t.Cleanup(func() { _ = outer.Shutdown(context.WithoutCancel(t.Context())) })
		p := connect(t, outer, client.Options{})
		if _, err := p.call("in_sleep", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, err := store.Get(t.Context(), id, ada.Identity()); err != nil || got.Status != tasks.Working {
			t.Errorf("the task of the outer server: %+v, %v", got, err)
		}
	})
}

// A store that cannot keep an end, for whatever reason: the task is "working" for ever.
func TestEndCannotBeKept(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory()}
		store.change = func(_ context.Context, c tasks.Change) error {
			if c.End != nil && c.End.Status == tasks.Completed {
				return errors.New("value too long")
			}
			return nil
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, sleeper("sleep", time.Second))
		endsWithinAnHour(t, s)
	})
}

// A request that was let in before Shutdown and comes to its tool after that is told an
// internal error, not that the server shuts down.
func TestCallDuringShutdown(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		s := server.New("tests", "1", nil)
		s.Add(sleeper("sleep", time.Second))
		s.Use(func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				if c.Method() == mcp.MethodToolsCall {
					time.Sleep(time.Second)
				}
				return next(c)
			}
		})
		tasks.Enable(s, store, &tasks.Options{Others: tasks.Tool{Mode: tasks.May, Repeatable: true}, Log: quiet()})
		for range 50 {
			// several, since it is a race between the run, which ends, and Create
			p := connect(t, s)
			go func() {
				if got, err := p.call("sleep", nil); err != nil && code(err) != mcp.CodeShuttingDown {
					t.Errorf("%+v, %v", got, err)
				}
			}()
		}
		synctest.Wait()
		_ = s.Shutdown(context.WithoutCancel(t.Context()))
		time.Sleep(time.Minute)
	})
}

// How long Shutdown lasts beyond its context while the store hangs.
func TestShutdownWithHangingStore(t *testing.T) {
	in(t, func(t *testing.T) {
		var hangs atomic.Bool
		store := &faulty{Store: tasks.Memory(), durable: true}
		store.change = func(ctx context.Context, _ tasks.Change) error {
			if hangs.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, server.Tool("once", "", func(ctx context.Context, _ mcp.None) (string, error) {
			<-ctx.Done()
			_, err := server.Once(ctx, "k", func() (int, error) { return 1, nil })
			return "", err
		}))
		connect(t, s).start("once", nil)
		synctest.Wait()
		hangs.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_ = s.Shutdown(ctx)
		t.Logf("Shutdown with a context of a second lasted %v", time.Since(began))
	})
}

// endsWithinAnHour checks that a task of the tool sleep comes to an end.
func endsWithinAnHour(t *testing.T, s *server.Server) {
	t.Helper()
	p := connect(t, s)
	id := p.start("sleep", nil).TaskID
	time.Sleep(time.Hour)
	if got := p.mustGet(id); got.Status == "working" {
		t.Errorf("an hour later: %s", got.text)
	}
}
