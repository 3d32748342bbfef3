package tasks_test

import (
	"context"
	"encoding"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

var _ encoding.BinaryMarshaler = (*tasks.Handle[string])(nil)

// A handle outlives what it was made in: the task goes on when nobody waits, and is
// waited for as often as one likes, for longer than a call may last.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Hour))
		tasks.Enable(s, tasks.Memory(), allTasks)
		c := reconnect(t, s, waiting(nil))
		ctx, cancel := context.WithCancelCause(t.Context())
		h, err := tasks.Start[string](ctx, c, "sleep", labelled{"well"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if h.ID() == "" || h.Tool() != "sleep" {
			t.Errorf("the handle is of task %q and tool %q", h.ID(), h.Tool())
		}
		time.AfterFunc(time.Minute, func() { cancel(errLeft) })
		if _, err := h.Wait(ctx); !errors.Is(err, errLeft) || !strings.Contains(err.Error(), h.ID()) {
			t.Errorf("a wait that is given up: %v", err)
		}
		state, err := h.Status(t.Context())
		if err != nil || state.Status != tasks.Working || state.ID != h.ID() || state.Tool != "sleep" {
			t.Errorf("%+v, %v", state, err)
		}
		for range 2 {
			if got, err := h.Wait(t.Context()); err != nil || got != "slept well" {
				t.Errorf("%q, %v", got, err)
			}
		}
	})
}

