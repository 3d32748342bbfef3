package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/principal"
)

// A timeoutError is the cause that a call over its time is cancelled with. It
// is [ErrTimeout], and says which limit that was.
type timeoutError struct {
	after  time.Duration
	option string // that sets the limit
	limit  pausetimer.Limit
}

func (e *timeoutError) Error() string {
	if e.limit == pausetimer.Idle {
		return fmt.Sprintf("%v: no progress for %v (%s)", ErrTimeout, e.after, e.option)
	}
	return fmt.Sprintf("%v: over %v altogether (%s)", ErrTimeout, e.after, e.option)
}

func (e *timeoutError) Unwrap() error { return ErrTimeout }

// timeouts are the time that the call may take without progress and
// altogether; negative ones are none.
func (c *Call) timeouts() (idle, hard time.Duration) {
	l := &c.srv.limits
	switch {
	case c.row.own.timeout != 0:
		return Unlimited, c.row.own.timeout
	case c.Principal() == principal.Local:
		return c.srv.localTimeout, l.MaxCallTime
	}
	return l.CallTimeout, l.MaxCallTime
}

// startTimer starts the limits of the call. Its end stops them.
func (c *Call) startTimer() {
	idle, hard := c.timeouts()
	c.timer.Start(&c.srv.timers, (*timedCall)(c), idle, hard)
}

// endOnShutdown has the context of the call, which no timer ends, end when Shutdown
// begins or its transport is about to end, until stop is called.
func (c *Call) endOnShutdown() (stop func()) {
	ending, stopped := c.x.Ending, make(chan struct{})
	go func() {
		select {
		case <-c.srv.done:
		case <-ending:
		case <-stopped:
			return
		}
		c.inbound.Cancel(ErrShutdown)
	}()
	return func() { close(stopped) }
}

// A timedCall is a Call that its timer ends.
type timedCall Call

// Expired cancels the handler and answers in its place, so that the client does
// not wait for a handler that ignores its context.
func (t *timedCall) Expired(l pausetimer.Limit) {
	c := (*Call)(t)
	late := c.exceeded(l)
	c.cancelWith(late)
	if errors.Is(context.Cause(c), ErrCancelled) {
		return // spec, basic/patterns/cancellation: no response to a cancelled request
	}
	c.srv.log.WarnContext(c, "call took too long", "limit", late.option)
	c.srv.answerError(c, timedOut(late))
}

// exceeded is the error of a call that has exceeded a limit.
func (c *Call) exceeded(l pausetimer.Limit) *timeoutError {
	idle, hard := c.timeouts()
	switch {
	case l == pausetimer.Idle:
		return &timeoutError{idle, "Limits.CallTimeout", l}
	case c.row.own.timeout != 0:
		return &timeoutError{hard, "ToolOptions.Timeout", l}
	}
	return &timeoutError{hard, "Limits.MaxCallTime", l}
}

// Deadline is when the call will be ended at the latest: Limits.MaxCallTime or
// ToolOptions.Timeout after it began, or when the context that it came with
// ends. Without progress the call ends before, after Limits.CallTimeout, which is
// no part of it: that time begins again with each progress.
//
// Where a question to the person or the model can stop the limit, it is not told:
// to tools, prompts and resources in a session of a client that can be asked, and
// wherever an extension has an Asker. Package context sets no timer for a timeout
// that ends after the deadline of its parent, so that
// context.WithTimeout(ctx, time.Minute) around a question would not end it. In
// the stateless revision no question waits, and the limit is told.
func (c *Call) Deadline() (at time.Time, ok bool) {
	at, ok = c.scope.Deadline()
	if own, limited := c.timer.Deadline(); limited && !c.waitsForAnswers() && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

// waitsForAnswers reports whether a question would stop the time of the call until
// it is answered.
func (c *Call) waitsForAnswers() bool {
	if !c.row.Asks {
		return false
	}
	if c.Detached() {
		return true
	}
	if c.session != nil && c.facts.Handshake && (c.caps.Elicitation != nil || c.caps.Sampling != nil || c.caps.Roots != nil) {
		return true
	}
	return slices.ContainsFunc(c.srv.extensions, func(e *Extension) bool { return e.Asker != nil })
}
