package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the pace of requests that a server has refused.
const (
	// firstGap is the time between two of them at first. It doubles when one
	// is refused again, up to longGap.
	firstGap = 10 * time.Millisecond
	longGap  = time.Second
	// paceTime is how long after the last one others of the kind still keep
	// the pace.
	paceTime = time.Second
	// usualPaces is how many kinds are kept before those that are over are
	// looked for.
	usualPaces = 64
)

// A paceKey names requests that a server is assumed to count together.
type paceKey struct{ method, target string }

// paces hold the pace of what servers refuse; most of the time there is none.
// A server tells each refused request the same time to wait. If all of them
// came back then, all but a few would be refused again: so they come one after
// another, in the order in which they were refused.
type paces struct {
	n  atomic.Int32 // len(by), for those in a hurry
	mu sync.Mutex
	by map[paceKey]*pace
}

// A pace lets requests go one at a time.
type pace struct {
	turn  chan struct{} // has an element while somebody waits for next; others wait in order
	users int           // paces.mu is held

	mu      sync.Mutex
	next    time.Time // when the next one may go
	gap     time.Duration
	changed time.Time // when the gap was changed last
}

// refused notes that a request of a kind, which was sent at a time, was refused
// and told to wait. The pace must be given back with done.
func (p *paces) refused(key paceKey, after time.Duration, sent time.Time) *pace {
	now := time.Now()
	p.mu.Lock()
	k := p.by[key]
	if k == nil {
		if p.by == nil {
			p.by = make(map[paceKey]*pace)
		}
		if len(p.by) >= usualPaces {
			p.sweep(now)
		}
		k = &pace{turn: make(chan struct{}, 1), gap: firstGap, changed: now}
		p.by[key] = k
		p.n.Store(int32(len(p.by))) //nolint:gosec // one for each kind of request under way
	}
	k.users++
	p.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if sent.After(k.changed) { // those that went before tell nothing about this gap
		k.gap, k.changed = min(2*k.gap, longGap), now
	}
	if next := now.Add(after); next.After(k.next) {
		k.next = next
	}
	return k
}

// enter lets a request go that was not refused yet. It waits if others of its
// kind wait. It returns when the request was let go; the zero time if there is
// no pace to keep.
func (p *paces) enter(ctx context.Context, key paceKey) (time.Time, error) {
	if p.n.Load() == 0 {
		return time.Time{}, nil
	}
	p.mu.Lock()
	k := p.by[key]
	if k != nil && k.over(time.Now()) {
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
	defer p.done(k)
	return k.wait(ctx)
}

// done gives a pace back.
func (p *paces) done(k *pace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.users--
}

// sweep forgets what is over. p.mu is held.
func (p *paces) sweep(now time.Time) {
	for key, k := range p.by {
		if k.over(now) {
			p.drop(key)
		}
	}
}

func (p *paces) drop(key paceKey) {
	delete(p.by, key)
	p.n.Store(int32(len(p.by))) //nolint:gosec // as above
}

// over reports whether nobody keeps a pace any more. paces.mu is held.
func (k *pace) over(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.users == 0 && now.Sub(k.next) > paceTime
}

// wait waits until it is a request's turn, and returns when that was.
func (k *pace) wait(ctx context.Context) (time.Time, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return time.Time{}, context.Cause(ctx)
	}
	defer func() { <-k.turn }()
	for {
		now := time.Now()
		k.mu.Lock()
		pause := k.next.Sub(now)
		if pause <= 0 {
			k.next = now.Add(k.gap + rand.N(k.gap/8))
			k.mu.Unlock()
			return now, context.Cause(ctx)
		}
		k.mu.Unlock()
		if err := sleep(ctx, pause); err != nil { // another one may be refused meanwhile
			return time.Time{}, err
		}
	}
}
