package tasks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/mem"
	"github.com/parley-mcp/parley/transport/streamable"
)

const coreVersion = "2025-11-25"

// waitingCore is a client of 2025-11-25 with the extension, and what it has sent.
func waitingCore(t *testing.T, d transport.Dialer, o client.Options) (*client.Client, func(method string) int) {
	t.Helper()
	var mu sync.Mutex
	sent := make(map[string]int)
	o.Versions, o.Extensions = []string{coreVersion}, []client.Extension{tasks.Client(nil)}
	o.Middleware = append(o.Middleware, func(next client.Func) client.Func {
		return func(ctx context.Context, r *client.Request) (client.Result, error) {
			mu.Lock()
			sent[r.Method()]++
			mu.Unlock()
			return next(ctx, r)
		}
	})
	c, err := client.Connect(t.Context(), d, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, func(method string) int {
		mu.Lock()
		defer mu.Unlock()
		return sent[method]
	}
}

func inMemory(s *server.Server) transport.Dialer {
	return mem.New(s, &mem.Options{Principal: principal.Local})
}

// coreServer has tools that must, may and may not run as tasks.
func coreServer(t *testing.T) *server.Server {
	s := newServer(t, sleeper("must", 4*time.Minute), sleeper("may", time.Second), sleeper("never", time.Second), asker("ask"),
		server.Tool("refuse", "Fails.", func(context.Context, mcp.None) (string, error) { return "", mcp.Errorf("no paper") }),
		server.Tool("break", "Breaks.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.NewError(-32050, "out of order")
		}), sleeper("forever", 24*time.Hour))
	must := tasks.Tool{Mode: tasks.Must}
	tasks.Enable(s, tasks.Memory(), &tasks.Options{PollInterval: time.Second, Others: must, Tools: map[string]tasks.Tool{"may": atOnce, "never": {}}})
	return s
}

// A tool that runs as a task only is called with the member task, and its caller gets the
// result from tasks/result, later than a request may be silent; others are called as ever. The
// list of tools is asked for once.
func TestCoreClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, oneAtATime := range []bool{false, true} {
			var seen []string
			o := client.Options{OneAtATime: oneAtATime, Middleware: []client.Middleware{func(next client.Func) client.Func {
				return func(ctx context.Context, r *client.Request) (client.Result, error) {
					result, err := next(ctx, r)
					if r, ok := result.(*mcp.CallToolResult); ok && err == nil {
						seen = append(seen, r.Content[0].(*mcp.TextContent).Text)
					}
					return result, err
				}
			}}}
			c, sent := waitingCore(t, inMemory(coreServer(t)), o)
			for _, tool := range []string{"may", "never", "must", "may"} {
				got, err := client.Call[string](t.Context(), c, tool, labelled{"well"})
				if err != nil || got != "slept well" {
					t.Errorf("%s: %q, %v", tool, got, err)
				}
			}
			if lists, results, gets := sent(mcp.MethodToolsList), sent("tasks/result"), sent(tasks.MethodGet); lists != 1 || results != 1 || gets != 0 {
				t.Errorf("%d lists, %d tasks/result, %d tasks/get", lists, results, gets)
			}
			if len(seen) != 4 || len(slices.Compact(seen)) != 1 {
				t.Errorf("middleware saw %q", seen)
			}
			time.Sleep(5 * time.Minute)
			if r, err := c.CallTool(t.Context(), "refuse", nil, nil); err != nil || !r.IsError || sent(mcp.MethodToolsList) != 2 {
				t.Errorf("isError: %+v, %v, %d lists", r, err, sent(mcp.MethodToolsList))
			}
			if _, err := c.CallTool(t.Context(), "break", nil, nil); code(err) != -32050 || !strings.Contains(err.Error(), "out of order") {
				t.Errorf("a protocol error: %v", err)
			}
			// Who asks for a task gets it.
			var made mcp.RawValue
			params := map[string]any{"name": "must", "arguments": labelled{"x"}, "task": map[string]any{}}
			if err := c.Request(t.Context(), mcp.MethodToolsCall, params, &made, nil); err != nil || !strings.Contains(string(made), `"task":{`) {
				t.Errorf("own task: %s, %v", made, err)
			}
		}
	})
}

