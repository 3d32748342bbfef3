package jsonrpc

import (
	"context"
	"sync/atomic"
)

// A lazyContext ends with its parent, or when it is cancelled. Most requests
// end without anybody having looked at their context, so what it takes to be
// cancelled is made for the first who does.
type lazyContext struct {
	context.Context                               //nolint:containedctx // it is one; this is its parent
	made            atomic.Pointer[cancelContext] // nil until somebody looks
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
	ctx, cancel := context.WithCancelCause(l.Context)
	if m := (&cancelContext{ctx, cancel}); l.made.CompareAndSwap(nil, m) {
		return m
	}
	cancel(nil) // somebody was faster
	return l.made.Load()
}

// Done is closed when the parent has ended or the context was cancelled.
func (l *lazyContext) Done() <-chan struct{} { return l.make().Done() }

// Err says whether the context has ended, and how.
func (l *lazyContext) Err() error {
	if m := l.made.Load(); m != nil {
		return m.Err()
	}
	return l.Context.Err()
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
