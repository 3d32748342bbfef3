package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// The client's side of tasks in the revisions in which they are part of the core: it asks
// for a task by a member of params, waits for its end in tasks/result, and gets its
// questions meanwhile, as requests of the server.
//
// spec 2025-11-25, basic/utilities/tasks.

// memberTask is the member of params by which a call asks to be a task.
const memberTask = "task"

// inCore reports whether a client and its server use these revisions.
func inCore(c *client.Client) bool { return client.CoreTasks.Has(c.Version()) }

// coreAddition asks for a task where the tool runs as one only, or where Start may have
// one, and waits for its end.
func coreAddition(o *WaitOptions) client.Addition {
	known, declared := new(coreTools), new(declaration)
	return client.Addition{
		Methods: []string{mcp.MethodToolsCall}, Revisions: client.CoreTasks,
		Members: func(ctx context.Context, r *client.Request) (map[string]mcp.RawValue, error) {
			if !declared.takesCalls(r.Client()) || asksItself(r.Params()) {
				return nil, nil
			}
			support, err := known.support(ctx, r.Client(), r.Target())
			if err != nil {
				return nil, err
			}
			if support == supportRequired || support == supportOptional && startOf(r) != nil {
				return map[string]mcp.RawValue{memberTask: mcp.RawValue("{}")}, nil
			}
			return nil, nil
		},
		Settle: func(ctx context.Context, r *client.Request, result mcp.RawValue) (mcp.RawValue, error) {
			return settleCore(ctx, r, result, o)
		},
	}
}

// A declaration is what a server said when a connection began, read once for each.
type declaration struct{ last atomic.Pointer[declared] }

type declared struct {
	by    *mcp.ServerCapabilities
	calls bool
}

// takesCalls reports whether the server takes calls of tools as tasks.
func (d *declaration) takesCalls(c *client.Client) bool {
	by := c.Capabilities()
	if last := d.last.Load(); last != nil && last.by == by {
		return last.calls
	}
	var said struct {
		Requests struct {
			Tools struct {
				Call mcp.RawValue `json:"call"`
			} `json:"tools"`
		} `json:"requests"`
	}
	raw := by.Extra[memberTasks]
	calls := strictjson.Unmarshal(raw, &said) == nil && len(said.Requests.Tools.Call) > 0
	d.last.Store(&declared{by, calls})
	return calls
}

// asksItself reports whether params of Client.Request ask for a task already: then the
// answer is that of the caller too.
func asksItself(params any) bool {
	raw, ok := params.(mcp.RawValue)
	if !ok {
		return false
	}
	o, err := strictjson.ParseObject(raw)
	if err != nil {
		return false
	}
	_, ok = o.Member(memberTask)
	return ok
}

// A starting is a call by Start, which takes the task, and not its end.
type starting struct {
	ctx  context.Context //nolint:containedctx // that of the call, which is known by it
	task *Task           // what the server answered with
}

type startingKey struct{}

// startOf is the call of Start that a request is, or nil. A context made of that of the
// call, such as that of a handler, is not of that request.
func startOf(r *client.Request) *starting {
	s, _ := r.Context().Value(startingKey{}).(*starting)
	if s == nil || s.ctx != r.Context() {
		return nil
	}
	return s
}

// settleCore waits for the end of the task that a call was answered with.
func settleCore(ctx context.Context, r *client.Request, result mcp.RawValue, o *WaitOptions) (mcp.RawValue, error) {
	t, err := readCoreCreated(result)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return result, nil
	}
	if s := startOf(r); s != nil {
		s.task = t
		return result, nil
	}
	end, err := waitCore(ctx, r.Client(), t.ID, o)
	return settled(ctx, r.Client(), t.ID, end, err)
}

// readCoreCreated reads the answer to a call that asked to be a task. It is nil for a
// result of the tool: the server has carried the call out at once, and calling again
// would be doing it twice.
func readCoreCreated(result mcp.RawValue) (*Task, error) {
	var m struct {
		Task    *coreTask    `json:"task"`
		Content mcp.RawValue `json:"content"`
	}
	err := strictjson.Unmarshal(result, &m)
	var t *Task
	switch {
	case err != nil:
	case m.Task != nil:
		t, err = m.Task.task()
	case len(m.Content) == 0:
		err = errors.New("the answer to a call with the member task has no task")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a task: %w", client.ErrMalformed, err)
	}
	return t, nil
}