// A call that is given up, or lasts too long, cancels its task; one that the server cancels is
// ErrCancelled.
func TestCoreClientCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := coreServer(t)
		c, sent := waitingCore(t, inMemory(s), client.Options{})
		other := connectCore(t, s, principal.Local, client.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errLeft) })
		if _, err := c.CallTool(ctx, "forever", labelled{"x"}, nil); !errors.Is(err, errLeft) || sent(tasks.MethodCancel) != 1 {
			t.Errorf("%v, %d cancellations", err, sent(tasks.MethodCancel))
		}
		began := time.Now()
		if _, err := c.CallTool(t.Context(), "forever", labelled{"x"}, nil); !errors.Is(err, client.ErrTimeout) || time.Since(began) != 10*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		list := func() (all []coreState) {
			var page struct {
				Tasks []coreState `json:"tasks"`
			}
			if err := other.request("tasks/list", nil, &page); err != nil {
				t.Fatal(err)
			}
			return page.Tasks
		}
		for _, task := range list() {
			if task.Status != "cancelled" {
				t.Errorf("left behind: %+v", task)
			}
		}
		time.AfterFunc(time.Minute, func() {
			for _, task := range list() {
				if task.Status == "working" {
					_ = other.request(tasks.MethodCancel, map[string]string{"taskId": task.TaskID}, new(mcp.RawValue))
				}
			}
		})
		if _, err := c.CallTool(t.Context(), "forever", labelled{"x"}, nil); !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("cancelled on the other side: %v", err)
		}
	})
}

// Handles: optional tools too are tasks; Wait, Status, Updates, Cancel, MarshalBinary, Resume
// and Open do what they do elsewhere.
func TestCoreHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := coreServer(t)
		c, sent := waitingCore(t, inMemory(s), client.Options{})
		for _, tool := range []string{"may", "must"} {
			h, err := tasks.Start[string](t.Context(), c, tool, labelled{"well"}, nil)
			if err != nil || h.ID() == "" {
				t.Fatalf("%s: %v", tool, err)
			}
			if state, err := h.Status(t.Context()); err != nil || state.Status != tasks.Working || state.ID != h.ID() || state.Tool != tool || state.PollInterval != time.Second {
				t.Errorf("%s: %+v, %v", tool, state, err)
			}
			saved, err := h.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			again, err := tasks.Resume[string](t.Context(), c, saved, nil)
			if err != nil {
				t.Fatal(err)
			}
			opened, err := tasks.Open[string](c, h.ID(), tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			var states []tasks.Status
			for state, err := range opened.Updates(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if states = append(states, state.Status); state.ID != h.ID() || state.Tool != tool {
					t.Errorf("%s: %+v", tool, state)
				}
			}
			if n := len(states); n < 2 || states[0] != tasks.Working || states[n-1] != tasks.Completed {
				t.Errorf("%s: %v", tool, states)
			}
			for _, handle := range []*tasks.Handle[string]{h, again, opened, h} {
				if got, err := handle.Wait(t.Context()); err != nil || got != "slept well" {
					t.Errorf("%s: %q, %v", tool, got, err)
				}
			}
			if err := h.Cancel(t.Context()); err != nil {
				t.Errorf("%s: cancelling what has ended: %v", tool, err)
			}
		}
		h, err := tasks.Start[string](t.Context(), c, "never", labelled{"well"}, nil)
		if err != nil || h.ID() != "" {
			t.Fatalf("never: a task, %v", err)
		}
		if got, err := h.Wait(t.Context()); err != nil || got != "slept well" {
			t.Errorf("never: %q, %v", got, err)
		}
		if h, err = tasks.Start[string](t.Context(), c, "forever", nil, nil); err != nil {
			t.Fatal(err)
		}
		before := sent(tasks.MethodCancel)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(errLeft) })
		if _, err := h.Wait(ctx); !errors.Is(err, errLeft) || sent(tasks.MethodCancel) != before {
			t.Errorf("a wait that is given up: %v", err)
		}
		cancelled := make(chan error, 1)
		time.AfterFunc(time.Minute, func() { cancelled <- h.Cancel(t.Context()) })
		if _, err := h.Wait(t.Context()); !errors.Is(err, tasks.ErrCancelled) {
			t.Errorf("a wait for what is cancelled: %v", err)
		}
		if err := <-cancelled; err != nil {
			t.Error(err)
		}
		if h, err = tasks.Open[string](c, "nobody", "must", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); !errors.Is(err, tasks.ErrUnknown) {
			t.Errorf("a task that there is not: %v", err)
		}
		if err := h.Cancel(t.Context()); !errors.Is(err, tasks.ErrUnknown) {
			t.Errorf("a task that there is not: %v", err)
		}
	})
}

