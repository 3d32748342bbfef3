package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// A negotiation finds a revision that suits both sides, on one connection.
type negotiation struct {
	c              *Client
	cn             *conn
	begin          negotiationStart
	modern, legacy []*revision.Facts // allowed by Options.Versions, newest first
	probedAgain    bool              // a silent server was probed again
	unsure         bool              // the handshake was tried after a failure that may pass
	unanswered     bool              // the handshake was not answered
}

// A negotiationStart is how the negotiation on one connection begins. A connection
// that ends at the probe is followed by one with the next beginning.
type negotiationStart uint8

const (
	beginProbe negotiationStart = iota
	beginProbeAgain
	// beginHandshake: some old servers end when they meet a request before
	// initialize.
	beginHandshake
)

// dial makes a connection, negotiates on it, and makes it the one that calls use. A server that
// loses the session before that is asked for another one, once.
func (c *Client) dial(ctx context.Context) error {
	begin, lost := beginProbe, false
	for {
		cn, err := c.connect(ctx, begin)
		if err == nil {
			if err = c.adopt(cn); err == nil {
				return nil
			}
			_ = cn.teardown(err)
		}
		_, killed := errors.AsType[*probeKilledError](err)
		_, early := errors.AsType[*lostEarlyError](err)
		switch {
		case killed && begin != beginHandshake:
			begin++
			if sleep(ctx, firstRetryDelay) != nil {
				return err
			}
		case early && !lost && ctx.Err() == nil:
			lost = true
		default:
			return err
		}
	}
}

// A probeKilledError says that the connection ended during the probe, and that
// another one may do better.
type probeKilledError struct{ err error }

func (e *probeKilledError) Error() string { return e.err.Error() }
func (e *probeKilledError) Unwrap() error { return e.err }

// A lostEarlyError says that the server had lost the session before any call used it.
type lostEarlyError struct{ err error }

func (e *lostEarlyError) Error() string { return e.err.Error() }
func (e *lostEarlyError) Unwrap() error { return e.err }

// lostEarly marks an error that says that the connection ended after the handshake, behind an
// address where another session can be had.
func (cn *conn) lostEarly(err error) error {
	if cn.session() == nil || !cn.link.Traits().Routes || !errors.Is(err, transport.ErrClosed) {
		return err
	}
	return &lostEarlyError{err}
}

// connect dials and negotiates, once.
func (c *Client) connect(ctx context.Context, begin negotiationStart) (*conn, error) {
	cn := &conn{
		c: c, ready: make(chan struct{}), done: make(chan struct{}),
		peer:    jsonrpc.NewPeer(&jsonrpc.PeerOptions{MaxInFlight: c.opts.MaxInFlight, Logger: c.log}),
		listens: make(map[mcp.ID]*listening),
		refs:    make(map[string]int),

		negotiating: make(lock, 1),
		subs:        make(lock, 1),
	}
	err := c.guarded("dialer", func() (err error) {
		cn.link, err = c.dialer.Dial(ctx, cn)
		return err
	})
	close(cn.ready)
	if err != nil {
		cn.link = nil
		_ = cn.teardown(err)
		return nil, err
	}
	o := &negotiation{c: c, cn: cn, begin: begin}
	o.allowed()
	if err := c.guarded("middleware", func() error { return o.open(ctx) }); err != nil {
		died := cn.isClosed()
		polite := closeTime
		if cn.session() == nil && (ctx.Err() != nil || errors.Is(err, ErrTimeout)) {
			polite = 0 // it never spoke, and no caller waits any more
		}
		_ = cn.shutDown(err, polite)
		return nil, cn.lostEarly(cn.ended(err, died))
	}
	o.remember()
	cn.lateAnswer(mcp.ID{})
	return cn, nil
}

// remember keeps what was negotiated for the next connection. Of the handshake
// era it keeps only what a probe has shown (ruling 31).
func (o *negotiation) remember() {
	f := o.cn.session().facts
	if f.Handshake && (o.unsure || len(o.modern) == 0) {
		return
	}
	o.c.opts.Eras.Remember(o.c.dialer.Key(), f.Version)
}

// ended makes of the error of a negotiation that the end of the connection
// cut short the reason for that end. Nothing was asked for yet, so that there
// is no request that may have run. The connection is torn down; died says
// that it had ended by itself before. A pipe may tell only afterwards why it
// ended, and then not with an ErrClosed, which is what our closing is.
func (cn *conn) ended(err error, died bool) error {
	if !isCut(err) || !cn.isClosed() || !died && errors.Is(cn.cause, transport.ErrClosed) {
		return err
	}
	var dead *probeKilledError
	if errors.As(err, &dead) {
		return &probeKilledError{cn.cause}
	}
	return cn.cause
}

