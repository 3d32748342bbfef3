package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// DetachOptions are what a detached call has instead of its request. The zero
// value, and nil, work.
type DetachOptions struct {
	// Done is called once, when the call has ended: with the result as the
	// revision of the request encodes it, or with the error that the client may
	// see; a panic is an error too. context.Cause(d) says why the call was
	// ended before it was done: ErrShutdown, ErrTimeout (Limits.MaxDetachedTime),
	// or the cause that cancel was given; look at it first, since a handler may
	// have made a result of that. Default: the result is dropped.
	Done func(d *Call, result mcp.RawValue, err *jsonrpc.Error)
	// Asker brings the questions of the call to the client. Default: that of
	// Extension.Asker; without one a question fails with ErrCannotAsk.
	Asker Asker
	// Record is told each question that has a Key, each answer, each result of
	// Once and each value of Keep, and returns when that is kept; only then does
	// the handler go on. With an error of Record the question, Once or Keep fails;
	// called again, Once and the question only try to have their record kept. The
	// records of a saved call are for Server.Resume.
	//
	// ctx has the values of the call and 30 seconds of its own: what was done is
	// recorded although the call was cancelled or the server ends, which waits
	// for Record. So it must return when ctx ends. It is called for one record after
	// the other and not after Done, and must not ask, or call Once or Keep. It may
	// call Save, which has the record.
	//
	// A call with Record is one that another process can take up: Server.Shutdown
	// ends it at once, and waits for others as it does for requests. Default: no
	// records are kept.
	Record func(ctx context.Context, r Record) error
	// Elicited is called when what a person was sent to a URL for is done, with the
	// ElicitationID of the question, in revisions that have one: Call.Elicited of
	// a request that is open tells the client. It is not called if the question
	// was answered in an earlier process. Default: nobody is told.
	Elicited func(id string)
	// Progress is called with what the handler says by the function Progress,
	// whether the client asked for progress or not. The values increase; nothing is
	// merged, and nothing is sent to the client. It is called for one after the
	// other and must be quick. Default: dropped.
	Progress func(p *mcp.ProgressParams)
	// Values adds values to the context of the call, which has none of those
	// that middleware gave to the request; what it returns is derived from ctx, and d
	// has the caller.
	// Default: none.
	Values func(ctx context.Context, d *Call) context.Context
}

// Detach runs next in the background with a copy of the call that outlives its
// request, for extensions whose results come later. The copy has the request's
// parameters, caller and capabilities, and what was asked, answered and done once
// in earlier rounds of the request. Its context ends when cancel is called, after
// Limits.MaxDetachedTime, and when [Server.Shutdown] ends it. A question is open for
// Limits.MaxAskTime at most. No other time limit holds for it, and nothing of it is
// sent to the client: for questions, progress and the result see [DetachOptions]; log
// messages are dropped. If its context has ended before next is called, next is not
// called, and Done gets the cause.
//
// Detach is called by middleware or an extension's Wrap, before next has been called, or
// after it has returned: what it asked, was answered and did once is then taken along, and
// next runs again from the top. If next has left questions for the client to answer in a
// further round, the error is [ErrInputPending], and the request goes on with them. To
// take the call up in another process, [Call.Save] comes before Detach. Requests that may
// ask (tools/call, prompts/get, resources/read) and those of extensions can be
// detached; others are an error. If there is no room the error is a
// [*DetachLimitError], which tells a client to come back later if it is returned.
func (c *Call) Detach(next Func, o *DetachOptions) (d *Call, cancel context.CancelCauseFunc, err error) {
	if !c.row.resumable() {
		return nil, nil, fmt.Errorf("detaching %s: %w", c.Method(), errNotResumable)
	}
	if c.needsInput() {
		return nil, nil, fmt.Errorf("detaching %s: %w", c.Method(), ErrInputPending)
	}
	d, err = c.detached()
	if err == nil {
		cancel, err = d.start(next, o, time.Now())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("detaching %s: %w", c.Method(), err)
	}
	return d, cancel, nil
}

