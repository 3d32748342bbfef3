package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/strictjson"
)

const (
	// firstPause and longestPause are how long a client waits before it asks a server
	// again that could not answer; each pause is twice the one before.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	// maxInternal is how often a server may answer in succession that it has an internal
	// error.
	maxInternal = 5
)

// errStopped says that nobody wants further states of a task.
var errStopped = errors.New("the waiting was stopped")

// A poller learns how a task goes on, and has its questions answered: by notifications
// where the server agrees to them, else by asking from time to time. It is used once.
type poller struct {
	c       *client.Client
	id      string
	o       *WaitOptions // complete
	asked   *questions
	changed func(t *Task) bool // told of each state; false ends the waiting

	told   notices
	failed chan error // why a question could not be answered
	looked time.Time  // when the state was asked for last
}

// run returns the task when it has ended. t is its state so far. What ctx ends with is
// the error then.
func (p *poller) run(ctx context.Context, t *Task) (*Task, error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(errStopped)
	p.failed = make(chan error, 1)
	p.told.wake = make(chan struct{}, 1)
	open := make(map[string]context.CancelCauseFunc)
	if !p.o.PollOnly && !t.Status.Ended() {
		wg.Go(func() { p.subscribe(ctx) })
	}
	if !full(t) { // what it asks, or came to, is not in CreateTaskResult
		var err error
		if t, err = p.get(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if p.changed != nil && !p.changed(t) {
			return nil, errStopped
		}
		if t.Status.Ended() {
			return t, nil
		}
		err := p.ask(ctx, &wg, t, open)
		if err == nil {
			t, err = p.next(ctx, t)
		}
		if err != nil {
			return nil, err
		}
	}
}

// full reports whether a state has all that tasks/get would say.
func full(t *Task) bool {
	switch t.Status {
	case InputRequired:
		return t.Questions != nil
	case Completed:
		return t.Result != nil
	case Failed:
		return t.Error != nil
	case Working, Cancelled:
	}
	return true
}

// next waits for the next state of the task.
func (p *poller) next(ctx context.Context, t *Task) (*Task, error) {
	timer := time.NewTimer(p.o.interval(t))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-p.failed:
			return nil, err
		case <-p.told.wake:
			told, agreed := p.told.take()
			if agreed { // something may have happened before the server agreed
				return p.get(ctx)
			}
			if told != nil && !told.Updated.Before(t.Updated) {
				return told, nil
			}
		case <-timer.C:
			if !p.told.agreed(p.id) || time.Since(p.looked) >= p.o.SafetyPoll {
				return p.get(ctx)
			}
			timer.Reset(p.o.interval(t))
		}
	}
}

// interval is the time between two requests for the state: "clients SHOULD respect the
// pollIntervalMs" (ext-tasks, Task Polling), within bounds.
func (o *WaitOptions) interval(t *Task) time.Duration {
	d := t.PollInterval
	if d == 0 {
		d = o.DefaultPoll
	}
	return min(max(d, o.MinPoll), o.MaxPoll)
}

// get asks for the state, again and again if the server cannot be reached or is busy.
func (p *poller) get(ctx context.Context) (*Task, error) {
	var t *Task
	err := p.o.insist(ctx, func() (err error) {
		t, err = getTask(ctx, p.c, p.id)
		return err
	})
	p.looked = time.Now()
	return t, err
}

// getTask asks once for the state of a task.
func getTask(ctx context.Context, c *client.Client, id string) (*Task, error) {
	if inCore(c) {
		return getCore(ctx, c, id)
	}
	m, err := client.CallMethod[taskMessage](ctx, c, MethodGet, taskParams{id})
	if err != nil {
		return nil, unknown(err)
	}
	return checkState(id, m.task)
}