// allowed sorts the versions that may be used by era.
func (o *negotiation) allowed() {
	for _, f := range revision.All() {
		if len(o.c.opts.Versions) > 0 && !slices.Contains(o.c.opts.Versions, f.Version) {
			continue
		}
		if f.Handshake {
			o.legacy = append(o.legacy, f)
		} else {
			o.modern = append(o.modern, f)
		}
	}
}

// names lists the allowed versions.
func (o *negotiation) names() []string {
	var names []string
	for _, f := range slices.Concat(o.modern, o.legacy) {
		names = append(names, f.Version)
	}
	return names
}

// pick returns the newest allowed revision that a server offers, modern ones
// first (ruling 4).
func (o *negotiation) pick(offered []string) *revision.Facts {
	for _, f := range slices.Concat(o.modern, o.legacy) {
		if slices.Contains(offered, f.Version) {
			return f
		}
	}
	return nil
}

// open negotiates, and sets the connection's session (rulings 1 to 5; spec
// 2026-07-28, basic/versioning and basic/transports/stdio: a client that
// speaks both eras SHOULD probe with server/discover).
func (o *negotiation) open(ctx context.Context) error {
	if len(o.modern) == 0 {
		return o.handshake(ctx, o.legacy[0], nil)
	}
	if o.begin == beginHandshake {
		o.unsure = true
		return o.handshake(ctx, o.legacy[0], nil)
	}
	if known, ok := o.c.opts.Eras.Recall(o.c.dialer.Key()); ok && len(o.legacy) > 0 {
		if f, ok := revision.Lookup(known); ok && f.Handshake {
			err := o.handshake(ctx, o.legacy[0], nil)
			if err == nil || ctx.Err() != nil || errors.Is(err, transport.ErrDenied) {
				return err
			}
			if !passes(err) {
				// The memory does not fit any more: find out anew.
				o.c.opts.Eras.Remember(o.c.dialer.Key(), "")
			}
			switch {
			case o.cn.isClosed():
				return o.killed(err)
			case o.unanswered:
				return err // what is silent to one is silent to the other
			}
		}
	}
	return o.probe(ctx, o.modern[0])
}

// killed is the error of a negotiation whose connection has ended: a
// probeKilledError if another connection is to be made.
func (o *negotiation) killed(err error) error {
	if o.begin == beginProbeAgain && len(o.legacy) == 0 {
		return err
	}
	return &probeKilledError{err}
}

// probe asks for the server's versions: again with the version that the server
// wants, and again after a failure that may pass.
func (o *negotiation) probe(ctx context.Context, f *revision.Facts) error {
	for tries, refusals := 1, 0; ; tries++ {
		d, err := o.discover(ctx, f)
		if err == nil {
			return o.settleOn(ctx, d)
		}
		var peer *jsonrpc.Error
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, transport.ErrDenied), isUnreached(err) && !o.cn.isClosed():
			return fmt.Errorf("server/discover: %w", err) // a handshake would fail in the same way
		case o.cn.isClosed():
			return o.killed(fmt.Errorf("server/discover: %w", err))
		case passes(err):
			if err = o.pauseProbe(ctx, tries, err); err != nil {
				return o.fallBack(ctx, err)
			}
			continue
		case !errors.As(err, &peer):
			return o.fallBack(ctx, err)
		}
		switch peer.Code {
		case mcp.CodeUnsupportedVersion:
			offered := offeredVersions(peer)
			if offered == nil {
				return o.fallBack(ctx, err)
			}
			next := o.pick(offered)
			// A server that offers what it has just refused may have changed its
			// mind, or another one behind the same address answers: ask again, once.
			if refusals++; next == nil || next == f && refusals > 1 || refusals > len(o.modern)+1 {
				return &UnsupportedVersionError{Offered: offered, Allowed: o.names(), Cause: err}
			}
			if next.Handshake {
				return o.handshake(ctx, next, err)
			}
			f = next
		case mcp.CodeHeaderMismatch, mcp.CodeMissingClientCapability:
			return fmt.Errorf("server/discover: %w", err)
		default:
			return o.fallBack(ctx, err)
		}
	}
}

// pauseProbe waits before the probe is repeated after a failure that may pass:
// once, or as often as other requests if there is no handshake to fall back to.
// The error says that it is not to be repeated (ruling 31).
func (o *negotiation) pauseProbe(ctx context.Context, tries int, failure error) error {
	repeats, after := 1, retryDelay(failure)
	if len(o.legacy) == 0 {
		repeats = max(repeats, o.c.opts.Retries)
	}
	if tries > repeats || after > left(ctx) || sleep(ctx, max(after, firstRetryDelay)) != nil {
		return &RetryError{Tries: tries, RetryAfter: after, Err: failure}
	}
	return nil
}

