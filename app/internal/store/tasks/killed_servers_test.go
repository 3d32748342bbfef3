package tasks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/jsonrpc"
)

// A load is clients that have tasks run by two processes, while those are killed and
// started again.
type load struct {
	*servers
	client *client.Client

	mu      sync.Mutex
	running []*process
	up      chan struct{} // closed while a process runs
	killed  chan struct{} // closed when the next process is killed
	over    bool          // no further one is
	calls   int
	ended   []endedTask
}

// An endedTask is one that a client has seen the end of.
type endedTask struct {
	id, tool string
	n        int
	outcome  outcome
}

// busyLease is longer than a busy machine keeps a server from renewing its leases.
const busyLease = 15 * time.Second

// The two servers of 100 tasks are killed again and again at any moment, one or both. No
// created task is unknown, no result that was seen is lost or another one, none is run by
// two, what server.Once gave stays, repeatable tasks complete with their results, and others
// complete or fail with the reason, and are begun once at most.
func TestKilledServers(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	const clients = 100
	kills := 6
	if n, err := strconv.Atoi(os.Getenv(killsEnv)); err == nil {
		kills = n
	}
	for name, dsn := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			l := &load{servers: newServers(t, dsn(t), busyLease), up: make(chan struct{}), killed: make(chan struct{})}
			l.add(l.start(ctx))
			l.add(l.start(ctx))
			l.client = l.connect(ctx, l.addr, client.Options{})
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() { l.use(ctx, i) })
			}
			for killed := 0; killed < kills; {
				l.starts(ctx, 1+rand.IntN(clients/4))
				moment := rand.N(300 * time.Millisecond)
				if killed > 0 && rand.IntN(3) == 0 {
					moment += busyLease // what was taken up runs
				}
				select {
				case <-time.After(moment):
				case <-ctx.Done():
				}
				victims := 1 + rand.IntN(4)/3
				for range victims {
					l.take().kill()
				}
				for range victims {
					l.add(l.start(ctx))
				}
				killed += victims
				l.next(killed >= kills)
			}
			wg.Wait()
			for _, e := range l.ended {
				l.look(ctx, e)
			}
			l.take().shutdown()
			l.take().shutdown()
			l.judge(kills)
		})
	}
}

// add has clients use a process.
func (l *load) add(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.running) == 0 {
		close(l.up)
	}
	l.running = append(l.running, p)
}

// next has each client create another task, unless it is over.
func (l *load) next(over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = over
	close(l.killed)
	l.killed = make(chan struct{})
}

// starts waits until a number of further handlers have started.
func (l *load) starts(ctx context.Context, n int) {
	l.servers.mu.Lock()
	defer l.servers.mu.Unlock()
	for from := len(l.events); n > 0 && ctx.Err() == nil; {
		more := l.more
		l.servers.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
		}
		l.servers.mu.Lock()
		for ; from < len(l.events); from++ {
			if l.events[from].what == "start" {
				n--
			}
		}
	}
}

// take has clients not use one of the processes any more.
func (l *load) take() *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := rand.IntN(len(l.running))
	p := l.running[i]
	if l.running = slices.Delete(l.running, i, i+1); len(l.running) == 0 {
		l.up = make(chan struct{})
	}
	return p
}

// addr is the address of one of the processes.
func (l *load) addr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.running) == 0 {
		return "127.0.0.1:1" // refused
	}
	return l.running[rand.IntN(len(l.running))].addr
}

// use creates a task after each kill, if the last one has ended, and waits for its end. Some
// are cancelled before.
func (l *load) use(ctx context.Context, i int) {
	tool := "steady"
	if i%3 == 0 {
		tool = "fragile"
	}
	options := &tasks.StartOptions{Wait: &tasks.WaitOptions{PollOnly: i%2 == 0}}
	for ctx.Err() == nil {
		l.mu.Lock()
		up, killed, over, n := l.up, l.killed, l.over, l.calls
		l.calls++
		l.mu.Unlock()
		if over {
			return
		}
		select {
		case <-up:
		case <-ctx.Done():
			return
		}
		h, err := tasks.Start[string](ctx, l.client, tool, job{n}, options)
		if err != nil {
			if refused := new(jsonrpc.Error); errors.As(err, &refused) {
				l.t.Errorf("%s %d: %v", tool, n, err)
			}
			continue // it was not acknowledged
		}
		cancel := n%7 == 0
		if cancel && h.Cancel(ctx) == nil {
			if state, err := h.Status(ctx); err == nil && !state.Status.Ended() {
				l.t.Errorf("%s %d goes on after it was cancelled", tool, n)
			}
		}
		e := endedTask{h.ID(), tool, n, wait(ctx, h)}
		if !cancel || !strings.Contains(e.outcome.fault, tasks.ErrCancelled.Error()) {
			right(l.t, tool, n, e.outcome)
		}
		l.mu.Lock()
		l.ended = append(l.ended, e)
		other := l.ended[rand.IntN(len(l.ended))]
		l.mu.Unlock()
		l.look(ctx, other)
		select {
		case <-killed:
		case <-ctx.Done():
		}
	}
}

