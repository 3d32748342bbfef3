package login

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/patience"
)

// A group lets all who want the same at the same time share the work. The zero
// value is ready.
type group[T any] struct {
	mu      sync.Mutex
	flights map[string]*flight[T]
	closed  bool
	wg      sync.WaitGroup
}

// A flight is work that several wait for. It belongs to all of them: it ends
// when the last has left, or its time is over.
type flight[T any] struct {
	cancel  context.CancelCauseFunc
	waiters int
	asking  chan struct{} // closed when a person is asked
	done    chan struct{} // closed when result and err are there
	result  T
	err     error
}

// work is what a flight does. It calls asking, once or more, when it begins to
// wait for a person.
type work[T any] func(ctx context.Context, asking func()) (T, error)

// do joins the flight of this key, or starts it with a limit of time. The time
// limits of those who wait for what is done in ctx stand still once a person is
// asked. joined says that somebody else had started it.
func (g *group[T]) do(ctx context.Context, key string, limit time.Duration, fn work[T]) (result T, joined bool, err error) {
	if ctx.Err() != nil {
		return result, false, context.Cause(ctx)
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return result, false, ErrClosed
	}
	f, joined := g.flights[key]
	if !joined {
		f = g.start(ctx, key, limit, fn)
	}
	f.waiters++
	g.mu.Unlock()
	defer g.leave(key, f)

	asking := f.asking
	for {
		select {
		case <-f.done:
			return f.result, joined, f.err
		case <-ctx.Done():
			return result, joined, context.Cause(ctx)
		case <-asking:
			asking = nil
			defer patience.Waiting(ctx)()
		}
	}
}

// busy reports whether there is a flight of this key.
func (g *group[T]) busy(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flights[key] != nil
}

// start starts a flight; g.mu is held. The values of the first one's context
// go with it, its end does not.
func (g *group[T]) start(ctx context.Context, key string, limit time.Duration, fn work[T]) *flight[T] {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight[T]{cancel: cancel, asking: make(chan struct{}), done: make(chan struct{})}
	if g.flights == nil {
		g.flights = map[string]*flight[T]{}
	}
	g.flights[key] = f
	g.wg.Go(func() {
		defer cancel(nil)
		timed, end := context.WithTimeoutCause(own, limit, fmt.Errorf("no sign-in within %v: %w", limit, context.DeadlineExceeded))
		defer end()
		f.result, f.err = fn(timed, sync.OnceFunc(func() { close(f.asking) }))
		if f.err != nil && timed.Err() != nil {
			// What the end of time interrupted is not the reason.
			f.err = fmt.Errorf("%w (%s)", context.Cause(timed), f.err.Error())
		}
		g.mu.Lock()
		g.forget(key, f)
		g.mu.Unlock()
		close(f.done)
	})
	return f
}

// leave ends a flight that nobody waits for.
func (g *group[T]) leave(key string, f *flight[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		g.forget(key, f) // who comes now starts anew
		f.cancel(context.Canceled)
	}
}

func (g *group[T]) forget(key string, f *flight[T]) {
	if g.flights[key] == f {
		delete(g.flights, key)
	}
}

// close ends all flights and returns when they have ended. No other can start.
func (g *group[T]) close() {
	g.mu.Lock()
	g.closed = true
	for _, f := range g.flights {
		f.cancel(ErrClosed)
	}
	g.mu.Unlock()
	g.wg.Wait()
}
