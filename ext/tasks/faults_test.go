package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
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
	"github.com/parley-mcp/parley/transport/streamable"
)

// A faulty store does what its functions say before, or in the place of, what it embeds.
type faulty struct {
	tasks.Store
	durable bool
	create  func(ctx context.Context, next func() (*tasks.Task, tasks.Lease, error)) (*tasks.Task, tasks.Lease, error)
	get     func(ctx context.Context, id string) error
	change  func(ctx context.Context, c tasks.Change) error
	renew   func(ctx context.Context) error
	claim   func(ctx context.Context, next func() ([]*tasks.Claimed, error)) ([]*tasks.Claimed, error)
	watch   func(ctx context.Context, ready func(), changed func(string)) error
}

func (f *faulty) Durable() bool { return f.durable }

func (f *faulty) Create(ctx context.Context, n *tasks.NewTask, d time.Duration) (*tasks.Task, tasks.Lease, error) {
	next := func() (*tasks.Task, tasks.Lease, error) { return f.Store.Create(ctx, n, d) }
	if f.create != nil {
		return f.create(ctx, next)
	}
	return next()
}

func (f *faulty) Get(ctx context.Context, id, owner string) (*tasks.Task, error) {
	if f.get != nil {
		if err := f.get(ctx, id); err != nil {
			return nil, err
		}
	}
	return f.Store.Get(ctx, id, owner)
}

func (f *faulty) Change(ctx context.Context, l tasks.Lease, c tasks.Change) (*tasks.Task, error) {
	if f.change != nil {
		if err := f.change(ctx, c); err != nil {
			return nil, err
		}
	}
	return f.Store.Change(ctx, l, c)
}

func (f *faulty) Renew(ctx context.Context, held []tasks.Lease, d time.Duration) ([]tasks.Lease, error) {
	if f.renew != nil {
		if err := f.renew(ctx); err != nil {
			return nil, err
		}
	}
	return f.Store.Renew(ctx, held, d)
}

func (f *faulty) Claim(ctx context.Context, d time.Duration, n int, skip []string) ([]*tasks.Claimed, error) {
	next := func() ([]*tasks.Claimed, error) { return f.Store.Claim(ctx, d, n, nil) }
	if f.claim != nil {
		return f.claim(ctx, next)
	}
	return next()
}

func (f *faulty) Watch(ctx context.Context, ready func(), changed func(string)) error {
	if f.watch != nil {
		return f.watch(ctx, ready, changed)
	}
	return f.Store.Watch(ctx, ready, changed)
}