// isUnreached says that nothing was sent: the server could not be reached.
func isUnreached(err error) bool {
	return errors.Is(err, transport.ErrClosed) && !errors.Is(err, transport.ErrInterrupted)
}

// settleOn chooses from what a discovered server supports.
func (o *negotiation) settleOn(ctx context.Context, d *mcp.DiscoverResult) error {
	chosen := o.pick(d.SupportedVersions)
	switch {
	case chosen == nil:
		return &UnsupportedVersionError{Offered: d.SupportedVersions, Allowed: o.names()}
	case chosen.Handshake:
		return o.handshake(ctx, chosen, nil)
	}
	sess := newStateless(o.c, chosen, d)
	o.cn.sess.Store(sess)
	return o.cn.link.Establish(ctx, transport.Established{Version: chosen.Version})
}

// fallBack shakes hands with a server that did not understand the probe (spec
// 2026-07-28, basic/transports/stdio: the fallback MUST NOT be keyed to one
// specific error code).
func (o *negotiation) fallBack(ctx context.Context, cause error) error {
	silent := errors.Is(cause, ErrTimeout)
	if passes(cause) || silent && o.cn.link.Traits().Routes {
		o.unsure = true
	}
	if len(o.legacy) == 0 {
		cause = fmt.Errorf("server/discover: %w", cause)
		if o.unsure || silent {
			return cause // nothing is known of its versions
		}
		return &UnsupportedVersionError{Allowed: o.names(), Cause: cause}
	}
	err := o.handshake(ctx, o.legacy[0], cause)
	switch {
	case !silent || o.unanswered || o.probedAgain || ctx.Err() != nil || o.cn.isClosed():
	case err == nil:
		return o.reconsider(ctx)
	default:
		// It may only have been slow to start: now that it speaks, it may
		// know the probe. What is silent to both is not asked again.
		o.probedAgain = true
		if o.probe(ctx, o.modern[0]) == nil {
			return nil
		}
	}
	return err
}

// maxPing bounds the wait for the answer to a ping.
const maxPing = time.Second

// reconsider leaves the session that was just opened if the server knows the probe after
// all: then it was only slow to start, and what it offers in its newest revision must not be
// missed. It is asked again on this connection, since it may serve both eras there (spec
// 2026-07-28, basic/versioning, Compatibility Matrix); if it refuses, the session stays.
func (o *negotiation) reconsider(ctx context.Context) error {
	if !o.cn.link.Traits().Routes && !o.answersLate(ctx) {
		return nil
	}
	d, err := o.discover(ctx, o.modern[0])
	switch {
	case errors.Is(err, ErrTimeout):
		o.c.log.Warn("the server did not say in time whether it speaks a newer revision; "+
			"if it does, set Options.DiscoverProbe higher", "version", o.cn.session().facts.Version, "err", err)
		return nil
	case err != nil:
		o.c.log.Debug("a slow server does not know the probe", "err", err)
		return nil
	}
	if f := o.pick(d.SupportedVersions); f == nil || f.Handshake {
		return nil
	}
	return o.settleOn(ctx, d)
}

// answersLate reports whether a server on a pipe has answered the probe by now. Its answers
// to the probe and the handshake may come in any order; that to a ping comes after both.
func (o *negotiation) answersLate(ctx context.Context) bool {
	ctx, cancel := o.c.limited(ctx, min(maxPing, o.c.opts.DiscoverProbe))
	defer cancel()
	if _, err := o.cn.sendOwn(ctx, o.c.own(mcp.MethodPing, nil), o.cn.session().era, nil, transport.Route{}, nil); err != nil {
		o.c.log.Debug("a slow server did not answer a ping", "err", err)
	}
	return o.cn.answeredLate()
}

// renegotiate finds another version on a living connection, after the server
// refused the one in use.
func (c *Client) renegotiate(ctx context.Context, cn *conn, stale *session, refusal *jsonrpc.Error) error {
	if err := cn.negotiating.acquire(ctx); err != nil {
		return err
	}
	defer cn.negotiating.release()
	if cn.session() != stale {
		return nil // another goroutine did
	}
	o := &negotiation{c: c, cn: cn}
	o.allowed()
	offered := offeredVersions(refusal)
	f := o.pick(offered)
	if f == nil || f == stale.facts {
		return &UnsupportedVersionError{Offered: offered, Allowed: o.names(), Cause: refusal}
	}
	var err error
	if f.Handshake {
		err = o.handshake(ctx, f, refusal)
	} else {
		err = o.probe(ctx, f)
	}
	if err != nil {
		return err
	}
	o.renewed()
	return nil
}

