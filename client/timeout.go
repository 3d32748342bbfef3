package client

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// timeouts are how long the call may be silent and how long it may take in all
// (spec 2026-07-28, basic/patterns/cancellation: timeouts SHOULD exist, progress
// MAY reset them, a maximum SHOULD always be enforced). Negative ones are none.
func (k *call) timeouts() (idle, hard time.Duration) {
	if k.opts.NoTimeout {
		return -1, -1
	}
	idle, hard = k.c.opts.CallTimeout, k.c.opts.MaxCallTime
	if k.opts.Timeout > 0 {
		idle = k.opts.Timeout
		if hard > 0 {
			hard = max(hard, idle)
		}
	}
	return idle, hard
}

// Expired ends the call.
func (k *call) Expired(l pausetimer.Limit) {
	idle, hard := k.timeouts()
	k.end(newTimeoutError(l, idle, hard))
}

// A pauseContext is a context whose time limits pause while a person is asked:
// transport.PauseTimeouts finds it there.
type pauseContext struct {
	context.Context //nolint:containedctx // it is one
	c               *Client
	call            *call             // nil if it is of no call
	timer           *pausetimer.Timer // nil: those of all calls
}

// pausing is a context of what the client does for all calls, such as making a
// connection: asking a person there pauses the timers of all of them.
func (c *Client) pausing(ctx context.Context) context.Context {
	return &pauseContext{Context: ctx, c: c}
}

// Value gives the Pauser and the call, and the values of the outer context.
func (p *pauseContext) Value(key any) any {
	switch key {
	case pausetimer.Key{}:
		return p
	case requestKey{}:
		if p.call != nil {
			return p.call
		}
	}
	return p.Context.Value(key)
}

// Pause pauses the timer, or those of all calls, and those of outer contexts.
func (p *pauseContext) Pause() {
	if p.timer != nil {
		p.timer.Pause()
	} else {
		p.c.pauseAll()
	}
	pausetimer.From(p.Context).Pause()
}

// Resume ends one Pause. The person who was asked may be another than before.
func (p *pauseContext) Resume() {
	p.c.forgetPrivate()
	pausetimer.From(p.Context).Resume()
	if p.timer != nil {
		p.timer.Resume()
	} else {
		p.c.resumeAll()
	}
}

// Progress restarts the idle limit: a part of an answer has arrived.
func (p *pauseContext) Progress() {
	if p.timer != nil {
		p.timer.Progress()
	}
}

// A timeout is what limited makes a context of.
type timeout struct {
	pauseContext
	limits     pausetimer.Timer
	idle, hard time.Duration
	end        context.CancelCauseFunc
}

// Expired ends the context.
func (t *timeout) Expired(l pausetimer.Limit) { t.end(newTimeoutError(l, t.idle, t.hard)) }

// limited is context.WithTimeoutCause with ErrTimeout for a time that is paused
// while a person is asked, and then begins anew: at most it is doubled.
func (c *Client) limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit = max(limit, -1)
	t := &timeout{idle: limit, hard: max(limit, 2*limit)} // the double may be beyond all times
	t.pauseContext = pauseContext{ctx, c, nil, &t.limits}
	own, end := context.WithCancelCause(&t.pauseContext)
	t.end = end
	t.limits.Start(&c.timers, t, t.idle, t.hard)
	return own, func() {
		t.limits.Stop()
		end(nil)
	}
}

// awaiting is limited for waiting for what the client does in its own time.
func (c *Client) awaiting(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := c.limited(ctx, limit)
	timer := pausetimer.From(own).(*pauseContext).timer // limited has made it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits[timer] = struct{}{}
	for range c.asking {
		timer.Pause()
	}
	return own, func() {
		c.mu.Lock()
		delete(c.waits, timer)
		c.mu.Unlock()
		cancel()
	}
}