// in runs f in a bubble.
func in(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func each(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serverOf is a server with options, features and tasks, that ends with the test.
func serverOf(t *testing.T, name string, so *server.Options, store tasks.Store, o *tasks.Options, features ...server.Feature) *server.Server {
	t.Helper()
	s := server.New(name, "1", so)
	s.Add(features...)
	if o.Log == nil {
		o.Log = quiet()
	}
	tasks.Enable(s, store, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s
}

// A call's task is being created when the store begins (again) to be watched: the run is found
// among those that changed, its task is not there yet, and the handler is stopped for good; the
// task stays "working". This is each first request of a process whose database takes a moment.
func TestCreateDuringWatchReady(t *testing.T) { // not in a bubble: Create is called with a lock held
	for _, durable := range []bool{false, true} {
		store := &faulty{Store: tasks.Memory(), durable: durable}
		creating, looked := make(chan struct{}), make(chan struct{})
		store.create = func(_ context.Context, next func() (*tasks.Task, tasks.Lease, error)) (*tasks.Task, tasks.Lease, error) {
			close(creating)
			select {
			case <-looked:
			case <-time.After(time.Second): // nobody looked, which is right
			}
			return next()
		}
		store.watch = func(ctx context.Context, ready func(), changed func(string)) error {
			<-creating
			return store.Store.Watch(ctx, ready, changed)
		}
		store.get = func(ctx context.Context, _ string) error {
			if server.CallFrom(ctx) == nil {
				select {
				case <-looked:
				default:
					defer close(looked)
					return tasks.ErrUnknown // as it is at this time
				}
			}
			return nil
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, sleeper("sleep", 10*time.Millisecond))
		p := connect(t, s)
		id, got := p.start("sleep", nil).TaskID, (*state)(nil)
		for range 100 {
			if got = p.mustGet(id); got.Status == "completed" {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got.Status != "completed" {
			t.Errorf("durable %t: seconds after a call of 10 ms: %s", durable, got.text)
		}
	}
}

// What a caller may not see is as what does not exist (server.Visible). A hidden tool with tasks
// is not: Must refuses with -32021, May gives a task.
func TestHiddenTools(t *testing.T) {
	in(t, func(t *testing.T) {
		s := newServer(t, sleeper("must", 0), sleeper("may", 0))
		s.Visible(func(ctx context.Context, _ server.Item) bool { return server.Caller(ctx).Subject == "bob" })
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"must": {Mode: tasks.Must}, "may": atOnce}})
		knows, plain := connect(t, s), connect(t, s, client.Options{})
		for what, p := range map[string]*peer{"with tasks": knows, "without": plain} {
			_, want := p.call("none", nil)
			for _, name := range []string{"must", "may"} {
				if got, err := p.call(name, nil); code(err) != code(want) {
					t.Errorf("%s: the hidden tool %q: %+v, %v; one that does not exist: %v", what, name, got, err, want)
				}
			}
		}
	})
}

// With Options.Others a tool that does not exist becomes a task, which is kept for a day.
func TestUnknownTool(t *testing.T) {
	in(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", 0))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: atOnce})
		if got, err := connect(t, s).call("none", nil); code(err) != mcp.CodeInvalidParams {
			t.Errorf("a tool that does not exist: %+v, %v", got, err)
		}
	})
}

// One task that cannot be read stops the wake-ups of all others: a cancelled handler runs on.
func TestOneTaskBlocksOthers(t *testing.T) {
	for _, way := range []string{"fails", "hangs"} {
		each(t, way, func(t *testing.T) {
			var bad atomic.Value
			bad.Store("")
			store := &faulty{Store: tasks.Memory()}
			store.get = func(ctx context.Context, id string) error {
				if id != bad.Load() || server.CallFrom(ctx) != nil {
					return nil
				}
				if way == "hangs" {
					<-ctx.Done()
				}
				return errors.New("the row cannot be read")
			}
			causes := make(chan error, 2)
			s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, server.Tool("work", "", func(ctx context.Context, _ mcp.None) (string, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return "", ctx.Err()
			}))
			p := connect(t, s)
			broken, other := p.start("work", nil).TaskID, p.start("work", nil).TaskID
			synctest.Wait()
			bad.Store(broken)
			if err := p.cancel(broken); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := p.cancel(other); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if n := len(causes); n == 0 {
				t.Errorf("%s: an hour after two tasks were cancelled no handler has heard of it", way)
			}
		})
	}
}

