package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// cancelNoticeTimeout bounds the sending of a cancellation.
const cancelNoticeTimeout = time.Second

// A call is one request of the user, with all that it takes: rounds of
// questions, another connection, another version.
type call struct {
	c      *Client
	method string
	row    *mcp.Method   // nil for methods that are not of the core
	target string        // what the method's target member names
	params any           // in the newest shape, without _meta
	text   wire.RawValue // params, if they were encoded when the call was made
	args   wire.RawValue
	opts   CallOptions
	first  *round        // what the caller answered by itself
	mw     *inMiddleware // nil without middleware

	self    Request         // the call as others see it
	ctx     context.Context //nolint:containedctx // a call lives exactly as long as its context
	end     context.CancelCauseFunc
	timer   *pausetimer.Timer
	own     pauseContext     // the parent of ctx, and
	limits  pausetimer.Timer // what timer points to, unless middleware sends the request again
	tracker *tracker
	token   bool   // requests carry a progress token, unless the server refuses it; start sets it
	retry   *retry // nil until it is refused
	waits   int32
	size    int32 // bytes of the result
	tried   tried
	added   *added          // by extensions; nil before it is known
	around  context.Context //nolint:containedctx // the one it was sent in, if there is outer
	outer   *call           // that questions belong to in its place, see ExtensionMethod.Asks, or nil
	hasSlot bool            // its own, or that of the call around it
	settled bool            // the result is what an extension made of the answer
	mended  bool            // parts of the result were left out or replaced

	// Client.mu guards these against others.
	key      int64   // in Client.calls: the id of the first attempt before that is sent, then sent
	progress float64 // the greatest that was reported of the last attempt

	// Others may read these.
	sent     atomic.Int64 // the id of the last attempt
	attempts atomic.Int32
	rounds   atomic.Int32 // how often the server asked
	ran      atomic.Bool  // progress or a question has shown that the last attempt runs
}

// What was tried once already.
type tried struct{ interrupted, closed, version, tool, era, token bool }

// A round is what a repeated request carries in addition (spec 2026-07-28,
// basic/patterns/mrtr).
type round struct {
	responses mcp.InputResponses
	state     *string
}

// newCall prepares a request of a method.
func (c *Client) newCall(method, target string, params any, opts *CallOptions) (*call, error) {
	k := &call{c: c, method: method, target: target, params: params}
	if opts != nil {
		k.opts = *opts
	}
	for key := range k.opts.Meta {
		if err := checkMetaKey(key); err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
	}
	k.row, _ = mcp.Lookup(method)
	k.self.k = k
	return k, nil
}

// own prepares a request that the client sends by itself.
func (c *Client) own(method string, params any) *call {
	k := &call{c: c, method: method, params: params}
	k.row, _ = mcp.Lookup(method)
	k.self.k = k
	return k
}

// do carries a call out and decodes its result into out, in the newest shape;
// a *mcp.RawValue takes the text as it came, nil takes nothing.
func (k *call) do(ctx context.Context, out any) error {
	c := k.c
	s := c.known()
	key, keyed := k.cacheKey(s.facts)
	if keyed {
		if raw := c.opts.Cache.get(key); raw != nil {
			k.measure(raw)
			return k.decode(s, raw, out)
		}
	}
	if c.chain == nil {
		return k.send(ctx, out, key, keyed)
	}
	return k.doThrough(ctx, out, func(ctx context.Context, out any) error { return k.send(ctx, out, key, keyed) })
}

// send carries a call out that no cache answers.
func (k *call) send(ctx context.Context, out any, key cacheKey, keyed bool) (err error) {
	c := k.c
	var generation uint64
	if keyed {
		generation = c.opts.Cache.generation()
	}
	release := func() {}
	if c.opts.OneAtATime {
		if release, err = k.takeSlot(ctx); err != nil {
			return k.wrap(err)
		}
	}
	if err := k.start(ctx); err != nil {
		release()
		return k.wrap(err)
	}
	defer func() {
		release() // before the end, which waits for a handler of progress: that may want a turn
		if failed := k.finish(); err == nil && failed != nil {
			err = k.wrap(failed)
		}
	}()
	s, in, err := k.run()
	if err != nil {
		return k.wrap(err)
	}
	k.measure(in.Result.Raw())
	if err := k.decodeResult(s, in.Result, out); err != nil {
		return err
	}
	if !keyed || k.rounds.Load() > 0 || k.waits > 0 || k.settled {
		return nil
	}
	if k.mw != nil || s.facts.Version != key.version { // middleware may have added to _meta
		key, keyed = k.cacheKey(s.facts)
	}
	if keyed {
		k.keep(key, in.Result, generation)
	}
	return nil
}