// Questions come while the client waits, and its handlers answer them; they are told which
// tool asks where the transport tells, and with OneAtATime.
func TestCoreClientAsked(t *testing.T) {
	answer := func(t *testing.T, s *server.Server, d transport.Dialer, oneAtATime bool, want string) {
		var mu sync.Mutex
		var asked []string
		c, _ := waitingCore(t, d, client.Options{OneAtATime: oneAtATime, OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			tool := ""
			if of := client.RequestFrom(ctx); of != nil {
				tool = of.Target()
			}
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, fmt.Sprintf("%s %q %q", r.Method, r.Target, tool))
			return accepted(ctx, r)
		}})
		got, err := client.Call[string](t.Context(), c, "ask", nil)
		if err != nil || got != "Ada true" {
			t.Errorf("%q, %v", got, err)
		}
		h, err := tasks.Start[string](t.Context(), c, "ask", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Wait(t.Context()); err != nil || got != "Ada true" {
			t.Errorf("%q, %v", got, err)
		}
		if len(asked) != 4 || len(slices.Compact(asked)) != 1 || asked[0] != want {
			t.Errorf("asked %q, want four times %q", asked, want)
		}
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := coreServer(t)
			answer(t, s, inMemory(s), false, `tools/call "ask" "ask"`)
			answer(t, s, inMemory(s), true, `tools/call "ask" "ask"`)
		})
	})
	t.Run("HTTP", func(t *testing.T) {
		s := coreServer(t)
		endpoint := streamable.NewHandler(s, nil)
		site := webtest.Serve(t, endpoint)
		webtest.Abort(t, endpoint.Shutdown)
		answer(t, s, streamable.URL(site.URL), false, `tools/call "ask" "ask"`)
	})
}

// A person who takes long uses up no time of the call.
func TestCoreClientSlowPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, oneAtATime := range []bool{false, true} {
			c, _ := waitingCore(t, inMemory(coreServer(t)), client.Options{OneAtATime: oneAtATime, OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
				time.Sleep(30 * time.Minute)
				return accepted(ctx, r)
			}})
			if got, err := client.Call[string](t.Context(), c, "ask", nil); err != nil || got != "Ada true" {
				t.Errorf("%q, %v", got, err)
			}
		}
	})
}