// While the store cannot be watched, an answer that came to this very process is not seen.
func TestAnswerWithoutWatch(t *testing.T) {
	for what, watch := range map[string]func(ctx context.Context) error{
		"fails": func(context.Context) error { return errors.New("no LISTEN here") },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		each(t, what, func(t *testing.T) {
			store := &faulty{Store: tasks.Memory()}
			store.watch = func(ctx context.Context, _ func(), _ func(string)) error { return watch(ctx) }
			s := serverOf(t, "tests", nil, store, &tasks.Options{Others: atOnce}, asker("ask"))
			p := connect(t, s)
			id := p.start("ask", nil).TaskID
			synctest.Wait()
			if err := p.update(id, answerAll(p.until(id, "input_required"), given)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if got := p.mustGet(id); got.Status != "completed" {
				t.Errorf("Watch %s: an hour after the answers: %s", what, got.text)
			}
		})
	}
}

// Where no more tasks are kept, a call that has begun one, or asks, fails with the limit.
func TestMaxKeptBegun(t *testing.T) {
	for what, tool := range map[string]tasks.Tool{
		"After":  {Mode: tasks.May, After: time.Hour},
		"Begins": {Mode: tasks.May, Begins: true},
	} {
		each(t, what, func(t *testing.T) {
			s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{
				Tools: map[string]tasks.Tool{"fill": atOnce, "ask": tool}, MaxKept: 1,
			}, sleeper("fill", 0), server.Tool("ask", "", func(ctx context.Context, _ mcp.None) (string, error) {
				if err := tasks.Begin(ctx); err != nil {
					return "", err
				}
				a, err := server.Elicit[naming](ctx, "Who?")
				return a.Value.Name, err
			}), server.Tool("askonly", "", func(ctx context.Context, _ mcp.None) (string, error) {
				a, err := server.Elicit[naming](ctx, "Who?")
				return a.Value.Name, err
			}))
			connect(t, s).start("fill", nil)
			answer := func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
				return client.Accept(naming{"Alice"})
			}
			c := reconnect(t, s, client.Options{Extensions: []client.Extension{knows(nil)}, OnElicit: answer})
			if _, err := client.Call[string](t.Context(), c, "ask", nil); err == nil || !strings.Contains(err.Error(), "tasks.Options.MaxKept") {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// With After every quick call counts as a detached one: 101 at once of one caller, whose limit
// of requests is 256, are refused with the default limits.
func TestQuickCallsAtOnce(t *testing.T) {
	in(t, func(t *testing.T) {
		o := &tasks.Options{Others: tasks.Tool{Mode: tasks.May, After: time.Minute}}
		s := serverOf(t, "tests", &server.Options{Limits: server.Limits{ToolRate: -1}}, tasks.Memory(), o, sleeper("quick", time.Second))
		p := connect(t, s)
		var wg sync.WaitGroup
		var late, failed atomic.Int32
		for range 150 {
			wg.Go(func() {
				began := time.Now()
				if _, err := p.call("quick", nil); err != nil {
					failed.Add(1)
				}
				if time.Since(began) > 1500*time.Millisecond {
					late.Add(1)
				}
			})
		}
		wg.Wait()
		if late.Load()+failed.Load() > 0 {
			t.Errorf("of 150 calls %d were refused first and repeated, %d failed", late.Load(), failed.Load())
		}
	})
}

type userKey struct{}

// "Handlers are not changed": but they lose what middleware put into their context, with After
// in ordinary calls too, and their log messages.
func TestMiddlewareValues(t *testing.T) {
	for what, tool := range map[string]tasks.Tool{
		"After, quick": {Mode: tasks.May, After: time.Minute},
		"at once":      atOnce,
	} {
		each(t, what, func(t *testing.T) {
			s := server.New("tests", "1", nil)
			s.Add(server.Tool("user", "", func(ctx context.Context, _ mcp.None) (string, error) {
				return fmt.Sprint(ctx.Value(userKey{})), nil
			}))
			s.Use(func(next server.Func) server.Func {
				return func(c *server.Call) (server.Result, error) {
					return next(c.WithContext(context.WithValue(c, userKey{}, "ada")))
				}
			})
			t.Cleanup(func() { _ = s.Shutdown(context.WithoutCancel(t.Context())) })
			tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tool})
			p := connect(t, s)
			got, err := p.call("user", nil)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if got.ResultType == "task" {
				text = p.until(got.TaskID, "completed").output()
			} else {
				text = got.Content[0].Text
			}
			if text != "ada" {
				t.Errorf("%s: the handler found %q", what, text)
			}
		})
	}
}

// Create was made and failed: the task that nobody knows is run after its lease, beside the call
// that went on as an ordinary one.
func TestCreateMadeAndFailed(t *testing.T) {
	in(t, func(t *testing.T) {
		store := &faulty{Store: tasks.Memory(), durable: true}
		store.create = func(_ context.Context, next func() (*tasks.Task, tasks.Lease, error)) (*tasks.Task, tasks.Lease, error) {
			if _, _, err := next(); err != nil {
				return nil, tasks.Lease{}, err
			}
			return nil, tasks.Lease{}, errCut
		}
		var begun sync.Map
		s := serverOf(t, "tests", nil, store, &tasks.Options{Others: repeatable}, holder(&begun))
		p := connect(t, s)
		if got, err := p.call("hold", labelled{"a"}); err == nil {
			t.Fatalf("%+v", got)
		}
		time.Sleep(10 * time.Minute)
		if n := count(&begun, "a"); n != 0 {
			t.Errorf("a call that was refused was run %d times", n)
		}
	})
}

// An error is not bounded by MaxResult, and kept twice.
func TestLongError(t *testing.T) {
	in(t, func(t *testing.T) {
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce, MaxResult: 1000},
			server.Tool("break", "", func(context.Context, mcp.None) (string, error) {
				return "", mcp.NewError(-32050, "%s", strings.Repeat("x", 100_000)).With(strings.Repeat("y", 100_000))
			}))
		p := connect(t, s)
		if got := p.until(p.start("break", nil).TaskID, "failed"); len(got.text) > 5000 {
			t.Errorf("with MaxResult 1000 a task has %d bytes", len(got.text))
		}
	})
}