// checkState reads an answer to tasks/get.
func checkState(id string, read func() (*Task, error)) (*Task, error) {
	t, err := read()
	if err == nil && t.ID != id {
		err = fmt.Errorf("it is of the task %.64q", t.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w: %w", MethodGet, id, client.ErrMalformed, err)
	}
	return t, nil
}

// unknown makes the error of a request about a task that there is none an ErrUnknown:
// "invalid or nonexistent taskId: -32602" (ext-tasks, Protocol Errors).
func unknown(err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == mcp.CodeInvalidParams {
		return &unknownError{err}
	}
	return err
}

// An unknownError is the answer of a server that knows no such task.
type unknownError struct{ err error }

func (e *unknownError) Error() string      { return e.err.Error() }
func (e *unknownError) Unwrap() error      { return e.err }
func (*unknownError) Is(target error) bool { return target == ErrUnknown }

// insist repeats a request, with growing pauses, until it succeeds, or fails in a way
// that does not pass, or for too long.
func (o *WaitOptions) insist(ctx context.Context, request func() error) error {
	internal, began := 0, time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := request()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == mcp.CodeInternalError {
			internal++
		} else {
			internal = 0
		}
		told := time.Duration(0) // how long the server asks to wait
		if e, ok := errors.AsType[*client.RetryError](err); ok {
			told = e.RetryAfter
		}
		left := o.MaxOutage - time.Since(began)
		if internal > maxInternal || !mayPass(err) || o.MaxOutage > 0 && (left < 0 || told > left) {
			return err
		}
		select {
		case <-time.After(max(pause, told)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mayPass reports whether a request may succeed later that failed: the server was busy,
// or not to be reached, or had an internal error.
func mayPass(err error) bool {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code == mcp.CodeInternalError || slices.Contains(busyCodes, e.Code)
	}
	for _, lasting := range lastingErrors {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// busyCodes are those of servers that may answer later.
var busyCodes = []int64{mcp.CodeRateLimited, mcp.CodeTooManyInFlight, mcp.CodeTimeout, mcp.CodeShuttingDown}

// lastingErrors are those of requests that a later one would fail with too.
var lastingErrors = []error{
	client.ErrClosed, client.ErrNotCapable, client.ErrMalformed, client.ErrResultType, client.ErrUnsupportedVersion,
	client.ErrPanicked, principal.ErrDenied,
}

// subscribe has the server tell of the task until ctx ends. What it refuses is no error:
// the state is asked for then.
func (p *poller) subscribe(ctx context.Context) {
	s, err := p.c.SubscribeExtension(ctx, ID, map[string]any{filterIDs: []string{p.id}}, func(_ context.Context, n *client.Notification) {
		p.told.add(p.id, n)
	})
	if err != nil {
		return
	}
	defer s.Close() //nolint:errcheck // it has none
	p.told.subscribed(s)
	<-ctx.Done()
}

// notices are what a server told of a task and was not looked at yet.
type notices struct {
	wake chan struct{} // told when there is something

	mu    sync.Mutex
	sub   *client.Subscription
	fresh bool // the server has agreed since
	task  *Task
}

// add takes a notification. Of several states the last one counts.
func (n *notices) add(id string, in *client.Notification) {
	var t *Task
	if in.Method == Notify {
		var m taskMessage
		if strictjson.Unmarshal(in.Params, &m) != nil {
			return
		}
		var err error
		if t, err = m.task(); err != nil || t.ID != id {
			return // tasks/get says what is wrong with it
		}
	}
	n.mu.Lock()
	if t != nil {
		n.task = t
	} else {
		n.fresh = true
	}
	n.mu.Unlock()
	n.ring()
}

// ring tells that there is something.
func (n *notices) ring() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take returns what was told. If the server has agreed since, the state has to be asked
// for first, and what it told comes the next time.
func (n *notices) take() (t *Task, agreed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fresh {
		n.fresh = false
		if n.task != nil {
			n.ring()
		}
		return nil, true
	}
	t, n.task = n.task, nil
	return t, false
}

// subscribed notes the subscription.
func (n *notices) subscribed(s *client.Subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sub = s
}

// agreed reports whether the server tells of the task now: it has agreed to, and the
// connection is there.
func (n *notices) agreed(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sub == nil {
		return false
	}
	var ids []string
	return strictjson.Unmarshal(n.sub.Acknowledged(filterIDs), &ids) == nil && slices.Contains(ids, id)
}
