package client

import (
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
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
	done chan struct{}
	err  error // the handler panicked; set before done is closed

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
	t := &tracker{done: make(chan struct{}), fresh: make(chan struct{}, 1)}
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

// report hands progress to the call that it belongs to, whose time it restarts. Progress
// for tokens that are not under way, or that does not grow, is dropped (spec 2026-07-28,
// basic/patterns/progress: MUST only reference active tokens, MUST increase). Some servers
// make up tokens: that is no reason to warn.
func (c *Client) report(m *mcp.ProgressParams) {
	c.mu.Lock()
	k := c.sentCall(m.ProgressToken)
	if k != nil && k.token {
		k.report(m)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.log.Debug("progress for an unknown token", "token", m.ProgressToken.String())
}

// sentCall returns the call under way whose last attempt has an id, or nil. c.mu is held.
func (c *Client) sentCall(id mcp.ID) *call {
	if k := c.calls[id]; k != nil && k.sent.Load() == k.key {
		return k
	}
	return nil
}

// report notes progress of the last attempt. Client.mu is held.
func (k *call) report(m *mcp.ProgressParams) {
	k.ran.Store(true)
	if !(m.Progress > k.progress) {
		return
	}
	k.progress = m.Progress
	k.timer.Progress()
	if k.tracker == nil {
		return
	}
	r := report{progress: m.Progress, message: shortened(m.Message)}
	if m.Total != nil {
		r.total = *m.Total
	}
	k.tracker.deliver(r)
}

// namesToken and unknownMember match what servers write that refuse params with a member that they do not
// know, such as _meta, and unknownTool what those write that take it for another tool.
var (
	namesToken    = regexp.MustCompile(`(?i)\b_meta\b|progress_?token`)
	unknownMember = regexp.MustCompile(`(?i)\b(unknown|unrecognized|unexpected|additional|extra)\b.*` +
		`\b(fields?|keys?|members?|parameters?|params|propert(y|ies)|arguments?)\b`)
	unknownTool = regexp.MustCompile(`(?i)\bunknown\b.*\btool\b`)
)

// tokenRefused reports whether a server may have refused a request because of its progress token, as some
// old ones do. A message that quotes another name is about arguments, which a tool may have begun to work
// on. That a tool is unknown is no reason, unless the server listed it. Other codes than those of wrong
// params count where the request may be carried out twice.
func (k *call) tokenRefused(e *jsonrpc.Error) bool {
	if !k.token || k.tried.token || e.Code != mcp.CodeInvalidParams && e.Code != mcp.CodeInvalidRequest && !k.mayRepeat() {
		return false
	}
	words := brief(e.Message) // a server can send very many
	return namesToken.MatchString(words) ||
		unknownMember.MatchString(words) && !strings.ContainsAny(words, "'\"`‘“") ||
		k.method == mcp.MethodToolsCall && unknownTool.MatchString(words) && k.c.tools.lookup(k.target) != nil
}

// shortened is a message of a report with at most maxProgressText bytes.
func shortened(message string) string {
	if len(message) > maxProgressText {
		return strings.ToValidUTF8(message[:maxProgressText], "") + "…"
	}
	return message
}
