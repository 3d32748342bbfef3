package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/strictjson"
)

// cancelTime is how long a client tries to cancel the task of a call that was given up.
const cancelTime = time.Second

// WaitOptions say how a client waits for the end of a task. The zero value, and nil,
// work.
type WaitOptions struct {
	// DefaultPoll is the time between two requests for the state of a task whose
	// server does not say how long it should be; default 1 s.
	DefaultPoll time.Duration
	// MinPoll and MaxPoll bound what the server says; defaults 100 ms and 30 s. What
	// it says may change at any time.
	MinPoll, MaxPoll time.Duration
	// SafetyPoll is the time between two requests while the server has agreed to
	// tell of changes; default 30 s, and at least the time without notifications.
	SafetyPoll time.Duration
	// MaxOutage is how long a server may be busy, not to be reached or in error, one
	// request after another, before the waiting ends with the last failure; default
	// 10 min. Negative is without end.
	MaxOutage time.Duration
	// PollOnly has the client not ask for notifications.
	PollOnly bool
	// MaxQuestions is how many questions one task may ask in all; default 256. The
	// error is a [client.ErrTooManyRounds].
	MaxQuestions int
}

// defaults fills in what was left out.
func (o *WaitOptions) defaults() WaitOptions {
	var r WaitOptions
	if o != nil {
		r = *o
	}
	r.MinPoll = cmp.Or(max(r.MinPoll, 0), 100*time.Millisecond)
	r.MaxPoll = max(cmp.Or(max(r.MaxPoll, 0), 30*time.Second), r.MinPoll)
	r.DefaultPoll = cmp.Or(max(r.DefaultPoll, 0), time.Second)
	r.SafetyPoll = cmp.Or(max(r.SafetyPoll, 0), 30*time.Second)
	r.MaxOutage = cmp.Or(r.MaxOutage, 10*time.Minute)
	r.MaxQuestions = cmp.Or(max(r.MaxQuestions, 0), 256)
	return r
}

// Client returns the client's side of the extension, for client.Options.Extensions. The
// client declares it with each request, so that a server may answer calls of tools with
// tasks, and waits for their end by itself: CallTool, Call, middleware and a host get
// the final result as if the server had answered with it.
//
// Meanwhile the handlers of the client answer the questions of the task, each once and
// several at a time, as they answer those of a call: they are told which tool asks. If
// one is refused the call ends with [client.ErrInputRefused]. CallOptions.OnProgress is
// told of each new message of the task. A busy server, and one that cannot be reached,
// is asked again for as long as the call may last: Options.MaxCallTime, 10 minutes by
// default, without the time that persons take. [Start] is for what takes longer.
//
// The error of the call is the *jsonrpc.Error of a task that failed, [ErrCancelled] for
// one that was cancelled on the other side, and [ErrUnknown] for one that the server
// does not know any more. When the call ends in any other way before its task does, such
// as by its context, the task is cancelled, if that can be done within a second.
//
// In 2025-11-25, where tasks are part of the core, the client asks for them: calls of tools
// whose execution.taskSupport is "required", of servers that take such calls, are sent with
// the member task, and the result is waited for in tasks/result. For that it lists the
// tools before the first call and when the list is 5 minutes old; a tool that has become
// one of these since is refused by the server until then, without having run. Questions
// come as requests of the server, which name the task; a refusal is told to the server. Of o
// the intervals are used where the state is asked for, and MaxOutage.
//
// The value may be given to any number of clients. With o the waiting can be changed;
// nil is the default.
func Client(o *WaitOptions) client.Extension {
	options := o.defaults()
	const revisions = client.Stateless | client.CoreTasks
	return client.Extension{
		ID: ID,
		Methods: []client.ExtensionMethod{
			// Doing each of them twice is harmless: answers to a question that was
			// answered are ignored, and what was cancelled stays so (ext-tasks, Task
			// Update Requests and Task Cancellation). "The client MUST set the Mcp-Name
			// header to the value of params.taskId" (Streamable HTTP: Routing Headers).
			{Name: MethodGet, Target: targetTask, NameHeader: true, Retry: true, Revisions: revisions},
			{Name: MethodUpdate, Target: targetTask, NameHeader: true, Retry: true},
			{Name: MethodCancel, Target: targetTask, NameHeader: true, Retry: true, Revisions: revisions},
			{Name: methodResult, Target: targetTask, Retry: true, Asks: true, Related: metaRelated, Revisions: client.CoreTasks},
		},
		Capabilities: []client.Capability{{Name: memberTasks, Revisions: client.CoreTasks}},
		Additions:    []client.Addition{coreAddition(&options)},
		Results: []client.ResultType{{
			Name: ResultTask, Methods: []string{mcp.MethodToolsCall},
			Settle: func(ctx context.Context, r *client.Request, result mcp.RawValue) (mcp.RawValue, error) {
				return settle(ctx, r, result, &options)
			},
		}},
		Notifications: []client.ExtensionNotification{{Name: Notify, Filter: filterIDs}},
	}
}

// settle waits for the end of the task that a call was answered with.
func settle(ctx context.Context, r *client.Request, result mcp.RawValue, o *WaitOptions) (mcp.RawValue, error) {
	t, err := readCreated(result)
	if err != nil {
		return nil, err
	}
	message := ""
	p := &poller{c: r.Client(), id: t.ID, o: o, asked: new(questions), changed: func(t *Task) bool {
		if t.Message != "" && t.Message != message && !t.Status.Ended() {
			r.Progress(t.Message)
		}
		message = t.Message
		return true
	}}
	end, err := p.run(ctx, t)
	return settled(ctx, r.Client(), t.ID, end, err)
}

// settled is the outcome of a call whose task was waited for until it had ended, or until
// an error: then it is cancelled.
func settled(ctx context.Context, c *client.Client, id string, end *Task, err error) (mcp.RawValue, error) {
	if err == nil {
		return outcome(end)
	}
	if !errors.Is(err, ErrUnknown) && !errors.Is(err, client.ErrClosed) {
		cancelTask(context.WithoutCancel(ctx), c, id)
	}
	return nil, fmt.Errorf("task %.64q: %w", id, err)
}

// readCreated reads the task that a call was answered with.
func readCreated(result mcp.RawValue) (*Task, error) {
	var m taskMessage
	err := strictjson.Unmarshal(result, &m)
	var t *Task
	if err == nil {
		t, err = m.created()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a task: %w", client.ErrMalformed, err)
	}
	return t, nil
}

// outcome is the result of a task that has ended, or its error.
func outcome(t *Task) (mcp.RawValue, error) {
	switch {
	case t.Status == Completed:
		return t.Result, nil
	case t.Status == Failed && t.Error != nil:
		return nil, t.Error
	case t.Message != "":
		return nil, fmt.Errorf("%w: %s", ErrCancelled, t.Message)
	}
	return nil, ErrCancelled
}

// cancelTask cancels a task whose end nobody waits for, if that is possible at once.
func cancelTask(ctx context.Context, c *client.Client, id string) {
	ctx, stop := context.WithTimeout(ctx, cancelTime)
	defer stop()
	// The caller has an error already, and the server forgets the task in the end.
	_, _ = client.CallMethod[mcp.None](ctx, c, MethodCancel, taskParams{id})
}
