package client

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/transport"
)

// still is a context whose time limit is a clock: transport.Waiting finds it
// there, and stops it together with those of the contexts around it.
type still struct {
	context.Context //nolint:containedctx // it is one
	clock           *clock
	c               *Client
	self            Request // of no call, if it is zero
}

var _ transport.Clock = (*still)(nil)

// Value gives the clock and the call, and the rest of the context around.
func (s *still) Value(key any) any {
	switch key {
	case transport.ClockKey{}:
		return s
	case requestKey{}:
		if s.self.k != nil {
			return s.self.k
		}
	}
	return s.Context.Value(key)
}

// Pause stops the clock.
func (s *still) Pause() {
	s.clock.pause()
	if around := clockOf(s.Context); around != nil {
		around.Pause()
	}
}

// Resume lets the clock go on, perhaps for another person.
func (s *still) Resume() {
	s.c.forgetPrivate()
	if around := clockOf(s.Context); around != nil {
		around.Resume()
	}
	s.clock.resume()
}

// clockOf is what transport.Waiting would find, or nil.
func clockOf(ctx context.Context) transport.Clock {
	c, _ := ctx.Value(transport.ClockKey{}).(transport.Clock)
	return c
}

// limited is context.WithTimeoutCause with ErrTimeout for a time that stands
// still while a person is asked, and then begins anew: at most it is doubled.
func (c *Client) limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	l := new(struct {
		still
		clock clock
	})
	l.still = still{ctx, &l.clock, c, Request{}}
	own, end := context.WithCancelCause(&l.still)
	l.clock.start(end, limit, 2*limit)
	return own, func() {
		l.clock.stop()
		end(nil)
	}
}

// everybody is a context of what the client does for all calls, such as making
// a connection: asking a person there stops the time of all of them.
type everybody struct {
	context.Context //nolint:containedctx // it is one
	c               *Client
}

var _ transport.Clock = (*everybody)(nil)

// Value gives the clock of all, and the rest of the context around.
func (e *everybody) Value(key any) any {
	if key == (transport.ClockKey{}) {
		return e
	}
	return e.Context.Value(key)
}

// Pause stops the clocks of all calls.
func (e *everybody) Pause() {
	e.c.pauseAll()
	if around := clockOf(e.Context); around != nil {
		around.Pause()
	}
}

// Resume lets them go on, perhaps for another person.
func (e *everybody) Resume() {
	e.c.forgetPrivate()
	if around := clockOf(e.Context); around != nil {
		around.Resume()
	}
	e.c.resumeAll()
}

// awaiting is limited for who waits for what the client does in its own time.
func (c *Client) awaiting(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := c.limited(ctx, limit)
	clock := own.Value(transport.ClockKey{}).(*still).clock //nolint:forcetypeassert // limited has made it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits[clock] = struct{}{}
	for range c.asking {
		clock.pause()
	}
	return own, func() {
		c.mu.Lock()
		delete(c.waits, clock)
		c.mu.Unlock()
		cancel()
	}
}
