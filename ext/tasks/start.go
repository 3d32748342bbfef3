package tasks

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// ErrNoTask says that a call was answered with its result at once, so that there is no
// task to come back to.
var ErrNoTask = errors.New("the call has its result already: there is no task")

// StartOptions configure a call of [Start]. The zero value, and nil, work.
type StartOptions struct {
	// Call are the options of the request, which the server answers with a task or with
	// the result. ResultTypes are set by Start.
	Call client.CallOptions
	// Wait says how the end of the task is waited for; nil is the default. It is
	// independent of what [Client] was given.
	Wait *WaitOptions
}

// A Handle is a call of a tool that may have become a task: its result, of type Out, can
// be waited for now, later, or in another process. Its methods may be called by many
// goroutines at once; of Wait and Updates one runs at a time, and the others wait for
// it.
type Handle[Out any] struct{ h *handle }

// A handle is a Handle without the type of its result.
type handle struct {
	c     *client.Client
	tool  string
	id    string // "" if there is no task
	o     WaitOptions
	asked questions

	turn chan struct{} // held while the task is followed; guards what follows
	last *Task         // the last state; it is final if it has ended
}

// Start calls a tool with arguments, as [client.Call] does, and returns when the server
// has answered: with a task, or with the result, which the handle then has at once.
// Questions that are asked before are answered by the client's handlers. The client has
// [Client] among its extensions; without it servers give results alone.
//
// In 2025-11-25 Start asks for a task where the tool may be one, "optional" as well as
// "required"; other tools give their result.
//
// What the caller does not wait for goes on: the end of a context never cancels a task
// that Start has returned. Cancel does.
//
// Errors are those of client.Call for the request; what came of the tool is told by
// Wait.
func Start[Out any](ctx context.Context, c *client.Client, tool string, args any, o *StartOptions) (*Handle[Out], error) {
	if o == nil {
		o = &StartOptions{}
	}
	call := o.Call
	call.ResultTypes = []string{ResultTask}
	params := mcp.CallToolParams{Name: tool}
	if raw, ok := args.(mcp.RawValue); args != nil && (!ok || len(raw) > 0) {
		raw, err := strictjson.Marshal(args)
		if err == nil {
			_, err = strictjson.ParseObject(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("arguments of tool %q: %w", tool, err)
		}
		params.Arguments = raw
	}
	var result mcp.RawValue
	own := new(starting)
	ctx = context.WithValue(ctx, startingKey{}, own)
	own.ctx = ctx
	if err := c.Request(ctx, mcp.MethodToolsCall, &params, &result, &call); err != nil {
		return nil, err
	}
	var base mcp.ResultBase
	if err := strictjson.Unmarshal(result, &base); err != nil {
		return nil, fmt.Errorf("tool %q: %w: %w", tool, client.ErrMalformed, err)
	}
	h := newHandle(c, tool, o.Wait)
	if own.task != nil {
		h.id, h.last = own.task.ID, own.task
		return &Handle[Out]{h}, nil
	}
	if base.ResultType != ResultTask {
		h.last = &Task{Tool: tool, Status: Completed, Result: result}
		return &Handle[Out]{h}, nil
	}
	t, err := readCreated(result)
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", tool, err)
	}
	t.Tool = tool
	h.id, h.last = t.ID, t
	return &Handle[Out]{h}, nil
}

func newHandle(c *client.Client, tool string, o *WaitOptions) *handle {
	return &handle{c: c, tool: tool, o: o.defaults(), turn: make(chan struct{}, 1)}
}

// ID is the identifier of the task, or "" if there is none.
func (h *Handle[Out]) ID() string { return h.h.id }

// Tool is the name of the tool, or "" if [Open] was not told.
func (h *Handle[Out]) Tool() string { return h.h.tool }

