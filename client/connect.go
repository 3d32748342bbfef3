package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/revision/shape"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Bounds of reconnecting: the pause after a failure doubles from the first to
// the second, and a connection that lives shorter than the third counts as
// one.
const (
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 30 * time.Second
	earlyEnd        = 5 * time.Second
)

// A conn is one connection, from dialling to its end.
type conn struct {
	c     *Client
	peer  *jsonrpc.Peer // the server's requests
	ready chan struct{} // closed when link is set, or will never be
	link  transport.Link
	sess  atomic.Pointer[session]
	born  time.Time

	life         sessionReports // what observers were told
	done         chan struct{}  // closed when the link has ended
	died         sync.Once
	cause        error // why, once done is closed
	shutDownOnce sync.Once

	negotiating lock
	probed      mcp.ID // the last probe; mu is held
	lateProbe   bool   // it was answered after we gave up; mu is held

	asked atomic.Int64 // bytes of the server's open questions

	mu      sync.Mutex
	listens map[mcp.ID]*listening // of the stateless era
	refs    map[string]int        // watched resources of the handshake era
	subs    lock                  // held while refs and the server are brought together
}

// A lock is a mutex that is held while the server is waited for: taking it ends
// with a context.
type lock chan struct{}

// acquire returns once the caller has the lock, or with the reason why ctx ended.
func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l lock) release() { <-l }

// A session is what was negotiated. It is never written to, but for what is
// remembered of results.
type session struct {
	era          era
	facts        *revision.Facts
	shape        *shape.Shape
	server       *mcp.Implementation
	caps         *mcp.ServerCapabilities
	instructions string

	serverMeta    atomic.Pointer[serverMeta]
	refusesTokens atomic.Bool // the server refuses params with a progress token
}

// presumes reports whether the server has to be asked if it offers tools, prompts or resources, since it
// declares nothing at all: servers exist that leave out what they have.
func (s *session) presumes(capability string) bool {
	switch capability {
	case mcp.CapTools, mcp.CapPrompts, mcp.CapResources:
		return s.caps.None()
	}
	return false
}

// An era is the behaviour that differs between revisions with a handshake and
// stateless ones. Nothing else branches on it.
type era interface {
	// meta appends the members that each request carries in _meta.
	meta(dst []byte, k *call) []byte
	// route says what the transport repeats outside the body.
	route(k *call) transport.Route
	// abandon cancels a request at the server.
	abandon(cn *conn, id mcp.ID, cause error)
	// settle checks an answer: it may be final (nil), or ask for
	// something first, after which the request is repeated with the round.
	settle(ctx context.Context, k *call, in *jsonrpc.Incoming) (*round, error)
	// request takes a request of the server.
	request(cn *conn, m *jsonrpc.Incoming)
	// cancelled takes the server's notifications/cancelled.
	cancelled(cn *conn, m *mcp.CancelledParams)
	// expects says whether a change notice was asked for. It may be nil.
	expects(cn *conn, s *session, method string, meta wire.Object) error
	// subscription returns the subscription that a notification of an extension
	// belongs to, of which a member of the filter must be acknowledged; nil where
	// notifications belong to the session. It may not have been asked for.
	subscription(cn *conn, filter string, meta wire.Object) (*Subscription, error)
	// hold watches until ctx ends, the link dies, or the server stops; it
	// tells w what the server agreed to.
	hold(ctx context.Context, cn *conn, w *watch) error
	// setLevel makes the server send logs from level on.
	setLevel(ctx context.Context, c *Client, level mcp.LogLevel) error
}

// session returns what was negotiated on this connection; nil while nothing is.
func (cn *conn) session() *session { return cn.sess.Load() }

// Closed is called by the link when it has ended.
func (cn *conn) Closed(err error) {
	if err == nil {
		err = transport.ErrClosed
	}
	cn.died.Do(func() {
		cn.cause = err
		cn.finished(err)
		cn.c.lost(cn)
	})
}

// unreached notes that a message could not be sent. A transport with a place for
// routes makes connections as it needs them: that one could not be made says
// nothing about requests that are under way on others, and it tells by itself
// when a session is over. Every other transport is at its end.
func (cn *conn) unreached(err error) {
	if !cn.link.Traits().Routes {
		cn.Closed(err)
	}
}

