package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// handshake is the era of sessions: what both sides can do was said once, and
// the server sends requests of its own.
type handshake struct {
	c *Client
	f *revision.Facts
}

// handshake opens a session with a revision, or another of the same era that
// the server prefers and we allow. The cause is why no newer one was found.
func (o *negotiation) handshake(ctx context.Context, f *revision.Facts, cause error) error {
	ctx, cancel := o.c.limited(ctx, o.c.opts.ConnectTimeout)
	defer cancel()
	for range 2 {
		result, err := o.initialize(ctx, f)
		if err == nil {
			return o.initializeOnce(ctx, f, result)
		}
		o.unanswered = errors.Is(err, ErrTimeout)
		var refusal *jsonrpc.Error
		errors.As(err, &refusal)
		offered := offeredVersions(refusal)
		next := o.pickLegacy(offered)
		if next == nil || next == f {
			if offered != nil {
				return &UnsupportedVersionError{Offered: offered, Allowed: o.names(), Cause: err}
			}
			return withCause(fmt.Errorf("initialize: %w", err), cause)
		}
		f = next
	}
	return &UnsupportedVersionError{Allowed: o.names(), Cause: cause}
}

// withCause adds why a handshake was tried at all.
func withCause(err, cause error) error {
	silent := errors.Is(cause, ErrTimeout) // then it tells for how long
	if cause == nil || !silent && strings.Contains(err.Error(), rootError(cause).Error()) {
		return err // over HTTP both may have met the same
	}
	return fmt.Errorf("%w (after server/discover: %w)", err, cause)
}

// rootError is the error that others wrap, as far as they wrap one at a time,
// and the last of several.
func rootError(err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // it walks the chain itself
		case interface{ Unwrap() error }:
			if e.Unwrap() == nil {
				return err
			}
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			list := e.Unwrap()
			if len(list) == 0 {
				return err
			}
			err = list[len(list)-1]
		default:
			return err
		}
	}
}

// initialize sends the request of that name, which is never cancelled.
func (o *negotiation) initialize(ctx context.Context, f *revision.Facts) (wire.RawValue, error) {
	p := &mcp.InitializeParams{ProtocolVersion: f.Version, Capabilities: *o.c.caps, ClientInfo: o.c.opts.Info}
	o.c.extensions.declare(&p.Capabilities, f)
	if o.c.opts.HideInfo {
		p.ClientInfo = mcp.Implementation{Name: "client", Version: "0"}
	}
	params, err := shape.For(f).DownParams(mcp.MethodInitialize, p)
	if err != nil {
		return nil, err
	}
	o.c.problems.forget(mcp.MethodInitialize)
	return o.cn.sendOwn(ctx, o.c.own(mcp.MethodInitialize, p), &handshake{o.c, f}, params, transport.Route{}, nil)
}

// pickLegacy returns the newest allowed revision of this era in a list.
func (o *negotiation) pickLegacy(offered []string) *revision.Facts {
	for _, f := range o.legacy {
		for _, v := range offered {
			if f.Version == v {
				return f
			}
		}
	}
	return nil
}

// initializeOnce reads the server's half and completes the handshake (spec 2025-11-25,
// basic/lifecycle: a client that does not support the version in the response
// SHOULD disconnect).
func (o *negotiation) initializeOnce(ctx context.Context, asked *revision.Facts, result wire.RawValue) error {
	var head struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := wire.Decode(result, &head); err != nil {
		return fmt.Errorf("initialize: result of the server: %w", err)
	}
	f := o.pickLegacy([]string{head.ProtocolVersion})
	if f == nil {
		return &UnsupportedVersionError{Offered: []string{head.ProtocolVersion}, Allowed: o.names()}
	}
	var r mcp.InitializeResult
	sh := shape.For(f)
	if _, err := o.c.readResult(ctx, sh, mcp.MethodInitialize, "", result, &r); err != nil {
		return fmt.Errorf("initialize: result of the server: %w", err)
	}
	if f != asked {
		o.c.log.Debug("the server chose another version", "asked", asked.Version, "chosen", f.Version)
	}
	e := &handshake{c: o.c, f: f}
	s := &session{
		era: e, facts: f, shape: sh,
		server: &r.ServerInfo, caps: &r.Capabilities, instructions: r.Instructions,
	}
	o.cn.sess.Store(s)
	if err := o.cn.link.Establish(ctx, transport.Established{Version: f.Version, Handshake: true}); err != nil {
		return err
	}
	if err := o.cn.link.Post(ctx, &jsonrpc.Outgoing{Method: mcp.NotifyInitialized}, transport.Route{}); err != nil {
		err = fmt.Errorf("%s: %w", mcp.NotifyInitialized, err)
		if ctx.Err() != nil || !o.cn.link.Traits().Routes || errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrDenied) {
			return err
		}
		o.c.Report(ctx, &Problem{Method: mcp.NotifyInitialized, Effect: Changed, Why: err.Error()}) // other servers work without it
	}
	if level := *o.c.level.Load(); level != "" && r.Capabilities.Logging != nil {
		if err := e.sendLevel(ctx, o.cn, level); err != nil {
			o.c.log.Warn("the server did not take the log level", "level", level, "err", err)
		}
	}
	return nil
}

func (e *handshake) meta(dst []byte, _ *call) []byte { return dst }

func (e *handshake) route(*call) transport.Route {
	return transport.Route{Carried: true, Version: e.f.Version}
}

// abandon always tells: ending an exchange means nothing in this era (ruling
// 13).
func (e *handshake) abandon(cn *conn, id mcp.ID, cause error) { cn.cancel(id, cause) }

