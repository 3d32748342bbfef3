package proxy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// settleTime bounds how long the upstream server may take for a sign of life.
const settleTime = 2 * time.Second

// turns order the calls of an upstream server with a handshake, since on a pipe
// nothing says which call a question belongs to. One call runs at a time. While
// it waits for the answer to a question, others of the same caller may run: a
// question then belongs to the one that runs. Other callers wait until it is
// over, so that nobody is ever shown what was meant for another.
type turns struct {
	mu      sync.Mutex
	under   []*asking     // calls under way, in the order in which they began; all of one caller
	changed chan struct{} // closed and made anew when somebody may take a turn
}

func (t *turns) init() { t.changed = make(chan struct{}) }

// take waits for the turn of a call, which must leave then.
func (t *turns) take(ctx context.Context, p *Proxy, a *asking) error {
	for {
		t.mu.Lock()
		if p.opts.NoQuestions || p.client.Modern() || t.free(a.owner) {
			t.under = append(t.under, a)
			t.mu.Unlock()
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ctx.Done():
			return ErrClosed
		}
	}
}

// free reports whether a call of that caller may run.
func (t *turns) free(owner string) bool {
	return !slices.ContainsFunc(t.under, func(u *asking) bool { return u.owner != owner || u.open == 0 })
}

// leave ends the turn of a call whose context was ctx. If that has ended, what the
// upstream server sent before it heard of the cancellation must arrive first: a
// question among it is none of the next call.
func (t *turns) leave(ctx context.Context, p *Proxy, a *asking) {
	if ctx.Err() != nil {
		p.settle(p.ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.under = slices.DeleteFunc(t.under, func(u *asking) bool { return u == a })
	t.tell()
}

// waiting lets others run while a question of a call waits for its answer.
func (t *turns) waiting(a *asking) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.open++
	t.tell()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		a.open--
	}
}

func (t *turns) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// asking returns the call that a question belongs to if nothing else says so:
// the last that runs, or the last of those that wait. It is nil if there is none.
func (t *turns) asking() *asking {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range slices.Backward(t.under) {
		if u.open == 0 {
			return u
		}
	}
	if n := len(t.under); n > 0 {
		return t.under[n-1]
	}
	return nil
}

// settle returns when what the upstream server sent so far has arrived: its answer
// to a ping comes behind it.
func (p *Proxy) settle(ctx context.Context) {
	if ctx.Err() != nil || !p.client.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := p.client.Ping(ctx); err != nil {
		p.log.Debug("the upstream server gave no sign of life", "server", p.name(), "err", err)
	}
}
