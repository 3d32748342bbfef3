package tasks

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// done writes how the run ended.
func (r *run) done(d *server.Call, result mcp.RawValue, fault *jsonrpc.Error) {
	cause := context.Cause(d)
	r.stop(errOver)
	defer func() { // in this order: see addRunning
		close(r.over)
		r.t.remove(r)
		r.release()
	}()
	if !r.isTask(cause, fault) {
		return
	}
	if c := r.ending(cause, result, fault); c != nil {
		r.keepEnd(*c)
	}
}

// isTask ends the run, and reports whether it has become a task. One that a shutdown ended
// becomes a task that another process takes up.
func (r *run) isTask(cause error, fault *jsonrpc.Error) bool {
	r.making.Lock()
	was := r.phase
	r.making.Unlock()
	if was == pending && r.forward && fault != nil && errors.Is(cause, server.ErrShutdown) && r.repeatable() {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		_, _ = r.create(ctx) // if it fails the call does
	}
	r.making.Lock()
	defer r.making.Unlock()
	was, r.phase = r.phase, ended
	if was == pending && fault != nil {
		r.result, r.err = nil, mcp.NewError(fault.Code, "%s", fault.Message).With(fault.Data)
	}
	return was == kept
}

// release gives back what the run has.
func (r *run) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deadline != nil {
		r.deadline.Stop()
	}
}

// keepEnd writes the end of the task. While the store fails it is tried again, until the
// server has been shut down.
func (r *run) keepEnd(c Change) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-r.t.srv.Closing():
			time.AfterFunc(storeTimeout, cancel)
		case <-stopped:
		}
	}()
	first, stopFirst := context.WithTimeout(ctx, storeTimeout)
	defer stopFirst()
	err := r.change(first, c)
	for err != nil && !errors.Is(err, ErrLost) && ctx.Err() == nil {
		if err = r.change1(ctx, c); err != nil && !errors.Is(err, ErrLost) && c.End != nil && r.reachable(ctx) {
			if err = r.change1(ctx, c); err != nil && !errors.Is(err, ErrLost) {
				// The store works, and does not take this end.
				err = r.change1(ctx, Change{End: failure(mcp.CodeInternalError, "the result of the task could not be kept")})
			}
		}
		if err != nil && !errors.Is(err, ErrLost) {
			pause(ctx, retryMost)
		}
	}
	if err != nil && !errors.Is(err, ErrLost) {
		r.t.opts.Log.ErrorContext(ctx, "tasks: the end of a task could not be kept", "task", r.id, "tool", r.name, "err", err)
	}
}

// change1 tries once to make a change.
func (r *run) change1(ctx context.Context, c Change) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	_, err := r.t.store.Change(ctx, r.lease, c)
	return err
}

// reachable reports whether the store works.
func (r *run) reachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	_, err := r.t.store.Get(ctx, r.id, r.owner)
	return err == nil
}

// ending is how the task of a run ends, or nil if it has ended without the run.
func (r *run) ending(cause error, result mcp.RawValue, fault *jsonrpc.Error) *Change {
	most := r.t.opts.MaxResult
	switch {
	case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrLost):
		return nil
	case errors.Is(cause, server.ErrShutdown) && r.repeatable() && (fault != nil || saysError(result)):
		return &Change{Release: true}
	case fault == nil && over(len(result), most), fault != nil && over(len(fault.Message)+len(fault.Data), most):
		err := &SizeError{"result", "MaxResult", most}
		r.t.opts.Log.Error("tasks: a result is too long", "task", r.id, "tool", r.name, "err", err)
		return &Change{End: failure(mcp.CodeInternalError, err.Error())}
	case fault != nil:
		return &Change{End: &End{Status: Failed, Error: fault, Message: short(fault.Message)}}
	}
	return &Change{End: &End{Status: Completed, Result: result}}
}

// failure is the end of a task that could not be run to its own.
func failure(code int64, message string) *End {
	return &End{Status: Failed, Error: jsonrpc.NewError(code, "%s", message), Message: message}
}

// short is the beginning of a message.
func short(message string) string {
	const most = 500
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}