// settle deals with the error that asks for visits of pages first.
func (e *handshake) settle(ctx context.Context, k *call, in *jsonrpc.Incoming) (*round, error) {
	if in.Error == nil {
		return nil, nil
	}
	if in.Error.Code != mcp.CodeURLElicitationRequired || !e.f.URLRequiredError {
		return nil, in.Error
	}
	return k.visitPages(ctx, in.Error)
}

// request answers the server on a goroutine of its own.
func (e *handshake) request(cn *conn, m *jsonrpc.Incoming) { cn.serve(m) }

// cancelled ends the answering of a request of the server.
func (e *handshake) cancelled(cn *conn, m *mcp.CancelledParams) {
	if !cn.peer.Cancel(m.RequestID, errors.New("withdrawn by the server")) {
		e.c.log.Debug("cancellation of an unknown request", "id", m.RequestID.String())
	}
}

// expects lets those notices pass that the server declared, or that a caller
// subscribed to.
func (e *handshake) expects(cn *conn, s *session, method string, _ wire.Object) error {
	if method == mcp.NotifyResourcesUpdated {
		cn.mu.Lock()
		defer cn.mu.Unlock()
		if len(cn.refs) == 0 {
			return errors.New("nobody subscribed to a resource")
		}
		return nil
	}
	row, _ := mcp.Lookup(method)
	if row == nil || !s.caps.Has(row.Capability) {
		return errors.New("the server did not declare it")
	}
	return nil
}

// subscription is none: an extension has its own way to ask in a session.
func (e *handshake) subscription(*conn, string, wire.Object) (*Subscription, error) { return nil, nil }

// hold subscribes to each resource and stays until the watch or the
// connection ends. Changes of lists come without being asked for.
func (e *handshake) hold(ctx context.Context, cn *conn, w *watch) error {
	filter := w.within(e.c, cn.session())
	held, refusal, err := e.subscribe(ctx, cn, filter.ResourceSubscriptions, func(err error) { w.refused(err, false) })
	if len(held) > 0 {
		defer e.unsubscribe(cn, held)
	}
	if err != nil {
		return err
	}
	if len(held) == 0 && refusal != nil {
		return refusal
	}
	filter.ResourceSubscriptions = held
	w.acknowledged(e.c, filter)
	return cn.wait(ctx)
}

// subscribe subscribes to what this connection is not subscribed to.
// It returns those that the server agreed to, and the last refusal.
func (e *handshake) subscribe(ctx context.Context, cn *conn, uris []string, noted func(error)) (held []string, refusal, err error) {
	if err := cn.subs.acquire(ctx); err != nil {
		return nil, nil, err
	}
	defer cn.subs.release()
	for _, uri := range uris {
		if cn.countWatchers(uri, 1) > 1 {
			held = append(held, uri)
			continue
		}
		err := e.ask(ctx, cn, mcp.MethodResourcesSubscribe, &mcp.SubscribeParams{URI: uri}, noted)
		var peer *jsonrpc.Error
		switch {
		case err == nil:
			held = append(held, uri)
			continue
		case !errors.As(err, &peer):
			cn.countWatchers(uri, -1)
			return held, nil, err
		}
		cn.countWatchers(uri, -1)
		e.c.log.Info("the server refused a subscription", "uri", uri, "err", err)
		refusal = err
	}
	return held, refusal, nil
}

// unsubscribe gives up subscriptions; the last one tells the server, if the
// connection is still of use and the server answers: one that does not answer is
// not told about the rest.
func (e *handshake) unsubscribe(cn *conn, uris []string) {
	ctx, cancel := context.WithTimeout(e.c.ctx, closeTime)
	defer cancel()
	turn, end := context.WithTimeout(ctx, cancelNoticeTimeout)
	if cn.subs.acquire(turn) == nil {
		defer cn.subs.release()
	}
	end()
	for _, uri := range uris {
		if cn.countWatchers(uri, -1) > 0 || ctx.Err() != nil || cn.isClosed() {
			continue
		}
		one, end := context.WithTimeout(ctx, cancelNoticeTimeout)
		if err := e.ask(one, cn, mcp.MethodResourcesUnsubscribe, &mcp.UnsubscribeParams{URI: uri}, nil); err != nil {
			e.c.log.Debug("a subscription could not be given up", "uri", uri, "err", err)
		}
		if one.Err() != nil {
			cancel()
		}
		end()
	}
}

// ask sends a small request of the client's own; see sendWithRetry.
func (e *handshake) ask(ctx context.Context, cn *conn, method string, params any, noted func(error)) error {
	ctx, cancel := e.c.limited(ctx, e.c.opts.CallTimeout)
	defer cancel()
	down, err := shape.For(e.f).DownParams(method, params)
	if err != nil {
		return err
	}
	var route transport.Route
	if cn.link.Traits().Routes {
		route = e.route(nil)
	}
	err = e.c.guarded("middleware", func() error { // what it was asked for is undone by the caller
		_, err := cn.sendOwn(ctx, e.c.own(method, params), e, down, route, noted)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (e *handshake) sendLevel(ctx context.Context, cn *conn, level mcp.LogLevel) error {
	return e.ask(ctx, cn, mcp.MethodSetLevel, &mcp.SetLevelParams{Level: level}, nil)
}

func (e *handshake) setLevel(ctx context.Context, c *Client, level mcp.LogLevel) error {
	k, err := c.newCall(mcp.MethodSetLevel, "", &mcp.SetLevelParams{Level: level}, nil)
	if err != nil {
		return err
	}
	if err := k.do(ctx, nil); err != nil {
		return err
	}
	c.level.Store(&level)
	return nil
}
