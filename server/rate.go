package server

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory of the rate limiter. When it is full, buckets
// that are full again, and so say nothing, are dropped.
const maxBuckets = 10_000

// rates holds one token bucket for each principal and kind of request.
type rates struct {
	mu      sync.Mutex
	buckets map[rateKey]*rate.Limiter
}

type rateKey struct {
	principal      string
	limit          limit
	method, target string
	later          bool // a later round of an asked request
}

// wait takes a token. It returns 0 if there was one, else how long to wait.
func (r *rates) wait(k rateKey, perSecond float64) time.Duration {
	if perSecond < 0 {
		return 0
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[k]
	if b == nil {
		if r.buckets == nil {
			r.buckets = make(map[rateKey]*rate.Limiter)
		}
		if len(r.buckets) >= maxBuckets {
			r.sweep(now)
		}
		b = rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond)))
		r.buckets[k] = b
	}
	if b.AllowN(now, 1) {
		return 0
	}
	short := 1 - b.TokensAt(now)
	return time.Duration(short / perSecond * float64(time.Second))
}

// sweep drops the buckets that are full again, or, under attack by more
// principals than there is room for, all of them.
func (r *rates) sweep(now time.Time) {
	for k, b := range r.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(r.buckets, k)
		}
	}
	if len(r.buckets) >= maxBuckets {
		clear(r.buckets)
	}
}
