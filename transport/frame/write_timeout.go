package frame

import (
	"time"

	"github.com/parley-mcp/parley/transport"
)

// minRate is the rate, in bytes per second, of the slowest peer that is waited for.
const minRate = 64 << 10

// writeLimit is how long the next write may take: the timeout, and the time
// that a slow peer needs for its bytes. The lock is held.
func (w *writer) writeLimit() time.Duration {
	if w.closing {
		return w.writeTimeout
	}
	return w.writeTimeout + time.Duration(w.size/minRate)*time.Second
}

// setDeadline sets the deadline of the current write to limit from now. The
// timer is not set for each write, nor stopped after it: when it fires it
// checks whether a write is late. The lock is held.
func (w *writer) setDeadline(limit time.Duration) {
	now := time.Since(w.started)
	w.deadline = now + limit
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(limit, w.onTimer)
	case w.timerAt == 0 || w.timerAt > w.deadline:
		w.timer.Reset(limit)
	default:
		return
	}
	w.timerAt = w.deadline
}

// onTimer closes the pipe if the current write is past its deadline.
func (w *writer) onTimer() {
	w.mu.Lock()
	w.timerAt = 0
	left := w.deadline - time.Since(w.started)
	if w.state != writerWriting || left > 0 {
		if w.state == writerWriting {
			w.timerAt = w.deadline
			w.timer.Reset(left)
		}
		w.mu.Unlock()
		return
	}
	w.fail(transport.ErrStalled)
	w.mu.Unlock()
	_ = w.pipe.Close() // makes the write return
}

// shortenTimeout shortens the timeout of writes, including the current one.
func (w *writer) shortenTimeout(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return
	}
	w.closing = true
	w.writeTimeout = min(w.writeTimeout, limit)
	if w.state == writerWriting {
		w.setDeadline(w.writeTimeout)
	}
}
