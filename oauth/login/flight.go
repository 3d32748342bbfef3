package login

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// A flight is work that several callers wait for. It ends when the last one leaves, or by time.
type flight[T any] struct {
	cancel  context.CancelCauseFunc
	waiters int
	asking  chan struct{} // closed when a person is asked
	done    chan struct{} // closed when result and err are set
	result  T
	err     error
}

// work is what a flight does. It calls asking, once or more, when it begins to wait for a person.
type work[T any] func(ctx context.Context, asking func()) (T, error)

// share joins the flight at a place in the table, or starts one there with a limit of time. at is
// called with the table locked. The time limits of callers, found in ctx, are paused once a person
// is asked. joined reports that another caller had started the flight.
func share[T any](ctx context.Context, t *table, at func() **flight[T], limit time.Duration, fn work[T]) (result T, joined bool, err error) {
	if ctx.Err() != nil {
		return result, false, context.Cause(ctx)
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return result, false, ErrClosed
	}
	place := at()
	f := *place
	if joined = f != nil; !joined {
		f = start(ctx, t, place, limit, fn)
		*place = f
	}
	f.waiters++
	t.mu.Unlock()
	defer f.leave(t, place)

	asking := f.asking
	for {
		select {
		case <-f.done:
			return f.result, joined, f.err
		case <-ctx.Done():
			return result, joined, context.Cause(ctx)
		case <-asking:
			asking = nil
			defer pausetimer.Pause(ctx)()
		}
	}
}

// start starts a flight with the values of the first caller's context. The table is locked.
func start[T any](ctx context.Context, t *table, place **flight[T], limit time.Duration, fn work[T]) *flight[T] {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight[T]{cancel: cancel, asking: make(chan struct{}), done: make(chan struct{})}
	t.running.Go(func() {
		defer cancel(nil)
		timed, end := context.WithTimeoutCause(own, limit, fmt.Errorf("no sign-in within %v: %w", limit, context.DeadlineExceeded))
		defer end()
		f.result, f.err = fn(timed, sync.OnceFunc(func() { close(f.asking) }))
		if f.err != nil && timed.Err() != nil {
			// What the end of time interrupted is not the reason.
			f.err = fmt.Errorf("%w (%s)", context.Cause(timed), f.err.Error())
		}
		t.mu.Lock()
		f.clear(place)
		t.mu.Unlock()
		close(f.done)
	})
	return f
}

// leave ends a flight that has no waiters left; the next caller starts another.
func (f *flight[T]) leave(t *table, place **flight[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.clear(place)
		f.cancel(context.Canceled)
	}
}

func (f *flight[T]) clear(place **flight[T]) {
	if *place == f {
		*place = nil
	}
}
