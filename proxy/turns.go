package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// settleTime bounds how long the upstream server may take for a sign of life.
const settleTime = 2 * time.Second

var errLongTurn = errors.New("another call of the caller has run for long")

// turns order the calls of an upstream server with a handshake, since on a pipe
// nothing says which call a question belongs to. Each call goes to and fro between
//
//	running → waiting   it has asked, and what it asked at the same time has arrived
//	waiting → running   it gets an answer
//
// and at most one call runs. While one waits, others of the same caller may run;
// those of other callers begin when it is over, so that nobody is ever shown what
// was meant for another. A question belongs to the call that runs.
type turns struct {
	mu       sync.Mutex
	under    []*asking     // calls under way, in the order in which they began; all of one caller
	queue    []queued      // calls that wait to begin, in the order in which they came
	running  *asking       // nil if all wait
	resuming int           // calls that have an answer and wait to run; they go before new ones
	changed  chan struct{} // closed and made anew when somebody may run
	cut      cut           // calls that were cancelled while they ran
}

// A queued is a call that waits to begin.
type queued struct {
	a     *asking
	since time.Time
}

// otherTime is how long the calls of another caller wait while new ones of the
// caller whose turn it is begin. After it, those wait too: a caller that always has
// a question open must not keep all others away.
const otherTime = 10 * time.Second

func (t *turns) init() { t.changed = make(chan struct{}) }

// take waits until a call may begin to run. It must leave then.
func (t *turns) take(ctx context.Context, p *Proxy, a *asking) error {
	t.mu.Lock()
	t.queue = append(t.queue, queued{a, time.Now()})
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.queue = slices.DeleteFunc(t.queue, func(q queued) bool { return q.a == a })
		t.tell()
	}()
	return t.await(ctx, p, func() bool {
		if p.opts.NoQuestions || p.client.Modern() {
			t.under = append(t.under, a)
			return true
		}
		other := func(u *asking) bool { return u.owner != a.owner }
		if t.running != nil || t.resuming > 0 || slices.ContainsFunc(t.under, other) || t.yields(a) {
			return false
		}
		t.under, t.running = append(t.under, a), a
		return true
	})
}

// yields reports whether a call of another caller came before and has waited long.
func (t *turns) yields(a *asking) bool {
	for _, q := range t.queue {
		if q.a == a {
			return false
		}
		if q.a.owner != a.owner && time.Since(q.since) >= otherTime {
			return true
		}
	}
	return false
}

// pause lets others run while a call waits for an answer. It returns false if the
// call is over.
func (t *turns) pause(a *asking) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == a {
		t.running = nil
		t.tell()
	}
	return slices.Contains(t.under, a)
}

// resume waits until a call may run again, which has got an answer. If another runs
// for long, the answer goes on beside it: the question may have been that one's,
// asked when it was not its turn, and then it runs until it has the answer. Both are
// calls of one caller.
func (t *turns) resume(ctx context.Context, p *Proxy, a *asking) error {
	t.mu.Lock()
	t.resuming++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.resuming--
		t.tell()
	}()
	brief, cancel := context.WithTimeoutCause(ctx, settleTime, errLongTurn)
	defer cancel()
	err := t.await(brief, p, func() bool {
		if t.running == nil && slices.Contains(t.under, a) {
			t.running = a
		}
		return t.running == a || !slices.Contains(t.under, a)
	})
	if errors.Is(err, errLongTurn) {
		return nil
	}
	return err
}

// await waits until try is true. The mutex is held while it is called.
func (t *turns) await(ctx context.Context, p *Proxy, try func() bool) error {
	for {
		t.mu.Lock()
		ok, changed := try(), t.changed
		t.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ctx.Done():
			return ErrClosed
		}
	}
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
	if t.running == a {
		t.running = nil
		if ctx.Err() != nil {
			t.cut.note(a.owner)
		}
	}
	t.tell()
}

func (t *turns) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// asking returns the call that a question belongs to if nothing else says so: the
// one that runs, or else the last of those that wait. It is nil if there is none.
func (t *turns) asking() *asking {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.under); t.running == nil && n > 0 {
		return t.under[n-1]
	}
	return t.running
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
