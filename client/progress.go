package client

import (
	"context"
	"math"
	"strings"

	"github.com/parley-mcp/parley/mcp"
)

// progressQueue is how many reports may wait for a handler before the
// connection does.
const progressQueue = 64

// maxProgressText is how many bytes of a report's message are kept.
const maxProgressText = 64 << 10

// A report is one step of progress.
type report struct {
	progress, total float64
	message         string
}

// A tracker delivers the progress of one call to its handler, in order, on a
// goroutine of its own.
type tracker struct {
	clock *clock
	ctx   context.Context //nolint:containedctx // the call's: nobody waits for the handler after it
	queue chan report
	done  chan struct{}
	err   error // the handler panicked; set before done is closed
}

// newTracker starts the delivery for a call that has started. The call must
// end it. A handler that panics ends the call.
func newTracker(k *call) *tracker {
	f, ctx := k.opts.OnProgress, k.ctx
	t := &tracker{clock: k.clock, ctx: ctx, queue: make(chan report, progressQueue), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for r := range t.queue {
			if ctx.Err() != nil {
				continue
			}
			if t.err = k.c.guard("OnProgress", func() { f(r.progress, r.total, r.message) }); t.err != nil {
				k.end(t.err)
			}
		}
	}()
	return t
}

// end returns when all that was delivered has been handled, and why the
// handler could not. Nothing may be delivered any more.
func (t *tracker) end() error {
	close(t.queue)
	<-t.done
	return t.err
}

// A progressing is a request under way that wants progress.
type progressing struct {
	t    *tracker
	busy chan struct{} // held while a report is handed over
	last float64
}

// expect makes the client take progress for token, until the returned
// function is called. After it, nothing more is handed to t.
func (c *Client) expect(token mcp.ID, t *tracker) (end func()) {
	p := &progressing{t: t, busy: make(chan struct{}, 1), last: math.Inf(-1)}
	c.mu.Lock()
	c.progress[token] = p
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.progress, token)
		c.mu.Unlock()
		p.busy <- struct{}{}
	}
}

// report hands progress to the call that it belongs to. It waits while the
// call's handler is slow: that is the back-pressure. Progress for tokens that
// are not under way, or that does not grow, is dropped (spec 2026-07-28,
// basic/patterns/progress: MUST only reference active tokens, MUST increase).
func (c *Client) report(m *mcp.ProgressParams) {
	c.mu.Lock()
	p := c.progress[m.ProgressToken]
	c.mu.Unlock()
	if p == nil {
		c.log.Debug("progress for an unknown token", "token", m.ProgressToken.String())
		return
	}
	select {
	case p.busy <- struct{}{}:
	case <-p.t.ctx.Done():
		return
	}
	defer func() { <-p.busy }()
	c.mu.Lock()
	active := c.progress[m.ProgressToken] == p
	c.mu.Unlock()
	if !active || !(m.Progress > p.last) {
		return
	}
	p.last = m.Progress
	p.t.clock.touch()
	r := report{progress: m.Progress, message: m.Message}
	if len(r.message) > maxProgressText {
		r.message = strings.ToValidUTF8(r.message[:maxProgressText], "") + "…"
	}
	if m.Total != nil {
		r.total = *m.Total
	}
	select {
	case p.t.queue <- r:
	case <-p.t.ctx.Done():
	}
}
