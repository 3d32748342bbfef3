package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// A handle is one process's way to a store that survives processes.
type handle struct {
	tasks.Store
	cut atomic.Bool // the store cannot be reached
}

var errCut = errors.New("the store cannot be reached")

func (h *handle) Durable() bool { return true }

func (h *handle) err() error {
	if h.cut.Load() {
		return errCut
	}
	return nil
}

func (h *handle) Create(ctx context.Context, n *tasks.NewTask, d time.Duration) (*tasks.Task, tasks.Lease, error) {
	if err := h.err(); err != nil {
		return nil, tasks.Lease{}, err
	}
	return h.Store.Create(ctx, n, d)
}

func (h *handle) Get(ctx context.Context, id, owner string) (*tasks.Task, error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	return h.Store.Get(ctx, id, owner)
}

func (h *handle) Claim(ctx context.Context, d time.Duration, n int, skip []string) ([]*tasks.Claimed, error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	return h.Store.Claim(ctx, d, n, skip)
}

func (h *handle) Renew(ctx context.Context, held []tasks.Lease, d time.Duration) ([]tasks.Lease, error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	return h.Store.Renew(ctx, held, d)
}

func (h *handle) Change(ctx context.Context, l tasks.Lease, c tasks.Change) (*tasks.Task, error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	return h.Store.Change(ctx, l, c)
}

func (h *handle) Answers(ctx context.Context, l tasks.Lease) (mcp.InputResponses, error) {
	if err := h.err(); err != nil {
		return nil, err
	}
	return h.Store.Answers(ctx, l)
}

// A site is two processes with one store.
type site struct {
	handles [2]*handle
	servers [2]*server.Server
	runs    atomic.Int32 // of the handler
	once    atomic.Int32
	causes  chan error // why handlers ended early
}

const lease = 10 * time.Second

// newSite makes two servers with a tool that asks two questions and works for a second.
func newSite(t *testing.T, repeatable bool) *site {
	w := &site{causes: make(chan error, 10)}
	store := tasks.Memory()
	for i := range w.servers {
		w.handles[i] = &handle{Store: store}
		s := newServer(t, server.Tool("work", "Works.", w.work))
		tasks.Enable(s, w.handles[i], &tasks.Options{
			Tools: map[string]tasks.Tool{"work": {Mode: tasks.May, Repeatable: repeatable}}, Lease: lease,
			Log: slog.New(slog.DiscardHandler),
		})
		w.servers[i] = s
	}
	return w
}

func (w *site) work(ctx context.Context, _ mcp.None) (_ string, err error) {
	w.runs.Add(1)
	defer func() {
		if ctx.Err() != nil {
			w.causes <- context.Cause(ctx)
		}
	}()
	ticket, err := server.Once(ctx, "ticket", func() (int32, error) { return w.once.Add(1), nil })
	if err != nil {
		return "", err
	}
	who, err := server.Elicit[naming](ctx, "Who?")
	if err != nil {
		return "", err
	}
	sure, err := server.Elicit[confirmation](ctx, "Sure?")
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return fmt.Sprintf("%s %t %d", who.Value.Name, sure.Value.Confirm, ticket), nil
}

var given = map[string]any{"name": "Alice", "confirm": true}

// answer answers the one question that is open.
func (p *peer) answer(id string) {
	p.t.Helper()
	waiting := p.until(id, "input_required")
	if len(waiting.InputRequests) != 1 {
		p.t.Fatalf("not one question: %s", waiting.text)
	}
	if err := p.update(id, answerAll(waiting, given)); err != nil {
		p.t.Fatal(err)
	}
}

// Either process answers for a task that one of them runs.
func TestEitherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, true)
		a, b := connect(t, w.servers[0]), connect(t, w.servers[1])
		id := a.start("work", nil).TaskID
		b.answer(id)
		synctest.Wait()
		b.answer(id)
		if got := b.until(id, "completed"); got.output() != "Alice true 1" || w.runs.Load() != 1 {
			t.Errorf("%s after %d runs", got.text, w.runs.Load())
		}
		id = a.start("work", nil).TaskID
		a.until(id, "input_required")
		if err := b.cancel(id); err != nil {
			t.Fatal(err)
		}
		if err := <-w.causes; !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("the handler ended by %v", err)
		}
	})
}