// Cancel ends the task, and Wait says so.
func TestCancelHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Hour))
		tasks.Enable(s, tasks.Memory(), allTasks)
		c := reconnect(t, s, waiting(nil))
		h, err := tasks.Start[mcp.CallToolResult](t.Context(), c, "sleep", mcp.RawValue(`{"label":"x"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		cancelled := make(chan error, 1)
		time.AfterFunc(time.Minute, func() { cancelled <- h.Cancel(t.Context()) })
		if _, err := h.Wait(t.Context()); !errors.Is(err, tasks.ErrCancelled) {
			t.Error(err)
		}
		if err := <-cancelled; err != nil {
			t.Error(err)
		}
	})
}

// Updates gives the states, ends with the last one, and may be left; Wait then has the
// rest.
func TestUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"))
		tasks.Enable(s, tasks.Memory(), allTasks)
		o := waiting(nil)
		var asked atomic.Int32
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked.Add(1)
			if r.Target != "ask" || r.Method != mcp.MethodToolsCall {
				t.Errorf("the question is of %s %s", r.Method, r.Target)
			}
			select {
			case <-time.After(time.Minute):
				return accepted(ctx, r)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		c := reconnect(t, s, o)
		h, err := tasks.Start[string](t.Context(), c, "ask", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for state, err := range h.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Questions) == 2 {
				break // before they are asked
			}
		}
		if n := asked.Load(); n > 2 {
			t.Errorf("asked %d times", n)
		}
		asked.Store(0)
		var states []tasks.Status
		for state, err := range h.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, state.Status)
		}
		if n := len(states); n < 2 || states[0] != tasks.InputRequired || states[n-1] != tasks.Completed || asked.Load() != 2 {
			t.Errorf("states %v, asked %d times", states, asked.Load())
		}
		if got, err := h.Wait(t.Context()); err != nil || got != "Ada true" || asked.Load() != 2 {
			t.Errorf("%q, %v, asked %d times", got, err, asked.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for state, err := range h.Updates(ctx) {
			if err != nil || state.Status != tasks.Completed {
				t.Errorf("the states of what has ended: %+v, %v", state, err)
			}
		}
	})
}

// The server may answer with the result: the handle has it, and there is nothing to come
// back to.
func TestStartWithoutTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Second), server.Tool("fails", "Fails.", func(context.Context, mcp.None) (string, error) {
			return "", mcp.Errorf("out of paper")
		}))
		for _, c := range []*client.Client{reconnect(t, s, waiting(nil)), reconnect(t, s, client.Options{Versions: []string{"2025-11-25"}})} {
			h, err := tasks.Start[string](t.Context(), c, "sleep", labelled{"well"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := h.Wait(t.Context()); err != nil || got != "slept well" || h.ID() != "" {
				t.Errorf("%q, %v", got, err)
			}
			if state, err := h.Status(t.Context()); err != nil || state.Status != tasks.Completed || state.Result == nil {
				t.Errorf("%+v, %v", state, err)
			}
			if err := h.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := h.MarshalBinary(); !errors.Is(err, tasks.ErrNoTask) {
				t.Errorf("MarshalBinary: %v", err)
			}
			n := 0
			for state, err := range h.Updates(t.Context()) {
				if n++; err != nil || n > 1 || state.Status != tasks.Completed {
					t.Errorf("%d: %+v, %v", n, state, err)
				}
			}
			if n != 1 {
				t.Errorf("%d states", n)
			}
			failing, err := tasks.Start[string](t.Context(), c, "fails", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := failing.Wait(t.Context()); !isToolError(err) {
				t.Errorf("a tool that fails: %v", err)
			}
		}
	})
}

func isToolError(err error) bool {
	_, ok := errors.AsType[*client.ToolError](err)
	return ok
}

// What cannot be started says why.
func TestStartRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Second))
		tasks.Enable(s, tasks.Memory(), &tasks.Options{Tools: map[string]tasks.Tool{"sleep": {Mode: tasks.Must}}})
		c := reconnect(t, s, waiting(nil))
		for _, args := range []any{7, func() {}, mcp.RawValue(`[]`), mcp.RawValue(`{"a":1,"a":1}`)} {
			if _, err := tasks.Start[string](t.Context(), c, "sleep", args, nil); err == nil || !strings.Contains(err.Error(), `arguments of tool "sleep"`) {
				t.Errorf("%T: %v", args, err)
			}
		}
		if _, err := tasks.Start[string](t.Context(), c, "none", mcp.RawValue(nil), nil); code(err) != mcp.CodeInvalidParams {
			t.Errorf("an unknown tool: %v", err)
		}
		plain := reconnect(t, s, client.Options{})
		_, err := tasks.Start[string](t.Context(), plain, "sleep", labelled{"x"}, nil)
		if _, ok := errors.AsType[*client.CapabilityError](err); !ok || !strings.Contains(err.Error(), "Options.Extensions") {
			t.Errorf("a client without the extension: %v", err)
		}
	})
}

// A handle goes to another process as bytes, in which questions that were answered are
// not asked again.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, asker("ask"))
		tasks.Enable(s, tasks.Memory(), allTasks)
		leave, cancel := context.WithCancelCause(t.Context())
		o := waiting(nil)
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Message == "Who?" {
				return accepted(ctx, r)
			}
			time.AfterFunc(time.Minute, func() { cancel(errLeft) })
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		first := reconnect(t, s, o)
		h, err := tasks.Start[string](t.Context(), first, "ask", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		early, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(leave); !errors.Is(err, errLeft) {
			t.Fatal(err)
		}
		late, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(late), "Ada") || !strings.Contains(string(late), `"answered":true`) {
			t.Errorf("the handle is %s", late)
		}
		asked := ""
		o.OnElicit = func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked += r.Target + " " + r.Params.Message
			return accepted(ctx, r)
		}
		for i, saved := range [][]byte{late, early} { // the second finds it ended
			again, err := tasks.Resume[string](t.Context(), reconnect(t, s, o), saved, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := again.Wait(t.Context()); err != nil || got != "Ada true" || asked != "ask Sure?" {
				t.Errorf("%d: %q, %v, asked %q", i, got, err, asked)
			}
		}
		// A foreign task is an unknown one.
		stranger := connectAs(t, s, bob, waiting(nil))
		if _, err := tasks.Resume[string](t.Context(), stranger.Client, late, nil); !errors.Is(err, tasks.ErrUnknown) {
			t.Errorf("a stranger: %v", err)
		}
		other := server.New("other", "1", nil)
		tasks.Enable(other, tasks.Memory(), nil)
		if _, err := tasks.Resume[string](t.Context(), reconnect(t, other, o), late, nil); !errors.Is(err, tasks.ErrUnknown) || !strings.Contains(err.Error(), `"tests"`) {
			t.Errorf("another server: %v", err)
		}
		_ = other.Shutdown(t.Context())
	})
}

// Saved handles that are none.
func TestResumeRefused(t *testing.T) {
	c := reconnect(t, newServer(t), waiting(nil))
	long := strings.Repeat("a", 1025)
	for text, want := range map[string]string{
		``:                           "",
		`[]`:                         "",
		`{}`:                         "version is 0",
		`{"version":2,"new":1}`:      "its version is 2, and this program reads version 1",
		`{"version":1,"tool":"t"}`:   "taskId is missing",
		`{"version":1,"taskId":"a"}`: "tool is missing",
		`{"version":1,"tool":"t","taskId":"` + long + `"}`:                                                                                  "1025 bytes",
		`{"version":1,"tool":"t","taskId":"a","more":1}`:                                                                                    "more",
		`{"version":1,"tool":"t","taskId":"a","asked":[{"key":"","digest":"d"}]}`:                                                           "key of a question",
		`{"version":1,"tool":"t","taskId":"a","asked":[{"key":"k"}]}`:                                                                       `question "k"`,
		`{"version":1,"tool":"t","taskId":"a","asked":[{"key":"k","digest":"d"},{"key":"k","digest":"d"}]}`:                                 "twice",
		`{"version":1,"tool":"t","taskId":"a","asked":[` + strings.Repeat(`{"key":"k","digest":"d"},`, 4096) + `{"key":"k","digest":"d"}]}`: "4097 questions",
		strings.Repeat(" ", 1<<20) + `{}`:                                                                                                   "",
		`{"version":1,"tool":"t","taskId":"a"}`:                                                                                             `server does not offer the extension`,
	} {
		_, err := tasks.Resume[string](t.Context(), c, []byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, tasks.ErrHandle) == errors.Is(err, client.ErrNotCapable) {
			t.Errorf("%.100s: %v, want an error with %q", text, err, want)
		}
	}
}

// An identifier is enough to wait for a task.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, sleeper("sleep", time.Minute))
		tasks.Enable(s, tasks.Memory(), allTasks)
		c := reconnect(t, s, waiting(nil))
		h, err := tasks.Start[string](t.Context(), c, "sleep", labelled{"well"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := tasks.Open[string](c, h.ID(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for state, err := range again.Updates(t.Context()) {
			if n++; err != nil || n == 1 && state.Status != tasks.Working {
				t.Errorf("%+v, %v", state, err)
			}
		}
		if got, err := again.Wait(t.Context()); err != nil || got != "slept well" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := tasks.Open[string](c, "", "", nil); err == nil {
			t.Error("no identifier")
		}
		none, err := tasks.Open[string](c, "none", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := none.Wait(t.Context()); !errors.Is(err, tasks.ErrUnknown) || !strings.HasPrefix(err.Error(), `task "none"`) {
			t.Errorf("an unknown task: %v", err)
		}
	})
}
