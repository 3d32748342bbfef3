package tasks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-mcp/parley/server"
)

// ErrCancelled is the cause of the end of a handler's context when its task was
// cancelled, and the error of a client's call whose task was. It is a server.ErrCancelled.
var ErrCancelled error = cancelledError{}

type cancelledError struct{}

func (cancelledError) Error() string { return "the task was cancelled" }
func (cancelledError) Unwrap() error { return server.ErrCancelled }

// errOver says that a call ended before it became a task.
var errOver = errors.New("the call has ended")

// A phase is how far a run is.
//
//	pending -> kept -> ended;  pending -> ended
type phase uint8

const (
	pending phase = iota // a call that is no task yet
	kept                 // a task in the store
	ended                // the handler has returned
)

// A run is a call of a tool that runs detached in this process.
type run struct {
	t       *manager
	name    string // of the tool
	owner   string
	tool    Tool
	request *server.Call // the request; nil for a task that is taken up
	forward bool         // progress goes to the request while it is pending

	created chan struct{} // closed when there is a task
	over    chan struct{} // closed when the run has ended

	ctx  context.Context //nolint:containedctx // the life of the run
	stop context.CancelCauseFunc

	making sync.Mutex // held while a task is created, and while anything depends on whether there is one
	id     string     // of the task
	phase  phase
	task   *Task // as it was created
	lease  Lease
	early  []server.Record // what was recorded before there was a task
	result server.Result   // of a run that ended without a task
	err    error

	mu       sync.Mutex
	deadline *time.Timer // stops the run when its lease ends; nil if it does not
	message  string      // the newest one, if unsaid
	unsaid   bool
	saying   bool
	asked    map[string]int // size of each question, by key
}

// start runs the handler, once gate is closed, or at once if it is nil.
func (r *run) start(next server.Func, gate <-chan struct{}) error {
	gated := func(d *server.Call) (server.Result, error) {
		if gate != nil {
			select {
			case <-gate:
			case <-d.Done():
				return nil, context.Cause(d)
			}
		}
		res, err := next(d)
		if r.forward {
			r.making.Lock()
			r.result, r.err = res, err
			r.making.Unlock()
		}
		return res, err
	}
	_, _, err := r.request.Detach(gated, r.options())
	return err
}

// options are what the run has in the place of its request.
func (r *run) options() *server.DetachOptions {
	o := &server.DetachOptions{Done: r.done, Asker: r, Progress: r.progress, Values: r.values}
	if r.repeatable() {
		o.Record = r.record
	}
	return o
}

// repeatable reports whether another process can take the run up.
func (r *run) repeatable() bool { return r.t.durable && r.tool.Repeatable }

// runKey is the key of the run in the context of its handler.
type runKey struct{}

// values makes the context of the run.
func (r *run) values(ctx context.Context, d *server.Call) context.Context {
	if r.request != nil {
		ctx = requestValues{ctx, r.request}
	} else if more := r.t.opts.Values; more != nil && d != nil {
		ctx = more(ctx, d)
	}
	r.ctx, r.stop = context.WithCancelCause(context.WithValue(ctx, runKey{}, r))
	return r.ctx
}

// requestValues is a context with the values that middleware gave to a request.
type requestValues struct {
	context.Context //nolint:containedctx // it is one

	request *server.Call
}

func (v requestValues) Value(key any) any {
	if own := v.Context.Value(key); own != nil {
		return own
	}
	return v.request.Value(key)
}

// create makes a task of the run, if it is none, and returns it as it was created.
func (r *run) create(ctx context.Context) (*Task, error) {
	r.making.Lock()
	defer r.making.Unlock()
	switch {
	case r.task != nil:
		return r.task, nil
	case r.phase == ended:
		return nil, errOver
	}
	n, err := r.newTask()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r.t.add(r)
	task, lease, err := r.t.store.Create(ctx, n, r.t.lease())
	if err != nil {
		r.t.remove(r)
		r.t.forget(ctx, r.id, r.owner, err)
		r.id = newID() // it may be there all the same
		return nil, r.t.failed("creating a task", err)
	}
	r.task, r.lease, r.phase, r.early = task, lease, kept, nil
	r.hold(began)
	close(r.created)
	r.t.changed(r.id) // it may have been before it was looked for
	r.sayIfUnsaid()
	return task, nil
}

// newTask is what is kept of the run.
func (r *run) newTask() (*NewTask, error) {
	caller := r.request.Principal()
	n := &NewTask{
		ID: r.id, Owner: r.owner, LimitKey: caller.LimitKey(), Tool: r.name, Message: r.takeMessage(),
		TTL: r.tool.TTL, PollInterval: r.tool.PollInterval, Repeatable: r.repeatable(), Records: r.early,
		MaxByKey: r.t.opts.MaxKept, MaxAll: r.t.opts.MaxAllKept,
	}
	if caller.Anonymous() {
		n.MaxByKey *= anonymousFactor
		if n.MaxAll > 1 {
			n.MaxAll /= 2
		}
	}
	if r.repeatable() {
		var err error
		if n.Call, err = r.request.Save(ID); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// hold has the run stop a little before its lease, which was asked for at a time, ends.
func (r *run) hold(from time.Time) {
	if !r.t.durable {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.over:
		return // it ended meanwhile
	default:
	}
	left := time.Until(from.Add(r.t.opts.Lease - r.t.opts.Lease/10))
	if r.deadline == nil {
		r.deadline = time.AfterFunc(left, func() { r.stop(ErrLost) })
		return
	}
	r.deadline.Reset(left)
}

// answer is what a request is answered with when its run has become a task, or ended.
func (r *run) answer() (server.Result, error) {
	r.making.Lock()
	defer r.making.Unlock()
	if r.task != nil {
		return createdMessage(r.task), nil
	}
	return r.result, r.err
}

// change makes a change of the task. It is tried again while the store fails, until ctx
// ends. A lost lease ends the run.
func (r *run) change(ctx context.Context, c Change) error {
	err := r.t.retry(ctx, func() error {
		_, err := r.t.store.Change(ctx, r.lease, c)
		return err
	})
	if errors.Is(err, ErrLost) {
		r.lose(ctx)
	}
	return err
}

// lose stops a run whose lease is lost, with the reason: its task may have been cancelled.
func (r *run) lose(ctx context.Context) {
	if r.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if task, err := r.t.store.Get(ctx, r.id, r.owner); err == nil && task.Status == Cancelled {
		r.stop(ErrCancelled)
	}
	r.stop(ErrLost)
}

// record keeps what the handler must not ask or do again.
func (r *run) record(ctx context.Context, rec server.Record) error {
	if r.isEarly(rec) {
		return nil
	}
	return r.change(ctx, Change{Records: []server.Record{rec}})
}

// isEarly keeps a record for the task that there may be, if there is none yet.
func (r *run) isEarly(rec server.Record) bool {
	r.making.Lock()
	defer r.making.Unlock()
	if r.phase == pending {
		r.early = append(r.early, rec)
	}
	return r.phase == pending
}

// isKept reports whether the run has become a task.
func (r *run) isKept() bool {
	select {
	case <-r.created:
		return true
	default:
		return false
	}
}