// A connection that ends while the client waits in tasks/result costs nothing: it asks again.
func TestCoreClientLosesConnections(t *testing.T) {
	s := newServer(t, sleeper("must", time.Second))
	tasks.Enable(s, tasks.Memory(), &tasks.Options{Others: tasks.Tool{Mode: tasks.Must}})
	endpoint := streamable.NewHandler(s, nil)
	var lost atomic.Int32
	site := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if bytes.Contains(body, []byte(`"tasks/result"`)) && lost.Add(1) <= 3 {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		endpoint.ServeHTTP(w, r)
	}))
	webtest.Abort(t, endpoint.Shutdown)
	c, sent := waitingCore(t, streamable.URL(site.URL), client.Options{})
	got, err := client.Call[string](t.Context(), c, "must", labelled{"well"})
	if err != nil || got != "slept well" || lost.Load() != 4 || sent(mcp.MethodToolsCall) != 1 {
		t.Errorf("%q, %v after %d times tasks/result", got, err, lost.Load())
	}
}

// A coreFake is a server of 2025-11-25 that says of tasks what a test wants.
type coreFake struct {
	created, state string
	result         func(n int) (string, error)

	mu      sync.Mutex
	results int
	cancels int
}

// coreSays is a state of the task "a" with changed members.
func coreSays(status string, changes ...string) string {
	return says(status, append([]string{"ttlMs", "", "pollIntervalMs", "", "result", "", "ttl", "60000", "pollInterval", "1000"}, changes...)...)
}

