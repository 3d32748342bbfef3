package server

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
)

const (
	// burstTime is how long a full bucket lasts at its rate, and listBurstTime
	// how long one of a list.
	burstTime     = 10 * time.Second
	listBurstTime = 5 * time.Second
	// anonymousRates is how many times higher rates are for the anonymous
	// callers of one address, who may be many people.
	anonymousRates = 10
	// maxTokenWait is how long a request that is over its rate waits for a token.
	maxTokenWait = time.Second
	// maxTokenWaits is the most requests of a server that wait for a token.
	// Each counts as in flight for its connection or caller too.
	maxTokenWaits = 4096
	// maxBuckets bounds the memory of the rate limiter. When it is full,
	// buckets that are full again, and so say nothing, are dropped.
	maxBuckets = 10_000
	// slots is how many buckets a caller has for targets that it can make up.
	slots = 64
)

// rates holds one token bucket for each caller and kind of request.
type rates struct {
	mu      sync.Mutex
	buckets map[rateKey]*rate.Limiter
	waiting atomic.Int32
}

type rateKey struct {
	principal      string
	method, target string
	slot           uint8 // of targets without a bucket of their own
	later          bool  // a later round of an asked request
}

// toolLimits are the limits of one tool; zeros mean the server's.
type toolLimits struct {
	rate    float64
	timeout time.Duration
}

// toolRow is the row of tools/call for a tool that has limits of its own, or nil.
func (s *Server) toolRow(o ToolOptions) *row {
	if o.Rate == 0 && o.Timeout == 0 {
		return nil
	}
	r := *s.rows[mcp.MethodToolsCall]
	r.own = toolLimits{rate: o.Rate, timeout: o.Timeout}
	return &r
}

var slotSeed = maphash.MakeSeed()

// takeToken takes a token for a request. If one will be there soon it is reserved
// for waitForToken; otherwise the request is refused.
func (c *Call) takeToken() error {
	target, slot, t := c.bucket()
	if t != nil && t.row != nil {
		c.row = t.row
	}
	p := c.Principal()
	perSecond, option := c.rate()
	if perSecond < 0 || p == principal.Local {
		return nil
	}
	k := rateKey{principal: c.limitKey(), method: c.row.Name, target: target, slot: slot}
	if p.Anonymous() {
		perSecond *= anonymousRates
	}
	allowed := perSecond
	if c.Round() > 0 {
		// The later rounds of a request do not count against new requests,
		// but a state that is sent again and again is limited too.
		k.later, allowed = true, perSecond*float64(max(1, c.srv.limits.MaxRounds))
	}
	full := burstTime
	if c.row.limit == listRate {
		full = listBurstTime
	}
	reserved, wait := c.srv.rates.take(k, allowed, full)
	if wait > maxTokenWait {
		return c.rateLimited(target, perSecond, option, wait)
	}
	if reserved != nil {
		c.extras().reservation = reserved
	}
	return nil
}

// rate is how many requests like this one a caller may send per second, and
// the option that says so; a negative one is no limit.
func (c *Call) rate() (perSecond float64, option string) {
	l := &c.srv.limits
	switch c.row.limit {
	case listRate:
		return l.ListRate, "Limits.ListRate"
	case completionRate:
		return l.CompletionRate, "Limits.CompletionRate"
	case pingRate:
		return l.PingRate, "Limits.PingRate"
	case noRate:
		return Unlimited, ""
	case toolRate:
	}
	if own := c.row.own.rate; own != 0 {
		return own, "ToolOptions.Rate"
	}
	return l.ToolRate, "Limits.ToolRate"
}