// backOff waits before a message that could not be sent is sent again, unless
// there will be another connection. It reports whether ctx lasts.
func (cn *conn) backOff(ctx context.Context) bool {
	t := time.NewTimer(firstRetryDelay + rand.N(firstRetryDelay/4))
	defer t.Stop()
	select {
	case <-cn.done:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// teardown ends the connection, politely for closeTime, and waits until it is
// quiet.
func (cn *conn) teardown(cause error) error { return cn.shutDown(cause, closeTime) }

// shutDown ends the connection, politely for some time, and waits until it is quiet.
func (cn *conn) shutDown(cause error, polite time.Duration) (err error) {
	<-cn.ready
	cn.shutDownOnce.Do(func() {
		cn.peer.Close(cause)
		if cn.link != nil {
			ctx, cancel := context.WithTimeout(context.Background(), polite)
			defer cancel()
			err = cn.link.Close(ctx)
		}
	})
	return err
}

// lateAnswer takes the id of an answer that no request waits for any more. A server that
// answers the probe late knows it: it was slow, not old, and must not be
// remembered as old.
func (cn *conn) lateAnswer(id mcp.ID) {
	cn.mu.Lock()
	if !id.IsZero() && id == cn.probed {
		cn.lateProbe = true
	}
	cn.mu.Unlock()
	if s := cn.session(); cn.answeredLate() && (s == nil || s.facts.Handshake) {
		cn.c.opts.Eras.Remember(cn.c.dialer.Key(), "")
	}
}

// answeredLate reports whether the probe was answered after we gave up.
func (cn *conn) answeredLate() bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	return cn.lateProbe
}

// sendOwn sends a request that the client makes by itself, with params in the
// words of its revision, and waits for its result; again if it is refused, of
// which noted, if not nil, is told. An error of the server is the error.
func (cn *conn) sendOwn(ctx context.Context, k *call, era era, params any, route transport.Route, noted func(error)) (wire.RawValue, error) {
	result, err := k.through(ctx, func(ctx context.Context) (Result, error) {
		k.ctx = ctx
		in, err := cn.c.sendWithRetry(ctx, k.method, noted, func() (*jsonrpc.Incoming, error) {
			return cn.do(ctx, k.message(&session{era: era}, k.nextID(), params, nil), route)
		})
		if err = failure(in, err); err != nil {
			return nil, err
		}
		return in.Result.Raw(), nil
	})
	if err != nil {
		return nil, err
	}
	raw, ok := result.(wire.RawValue)
	if !ok {
		return nil, k.wrap(fmt.Errorf("middleware returned a %T as result, not a %T", result, raw))
	}
	return raw, nil
}

// do sends a request that the client makes by itself. A pipe fails its requests
// just before it says that it has ended: do returns after that, so that who
// decides what to try next sees that the connection is over.
func (cn *conn) do(ctx context.Context, m *jsonrpc.Outgoing, route transport.Route) (*jsonrpc.Incoming, error) {
	in, err := cn.link.Do(ctx, m, route)
	cn.c.reportFlaws(ctx, m.Method, "", in)
	if isCut(err) && !cn.link.Traits().Routes {
		_ = cn.wait(ctx)
	}
	return in, err
}

// isCut reports whether a request failed because its connection ended, or is about to.
func isCut(err error) bool {
	return errors.Is(err, transport.ErrInterrupted) || errors.Is(err, transport.ErrClosed)
}

// lost is called once when a connection has ended. Who sees that it is done does not get
// it from live any more.
func (c *Client) lost(cn *conn) {
	c.mu.Lock()
	close(cn.done)
	final, again := false, c.cur == cn
	if again {
		c.cur = nil
		if time.Since(cn.born) >= earlyEnd {
			c.failures = 0
		}
		c.failed()
		if final = c.opts.OnDisconnect != nil && !c.routed; final {
			c.gone = fmt.Errorf("%w: %w", ErrDisconnected, cn.cause)
		}
	}
	c.mu.Unlock()
	switch {
	case final:
		_ = c.guard("OnDisconnect", func() { c.opts.OnDisconnect(cn.cause) })
	case again:
		c.log.Warn("the connection to the server has ended; the next request makes another", "err", cn.cause)
	}
	c.spawn(func() { _ = cn.teardown(cn.cause) })
}

// failed makes the next attempt wait. c.mu is held.
func (c *Client) failed() {
	pause := min(firstRetryDelay<<min(c.failures, 20), maxRetryDelay)
	c.failures++
	c.retryAt = time.Now().Add(pause + rand.N(pause/4))
}

// adopt makes cn the connection that calls use.
func (c *Client) adopt(cn *conn) error {
	if err := c.install(cn); err != nil {
		return err
	}
	cn.begun()
	return nil
}

func (c *Client) install(cn *conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-cn.done:
		c.failed()
		return cn.lostEarly(fmt.Errorf("the connection ended at once: %w", cn.cause))
	default:
	}
	if c.closed {
		return ErrClosed
	}
	cn.born = time.Now()
	c.cur, c.last, c.routed = cn, cn.session(), cn.link.Traits().Routes
	return nil
}

// A reconnect is an attempt to reconnect that any number of calls wait for.
type reconnect struct {
	done chan struct{}
	err  error
}

// live returns the connection, and makes one if there is none.
func (c *Client) live(ctx context.Context) (*conn, error) {
	for {
		cn, d, err := c.current()
		if d == nil {
			return cn, err
		}
		select {
		case <-d.done:
			if d.err != nil {
				return nil, fmt.Errorf("reconnect: %w", d.err)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// current returns the connection, or the attempt to make one.
func (c *Client) current() (*conn, *reconnect, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, ErrClosed
	case c.cur != nil:
		return c.cur, nil, nil
	case c.gone != nil:
		return nil, nil, c.gone
	case c.dialling == nil:
		d := &reconnect{done: make(chan struct{})}
		c.dialling = d
		pause := time.Until(c.retryAt)
		c.wg.Go(func() { c.redial(d, pause) })
	}
	return nil, c.dialling, nil
}

// redial makes one attempt, after a pause.
func (c *Client) redial(d *reconnect, pause time.Duration) {
	err := sleep(c.ctx, pause)
	if err == nil {
		ctx, cancel := c.limited(c.pausing(c.ctx), c.opts.ConnectTimeout)
		err = c.dial(ctx)
		cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed()
	}
	d.err = err
	c.dialling = nil
	close(d.done)
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