// Wait waits for the end of the task, for as long as ctx lasts, and decodes its result
// as [client.Call] does. The handlers of the client answer its questions, each once, and
// are told which tool asks; one that is refused ends Wait with [client.ErrInputRefused],
// and is asked again by the next Wait. A busy server, and one that cannot be reached, is
// asked again. The task goes on when Wait has returned an error before its end. In
// 2025-11-25 the server is told of a refusal instead, and with Options.OneAtATime other
// requests wait until Wait has returned.
//
// Errors of a task are the *jsonrpc.Error of one that failed, [ErrCancelled],
// [ErrUnknown] if the server does not know it any more, and those that client.Call has
// for a result.
func (h *Handle[Out]) Wait(ctx context.Context) (Out, error) {
	var out Out
	t, err := h.h.follow(ctx, nil)
	if err != nil {
		return out, err
	}
	result, err := outcome(t)
	if err != nil {
		return out, h.h.wrap(err)
	}
	return client.DecodeResult[Out](h.h.c, h.h.tool, result)
}

// Updates waits as Wait does, and gives the states of the task that the server tells of,
// from the last known one to that in which it has ended; of changes that come fast some
// may be left out. A pair with an error is the last. A task that failed or was cancelled
// is no error here. Within the loop Wait and Updates of the same handle would wait for
// its end.
func (h *Handle[Out]) Updates(ctx context.Context) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		_, err := h.h.follow(ctx, func(t *Task) bool { return yield(t, nil) })
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// Status asks once for the state of the task, with its open questions, which it does not
// have answered.
func (h *Handle[Out]) Status(ctx context.Context) (*Task, error) {
	if h.h.id == "" {
		return h.h.last.clone(), nil
	}
	t, err := getTask(ctx, h.h.c, h.h.id)
	if err != nil {
		return nil, h.h.wrap(err)
	}
	t.Tool = h.h.tool
	return t, nil
}

// Cancel asks the server to cancel the task. It returns when the server has taken note
// of it, which is not yet the end: the task may even come to another one. Where there is
// no task it does nothing.
func (h *Handle[Out]) Cancel(ctx context.Context) error {
	if h.h.id == "" {
		return nil
	}
	var err error
	if inCore(h.h.c) {
		err = cancelCore(ctx, h.h.c, h.h.id)
	} else {
		_, err = client.CallMethod[mcp.None](ctx, h.h.c, MethodCancel, taskParams{h.h.id})
	}
	if err != nil {
		return h.h.wrap(unknown(err))
	}
	return nil
}

// follow waits for the end of the task, and tells of its states, if changed is not nil.
func (h *handle) follow(ctx context.Context, changed func(t *Task) bool) (*Task, error) {
	if err := h.takeTurn(ctx); err != nil {
		return nil, h.wrap(err)
	}
	defer func() { <-h.turn }()
	if h.id == "" || h.last.Status.Ended() && full(h.last) {
		if changed != nil {
			changed(h.last.clone())
		}
		return h.last, nil
	}
	ctx, err := client.WithRequest(ctx, h.c, mcp.MethodToolsCall, &mcp.CallToolParams{Name: h.tool})
	if err != nil {
		return nil, err
	}
	note := func(t *Task) bool {
		t.Tool = h.tool
		h.last = t
		return changed == nil || changed(t.clone())
	}
	var t *Task
	switch {
	case !inCore(h.c):
		p := &poller{c: h.c, id: h.id, o: &h.o, asked: &h.asked, changed: note}
		t, err = p.run(ctx, h.last)
	case changed != nil:
		t, err = followCore(ctx, h.c, h.last, &h.o, note)
	default:
		if t, err = waitCore(ctx, h.c, h.id, &h.o); err == nil {
			note(t)
		}
	}
	if err != nil {
		return nil, h.wrap(err)
	}
	return t, nil
}

// takeTurn waits until nobody else follows the task.
func (h *handle) takeTurn(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}: // also if ctx has ended: the end may be known
		return nil
	default:
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wrap says of what task an error is.
func (h *handle) wrap(err error) error {
	switch {
	case h.id == "":
		return fmt.Errorf("tool %q: %w", h.tool, err)
	case h.tool == "":
		return fmt.Errorf("task %.64q: %w", h.id, err)
	}
	return fmt.Errorf("tool %q: task %.64q: %w", h.tool, h.id, err)
}

// clone is a copy that belongs to its receiver.
func (t *Task) clone() *Task {
	c := *t
	return &c
}
