package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// stateless is the era in which each request says all there is to know: the
// version, the client's identity and its capabilities.
type stateless struct {
	c        *Client
	facts    *revision.Facts
	identity []byte // members of _meta that never change
	fixed    []byte // the same, and the client's capabilities
	logs     bool   // the server sends logs
}

// newEra returns the era for a revision before anything is known of the server.
func newEra(c *Client, f *revision.Facts) *stateless {
	e := &stateless{c: c, facts: f}
	dst := wire.AppendString(appendMember(nil, 0, mcp.MetaProtocolVersion), f.Version)
	if !c.opts.HideInfo {
		dst, _ = wire.Append(appendMember(dst, 0, mcp.MetaClientInfo), &c.opts.Info)
	}
	e.identity = dst
	e.fixed = e.declare(slices.Clone(dst), 0, c.caps)
	return e
}

// declare adds the member that says what the client can be asked, behind those
// that begin at start.
func (e *stateless) declare(dst []byte, start int, can *mcp.ClientCapabilities) []byte {
	caps := *can
	caps.Experimental = e.c.caps.Experimental
	e.c.extensions.declare(&caps, e.facts)
	if caps.Roots != nil {
		caps.Roots = &mcp.RootsCapability{} // changes are not told in this era
	}
	dst, err := wire.Append(appendMember(dst, start, mcp.MetaClientCapabilities), &caps)
	if err != nil {
		// Only a raw setting of the options can be unfit for JSON.
		e.c.log.Error("the client's capabilities cannot be encoded", "err", err)
	}
	return dst
}

// newStateless makes the session with a server that was discovered.
func newStateless(c *Client, f *revision.Facts, d *mcp.DiscoverResult) *session {
	e := newEra(c, f)
	e.logs = d.Capabilities.Logging != nil
	return &session{
		era: e, facts: f, shape: shape.For(f),
		server: d.Meta.ServerInfo, caps: &d.Capabilities, instructions: d.Instructions,
	}
}

