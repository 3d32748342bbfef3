package jsonrpc

import (
	"context"
	"sync/atomic"
)

// A lazyContext ends with its parent, or when it is cancelled. Where the parent
// is cancelled without a cause, its own cause is ErrCancelled. Most requests
// end without a use of their context, so what cancelling needs is made at the
// first use.
type lazyContext struct {
	context.Context                               //nolint:containedctx // it is one; this is its parent
	made            atomic.Pointer[cancelContext] // nil until the first use
}

type cancelContext struct {
	context.Context //nolint:containedctx // it is one
	cancel          context.CancelCauseFunc
}

// ended is what a lazyContext becomes whose request has ended.
var ended = func() *cancelContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &cancelContext{ctx, func(error) {}}
}()

func (l *lazyContext) make() *cancelContext {
	if m := l.made.Load(); m != nil {
		return m
	}
	m := l.derive()
	if l.made.CompareAndSwap(nil, m) {
		return m
	}
	m.cancel(nil) // another goroutine was faster
	return l.made.Load()
}

// derive makes a context that ends with the parent.
func (l *lazyContext) derive() *cancelContext {
	if _, timed := l.Deadline(); timed || l.Context.Done() == nil {
		ctx, cancel := context.WithCancelCause(l.Context)
		return &cancelContext{ctx, cancel}
	}
	// Not a child of the parent, which would hand its bare context.Canceled down.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(l.Context))
	if l.Context.Err() != nil {
		cancel(l.cause())
		return &cancelContext{ctx, cancel}
	}
	stop := context.AfterFunc(l.Context, func() { cancel(l.cause()) })
	return &cancelContext{ctx, func(cause error) {
		stop()
		cancel(cause)
	}}
}

// cause is why the parent ended.
func (l *lazyContext) cause() error {
	if cause := context.Cause(l.Context); cause != context.Canceled { //nolint:errorlint // itself, not an error that says more
		return cause
	}
	return ErrCancelled
}

// Done is closed when the parent has ended or the context was cancelled.
func (l *lazyContext) Done() <-chan struct{} { return l.make().Done() }

// Err says whether the context has ended, and how.
func (l *lazyContext) Err() error {
	m := l.made.Load()
	if m == nil {
		if l.Context.Err() == nil {
			return nil
		}
		m = l.make()
	}
	return m.Err()
}

// Value gives the values of the parent, and package context what it needs to
// derive contexts.
func (l *lazyContext) Value(key any) any {
	if m := l.made.Load(); m != nil && m != ended {
		return m.Value(key)
	}
	return l.Context.Value(key)
}

// cancel ends the context with a cause.
func (l *lazyContext) cancel(cause error) { l.make().cancel(cause) }

// end ends the context of a request that is over. If its parent ended before,
// that stays what Err and Cause say.
func (l *lazyContext) end() {
	if l.Context.Err() != nil || !l.made.CompareAndSwap(nil, ended) {
		l.make().cancel(nil)
	}
}