// A handler that knows a client's cancellation by server.ErrCancelled, as a request tells it,
// does not know it in a task.
func TestCancelCause(t *testing.T) {
	in(t, func(t *testing.T) {
		causes := make(chan error, 1)
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, server.Tool("work", "", func(ctx context.Context, _ mcp.None) (string, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", ctx.Err()
		}))
		p := connect(t, s)
		id := p.start("work", nil).TaskID
		synctest.Wait() // the handler of a task that is cancelled before is not called
		if err := p.cancel(id); err != nil {
			t.Fatal(err)
		}
		if err := <-causes; !errors.Is(err, server.ErrCancelled) {
			t.Errorf("cause: %v", err)
		}
	})
}

// The text of the limit on all tasks.
func TestLimitText(t *testing.T) {
	if text := (&tasks.LimitError{All: true, Most: 3}).Error(); strings.Contains(text, "  ") {
		t.Errorf("two blanks: %q", text)
	}
}

// While a task is created slowly, a handler that only says how far it is stands still.
func TestProgressWaitsForCreate(t *testing.T) {
	store := &faulty{Store: tasks.Memory()}
	creating, said := make(chan struct{}), make(chan struct{})
	slow := false
	store.create = func(_ context.Context, next func() (*tasks.Task, tasks.Lease, error)) (*tasks.Task, tasks.Lease, error) {
		close(creating)
		select {
		case <-said:
		case <-time.After(5 * time.Minute): // real time: only a hang lasts so long
			slow = true
		}
		return next()
	}
	o := &tasks.Options{Others: tasks.Tool{Mode: tasks.May, After: time.Millisecond}}
	s := serverOf(t, "tests", nil, store, o, server.Tool("say", "", func(ctx context.Context, _ mcp.None) (string, error) {
		<-creating
		err := server.Progress(ctx, 1, 2, "half")
		close(said)
		return "said", err
	}))
	connect(t, s).start("say", nil)
	if slow {
		t.Error("Progress waited for the store")
	}
}

// runtime.Goexit in a handler, as a task and with After.
func TestGoexit(t *testing.T) {
	for what, tool := range map[string]tasks.Tool{"at once": atOnce, "After": {Mode: tasks.May, After: time.Minute}} {
		each(t, what, func(t *testing.T) {
			s := serverOf(t, "tests", &server.Options{Logger: quiet()}, tasks.Memory(), &tasks.Options{Others: tool}, server.Tool("exit", "", func(context.Context, mcp.None) (string, error) {
				runtime.Goexit()
				return "", nil
			}))
			p := connect(t, s)
			got, err := p.call("exit", nil)
			if err == nil {
				got = p.until(got.TaskID, "failed")
				if got.Error.Code != mcp.CodeInternalError {
					t.Errorf("%s", got.text)
				}
			} else if code(err) != mcp.CodeInternalError {
				t.Error(err)
			}
		})
	}
}

