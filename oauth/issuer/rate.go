package issuer

import (
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-mcp/parley/principal"
)

// rates are token buckets by name, each of perMinute tokens. The table is
// bounded: when it is full, buckets that are full again go, and if there are
// none, the one that was used longest ago. It may be used by many goroutines.
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
	missing := 1 - b.TokensAt(now)
	return time.Duration(missing * float64(time.Minute) / float64(t.perMinute)), false
}

// makeRoom removes buckets so that there is room for one more. Scanning all of
// them is rare: after it there is room for many, or they are all in use.
func (t *rates) makeRoom(now time.Time) {
	if len(t.buckets) < t.limit {
		return
	}
	oldest := ""
	for name, b := range t.buckets {
		if b.TokensAt(now) >= float64(t.perMinute) {
			delete(t.buckets, name)
			continue
		}
		if oldest == "" || b.used.Before(t.buckets[oldest].used) {
			oldest = name
		}
	}
	if len(t.buckets) >= t.limit {
		delete(t.buckets, oldest)
	}
}

// allow counts a request to an endpoint: of a client from an address, so that
// a stranger who names a client that all the world uses does not shut it out,
// or, if client is empty, of the address.
func (s *Server) allow(r *http.Request, endpoint, client string) (time.Duration, bool) {
	remote := &principal.Principal{Remote: s.opts.Remote(r)}
	return s.rates.take(endpoint + " " + remote.LimitKey() + " " + client)
}

// remoteHost is the address of whoever is at the other end of the connection.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