func (f *coreFake) server(t *testing.T, declared any) *server.Server {
	s := newServer(t, server.Tool("t", "A tool.", func(context.Context, mcp.None) (string, error) { return "at once", nil }))
	with := server.MethodOptions{Revisions: server.CoreTasks, Anyone: true}
	s.Extend(server.Extension{
		ID:           tasks.ID,
		Capabilities: []server.Capability{{Name: "tasks", Revisions: server.CoreTasks, Value: declared}},
		Wrap: func(next server.Func) server.Func {
			return func(c *server.Call) (server.Result, error) {
				switch _, asked := c.Param("task"); {
				case c.Method() == mcp.MethodToolsList:
					return result(`{"tools":[7,{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
				case c.Method() == mcp.MethodToolsCall && asked:
					return result(f.created)
				}
				return next(c)
			}
		},
		Methods: []*server.ExtensionMethod{
			server.Method(tasks.MethodGet, func(*server.Call, mcp.RawValue) (*free, error) { return result(f.state) }).With(with),
			server.Method(tasks.MethodCancel, func(*server.Call, mcp.RawValue) (*free, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.cancels++
				return result(f.state)
			}).With(with),
			server.Method("tasks/result", func(*server.Call, mcp.RawValue) (*free, error) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.results++
				text, err := f.result(f.results)
				if err != nil {
					return nil, err
				}
				return result(text)
			}).With(with),
		},
	})
	return s
}

// offered is a capability of a server that takes calls as tasks.
var offered = map[string]any{"requests": map[string]any{"tools": map[string]any{"call": map[string]any{}}}}

// Answers of servers that are not what the specification says, or unusual.
func TestCoreClientHostile(t *testing.T) {
	done := func(int) (string, error) { return `{"content":[{"type":"text","text":"done"}]}`, nil }
	created := `{"task":` + coreSays("working") + `}`
	with := func(changes ...string) string { return `{"task":` + coreSays("working", changes...) + `}` }
	for name, c := range map[string]struct {
		f       *coreFake
		want    string // of the result, or of the error
		is      error  // nil: none
		cancels int
	}{
		"as it should be":     {&coreFake{created: created, result: done}, "done", nil, 0},
		"a result at once":    {&coreFake{created: `{"content":[{"type":"text","text":"at once"}]}`}, "at once", nil, 0},
		"no task":             {&coreFake{created: `{}`}, "has no task", client.ErrMalformed, 0},
		"a flat task":         {&coreFake{created: coreSays("working")}, "has no task", client.ErrMalformed, 0},
		"a text for a task":   {&coreFake{created: `{"task":"a"}`}, "/task", client.ErrMalformed, 0},
		"no id":               {&coreFake{created: with("taskId", "")}, "taskId is missing", client.ErrMalformed, 0},
		"an empty id":         {&coreFake{created: with("taskId", `""`)}, "taskId is missing", client.ErrMalformed, 0},
		"a number for an id":  {&coreFake{created: with("taskId", `7`)}, "/task/taskId", client.ErrMalformed, 0},
		"a long id":           {&coreFake{created: with("taskId", `"`+strings.Repeat("x", 1025)+`"`)}, "1025 bytes", client.ErrMalformed, 0},
		"no ttl":              {&coreFake{created: with("ttl", "")}, "ttl is missing", client.ErrMalformed, 0},
		"a negative interval": {&coreFake{created: with("pollInterval", "-1")}, "pollInterval: it is negative", client.ErrMalformed, 0},
		"a new status":        {&coreFake{created: with("status", `"sleeping"`)}, "no state", client.ErrMalformed, 0},
		"no CallToolResult":   {&coreFake{created: created, result: func(int) (string, error) { return `{"content":[{"type":"text","text":"a","Text":1}]}`, nil }}, "content", client.ErrMalformed, 0},
		"a task for a result": {&coreFake{created: created, result: func(int) (string, error) { return created, nil }}, "no result of a tool", client.ErrMalformed, 1},
		"not yet": {&coreFake{created: created, state: coreSays("working"), result: func(n int) (string, error) {
			if n < 4 {
				return "", mcp.NewError(mcp.CodeInvalidParams, "not yet")
			}
			return done(n)
		}}, "done", nil, 0},
		"an error of the task": {&coreFake{created: created, state: coreSays("failed"), result: func(int) (string, error) { return "", mcp.NewError(mcp.CodeInvalidParams, "bad cheese") }}, "bad cheese", errAny, 0},
		"cancelled":            {&coreFake{created: created, state: coreSays("cancelled", "statusMessage", `"by Bob"`), result: func(int) (string, error) { return "", mcp.NewError(mcp.CodeInternalError, "no") }}, "by Bob", tasks.ErrCancelled, 0},
		"the state of another": {&coreFake{created: created, state: coreSays("failed", "taskId", `"b"`), result: func(int) (string, error) { return "", mcp.NewError(mcp.CodeInternalError, "no") }}, `task "b"`, client.ErrMalformed, 1},
		"a state that is none": {&coreFake{created: created, state: `{}`, result: func(int) (string, error) { return "", mcp.NewError(mcp.CodeInternalError, "no") }}, "taskId is missing", client.ErrMalformed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own, _ := waitingCore(t, inMemory(c.f.server(t, offered)), client.Options{})
				r, err := own.CallTool(t.Context(), "t", nil, nil)
				switch {
				case c.is == nil && (err != nil || r.Content[0].(*mcp.TextContent).Text != c.want):
					t.Errorf("%+v, %v, want %q", r, err, c.want)
				case c.is != nil && (err == nil || !errors.Is(errAny, c.is) && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("error is %v, want a %v with %q", err, c.is, c.want)
				}
				if c.f.cancels != c.cancels {
					t.Errorf("%d cancellations, want %d", c.f.cancels, c.cancels)
				}
			})
		})
	}
}

// errAny is any error.
var errAny = errors.New("any error")

// A server that does not take calls as tasks is asked for none, and its tools are not listed.
func TestCoreClientNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, declared := range []any{map[string]any{}, map[string]any{"requests": map[string]any{}}, map[string]any{"requests": 7}} {
			f := coreFake{created: `{}`}
			c, sent := waitingCore(t, inMemory(f.server(t, declared)), client.Options{})
			if got, err := client.Call[string](t.Context(), c, "t", nil); err != nil || got != "at once" || sent(mcp.MethodToolsList) != 0 {
				t.Errorf("%v: %q, %v", declared, got, err)
			}
			if h, err := tasks.Start[string](t.Context(), c, "t", nil, nil); err != nil || h.ID() != "" {
				t.Errorf("%v: %v", declared, err)
			}
		}
	})
}