// Structured results, with _meta, and results that do not fit the schema of the output, are in a
// task what they are in a call.
func TestResults(t *testing.T) {
	for what, tool := range map[string]tasks.Tool{"at once": atOnce, "After": {Mode: tasks.May, After: time.Minute}} {
		each(t, what, func(t *testing.T) {
			s := serverOf(t, "tests", &server.Options{Logger: quiet()}, tasks.Memory(), &tasks.Options{Others: tool},
				server.Tool("data", "", func(context.Context, mcp.None) (*mcp.CallToolResult, error) {
					r := &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("x")}, StructuredContent: mcp.RawValue(`{"a":null}`)}
					r.Meta.Extra = map[string]mcp.RawValue{"com.example/k": mcp.RawValue(`"v"`)}
					return r, nil
				}))
			p := connect(t, s)
			got, err := p.call("data", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.ResultType == "task" {
				got = p.until(got.TaskID, "completed")
			}
			if text := string(got.text); !strings.Contains(text, `"structuredContent":{"a":null}`) || !strings.Contains(text, `"com.example/k":"v"`) {
				t.Errorf("%s", text)
			}
		})
	}
}

// What each of many subscribers hears last is the end, and nothing comes after it.
func TestManySubscribers(t *testing.T) {
	in(t, func(t *testing.T) {
		const subscribers = 15
		s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, server.Tool("say", "", func(ctx context.Context, _ mcp.None) (string, error) {
			for i := range 300 {
				if err := server.Progress(ctx, float64(i), 0, "step"); err != nil {
					return "", err
				}
				time.Sleep(time.Duration(i%7) * 10 * time.Millisecond)
			}
			return "said", nil
		}))
		var mu sync.Mutex
		last := make(map[int]string)
		id := connect(t, s).start("say", nil).TaskID
		for i := range subscribers {
			hear := func(n *client.Notification) {
				if n.Method == tasks.Notify {
					mu.Lock()
					defer mu.Unlock()
					if last[i] == "completed" {
						t.Error("a state after the end")
					}
					last[i] = decoded(t, n.Params).Status
				}
			}
			p := connect(t, s, client.Options{Extensions: []client.Extension{knows(hear)}})
			if _, err := p.SubscribeExtension(t.Context(), tasks.ID, map[string]any{"taskIds": []string{id}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i := range subscribers {
			if last[i] != "completed" {
				t.Errorf("subscriber %d heard last %q", i, last[i])
			}
		}
	})
}

// A panic of a store in the background ends the process; "A panic is logged" (Extension.Run).
func TestStorePanics(t *testing.T) {
	const env = "PARLEY_REVIEW_PANIC"
	if os.Getenv(env) != "" {
		store := &faulty{Store: tasks.Memory(), durable: true}
		store.claim = func(context.Context, func() ([]*tasks.Claimed, error)) ([]*tasks.Claimed, error) {
			panic("a bug of the store")
		}
		s := serverOf(t, "tests", nil, store, &tasks.Options{}, sleeper("sleep", 0))
		s.Start()
		time.Sleep(time.Second)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStorePanics$")
	cmd.Env = append(os.Environ(), env+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %.200s", err, out)
	}
}

// Identifiers with strange characters over Streamable HTTP are unknown ones.
func TestStrangeIDs(t *testing.T) {
	s := serverOf(t, "tests", nil, tasks.Memory(), &tasks.Options{Others: atOnce}, sleeper("sleep", 0))
	h := httptest.NewServer(streamable.NewHandler(s, nil))
	t.Cleanup(h.Close)
	c, err := client.Connect(t.Context(), streamable.URL(h.URL), &client.Options{Extensions: []client.Extension{knows(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p := &peer{c, t}
	for _, id := range []string{"guessed", "", " a ", "a\nb", "a\x00b", "\u2028é", "=?base64?YQ==?=", strings.Repeat("x", 100_000), "a,b", "\"", "%0d%0a"} {
		_, err := p.get(id)
		if code(err) != mcp.CodeInvalidParams || strings.Count(err.Error(), "no such task") != 1 {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}
