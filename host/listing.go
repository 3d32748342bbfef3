package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Bounds of listing the tools of a server again.
const (
	listInterval   = time.Second // at least, between two listings
	maxFailedLists = 8           // in a row, until the server says that they changed
)

// errSlowList says that a list has no end.
var errSlowList = errors.New("the server did not list its tools in time")

// A listings says when the tools of a connection are listed again: after a notice that
// they changed, or when they are needed and their time is over, but at most once per second,
// and with growing pauses after a failure, which notices do not shorten.
type listings struct {
	timer  *time.Timer
	due    time.Time // when the timer ends; zero if it does not run
	last   time.Time // when the last listing began
	failed int       // in a row
}

func newListings() *listings {
	l := &listings{timer: time.NewTimer(0), last: time.Now()}
	l.timer.Stop()
	return l
}

// at makes the next listing begin at a time, if no earlier one is planned.
func (l *listings) at(next time.Time) {
	if l.due.IsZero() || next.Before(l.due) {
		l.due = next
		l.timer.Reset(time.Until(next))
	}
}

// noticed plans the listing after a notice.
func (l *listings) noticed() {
	switch {
	case l.failed == 0:
		l.at(l.last.Add(listInterval))
	case l.failed >= maxFailedLists:
		l.at(l.last.Add(lastPause))
	}
}

// requested plans the listing that a person asks for.
func (l *listings) requested() {
	l.failed = 0
	l.at(l.last.Add(listInterval))
}

// begin notes that the timer has ended, and that a listing begins.
func (l *listings) begin() { l.due, l.last = time.Time{}, time.Now() }

// ended takes the outcome of a listing.
func (l *listings) ended(err error) {
	if err == nil {
		l.failed = 0
		return
	}
	if l.failed++; l.failed < maxFailedLists {
		l.at(time.Now().Add(withJitter(doubled(l.failed))))
	}
}

// markStale notes that the server has said that its tools changed.
func (s *supervisor) markStale(ctx context.Context) {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	if ctx.Err() == nil && !s.status.Stale {
		s.status.Stale = true
		s.set.touch()
	}
}

// list lists the tools and publishes them; the server is ready then. What was listed
// before stays until then, and if there is an error. A server without tools has none.
//
// FLOW-LIST-CHANGED-H: a notice leads here, so that a running conversation sees the
// new tools at its next turn.
func (cn *connection) list(ctx context.Context) error {
	s := cn.s
	limited, cancel := transport.WithTimeout(ctx, orDefault(s.spec.ListTimeout, s.host.opts.ListTimeout), errSlowList)
	defer cancel()
	cn.fresh.begin()
	defs, err := allTools(limited, cn.client)
	if err == nil {
		tools := s.host.newTools(s.link, defs)
		s.publish(ctx, func() {
			s.enter(StateReady)
			s.tools, s.listings, s.freshUntil = tools, s.listings+1, cn.fresh.until()
			s.status.Tools, s.status.Stale, s.status.Err = len(tools), false, nil
		})
		return nil
	}
	if limited.Err() != nil {
		err = context.Cause(limited)
	}
	if !errors.Is(err, errSlowList) {
		err = fmt.Errorf("listing its tools: %w", err)
	}
	s.publish(ctx, func() {
		s.enter(StateReady)
		s.listings++
		s.status.Stale, s.status.Err = true, err
	})
	return err
}

// allTools reads the whole list.
func allTools(ctx context.Context, c *client.Client) ([]*mcp.Tool, error) {
	defs := make([]*mcp.Tool, 0)
	for t, err := range c.Tools(ctx) {
		if errors.Is(err, client.ErrNotCapable) {
			break
		}
		if err != nil {
			return nil, err
		}
		defs = append(defs, t)
	}
	return defs, nil
}