// look tests that a task that has ended is as it was.
func (l *load) look(ctx context.Context, e endedTask) {
	h, err := tasks.Open[string](l.client, e.id, e.tool, nil)
	if err != nil {
		l.t.Error(err)
		return
	}
	if got := wait(ctx, h); got != e.outcome {
		l.t.Errorf("%s %d, task %s, came to %+v, and is now %+v", e.tool, e.n, e.id, e.outcome, got)
	}
}

// holder is the process that still held a task when another one began it, or 0. A process that
// could not renew a lease in time, as on a busy machine, has lost it, and stops its run, which
// may be after another one began; one that did not stop had the lease, or did not notice.
func (l *load) holder(conflict event) int {
	runs, after := map[int]int{}, false // by process
	for _, e := range l.events {
		switch {
		case e == conflict:
			after = true
			if runs[e.pid]--; runs[e.pid] > 0 { // but for the one that says so
				return e.pid
			}
		case e.n != conflict.n:
		case e.what == "start" && !after:
			runs[e.pid]++
		case e.what == "end" && after && runs[e.pid] > 0:
			if _, stopped := l.find("stopped", e.n, e.pid); !stopped {
				return e.pid
			}
			runs[e.pid]--
		case e.what == "end" && !after:
			runs[e.pid]--
		}
	}
	return 0
}

// judge tests what the processes said.
func (l *load) judge(kills int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	type call struct {
		starts int
		ticket string
	}
	calls := make(map[int]*call)
	for _, e := range l.events {
		c := calls[e.n]
		if c == nil {
			c = &call{}
			calls[e.n] = c
		}
		switch e.what {
		case "start":
			c.starts++
		case "conflict":
			if pid := l.holder(e); pid != 0 {
				l.t.Errorf("call %d was begun in process %d (%s), and process %d did not stop it", e.n, e.pid, e.value, pid)
			}
		case "ticket":
			if c.ticket != "" && c.ticket != e.value {
				l.t.Errorf("call %d: Once gave %q and %q", e.n, c.ticket, e.value)
			}
			c.ticket = e.value
		}
	}
	failed, again, cancelled := 0, 0, 0
	for _, e := range l.ended {
		starts := 0
		if c := calls[e.n]; c != nil {
			starts = c.starts
		}
		switch {
		case e.tool == "fragile" && starts > 1 || e.outcome.result != "" && starts == 0:
			l.t.Errorf("%s %d was begun %d times and came to %+v", e.tool, e.n, starts, e.outcome)
		case starts > 1:
			again++
		case strings.Contains(e.outcome.fault, tasks.ErrCancelled.Error()):
			cancelled++
		case e.outcome.fault != "":
			failed++
		}
	}
	l.t.Logf("%d kills; of %d tasks %d were run again, %d failed and %d were cancelled", kills, len(l.ended), again, failed, cancelled)
	if again+failed == 0 {
		l.t.Error("the processes were killed while nothing ran")
	}
}

// What judge says of a call that two processes began.
func TestHolder(t *testing.T) {
	conflict := event{"conflict", 7, 2, "locked"}
	for name, c := range map[string]struct {
		before, after []event
		want          int
	}{
		"killed":   {[]event{{"start", 7, 1, ""}}, nil, 0},
		"stopped":  {[]event{{"start", 7, 1, ""}}, []event{{"stopped", 7, 1, "lost"}, {"end", 7, 1, ""}}, 0},
		"went on":  {[]event{{"start", 7, 1, ""}}, []event{{"end", 7, 1, ""}}, 1},
		"itself":   {[]event{{"start", 7, 2, ""}}, nil, 2},
		"other":    {[]event{{"start", 8, 1, ""}}, []event{{"end", 8, 1, ""}}, 0},
		"later":    {nil, []event{{"end", 7, 2, ""}, {"start", 7, 1, ""}, {"end", 7, 1, ""}}, 0},
		"finished": {[]event{{"start", 7, 1, ""}, {"end", 7, 1, ""}, {"start", 7, 3, ""}}, []event{{"stopped", 7, 3, ""}, {"end", 7, 3, ""}}, 0},
	} {
		l := &load{servers: &servers{events: slices.Concat(c.before, []event{{"start", 7, 2, ""}, conflict}, c.after, []event{{"end", 7, 2, ""}})}}
		if got := l.holder(conflict); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