// Detached reports whether the call runs in the background: see [Call.Detach]. It may
// last, and waits for answers where it asks, in every revision.
func (c *Call) Detached() bool { return c.detachment() != nil }

// errNotResumable is for methods whose requests need their connection or their answer.
var errNotResumable = errors.New("requests of this method do not run detached")

// A detachment is what makes a call a detached one.
type detachment struct {
	opts  DetachOptions
	began time.Time

	recording sync.Mutex // held while a record is kept in memory and told
	over      bool       // no more records; guarded by recording
}

// start runs a detached call that began at a time.
func (c *Call) start(next Func, o *DetachOptions, began time.Time) (context.CancelCauseFunc, error) {
	d := &detachment{began: began}
	if o != nil {
		d.opts = *o
	}
	c.extras().detached = d
	cancel, stop := c.detachedContext(d)
	started := false
	defer func() { // deferred, for a panic of Values
		if !started {
			stop()
			cancel(nil)
		}
	}()
	if d.opts.Values != nil {
		if c.scope = d.opts.Values(c.scope, c); c.scope == nil {
			panic("server: DetachOptions.Values returned a nil context")
		}
	}
	h := &c.srv.hub
	release, err := h.admitDetached(c)
	if err != nil {
		return nil, err
	}
	started = h.spawn(func(context.Context) {
		defer release()
		defer cancel(nil)
		defer stop()
		c.runDetached(next)
	})
	if !started {
		release()
		return nil, ErrShutdown
	}
	return cancel, nil
}

// detachedContext gives a detached call its context, and what ends it and releases its
// timer.
func (c *Call) detachedContext(d *detachment) (cancel context.CancelCauseFunc, stop context.CancelFunc) {
	life := c.srv.hub.ctx
	if d.opts.Record != nil {
		life = c.srv.hub.durable
	}
	c.scope, cancel = context.WithCancelCause(life)
	most := c.srv.limits.MaxDetachedTime
	if most < 0 {
		return cancel, func() {}
	}
	late := &timeoutError{most, "Limits.MaxDetachedTime", pausetimer.Hard}
	c.scope, stop = context.WithDeadlineCause(c.scope, d.began.Add(most), late)
	return cancel, stop
}

// runDetached runs a detached call to its end, or not at all if that has come.
func (c *Call) runDetached(next Func) {
	var (
		result mcp.RawValue
		err    = errGone
		d      = c.detachment()
	)
	defer func() { // deferred, for handlers that end their goroutine
		d.recording.Lock() // a goroutine of the handler may be recording yet
		d.over = true
		d.recording.Unlock()
		switch {
		case d.opts.Done == nil:
		case err != nil:
			d.opts.Done(c, nil, c.srv.wireError(c, err))
		default:
			d.opts.Done(c, result, nil)
		}
	}()
	if c.Err() != nil {
		err = context.Cause(c)
		return
	}
	result, err = c.srv.finish(c, next)
}

// detachedCalls counts the detached calls of a server.
type detachedCalls struct {
	all int
	by  map[string]int // LimitKey of their callers
}

// admitDetached counts a detached call, or refuses it.
func (h *hub) admitDetached(c *Call) (release func(), err error) {
	l, key, anonymous := &h.srv.limits, c.limitKey(), c.Principal().Anonymous()
	h.mu.Lock()
	defer h.mu.Unlock()
	n := &h.detached
	switch {
	case over(n.all+1, l.MaxAllDetached):
		return nil, &DetachLimitError{"Limits.MaxAllDetached", l.MaxAllDetached}
	case anonymous && over(n.by[key]+1, l.MaxAnonymousDetached):
		return nil, &DetachLimitError{"Limits.MaxAnonymousDetached", l.MaxAnonymousDetached}
	case !anonymous && over(n.by[key]+1, l.MaxDetached):
		return nil, &DetachLimitError{"Limits.MaxDetached", l.MaxDetached}
	}
	if n.by == nil {
		n.by = make(map[string]int)
	}
	n.all++
	n.by[key]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		n.all--
		if n.by[key]--; n.by[key] == 0 {
			delete(n.by, key)
		}
		if n.all == 0 {
			h.idle.Broadcast()
		}
	}, nil
}

