package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of throttles.
const (
	// firstInterval is the time between two of them at first. It doubles when one
	// is refused again, up to maxInterval.
	firstInterval = 10 * time.Millisecond
	maxInterval   = time.Second
	// throttleTime is how long after the last refusal a throttle holds for others
	// of the kind.
	throttleTime = time.Second
	// usualThrottles is how many are kept before expired ones are dropped.
	usualThrottles = 64
)

// A throttleKey names requests that a server is assumed to count together.
type throttleKey struct{ method, target string }

// throttles holds the throttle of each kind of request that a server refused; most
// of the time there is none.
// A server tells each refused request the same time to wait. If all of them
// came back then, all but a few would be refused again: so they come one after
// another, in the order in which they were refused.
type throttles struct {
	n     atomic.Int32 // len(byKey), to be read without the lock
	mu    sync.Mutex
	byKey map[throttleKey]*throttle
}

// A throttle sends refused requests of one kind one at a time.
type throttle struct {
	slot  chan struct{} // has an element while a request waits for next; others wait in order
	users int           // throttles.mu is held

	mu       sync.Mutex
	refusal  error     // the last one
	next     time.Time // when the next one may go
	interval time.Duration
	changed  time.Time // when interval was changed last
}

// record notes that a request of a kind, which was sent at a time, was refused
// and told to wait. The caller must call release.
func (p *throttles) record(key throttleKey, refusal error, after time.Duration, sent time.Time) *throttle {
	now := time.Now()
	p.mu.Lock()
	k := p.byKey[key]
	if k == nil {
		if p.byKey == nil {
			p.byKey = make(map[throttleKey]*throttle)
		}
		if len(p.byKey) >= usualThrottles {
			p.sweep(now)
		}
		k = &throttle{slot: make(chan struct{}, 1), interval: firstInterval, changed: now}
		p.byKey[key] = k
		p.n.Store(int32(len(p.byKey))) // one for each kind of request under way
	}
	k.users++
	p.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusal = refusal
	if sent.After(k.changed) { // earlier ones tell nothing about this interval
		k.interval, k.changed = min(2*k.interval, maxInterval), now
	}
	if next := now.Add(after); next.After(k.next) {
		k.next = next
	}
	return k
}

// admit lets a request go that was not refused yet. It waits if others of its
// kind wait. It returns when the request was let go; the zero time if there is
// no throttle. The error, a RetryError, says why it was not.
func (p *throttles) admit(ctx context.Context, key throttleKey) (time.Time, error) {
	if p.n.Load() == 0 {
		return time.Time{}, nil
	}
	p.mu.Lock()
	k := p.byKey[key]
	if k != nil && k.expired(time.Now()) {
		p.drop(key)
		k = nil
	}
	if k != nil {
		k.users++
	}
	p.mu.Unlock()
	if k == nil {
		return time.Time{}, nil
	}
	defer p.release(k)
	sent, after, err := k.wait(ctx)
	if err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		return sent, &RetryError{RetryAfter: after, Err: fmt.Errorf("%w: %w", err, k.refusal)}
	}
	return sent, nil
}

// release ends a use of a throttle.
func (p *throttles) release(k *throttle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.users--
}

// sweep forgets what is over. p.mu is held.
func (p *throttles) sweep(now time.Time) {
	for key, k := range p.byKey {
		if k.expired(now) {
			p.drop(key)
		}
	}
}

func (p *throttles) drop(key throttleKey) {
	delete(p.byKey, key)
	p.n.Store(int32(len(p.byKey))) // as above
}

// expired reports whether a throttle is unused and past its time. throttles.mu is held.
func (k *throttle) expired(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.users == 0 && now.Sub(k.next) > throttleTime
}

// errTooLong says that a request would be past its deadline before it is sent.
var errTooLong = errors.New("the server refused another request like it, and there is less time than it asks to wait")

// wait waits until it is a request's turn, and returns when that was. It does not
// wait for longer than the request has time: then it returns how long that is.
func (k *throttle) wait(ctx context.Context) (sent time.Time, after time.Duration, err error) {
	if after = k.delay(); after > left(ctx) {
		return sent, after, errTooLong
	}
	select {
	case k.slot <- struct{}{}:
	case <-ctx.Done():
		return sent, 0, context.Cause(ctx)
	}
	defer func() { <-k.slot }()
	for {
		now := time.Now()
		k.mu.Lock()
		pause := k.next.Sub(now)
		if pause <= 0 {
			k.next = now.Add(k.interval + rand.N(k.interval/8))
			k.mu.Unlock()
			return now, 0, context.Cause(ctx)
		}
		k.mu.Unlock()
		if pause > left(ctx) {
			return sent, pause, errTooLong
		}
		if err := sleep(ctx, pause); err != nil { // another one may be refused meanwhile
			return sent, 0, err
		}
	}
}

// delay is how long it takes until the next one may go.
func (k *throttle) delay() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(0, time.Until(k.next))
}
