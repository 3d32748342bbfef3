package server

import (
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-mcp/parley/mcp"
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
	slot           uint8 // of targets that are not told apart by name
	later          bool  // a later round of an asked request
}

// slots is how many buckets a caller has for targets that it can make up.
const slots = 64

var slotSeed = maphash.MakeSeed()

// paced takes a token for a request, and gives how long to wait if there is none.
func (c *Call) paced() time.Duration {
	l := &c.srv.limits
	k := rateKey{principal: c.limitKey(), limit: c.row.limit}
	perSecond := l.ToolRate
	switch c.row.limit {
	case listRate:
		perSecond = l.ListRate
	case completionRate:
		perSecond = l.CompletionRate
	case pingRate:
		perSecond = l.PingRate
	case toolRate:
		k.method = c.Method()
		k.target, k.slot = c.bucket()
	}
	if c.Round() > 0 && perSecond > 0 {
		// The later rounds of a request do not count against new requests,
		// but a state that is sent again and again is limited too.
		k.later, perSecond = true, perSecond*float64(max(1, l.MaxRounds))
	}
	return c.srv.rates.wait(k, perSecond)
}

// bucket names the bucket of the target of a request. A caller must not get a
// new one for each name that it makes up: tools and prompts that it cannot
// see, which are those that do not exist, share one. What may be numberless,
// such as the resources of a template or the tasks of an extension, is spread
// over a few.
func (c *Call) bucket() (target string, slot uint8) {
	known := false
	switch c.Method() {
	case mcp.MethodToolsCall:
		t, ok := c.srv.allTools().byKey[c.target]
		known = ok && c.visibly(t)
	case mcp.MethodPromptsGet:
		p, ok := c.srv.allPrompts().byKey[c.target]
		known = ok && c.visibly(p)
	default:
		return "", uint8(maphash.String(slotSeed, c.target) % slots)
	}
	if !known {
		return "", 0
	}
	return c.target, 0
}

// visibly is seesOffered where a panic of the author's Visible would not be
// caught.
func (c *Call) visibly(f listed) (seen bool) {
	if !c.srv.filters() {
		return true
	}
	c.srv.guard(func() { seen = c.seesOffered(f) })
	return seen
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
