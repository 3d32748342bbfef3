package issuer

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-mcp/parley/principal"
)

// rates are token buckets by name, each of perMinute tokens. The table is
// bounded: when it is full, buckets that are full again go, and then, until an
// eighth is free, those that were used longest ago. It may be used by many goroutines.
type rates struct {
	perMinute int // below 1: no limit
	limit     int
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// maxBuckets is how many buckets there are at most.
const maxBuckets = 10_000

func newRates(perMinute int, now func() time.Time) *rates {
	return &rates{perMinute: perMinute, limit: maxBuckets, now: now, buckets: map[string]*bucket{}}
}

// take takes a token out of a bucket. If there is none it returns false, and
// how long it takes until there is one.
func (t *rates) take(name string) (time.Duration, bool) {
	if t.perMinute < 1 {
		return 0, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	b := t.buckets[name]
	if b == nil {
		t.makeRoom(now)
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(t.perMinute)/60), t.perMinute)}
		t.buckets[name] = b
	}
	b.used = now
	if b.AllowN(now, 1) {
		return 0, true
	}
	return t.wait(1 - b.TokensAt(now)), false
}

// spent says whether a bucket is empty, and how long until it is not; it takes
// nothing.
func (t *rates) spent(name string) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[name]
	if b == nil {
		return 0, false
	}
	if missing := 1 - b.TokensAt(t.now()); missing > 0 {
		return t.wait(missing), true
	}
	return 0, false
}

// wait is how long it takes until a bucket has so many tokens more.
func (t *rates) wait(tokens float64) time.Duration {
	return time.Duration(tokens * float64(time.Minute) / float64(t.perMinute))
}

// makeRoom removes buckets so that there is room for one more. Scanning all of
// them is rare: after it there is room for many.
func (t *rates) makeRoom(now time.Time) {
	if len(t.buckets) < t.limit {
		return
	}
	for name, b := range t.buckets {
		if b.TokensAt(now) >= float64(t.perMinute) {
			delete(t.buckets, name)
		}
	}
	if keep := t.limit - t.limit/8 - 1; len(t.buckets) > keep {
		names := slices.SortedFunc(maps.Keys(t.buckets), func(a, b string) int {
			return t.buckets[a].used.Compare(t.buckets[b].used)
		})
		for _, name := range names[:len(names)-keep] {
			delete(t.buckets, name)
		}
	}
}

// bucketOf names the bucket of an endpoint for an address and a client.
func (s *Server) bucketOf(r *http.Request, endpoint, client string) string {
	remote := &principal.Principal{Remote: s.opts.Remote(r)}
	return endpoint + " " + remote.LimitKey() + " " + client
}

// allow counts a request to an endpoint: of a client from an address, so that
// a stranger who names a client that all the world uses does not shut it out,
// or, if client is empty, of the address.
func (s *Server) allow(r *http.Request, endpoint, client string) (time.Duration, bool) {
	return s.rates.take(s.bucketOf(r, endpoint, client))
}

// remoteHost is the address of the peer of the connection.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