// bucket names the bucket of the target of a request, and the tool that it
// calls. A caller must not get a new bucket for each name that it makes up:
// tools and prompts that it cannot see, which are those that do not exist,
// share one. What may be numberless, such as the resources of a template or
// the tasks of an extension, is spread over a few.
func (c *Call) bucket() (target string, slot uint8, t *tool) {
	if c.row.limit != toolRate {
		return "", 0, nil
	}
	switch c.Method() {
	case mcp.MethodToolsCall:
		if t, ok := c.srv.allTools().byKey[c.target]; ok && c.visibleTo(t) {
			return t.def.Name, 0, t
		}
	case mcp.MethodPromptsGet:
		if p, ok := c.srv.allPrompts().byKey[c.target]; ok && c.visibleTo(p) {
			return p.def.Name, 0, nil
		}
	default:
		return "", uint8(maphash.String(slotSeed, c.target) % slots), nil
	}
	return "", 0, nil
}

// visibleTo is seesOffered where a panic of the author's Visible would not be
// caught.
func (c *Call) visibleTo(f listed) (seen bool) {
	if !c.srv.filters() {
		return true
	}
	c.srv.guard(func() { seen = c.seesOffered(f) })
	return seen
}

// rateLimited says which limit a request is over, whose it is, and which
// option changes it.
func (c *Call) rateLimited(target string, perSecond float64, option string, wait time.Duration) error {
	what := c.row.Name
	switch {
	case target != "":
		what += fmt.Sprintf(" of %q", clip(target))
	case c.Method() == mcp.MethodToolsCall || c.Method() == mcp.MethodPromptsGet:
		what += " of unknown names"
	case c.row.limit == toolRate && c.row.Target != "":
		what += fmt.Sprintf(" of one %s", c.row.Target)
	}
	whose := fmt.Sprintf("each caller (%s)", option)
	if c.Principal().Anonymous() {
		whose = fmt.Sprintf("the anonymous callers of one address (%d times %s)", anonymousRates, option)
	}
	return limitedBy(option, retryable(mcp.CodeRateLimited, wait, "rate limit: %v %s per second for %s; try again in %v",
		perSecond, what, whose, wait.Round(time.Millisecond)))
}

// A reservation is a token that will be there soon.
type reservation struct{ token *rate.Reservation }

// take takes a token of a bucket that lasts for the time full. Without one it
// returns how long to wait; up to maxTokenWait the token that will be there then is
// reserved.
func (r *rates) take(k rateKey, perSecond float64, full time.Duration) (*reservation, time.Duration) {
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
		b = rate.NewLimiter(rate.Limit(perSecond), burst(perSecond, full))
		r.buckets[k] = b
	} else if b.Limit() != rate.Limit(perSecond) { // the tool was replaced by one with another rate
		b.SetLimitAt(now, rate.Limit(perSecond))
		b.SetBurstAt(now, burst(perSecond, full))
	}
	if b.AllowN(now, 1) {
		return nil, 0
	}
	token := b.ReserveN(now, 1)
	wait := token.DelayFrom(now)
	if wait > maxTokenWait {
		token.CancelAt(now)
		return nil, wait
	}
	return &reservation{token}, wait
}

// burst is how many requests a full bucket holds.
func burst(perSecond float64, full time.Duration) int {
	return int(min(max(1, perSecond*full.Seconds()), 1<<30))
}

// sweep drops the buckets that are full again, or all of them if the callers
// are more than maxBuckets.
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

// waitForToken waits until a request that came too early may go on. The end of the
// call or of the server ends it.
func (c *Call) waitForToken() error {
	m := c.more.Load()
	if m == nil || m.reservation == nil {
		return nil
	}
	token, r := m.reservation.token, &c.srv.rates
	defer r.waiting.Add(-1)
	wait := token.Delay()
	if r.waiting.Add(1) > maxTokenWaits {
		token.Cancel()
		_, option := c.rate()
		return limitedBy(option, retryable(mcp.CodeRateLimited, wait, "rate limit: more than %d requests wait for their turn on this server; try again in %v",
			maxTokenWaits, wait.Round(time.Millisecond)))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.Done():
		token.Cancel()
		return context.Cause(c)
	case <-c.srv.done:
		token.Cancel()
		return ErrShutdown
	}
}