// A repeatable task is taken up at once after a shutdown, with what was answered and done.
func TestTakenUpAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, true)
		w.servers[1].Start()
		a, b := connect(t, w.servers[0]), connect(t, w.servers[1])
		id := a.start("work", nil).TaskID
		a.answer(id)
		synctest.Wait()
		a.until(id, "input_required")
		began := time.Now()
		if err := w.servers[0].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-w.causes; !errors.Is(err, server.ErrShutdown) {
			t.Errorf("the handler ended by %v", err)
		}
		b.answer(id)
		if got := b.until(id, "completed"); got.output() != "Alice true 1" || w.once.Load() != 1 || w.runs.Load() != 2 {
			t.Errorf("%s; %d runs, Once ran %d times", got.text, w.runs.Load(), w.once.Load())
		}
		if d := time.Since(began); d >= lease {
			t.Errorf("it took %v", d)
		}
	})
}

// A process that cannot renew its leases stops its tasks, writes nothing any more, and another
// takes them up.
func TestLostProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, true)
		w.servers[1].Start()
		a, b := connect(t, w.servers[0]), connect(t, w.servers[1])
		id := a.start("work", nil).TaskID
		a.answer(id)
		synctest.Wait()
		w.handles[0].cut.Store(true)
		if err := <-w.causes; !errors.Is(err, tasks.ErrLost) {
			t.Errorf("the handler ended by %v", err)
		}
		time.Sleep(lease)
		w.handles[0].cut.Store(false)
		b.answer(id)
		if got := b.until(id, "completed"); got.output() != "Alice true 1" || w.once.Load() != 1 || w.runs.Load() != 2 {
			t.Errorf("%s; %d runs, Once ran %d times", got.text, w.runs.Load(), w.once.Load())
		}
	})
}

// A task that is not repeatable fails with the reason when its process is lost, and is never
// run twice; at a shutdown it is given time, as a request is.
func TestNotRepeatable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, false)
		w.servers[1].Start()
		a, b := connect(t, w.servers[0]), connect(t, w.servers[1])
		id := a.start("work", nil).TaskID
		w.handles[0].cut.Store(true)
		if err := <-w.causes; !errors.Is(err, tasks.ErrLost) {
			t.Errorf("the handler ended by %v", err)
		}
		var got *state
		for range 100 {
			if got = b.mustGet(id); got.Status == "failed" {
				break
			}
			time.Sleep(time.Second)
		}
		if got.Error == nil || !strings.Contains(got.Error.Message, "not marked as repeatable") || got.StatusMessage == "" || w.runs.Load() != 1 {
			t.Errorf("%s after %d runs", got.text, w.runs.Load())
		}
		w.handles[0].cut.Store(false)
		id = b.start("work", nil).TaskID
		ended := make(chan error)
		b.answer(id)
		synctest.Wait()
		b.answer(id)
		go func() { ended <- w.servers[1].Shutdown(context.WithoutCancel(t.Context())) }()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := a.mustGet(id); got.Status != "completed" {
			t.Errorf("after a shutdown: %s", got.text)
		}
	})
}

// A task that loses its process each time is not begun for ever, and one that this server
// cannot run is left to others.
func TestUnfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logtest.Log)
		store := &handle{Store: tasks.Memory()}
		for _, id := range []string{"often", "foreign"} {
			n := &tasks.NewTask{ID: id, Owner: ada.Identity(), TTL: time.Hour, Repeatable: true, Tool: "work", Call: []byte(`{"version":99}`)}
			if _, _, err := store.Create(t.Context(), n, time.Second); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				time.Sleep(time.Minute)
				if c, err := store.Claim(t.Context(), time.Second, 1, []string{"foreign"}); err != nil || len(c) != 1 && id == "often" {
					t.Fatalf("%v, %v", c, err)
				}
			}
		}
		time.Sleep(time.Minute)
		s := newServer(t, sleeper("work", time.Second))
		tasks.Enable(s, store, &tasks.Options{Others: tasks.Tool{Mode: tasks.May, Repeatable: true}, MaxAttempts: 3, Log: log.Logger()})
		s.Start()
		synctest.Wait()
		p := connect(t, s)
		if got := p.mustGet("often"); got.Status != "failed" || !strings.Contains(got.StatusMessage, "MaxAttempts") {
			t.Errorf("a task that was lost often: %s", got.text)
		}
		if got := p.mustGet("foreign"); got.Status != "working" || !strings.Contains(log.String(), "left to other processes") {
			t.Errorf("a task of another version: %s, log %s", got.text, log)
		}
	})
}
