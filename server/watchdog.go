package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/principal"
)

// A timeoutError is the cause that a call over its time is cancelled with. It
// is [ErrTimeout], and says which limit that was.
type timeoutError struct {
	after time.Duration
	limit string // the option that sets it
	idle  bool   // it is of the time without progress
}

func (e *timeoutError) Error() string {
	if e.idle {
		return fmt.Sprintf("%v: no progress for %v (%s)", ErrTimeout, e.after, e.limit)
	}
	return fmt.Sprintf("%v: over %v altogether (%s)", ErrTimeout, e.after, e.limit)
}

func (e *timeoutError) Unwrap() error { return ErrTimeout }

// A watchdog ends a call that shows no progress for too long, or that takes
// too long altogether. While a person is asked, its time stands still.
type watchdog struct {
	mu    sync.Mutex
	call  *Call         // nil before start, and without limits
	idle  time.Duration // allowed without progress
	left  time.Duration // left of the hard cap, when the segment began
	begun instant       // of the running segment
	fired chan struct{} // made by fire, and closed when it has answered

	due    instant // it and the next two belong to the server's deadlines
	index  int32
	queued bool
	ended  bool
	paused int32
}

// timeouts are the time that the call may take without progress and
// altogether; negative ones are none.
func (c *Call) timeouts() (idle, most time.Duration) {
	l := &c.srv.limits
	switch {
	case c.row.own.timeout != 0:
		return Unlimited, c.row.own.timeout
	case c.Principal() == principal.Local:
		return c.srv.localTimeout, l.MaxCallTime
	}
	return l.CallTimeout, l.MaxCallTime
}

func (c *Call) startClock() {
	idle, most := c.timeouts()
	c.clock.start(c, idle, most)
}

// Deadline is when the call will be ended at the latest: Limits.MaxCallTime or
// ToolOptions.Timeout after it began, or when the context that it came with
// ends. While a person is asked the time stands still: there is no deadline of
// ours then, and afterwards it is later by as much. Without progress the call
// ends before, after Limits.CallTimeout, which is no part of it: that time
// begins again with each progress.
func (c *Call) Deadline() (at time.Time, ok bool) {
	at, ok = c.scope.Deadline()
	if own, limited := c.clock.latest(); limited && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

// latest is when the hard cap ends the call. There is none during a pause: a
// context that is derived then must keep a timer of its own.
func (w *watchdog) latest() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.call == nil || w.left < 0 || w.paused > 0 {
		return time.Time{}, false
	}
	return w.call.srv.deadlines.base.Add(time.Duration(w.begun.after(w.left))), true
}

// start begins the time of a call. Negative limits are none.
func (w *watchdog) start(c *Call, idle, most time.Duration) {
	if idle < 0 && most < 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.call, w.idle, w.left = c, idle, most
	w.begun = c.srv.deadlines.now()
	w.wind()
}

// wind has the call end when its time is up, counted from begun.
func (w *watchdog) wind() { w.call.srv.deadlines.set(w, w.begun.after(w.next())) }

func (w *watchdog) now() instant { return w.call.srv.deadlines.now() }

// next is the time until the timer is due.
func (w *watchdog) next() time.Duration {
	switch {
	case w.idle < 0:
		return w.left
	case w.left < 0:
		return w.idle
	}
	return min(w.idle, w.left)
}

// progress gives the call its idle time again.
func (w *watchdog) progress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.call == nil || w.ended || w.paused > 0 {
		return
	}
	w.spend()
	w.wind()
}

// spend takes the time since the segment began from the hard cap.
func (w *watchdog) spend() {
	now := w.now()
	if w.left >= 0 {
		w.left = max(0, w.left-time.Duration(now-w.begun))
	}
	w.begun = now
}

// pause stops the time until as many calls of resume.
func (w *watchdog) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused++; w.paused == 1 && w.call != nil && !w.ended {
		w.call.srv.deadlines.drop(w)
		w.spend()
	}
}

func (w *watchdog) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused--; w.paused == 0 && w.call != nil && !w.ended {
		w.begun = w.now()
		w.wind()
	}
}

// stop ends the time of the call, and waits for an answer that fire is giving.
func (w *watchdog) stop() {
	w.mu.Lock()
	w.ended = true
	if w.call != nil {
		w.call.srv.deadlines.drop(w)
	}
	fired := w.fired
	w.mu.Unlock()
	if fired != nil {
		<-fired
	}
}

// fire cancels the handler and answers in its place, so that the client does
// not wait for a handler that ignores its context. It does nothing if the call
// ended, was paused or made progress in the moment when its time was up.
func (w *watchdog) fire() {
	w.mu.Lock()
	if w.ended || w.paused > 0 || w.now() < w.begun.after(w.next()) {
		w.mu.Unlock()
		return
	}
	w.ended = true
	w.fired = make(chan struct{})
	w.mu.Unlock()
	defer close(w.fired)
	c := w.call
	late := w.reason()
	c.cancelWith(late)
	if errors.Is(context.Cause(c), ErrCancelled) {
		return // spec, basic/patterns/cancellation: no response to a cancelled request
	}
	c.srv.log.WarnContext(c, "call took too long", "limit", late.limit)
	c.srv.answerError(c, timedOut(late))
}

// reason says which limit ends the call.
func (w *watchdog) reason() *timeoutError {
	idle, most := w.call.timeouts()
	switch {
	case idle >= 0 && (w.left < 0 || w.idle < w.left):
		return &timeoutError{after: idle, limit: "Limits.CallTimeout", idle: true}
	case w.call.row.own.timeout != 0:
		return &timeoutError{after: most, limit: "ToolOptions.Timeout"}
	}
	return &timeoutError{after: most, limit: "Limits.MaxCallTime"}
}