// measure notes the size of the result.
func (k *call) measure(result wire.RawValue) { k.size = int32(min(len(result), math.MaxInt32)) }

// takeSlot waits until no other call of the handshake era is in flight. The
// caller must leave then. A call by a handler of the one in flight goes within
// its slot.
func (k *call) takeSlot(ctx context.Context) (release func(), err error) {
	c := k.c
	outer, _ := ctx.Value(requestKey{}).(*call)
	c.mu.Lock()
	stateless := c.last == nil || !c.last.facts.Handshake
	within := outer != nil && c.calls[mcp.IntID(outer.key)] == outer && outer.hasSlot
	c.mu.Unlock()
	if stateless || within {
		k.hasSlot = within
		return func() {}, nil
	}
	select {
	case c.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
	c.setHolder(k)
	k.hasSlot = true
	return func() {
		c.setHolder(nil)
		<-c.slot
	}, nil
}

// setHolder records the call that has the slot.
func (c *Client) setHolder(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holder = k
}

// asker is the call that a question of the server belongs to, with its context
// and timer of that time, and the timer of the call that it was sent for, if there is
// one. The zero asker is none.
type asker struct {
	*call
	ctx          context.Context //nolint:containedctx // the call's
	timer, outer *pausetimer.Timer
}

// asker is the call, or that which it was sent for. c.mu is held.
func (k *call) asker() asker {
	if k.outer == nil {
		return asker{k, k.ctx, k.timer, nil}
	}
	a := asker{k.outer, context.WithValue(k.ctx, requestKey{}, k.outer), k.timer, nil}
	if around, ok := pausetimer.From(k.around).(*pauseContext); ok {
		a.outer = around.timer
	}
	return a
}

// during returns the call that a question of the server belongs to, or none if
// that is not known: the one in whose answer it came, or which it names itself, or the
// only one in flight.
func (c *Client) during(m *jsonrpc.Incoming) asker {
	id := m.During
	c.mu.Lock()
	defer c.mu.Unlock()
	switch k := c.sentCall(id); {
	case k != nil:
		return k.asker()
	case !id.IsZero():
		return asker{}
	case c.holder != nil && c.calls[mcp.IntID(c.holder.key)] == c.holder:
		return c.holder.asker()
	}
	if c.extensions.related {
		for _, k := range c.calls {
			if own := k.ofExtension(); own != nil && own.relates(m, k.target) {
				return k.asker()
			}
		}
	}
	return asker{}
}

// wrap says what was being done.
func (k *call) wrap(err error) error {
	if k.target != "" {
		return fmt.Errorf("%s %q: %w", k.method, k.target, err)
	}
	return fmt.Errorf("%s: %w", k.method, err)
}

// start begins the call's time.
func (k *call) start(ctx context.Context) error {
	c := k.c
	k.tried, k.retry, k.waits, k.settled, k.added = tried{}, nil, 0, false, nil
	if own := k.ofExtension(); own != nil && own.Asks {
		k.around = ctx
		k.outer, _ = ctx.Value(requestKey{}).(*call)
	}
	k.rounds.Store(0)
	own := &k.own
	if k.timer == nil {
		k.timer = &k.limits
	} else { // middleware sends it again, and earlier handlers may still read theirs
		own, k.timer = new(pauseContext), new(pausetimer.Timer)
	}
	*own = pauseContext{ctx, c, k, k.timer}
	k.ctx, k.end = context.WithCancelCause(own)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		k.end(ErrClosed)
		return ErrClosed
	}
	idle, hard := k.timeouts()
	k.timer.Start(&c.timers, k, idle, hard)
	k.key, k.progress = c.lastID.Add(1), math.Inf(-1)
	c.calls[mcp.IntID(k.key)] = k
	for range c.asking {
		k.timer.Pause()
	}
	if k.opts.OnProgress != nil {
		k.tracker = newTracker(k)
	}
	k.token = k.tracker != nil || idle >= 0
	return nil
}

// finish ends the call's time, after all progress has been told. The error
// says that it could not be.
func (k *call) finish() (err error) {
	k.c.mu.Lock()
	delete(k.c.calls, mcp.IntID(k.key))
	k.c.mu.Unlock()
	if k.tracker != nil {
		err = k.tracker.end()
	}
	k.timer.Stop()
	k.end(nil)
	return err
}

// run sends the request as often as it takes.
func (k *call) run() (*session, *jsonrpc.Incoming, error) {
	rd := k.first
	for {
		s, in, err := k.attempt(rd)
		if err != nil {
			return nil, nil, err
		}
		if in == nil {
			continue
		}
		next, err := s.era.settle(k.ctx, k, in)
		if err == nil && next == nil {
			err = k.settleAdded(in)
		}
		switch {
		case err != nil:
			return nil, nil, err
		case next == nil:
			return s, in, nil
		}
		rd = next
	}
}