// renewed makes known what a living connection negotiated anew.
func (o *negotiation) renewed() {
	o.c.mu.Lock()
	o.c.last = o.cn.session()
	o.c.mu.Unlock()
	o.remember()
}

// rediscover asks a server of a stateless revision again for what it offers, since that can
// change at any time, and what is remembered must not keep a call from it. It returns the
// session as it is then, stale itself if nothing has changed or is known.
func (c *Client) rediscover(ctx context.Context, cn *conn, stale *session) *session {
	if stale.facts.Handshake || cn.negotiating.acquire(ctx) != nil {
		return stale
	}
	defer cn.negotiating.release()
	if s := cn.session(); s != stale {
		return s // another goroutine did
	}
	o := &negotiation{c: c, cn: cn}
	o.allowed()
	d, err := o.discover(ctx, stale.facts)
	if err != nil {
		c.log.Debug("what the server offers could not be asked again", "err", err)
		return stale
	}
	if o.pick(d.SupportedVersions) != stale.facts || reflect.DeepEqual(&d.Capabilities, stale.caps) {
		return stale
	}
	s := newStateless(c, stale.facts, d)
	cn.sess.Store(s)
	o.renewed()
	return s
}

// offers returns an error if the server does not declare a capability.
func (c *Client) offers(ctx context.Context, capability string) error {
	s := c.session()
	if s.caps.Has(capability) {
		return nil
	}
	cn, err := c.live(ctx)
	if err != nil {
		return err
	}
	if s = c.rediscover(ctx, cn, cn.session()); !s.caps.Has(capability) {
		return &undeclaredByServer{capability}
	}
	return nil
}

// recheck asks a server for its versions again that refuses requests of a
// stateless revision as one of the handshake era would, and shakes hands if it
// has become one: behind a URL another server can take the place of the first
// with no connection that ends (ruling 4; spec 2026-07-28, basic/versioning:
// re-probing if the cached assumption later fails). It reports whether the
// connection has another session now.
func (c *Client) recheck(ctx context.Context, cn *conn, stale *session, refusal error) bool {
	if stale.facts.Handshake || !cn.link.Traits().Routes || !isHandshakeRefusal(refusal) {
		return false
	}
	if cn.negotiating.acquire(ctx) != nil {
		return false
	}
	defer cn.negotiating.release()
	if cn.session() != stale {
		return true // another goroutine found out
	}
	o := &negotiation{c: c, cn: cn}
	o.allowed()
	if len(o.legacy) == 0 {
		return false
	}
	_, err := o.discover(ctx, stale.facts)
	var peer *jsonrpc.Error
	if err == nil || !isHandshakeRefusal(err) && (!errors.As(err, &peer) || peer.Code != mcp.CodeMethodNotFound) {
		return false // it is what it was, or unknown
	}
	if err := o.handshake(ctx, o.legacy[0], err); err != nil {
		c.log.Info("the server refuses its revision, and older ones too", "refusal", refusal, "err", err)
		return false
	}
	o.renewed()
	return true
}

// codeServerError is what servers of the handshake era use for refusals that
// have no code of the protocol (JSON-RPC 2.0, section 5.1: -32000 to -32099 are
// theirs to define); the next one is what they say of sessions.
const (
	codeServerError  = -32000
	codeSessionError = -32001
)

// isHandshakeRefusal reports whether a request of a stateless revision was refused as
// servers of the handshake era do (spec 2026-07-28, basic/transports/
// streamable-http, Backward Compatibility).
func isHandshakeRefusal(err error) bool {
	var peer *jsonrpc.Error
	switch {
	case errors.Is(err, transport.ErrDenied):
		return false
	case !errors.As(err, &peer):
		return errors.Is(err, transport.ErrNotUnderstood)
	}
	return peer.Code == mcp.CodeInvalidRequest || peer.Code == codeServerError || peer.Code == codeSessionError
}

// isUnhandled reports whether a refusal says that nothing was carried out.
func isUnhandled(refusal error) bool {
	var peer *jsonrpc.Error
	if errors.As(refusal, &peer) {
		return peer.Code == mcp.CodeInvalidRequest
	}
	return errors.Is(refusal, transport.ErrNotUnderstood)
}

// offeredVersions reads the versions out of an error's data; nil if there are
// none.
func offeredVersions(e *jsonrpc.Error) []string {
	var data mcp.UnsupportedVersionData
	if e == nil || len(e.Data) == 0 || wire.Decode(e.Data, &data) != nil || len(data.Supported) == 0 {
		return nil
	}
	return data.Supported
}