// task is what the message says, or what is wrong with it.
func (m *coreTask) task() (*Task, error) {
	all := taskMessage{
		TaskID: m.TaskID, Status: m.Status, StatusMessage: m.StatusMessage, CreatedAt: m.CreatedAt,
		LastUpdatedAt: m.LastUpdatedAt, TTLMs: m.TTL, PollIntervalMs: m.PollInterval,
	}
	return all.createdAs("ttl", "pollInterval")
}

// getCore asks once for the state of a task, which has neither result nor error.
func getCore(ctx context.Context, c *client.Client, id string) (*Task, error) {
	m, err := client.CallMethod[coreTask](ctx, c, MethodGet, taskParams{id})
	if err != nil {
		return nil, unknown(err)
	}
	return checkState(id, m.task)
}

// waitCore waits for the end of a task in tasks/result, which the server answers when the
// task has ended. Where that fails the state of the task says whether the failure is its
// own: then it is returned with the task; otherwise tasks/result is sent again.
func waitCore(ctx context.Context, c *client.Client, id string, o *WaitOptions) (*Task, error) {
	silent := &client.CallOptions{NoTimeout: true} // ctx has the limits
	broken := time.Time{}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		result, err := client.CallMethod[mcp.RawValue](ctx, c, methodResult, taskParams{id}, silent)
		switch {
		case err == nil && !ofTool(result):
			return nil, fmt.Errorf("%s %q: %w: it is no result of a tool", methodResult, id, client.ErrMalformed)
		case err == nil:
			return &Task{ID: id, Status: Completed, Result: result}, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		refusal, refused := errors.AsType[*jsonrpc.Error](err)
		if !refused && !mayPass(err) {
			return nil, err
		}
		var t *Task
		stateErr := o.insist(ctx, func() (err error) {
			t, err = getCore(ctx, c, id)
			return err
		})
		wait := pause
		switch {
		case errors.Is(stateErr, ErrUnknown) && refused && refusal.Code != mcp.CodeInvalidParams:
			return &Task{ID: id, Status: Failed, Error: refusal}, nil // it was told once, and is gone
		case stateErr != nil:
			return nil, stateErr
		case t.Status == Cancelled:
			return t, nil
		case t.Status.Ended() && refused && !slices.Contains(busyCodes, refusal.Code):
			t.Status, t.Error = Failed, refusal
			return t, nil
		case !t.Status.Ended() && refused: // a server that does not wait there
			pause, wait, broken = firstPause, o.interval(t), time.Time{}
		case broken.IsZero():
			broken = time.Now()
		case o.MaxOutage > 0 && time.Since(broken) > o.MaxOutage:
			return nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ofTool reports whether an answer to tasks/result is of a tool, as far as that is to be
// seen from its members.
func ofTool(result mcp.RawValue) bool {
	o, err := strictjson.ParseObject(result)
	if err != nil {
		return false
	}
	_, content := o.Member("content")
	_, structured := o.Member("structuredContent")
	return content || structured
}

// followCore is waitCore which asks for the states meanwhile, and tells of them from the
// last known one on.
func followCore(ctx context.Context, c *client.Client, t *Task, o *WaitOptions, changed func(*Task) bool) (*Task, error) {
	ctx, stop := context.WithCancelCause(ctx)
	type ended struct {
		task *Task
		err  error
	}
	end := make(chan ended, 1)
	done := make(chan struct{})
	defer func() {
		stop(errStopped)
		<-done
	}()
	id := t.ID // t changes below
	go func() {
		defer close(done)
		task, err := waitCore(ctx, c, id, o)
		end <- ended{task, err}
	}()
	var wait time.Duration
	for { // the first time the state is maybe of another process
		if !t.Updated.IsZero() && !t.Status.Ended() && !changed(t) {
			return nil, errStopped
		}
		select {
		case e := <-end:
			if e.err == nil && !changed(e.task) {
				return nil, errStopped
			}
			return e.task, e.err
		case <-time.After(wait):
			// If it fails, tasks/result says why.
			if now, err := getCore(ctx, c, id); err == nil {
				t = now
			}
			wait = o.interval(t)
		}
	}
}

// cancelCore cancels a task. One that has ended is refused, which is no error here.
func cancelCore(ctx context.Context, c *client.Client, id string) error {
	_, err := client.CallMethod[mcp.None](ctx, c, MethodCancel, taskParams{id})
	if err = unknown(err); !errors.Is(err, ErrUnknown) {
		return err
	}
	if t, stateErr := getCore(ctx, c, id); stateErr == nil && t.Status.Ended() {
		return nil
	}
	return err
}