// attempt sends the request once. Without an answer and without an error it is
// to be sent again.
func (k *call) attempt(rd *round) (*session, *jsonrpc.Incoming, error) {
	cn, err := k.c.live(k.ctx)
	if err != nil {
		return nil, nil, err
	}
	s := cn.session()
	err = k.allowed(s)
	if _, undeclared := errors.AsType[*undeclaredByServer](err); undeclared {
		s = k.c.rediscover(k.ctx, cn, s)
		err = k.allowed(s)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := k.extend(s); err != nil {
		return nil, nil, err
	}
	if err := k.throttle(); err != nil {
		return nil, nil, err
	}
	in, err := k.exchange(cn, s, rd)
	failed := failure(in, err)
	switch {
	case failed == nil:
		if k.tried.token {
			s.refusesTokens.Store(true)
		}
		return s, in, nil
	case err != nil && k.ctx.Err() != nil:
		// Another connection may have ended, on which the caller waited: it says nothing about this one.
		return nil, nil, err
	case k.ctx.Err() == nil && refused(failed, k.mayRepeat) && (!k.ran.Load() || k.mayRepeat()):
		return nil, nil, k.refusedBefore().again(k.ctx, failed)
	case err != nil:
		if k.again(cn, err) || k.mayRetryOtherEra(cn, s, err) {
			return nil, nil, nil
		}
		return nil, nil, err
	}
	if repeat, err := k.repair(cn, s, in.Error); repeat || err != nil {
		return nil, nil, err
	}
	return s, in, nil
}

// allowed refuses what the revision does not have or the server did not declare, without sending it.
func (k *call) allowed(s *session) error {
	if k.row == nil {
		if own := k.ofExtension(); own != nil {
			return own.allowed(s)
		}
		return nil
	}
	if k.row.From == mcp.FromServer {
		return fmt.Errorf("%w: %s is sent by servers only", ErrNotCapable, k.method)
	}
	if !s.facts.Has(k.method) {
		return fmt.Errorf("%w: revision %s has no method %s", ErrNotCapable, s.facts.Version, k.method)
	}
	if k.row.Capability == mcp.CapCompletions && !s.facts.CompletionCapability {
		return nil
	}
	if !s.caps.Has(k.row.Capability) && !s.presumes(k.row.Capability) {
		return &undeclaredByServer{k.row.Capability}
	}
	return nil
}

// exchange sends the request once, with an id of its own.
func (k *call) exchange(cn *conn, s *session, rd *round) (*jsonrpc.Incoming, error) {
	if k.ctx.Err() != nil {
		return nil, context.Cause(k.ctx)
	}
	id := k.nextID()
	params, err := s.shape.DownParams(k.method, k.params)
	if err != nil {
		return nil, err
	}
	m := k.message(s, id, params, rd)
	var route transport.Route
	if cn.link.Traits().Routes {
		route = s.era.route(k)
	}
	in, err := cn.link.Do(k.ctx, m, route)
	k.c.reportFlaws(k.ctx, k.method, k.target, in)
	if err == nil {
		k.timer.Progress()
		return in, nil
	}
	if cause := context.Cause(k.ctx); cause != nil {
		if k.c.ctx.Err() == nil {
			s.era.abandon(cn, id, cause)
		}
		if errors.Is(err, cause) {
			return nil, err // the link says more about it
		}
		return nil, cause
	}
	return nil, err
}

// failure is why there is no result: the error of the link, or that of the
// server.
func failure(in *jsonrpc.Incoming, err error) error {
	if err == nil && in.Error != nil {
		return in.Error
	}
	return err
}

// throttle holds a request back while others like it wait because they were
// refused.
func (k *call) throttle() error {
	if k.retry != nil || k.c.throttles.n.Load() == 0 {
		return nil
	}
	r := k.refusedBefore()
	var err error
	r.sent, err = k.c.throttles.admit(k.ctx, r.about)
	return err
}

// refusedBefore returns what is known of refusals of the request.
func (k *call) refusedBefore() *retry {
	if k.retry == nil {
		k.retry = &retry{c: k.c, about: throttleKey{method: k.method}}
		if k.method == mcp.MethodToolsCall || k.method == mcp.MethodPromptsGet {
			k.retry.about.target = k.target
		}
	}
	return k.retry
}

// nextID returns an id for the next attempt.
func (k *call) nextID() mcp.ID {
	if k.key == 0 || k.key == k.sent.Load() {
		k.renewKey(k.c.lastID.Add(1))
	}
	k.sent.Store(k.key)
	k.attempts.Add(1)
	k.ran.Store(false)
	return mcp.IntID(k.key)
}

// renewKey changes the key of a call, which is in Client.calls unless it is the client's own.
func (k *call) renewKey(id int64) {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := mcp.IntID(k.key); c.calls[was] == k {
		delete(c.calls, was)
		c.calls[mcp.IntID(id)] = k
	}
	k.key, k.progress = id, math.Inf(-1)
}

// again reports whether the request may be sent once more after its
// connection broke: always if it cannot have arrived, otherwise only if doing
// it twice is harmless (ruling 16).
func (k *call) again(cn *conn, err error) bool {
	switch {
	case errors.Is(err, transport.ErrInterrupted):
		if k.tried.interrupted || !k.mayRepeat() {
			return false
		}
		k.tried.interrupted = true
		return true
	case errors.Is(err, transport.ErrClosed):
		cn.unreached(err)
		if k.tried.closed {
			return false
		}
		k.tried.closed = true
		return cn.backOff(k.ctx)
	}
	return false
}

// mayRetryOtherEra reports whether a refused request may be sent once more because the
// server turned out to be of the other era, and nothing of the request was
// carried out or doing it twice is harmless.
func (k *call) mayRetryOtherEra(cn *conn, s *session, refusal error) bool {
	if k.tried.era || !k.c.recheck(k.ctx, cn, s, refusal) {
		return false
	}
	k.tried.era = true
	return isUnhandled(refusal) || k.mayRepeat()
}

// mayRepeat says whether a request may be carried out twice.
func (k *call) mayRepeat() bool {
	if k.row == nil {
		own := k.ofExtension()
		return own != nil && own.Retry
	}
	if k.row.Retry {
		return true
	}
	if k.method != mcp.MethodToolsCall || !k.c.opts.TrustAnnotations {
		return false
	}
	e := k.c.tools.lookup(k.target)
	return e != nil && (e.hints.ReadOnly() || e.hints.Idempotent())
}

// repair deals with refusals that say how to do it better; all mean that
// nothing was carried out, or that it may be carried out twice.
func (k *call) repair(cn *conn, s *session, e *jsonrpc.Error) (repeat bool, err error) {
	switch {
	case e.Code == mcp.CodeUnsupportedVersion && !k.tried.version && offeredVersions(e) != nil:
		k.tried.version = true
		return true, k.c.renegotiate(k.ctx, cn, s, e)
	case e.Code == mcp.CodeHeaderMismatch && k.method == mcp.MethodToolsCall && !k.tried.tool:
		// Spec 2026-07-28, basic/transports/streamable-http: the client
		// SHOULD call tools/list and retry with the appropriate headers.
		k.tried.tool = true
		k.c.opts.Cache.drop(k.c.server, mcp.MethodToolsList, "")
		_, err := k.c.Tool(k.ctx, k.target)
		return err == nil, nil
	case s.facts.Handshake && !k.ran.Load() && k.tokenRefused(e):
		k.tried.token = true
		return true, nil
	case e.Code == mcp.CodeMethodNotFound && k.row != nil && s.presumes(k.row.Capability):
		return false, &undeclaredByServer{k.row.Capability}
	}
	return k.mayRetryOtherEra(cn, s, e), nil
}

// decodeResult reads the result of an answer into out.
func (k *call) decodeResult(s *session, result wire.Object, out any) error {
	if r, ok := out.(*mcp.CallToolResult); ok && k.method == mcp.MethodToolsCall {
		if s.plainResult(result, r) {
			return nil
		}
		*r = mcp.CallToolResult{}
	}
	return k.decode(s, result.Raw(), out)
}

// context returns the context of the call, or of the client if the call was never started.
func (k *call) context() context.Context {
	if k.ctx != nil {
		return k.ctx
	}
	return k.c.ctx
}

// decode reads a result into out.
func (k *call) decode(s *session, raw wire.RawValue, out any) error {
	switch out := out.(type) {
	case nil:
		return nil
	case *mcp.RawValue:
		*out = append(mcp.RawValue(nil), raw...)
		return nil
	}
	var err error
	switch {
	case k.row != nil:
		k.mended, err = k.c.readResult(k.context(), s.shape, k.method, k.target, raw, out)
	case k.ofExtension() != nil:
		err = decodeStrictly(raw, out)
	default:
		err = wire.Decode(raw, out)
	}
	if err != nil {
		return k.wrap(fmt.Errorf("%w: %w", ErrMalformed, err))
	}
	return nil
}
