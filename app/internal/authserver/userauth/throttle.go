package userauth

import (
	"sync"
	"time"
)

// A throttle delays attempts after failures, counted in buckets. After some free
// ones, each failure doubles the delay of the next attempt, up to a bound; so
// guesses never shut a user out for good. It is of bounded size, and may be used
// by many goroutines at once.
type throttle struct {
	now   func() time.Time
	limit int

	mu    sync.Mutex
	tries map[tryKey]*try
}

// A tryKey is a user from an address; one of them is empty in the counts of
// all users, or all addresses. Of a known browser it is the id instead.
type tryKey struct{ user, address string }

// A bucket is what attempts count in, under its rule.
type bucket struct {
	key  tryKey
	rule rule
}

// unknownBuckets are the buckets of an attempt from an unknown browser: those for
// one user from one address, all for one user, and all from one address.
func unknownBuckets(user, address string) []bucket {
	return []bucket{{tryKey{user, address}, pairRule}, {tryKey{user, ""}, userRule}, {tryKey{"", address}, addressRule}}
}

// knownBuckets is the bucket of a known browser. Only its attempts count there.
func knownBuckets(user, id string) []bucket { return []bucket{{tryKey{user, id}, pairRule}} }

type try struct {
	failed int
	last   time.Time
	until  time.Time // no attempt before
}

// A rule is how attempts under a key are slowed down.
type rule struct {
	free    int
	longest time.Duration
}

var (
	pairRule    = rule{free: 4, longest: 5 * time.Minute}
	userRule    = rule{free: 20, longest: 30 * time.Second}
	addressRule = rule{free: 30, longest: 5 * time.Minute}
)

const (
	// forgetAfter is the time after the last attempt when a count is dropped.
	forgetAfter = time.Hour
	maxTried    = 20_000
)

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, limit: maxTried, tries: map[tryKey]*try{}}
}

// An attempt counts as failed until it is told otherwise, so that attempts at
// the same time slow each other down.
type attempt struct {
	throttle *throttle
	buckets  []bucket
}

// begin begins an attempt, or says how long it must wait.
func (t *throttle) begin(buckets []bucket) (*attempt, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var wait time.Duration
	for _, b := range buckets {
		if old := t.tries[b.key]; old != nil && !old.forgotten(now) {
			wait = max(wait, old.until.Sub(now))
		}
	}
	if wait > 0 {
		return nil, wait
	}
	for _, b := range buckets {
		t.count(b.key, b.rule, now)
	}
	return &attempt{t, buckets}, 0
}

func (y *try) forgotten(now time.Time) bool { return now.Sub(y.last) >= forgetAfter }

func (t *throttle) count(key tryKey, r rule, now time.Time) {
	y := t.tries[key]
	if y == nil || y.forgotten(now) {
		t.makeRoom(now)
		y = new(try)
		t.tries[key] = y
	}
	y.failed++
	y.last = now
	if over := y.failed - r.free; over >= 0 {
		y.until = now.Add(min(r.longest, time.Second<<min(over, 16)))
	}
}

// makeRoom removes what is forgotten, and if that is nothing, what is oldest.
func (t *throttle) makeRoom(now time.Time) {
	if len(t.tries) < t.limit {
		return
	}
	var oldest tryKey
	var last time.Time
	for key, y := range t.tries {
		if y.forgotten(now) {
			delete(t.tries, key)
		} else if last.IsZero() || y.last.Before(last) {
			oldest, last = key, y.last
		}
	}
	if len(t.tries) >= t.limit {
		delete(t.tries, oldest)
	}
}

// succeed forgets the failures in the first bucket, that of the user from this
// address or browser, and uncounts the attempt in the others: the owner of one
// account must not guess at others without end.
func (a *attempt) succeed() {
	a.forget()
	a.throttle.mu.Lock()
	defer a.throttle.mu.Unlock()
	delete(a.throttle.tries, a.buckets[0].key)
}

// forget takes the attempt back.
func (a *attempt) forget() {
	t := a.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range a.buckets {
		if y := t.tries[b.key]; y != nil {
			y.failed = max(0, y.failed-1)
			y.until = time.Time{}
		}
	}
}