// waitDetached waits until no call runs detached.
func (h *hub) waitDetached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.detached.all > 0 {
		h.idle.Wait()
	}
}

// A DetachLimitError says that no more calls may run detached. A client that is told
// gets "too many requests" (-31002) with a time after which to try again.
type DetachLimitError struct {
	// Limit is the option: "Limits.MaxDetached", "Limits.MaxAnonymousDetached"
	// or "Limits.MaxAllDetached".
	Limit string
	// Most is its value.
	Most int
}

// Error says which limit, and whose.
func (e *DetachLimitError) Error() string {
	whose := "calls of one caller run detached"
	switch e.Limit {
	case "Limits.MaxAllDetached":
		whose = "calls run detached on this server"
	case "Limits.MaxAnonymousDetached":
		whose = "calls of the anonymous callers of one address run detached"
	}
	return fmt.Sprintf("more than %d %s (%s); wait for some to end first", e.Most, whose, e.Limit)
}

// Unwrap is the error that a client is told.
func (e *DetachLimitError) Unwrap() error {
	return retryable(mcp.CodeTooManyInFlight, time.Second, "%s", e.Error())
}

// detached is a copy of the call that shares no memory with its message, which
// is void after the exchange.
func (c *Call) detached() (*Call, error) {
	in := &jsonrpc.Incoming{Kind: c.x.In.Kind, ID: c.x.In.ID, Method: c.x.In.Method}
	x := &transport.Exchange{In: in, Out: noResponder{}, Principal: c.Principal(), Transport: c.x.Transport}
	d := c.srv.newCall(c.srv.hub.ctx, x, c.session)
	d.row, d.facts, d.caps = c.row, c.facts, c.caps
	if m := c.more.Load(); m != nil {
		d.extras().asks.take(&m.asks)
	}
	if err := d.decodeCopy(slices.Clone(c.x.In.Params.Raw())); err != nil {
		return nil, err
	}
	return d, nil
}

// decodeCopy decodes params that belong to the call.
func (c *Call) decodeCopy(raw wire.RawValue) error {
	in := c.x.In
	if len(raw) > 0 {
		params, err := wire.ParseObject(raw, wire.Limits{Depth: maxDefinitionDepth})
		if err != nil {
			return err
		}
		in.Params = params
	}
	if name := c.row.missing(in); name != "" {
		return fmt.Errorf("params: %q is missing", name)
	}
	params, meta, err := c.row.decode(c, in)
	if err != nil {
		return err
	}
	c.params = params
	if meta != nil {
		c.meta = meta
	}
	c.target = c.targetOf(in.Params)
	return nil
}

// finish runs a detached call to its encoded result.
func (s *Server) finish(d *Call, next Func) (_ mcp.RawValue, err error) {
	defer s.catch(d, &err)
	res, err := s.run(d, next)
	if err != nil {
		return nil, err
	}
	if res, err = d.era().settle(d, res); err != nil {
		return nil, err
	}
	body, err := d.encode(res)
	if err != nil {
		return nil, err
	}
	return body.AppendJSON(nil)
}

// watchesProgress is what a detached call does with progress, or nil.
func (c *Call) watchesProgress() func(*mcp.ProgressParams) {
	if d := c.detachment(); d != nil {
		return d.opts.Progress
	}
	return nil
}

// errGone is for a handler that ended its goroutine instead of returning.
var errGone = errors.New("the handler ended its goroutine")

// noResponder is the responder of a detached call.
type noResponder struct{}

// Send drops notifications; a request fails.
func (noResponder) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	if m.ID.IsZero() {
		return nil
	}
	return jsonrpc.ErrEnded
}

func (noResponder) Answer(context.Context, *jsonrpc.Outgoing) error { return jsonrpc.ErrEnded }
