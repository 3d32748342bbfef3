package client

import (
	"context"
	"math"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of the reports that wait for the handler of one call, in bytes: of a
// report's message, of all of them, and what a report takes without its message.
const (
	maxProgressText = 64 << 10
	maxProgress     = 4 << 20
	reportSize      = 64
)

// A report is one step of progress.
type report struct {
	progress, total float64
	message         string
}

// A tracker delivers the progress of one call to its handler, in order, on a
// goroutine of its own. What arrives never waits for the handler, which may wait
// for what arrives next.
type tracker struct {
	timer *pausetimer.Timer
	ctx   context.Context //nolint:containedctx // the call's: nothing waits for the handler after it
	done  chan struct{}
	err   error // the handler panicked; set before done is closed

	mu    sync.Mutex
	last  float64 // the greatest progress that was delivered
	queue []report
	size  int           // bytes of the queue
	ended bool          // nothing more is delivered
	fresh chan struct{} // told when queue or ended has changed
}

// newTracker starts the delivery for a call that has started. The call must
// end it. A handler that panics ends the call.
func newTracker(k *call) *tracker {
	f, ctx := k.opts.OnProgress, k.ctx
	t := &tracker{timer: k.timer, ctx: ctx, done: make(chan struct{}), fresh: make(chan struct{}, 1)}
	go func() {
		defer close(t.done)
		for r := range t.reports {
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
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.wake()
	<-t.done
	return t.err
}

// deliver queues a report. Where there is no room for it, it takes the place of
// the latest one: that tells less than it.
func (t *tracker) deliver(r report) {
	t.mu.Lock()
	t.put(r)
	t.mu.Unlock()
	t.wake()
}

// next queues a report without numbers: it is one step further than the last.
func (t *tracker) next(message string) {
	t.mu.Lock()
	if !t.ended {
		t.put(report{progress: math.Floor(t.last) + 1, message: shortened(message)})
	}
	t.mu.Unlock()
	t.wake()
}

// put queues a report. t.mu is held.
func (t *tracker) put(r report) {
	t.last = max(t.last, r.progress)
	t.size += reportSize + len(r.message)
	if last := len(t.queue) - 1; last >= 0 && t.size > maxProgress {
		t.size -= reportSize + len(t.queue[last].message)
		t.queue[last] = r
	} else {
		t.queue = append(t.queue, r)
	}
}

func (t *tracker) wake() {
	select {
	case t.fresh <- struct{}{}:
	default:
	}
}

// reports gives what is delivered, until the end.
func (t *tracker) reports(yield func(report) bool) {
	for {
		t.mu.Lock()
		queue, ended := t.queue, t.ended
		if len(queue) > 0 {
			t.queue = queue[1:]
			t.size -= reportSize + len(queue[0].message)
		}
		t.mu.Unlock()
		switch {
		case len(queue) > 0:
			if !yield(queue[0]) {
				return
			}
		case ended:
			return
		default:
			<-t.fresh
		}
	}
}

// A progressing is a request under way that wants progress.
type progressing struct {
	k    *call
	t    *tracker
	busy lock // held while a report is handed over
	last float64
}

// expect makes the client take progress for token, until the returned
// function is called. After it, nothing more is handed to the tracker of k.
func (c *Client) expect(token mcp.ID, k *call) (end func()) {
	p := &progressing{k: k, t: k.tracker, busy: make(lock, 1), last: math.Inf(-1)}
	c.mu.Lock()
	c.progress[token] = p
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.progress, token)
		c.mu.Unlock()
		p.busy <- struct{}{} // a report that found p before is over, or sees that p is none any more
		p.busy.release()
	}
}

// report hands progress to the call that it belongs to. Progress for tokens that
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
	if p.busy.acquire(p.t.ctx) != nil {
		return
	}
	defer p.busy.release()
	c.mu.Lock()
	active := c.progress[m.ProgressToken] == p
	c.mu.Unlock()
	if !active {
		return
	}
	p.k.ran.Store(true)
	if !(m.Progress > p.last) {
		return
	}
	p.last = m.Progress
	p.t.timer.Progress()
	r := report{progress: m.Progress, message: shortened(m.Message)}
	if m.Total != nil {
		r.total = *m.Total
	}
	p.t.deliver(r)
}

// shortened is a message of a report with at most maxProgressText bytes.
func shortened(message string) string {
	if len(message) > maxProgressText {
		return strings.ToValidUTF8(message[:maxProgressText], "") + "…"
	}
	return message
}
