package tasks

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// storeTimeout bounds what is asked of a store at once, and what is written when the
	// server ends.
	storeTimeout = 10 * time.Second
	// forgetTimeout bounds the cancelling of a task whose creation failed.
	forgetTimeout = time.Second
	// retryPause is the first pause before a store that failed is asked again; it doubles
	// up to retryMost.
	retryPause = 100 * time.Millisecond
	retryMost  = 5 * time.Second
	// expireEvery is how often tasks are deleted whose time has passed.
	expireEvery = time.Minute
	// claimPause is the least time between two looks for tasks to take up.
	claimPause = time.Second
	// claimMost is how many tasks are taken up in one step.
	claimMost = 16
)

// run does the work of the manager that belongs to no request, until ctx ends.
func (t *manager) run(ctx context.Context) {
	var wg sync.WaitGroup
	work := func(f func(context.Context)) { wg.Go(func() { t.keepOn(ctx, f) }) }
	work(t.watch)
	work(t.look)
	work(func(ctx context.Context) { every(ctx, expireEvery, t.tidy) })
	if t.durable {
		work(t.takeUp)
		work(func(ctx context.Context) { every(ctx, t.opts.Lease/3, t.renew) })
	}
	wg.Wait()
}

// keepOn calls f until ctx ends, also after a panic of the store.
func (t *manager) keepOn(ctx context.Context, f func(context.Context)) {
	for ctx.Err() == nil {
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.opts.Log.ErrorContext(ctx, "tasks: the store panicked", "panic", v, "stack", string(debug.Stack()))
					pause(ctx, retryMost)
				}
			}()
			f(ctx)
		}()
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// beginWork has run work where a store does not survive the process, while there is something
// to do. The lock is held.
func (t *manager) beginWork() {
	if t.durable || t.rest != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	works := t.srv.Go(func(life context.Context) {
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		t.run(ctx)
	})
	if !works {
		cancel()
		return
	}
	t.rest = cancel
}

// endWork ends what beginWork began when there is nothing to do. The lock is held.
func (t *manager) endWork() {
	if t.rest != nil && len(t.runs)+len(t.watched)+len(t.waiting) == 0 {
		t.rest()
		t.rest = nil
	}
}

// every calls f at once and then at each tick, until ctx ends.
func every(ctx context.Context, tick time.Duration, f func(context.Context)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// retry calls f until it succeeds, the lease is lost, or ctx ends, with pauses.
func (t *manager) retry(ctx context.Context, f func() error) error {
	for wait := retryPause; ; wait = min(2*wait, retryMost) {
		err := f()
		if err == nil || errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err
		}
		t.opts.Log.WarnContext(ctx, "tasks: the store failed; trying again", "err", err)
		pause(ctx, wait)
	}
}
