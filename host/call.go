package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/policy"
)

// CancelCall cancels one call that was authorized and has no result yet: one that is
// under way at its server, or waits to be sent, or the loading of a skill, from its
// beginning: a question about it is withdrawn. The run goes on, and the model is told.
// It reports whether there was one.
func (s *Session) CancelCall(call string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel := s.cancels[call]
	if cancel != nil {
		cancel(ErrCancelled)
	}
	return cancel != nil
}

// cancellable lets [Session.CancelCall] end the context of a call, until the function
// that it returns is called.
func (s *Session) cancellable(ctx context.Context, call string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels[call] = cancel
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, call)
		cancel(errCallEnded)
	}
}

// errCallEnded is why the context of a call ends that nobody cancelled.
var errCallEnded = errors.New("the call has ended")

// errNotSent says that the person cancelled a call in time.
var errNotSent = errors.New("the person cancelled the call before it was sent; nothing was done")

// notRun writes down why a call was not made, which the model is told, and counts it.
func (s *Session) notRun(call *CallRecord, err error, refused *ConsentError, count *RunEndRecord) error {
	res := &ResultRecord{Call: call.ID, Outcome: OutcomeNotRun, Why: bounded(err.Error(), maxWhy)}
	text := res.Why
	if refused != nil {
		res.Outcome, res.Why = OutcomeRefused, bounded(refused.Why, maxWhy)
		text = "The call was refused. Do not repeat it."
		if refused.Reason != "" {
			text += " The reason: " + refused.Reason
		}
	}
	res.Content = mcp.Contents{mcp.Text(text)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused != nil {
		count.Refused++
	} else {
		count.Calls++
		count.Failed++
	}
	delete(s.cancels, call.ID)
	_, err = s.appendLocked(res)
	return err
}

// carryOut calls the tool and writes down how that ended. ctx is that of the call, of
// which the end cancels it; whole is that of the run that it belongs to. What came of it
// is in c.result and c.failure, or, where nothing was done yet, in c.changed. The error is
// why the run cannot go on.
func (s *Session) carryOut(whole, ctx context.Context, c *readyCall, count *RunEndRecord) error {
	if whole.Err() != nil {
		return context.Cause(whole) // what was not sent is closed with the run
	}
	err := s.stillAllowed(ctx, c)
	if ctx.Err() != nil {
		err = errNotSent
	}
	if err != nil {
		if whole.Err() != nil {
			return context.Cause(whole)
		}
		if c.askAgain && errors.Is(err, errToolChanged) {
			c.changed = true
			return nil
		}
		c.failure = err
		return s.notRun(c.record, err, nil, count)
	}
	ctx = withSession(ctx, s, c.record.ID)
	if err := s.started(c, count); err != nil {
		return err
	}
	s.audited(ctx, &policy.Query{Kind: policy.KindTool, Server: c.tool.Server, Name: c.tool.Def.Name, Arguments: c.args}, "called", c.why)
	start := time.Now()
	c.result, c.failure = s.send(ctx, c)
	rec, keepErr := s.result(ctx, c.record.ID, c.result, c.failure)
	rec.Millis = time.Since(start).Milliseconds()
	labels := s.host.labels(c.tool.Server, c.tool.Def.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cancels, c.record.ID)
	if rec.Failed || rec.Outcome != OutcomeDone {
		count.Failed++
	}
	_, err = s.appendLocked(append(s.fresh(labels, c.tool.Server, c.tool.Def.Name), rec)...)
	s.keepForPage(c, c.result)
	return errors.Join(keepErr, err)
}

// started writes down that a call is sent, and counts it.
func (s *Session) started(c *readyCall, count *RunEndRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.appendLocked(&StartRecord{Call: c.record.ID, Arguments: c.args, Edited: c.edited, Why: bounded(c.why, maxWhy)})
	if err == nil {
		count.Calls++
	}
	return err
}

// send sends the call to its server, the arguments byte for byte as shown.
func (s *Session) send(ctx context.Context, c *readyCall) (*mcp.CallToolResult, error) {
	return c.client.CallTool(ctx, c.tool.Def.Name, c.args, &client.CallOptions{
		OnProgress: func(progress, total float64, message string) {
			s.tell(&ProgressRecord{c.record.ID, progress, total, bounded(message, maxWhy)})
		},
	})
}

// fresh is the record of the labels that mark what comes in from a server and that the
// conversation has not got yet; nothing if there are none. s.mu is held.
func (s *Session) fresh(labels []policy.Label, server, name string) []Body {
	var fresh []policy.Label
	for _, l := range labels {
		if (l == policy.LabelUntrusted || l == policy.LabelPrivate) && !s.state.labels[l] && !slices.Contains(fresh, l) {
			fresh = append(fresh, l)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return []Body{&LabelRecord{Labels: fresh, Server: server, Name: name}}
}