// discover probes the server with a revision.
func (o *negotiation) discover(ctx context.Context, f *revision.Facts) (*mcp.DiscoverResult, error) {
	limit := min(o.c.opts.DiscoverProbe, o.c.opts.ConnectTimeout)
	if len(o.legacy) == 0 {
		limit = o.c.opts.ConnectTimeout // there is nothing to fall back to
	}
	ctx, cancel := o.c.limited(ctx, limit)
	defer cancel()
	k := o.c.own(mcp.MethodDiscover, nil)
	result, err := k.through(ctx, func(ctx context.Context) (Result, error) {
		r, err := o.discoverOnce(ctx, k, f)
		if err != nil {
			return nil, err
		}
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	r, ok := result.(*mcp.DiscoverResult)
	if !ok || r == nil {
		return nil, fmt.Errorf("server/discover: middleware returned a %T as result, not a %T", result, r)
	}
	return r, nil
}

// discoverOnce sends the probe.
func (o *negotiation) discoverOnce(ctx context.Context, k *call, f *revision.Facts) (*mcp.DiscoverResult, error) {
	e := newEra(o.c, f)
	k.ctx = ctx
	generation := o.c.opts.Cache.generation()
	m := k.message(&session{era: e}, k.nextID(), nil, nil)
	o.cn.mu.Lock()
	o.cn.probed = m.ID
	o.cn.mu.Unlock()
	var route transport.Route
	if o.cn.link.Traits().Routes {
		route = e.route(k)
	}
	o.c.problems.forget(mcp.MethodDiscover)
	in, err := o.cn.do(ctx, m, route)
	if err != nil {
		return nil, err
	}
	if in.Error != nil {
		return nil, explain(in.Error)
	}
	d := new(mcp.DiscoverResult)
	if _, err := o.c.readResult(ctx, shape.For(f), k.method, "", in.Result.Raw(), d); err != nil {
		return nil, fmt.Errorf("server/discover: %w", err)
	}
	if len(d.SupportedVersions) == 0 {
		return nil, errors.New("server/discover: the result names no version")
	}
	if key, ok := k.cacheKey(f); ok {
		k.keep(key, in.Result, generation)
	}
	return d, nil
}

func (e *stateless) meta(dst []byte, k *call) []byte {
	if k.opts.Capabilities == nil {
		dst = append(dst, e.fixed...)
	} else {
		start := len(dst)
		dst = e.declare(append(dst, e.identity...), start, k.opts.Capabilities)
	}
	if level := *e.c.level.Load(); e.logs && level != "" {
		dst = wire.AppendString(appendMember(dst, 0, mcp.MetaLogLevel), string(level))
	}
	return dst
}

func (e *stateless) route(k *call) transport.Route {
	r := transport.Route{Carried: true, Version: e.facts.Version, Method: k.method, Name: k.target}
	if own := k.ofExtension(); own != nil && !own.NameHeader {
		r.Name = ""
	}
	if k.method == mcp.MethodToolsCall {
		r.Fields = e.c.tools.fields(k.target, k.args, e.c.log)
	}
	return r
}

// abandon tells the server, unless ending the exchange does (spec 2026-07-28,
// basic/patterns/cancellation).
func (e *stateless) abandon(cn *conn, id mcp.ID, cause error) {
	if !cn.link.Traits().Abandons {
		cn.cancel(id, cause)
	}
}

// settle drives questions that the server asks by its answer, and results of
// extensions.
func (e *stateless) settle(ctx context.Context, k *call, in *jsonrpc.Incoming) (*round, error) {
	if in.Error != nil {
		return nil, explain(in.Error)
	}
	return k.settleResult(ctx, in)
}

// request ignores the server's requests: in this era there are none, and the
// client must not answer them (spec 2026-07-28, basic/transports/stdio).
func (e *stateless) request(_ *conn, m *jsonrpc.Incoming) {
	e.c.log.Warn("a request of the server was ignored: its revision has none", "method", m.Method)
}

// cancelled ends a subscription that the server tears down (ruling 24).
func (e *stateless) cancelled(cn *conn, m *mcp.CancelledParams) {
	if l := cn.listening(m.RequestID); l != nil {
		l.end(errWatchEnded)
		return
	}
	e.c.log.Debug("cancellation of an unknown subscription", "id", m.RequestID.String())
}

// expects lets only those notices pass that belong to a subscription of ours
// and were acknowledged.
func (e *stateless) expects(cn *conn, _ *session, method string, meta wire.Object) error {
	_, acked, err := cn.acknowledgedBy(meta)
	if err == nil && !covers(acked, method) {
		return errNotIncluded
	}
	return err
}

var errNotIncluded = errors.New("its subscription does not include it")

// acknowledgedBy returns the subscription that a notification belongs to, and what
// the server acknowledged of it.
func (cn *conn) acknowledgedBy(meta wire.Object) (*listening, *mcp.SubscriptionFilter, error) {
	raw, ok := meta.Member(mcp.MetaSubscriptionID)
	if !ok {
		return nil, nil, errors.New("it names no subscription")
	}
	id, err := wire.ParseID(raw)
	if err != nil {
		return nil, nil, err
	}
	l := cn.listening(id)
	if l == nil {
		return nil, nil, errors.New("it belongs to no subscription")
	}
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if l.acked == nil {
		return nil, nil, errors.New("its subscription is not acknowledged yet")
	}
	return l, l.acked, nil
}

func (e *stateless) subscription(cn *conn, filter string, meta wire.Object) (*Subscription, error) {
	l, acked, err := cn.acknowledgedBy(meta)
	if err != nil {
		return nil, err
	}
	if _, ok := acked.Extra[filter]; !ok {
		return nil, errNotIncluded
	}
	return l.w.sub, nil
}

// hold keeps one subscriptions/listen open.
func (e *stateless) hold(ctx context.Context, cn *conn, w *watch) error {
	s := cn.session()
	if !w.neverAccepted() && w.wantsUndeclared(s) { // the server may have ended the last one since it has more now
		s = e.c.rediscover(ctx, cn, s)
	}
	filter := w.within(e.c, s)
	if empty(filter) {
		// Nothing that this server could tell; what was asked stays wanted
		// for the next connection.
		w.acknowledged(e.c, filter)
		return cn.wait(ctx)
	}
	k := e.c.own(mcp.MethodListen, &mcp.ListenParams{Notifications: *filter})
	_, err := k.through(ctx, func(ctx context.Context) (Result, error) { return nil, e.listen(ctx, cn, k, w) })
	return err
}

// listen sends a subscriptions/listen and returns when it has ended, with why.
func (e *stateless) listen(ctx context.Context, cn *conn, k *call, w *watch) error {
	id := k.nextID()
	lctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cn.mu.Lock()
	cn.listens[id] = &listening{w: w, end: end}
	cn.mu.Unlock()
	defer cn.forget(id)
	k.ctx = lctx
	m := k.message(cn.session(), id, k.params, nil)
	var route transport.Route
	if cn.link.Traits().Routes {
		route = e.route(k)
	}
	in, err := cn.link.Do(lctx, m, route)
	switch {
	case ctx.Err() != nil:
		if err != nil && e.c.ctx.Err() == nil {
			e.abandon(cn, id, context.Cause(ctx))
		}
		return context.Cause(ctx)
	case err != nil:
		return err
	case in.Error != nil:
		return in.Error
	}
	return errWatchEnded
}

func (e *stateless) setLevel(_ context.Context, c *Client, level mcp.LogLevel) error {
	c.level.Store(&level) // goes with each request
	return nil
}
