package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// closeTime is how long Close tries to tell the server that a session ends.
const closeTime = 2 * time.Second

// errClosedHere is why a link ended that was closed from our side.
var errClosedHere = fmt.Errorf("%w on this side", transport.ErrClosed)

// unsettledFacts is what is known of a session before its revision is.
var unsettledFacts = &revision.Facts{Handshake: true, Sessions: true}

// A link is a client's relation to one endpoint. Each message is a POST; what
// keeps them together is, at most, a session.
type link struct {
	client     *http.Client
	own        *http.Transport // that of client, if it is this link's alone
	address    *url.URL
	where      string        // the address without query, as logs may show it
	blank      *http.Request // what requests begin as
	header     func(context.Context) (http.Header, error)
	in         transport.Inbox
	limits     jsonrpc.Limits
	retry      time.Duration
	maxRetry   time.Duration
	maxResumes int
	noStream   bool
	tap        transport.Tap // or nil
	log        *slog.Logger

	life context.Context //nolint:containedctx // it is what ends with the link
	end  context.CancelCauseFunc
	told milestone // the inbox, of the end
	shut milestone // by Close

	session atomic.Pointer[clientSession] // nil in a stateless revision, and before negotiation
	offered atomic.Pointer[string]        // the session id that came with the last answer to initialize

	mu   sync.Mutex
	err  error          // why the link is over
	work sync.WaitGroup // what Close waits for; see enter
}

var _ transport.Link = (*link)(nil)

// A clientSession is what a handshake agreed on.
type clientSession struct {
	facts *revision.Facts
	id    string             // empty if the server keeps no session
	stop  context.CancelFunc // ends the stream that belongs to the session

	mu      sync.Mutex
	pending int           // messages that have no status yet
	drained chan struct{} // closed when there are none; nil if nobody waits for that

	listening chan struct{} // closed when the stream has been answered for the first time, or there is none
	awaited   atomic.Bool   // somebody has waited for that
}

// tracked says whether the server knows the session by an id, and so may
// forget it.
func (s *clientSession) tracked() bool { return s != nil && s.id != "" }

// Do sends a request and waits for its response; see transport.Link. In a
// stateless revision the end of ctx tells the server by itself; with a session
// it only ends the waiting (spec 2025-11-25, basic/transports: disconnection
// SHOULD NOT be interpreted as the client cancelling its request).
func (l *link) Do(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) (*jsonrpc.Incoming, error) {
	if m.ID.IsZero() {
		return nil, errors.New("a request needs an id")
	}
	x, err := l.call(ctx, m, r)
	if err != nil {
		return nil, err
	}
	defer l.work.Done()
	in, err := x.run(m, r)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return in, err
}

// Post sends a notification or a response.
func (l *link) Post(ctx context.Context, m *jsonrpc.Outgoing, r transport.Route) error {
	x, err := l.call(ctx, m, r)
	if err != nil {
		return err
	}
	defer l.work.Done()
	err = x.post(m, r)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && m.Method != "" && x.s.tracked() && !x.s.awaited.Swap(true) {
		l.awaitStream(ctx, x.s)
	}
	return err
}

// listenTime is how long the first notification of a session, which completes
// the handshake, waits for the stream to be open.
const listenTime = 250 * time.Millisecond

// awaitStream waits, for a little, until the server has answered whether it
// gives the stream for what it sends by itself: some servers drop what they
// have to say while nobody listens, and might have to say it in the middle of
// the next request.
func (l *link) awaitStream(ctx context.Context, s *clientSession) {
	late := time.NewTimer(listenTime)
	defer late.Stop()
	select {
	case <-s.listening:
	case <-late.C:
	case <-ctx.Done():
	case <-l.life.Done():
	}
}

// Establish tells the link what was negotiated. With a session it begins to
// read the stream for what the server sends outside of answers, and does not
// wait for it. Requests for the stream have the values of ctx.
func (l *link) Establish(ctx context.Context, e transport.Established) error {
	facts, ok := revision.Lookup(e.Version)
	if !ok {
		return fmt.Errorf("revision %q is not known to this client", e.Version)
	}
	if err := l.enter(); err != nil {
		return err
	}
	defer l.work.Done()
	var next *clientSession
	listening, stop := context.WithCancel(&scope{l.life, context.WithoutCancel(ctx)})
	if e.Handshake {
		next = &clientSession{facts: facts, id: l.takeOffer(), stop: stop, listening: make(chan struct{})}
	} else {
		stop()
	}
	if former := l.session.Swap(next); former != nil {
		former.stop()
		l.leave(ctx, former)
	}
	switch {
	case next == nil:
	case l.noStream || !facts.Sessions:
		close(next.listening)
	default:
		l.work.Go(func() { l.listen(listening, next) })
	}
	return nil
}

// Traits says that a Route is carried, and that the end of a context is a
// cancellation unless there is a session.
func (l *link) Traits() transport.Traits {
	if s := l.session.Load(); s != nil {
		return transport.Traits{Routes: true, Session: s.id}
	}
	return transport.Traits{Routes: true, Abandons: true}
}

// Close ends the session, if there is one, and all requests under way. It
// returns when nothing of the link is left, and so waits for an Inbox that is
// receiving. The error is always nil: a server that cannot be told forgets a
// session in its own time.
func (l *link) Close(ctx context.Context) error {
	l.shut.pass(func() {
		alive := l.finish(errClosedHere)
		if alive {
			l.leave(ctx, l.session.Load())
			l.leave(ctx, &clientSession{facts: unsettledFacts, id: l.takeOffer()})
		}
		l.work.Wait()
		if l.own != nil {
			l.own.CloseIdleConnections()
		}
		l.fail(errClosedHere)
	})
	return nil
}

// A milestone is passed once; who comes later waits until it has been. Unlike
// a sync.Once it waits as synctest likes it.
type milestone struct {
	begun atomic.Bool
	done  chan struct{}
}

func (m *milestone) pass(f func()) {
	if !m.begun.CompareAndSwap(false, true) {
		<-m.done
		return
	}
	defer close(m.done)
	f()
}

// enter counts a piece of work that Close waits for, unless the link is over.
func (l *link) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.work.Add(1)
	return nil
}

// finish notes that the link is over, and ends what is under way. It reports
// whether the link was alive.
func (l *link) finish(cause error) bool {
	l.mu.Lock()
	alive := l.err == nil
	if alive {
		l.err = cause
	}
	cause = l.err
	l.mu.Unlock()
	l.end(cause)
	return alive
}

// fail ends the link and tells the inbox.
func (l *link) fail(cause error) {
	l.finish(cause)
	l.told.pass(func() {
		l.showClosed()
		l.in.Closed(context.Cause(l.life))
	})
}

// takeOffer returns the session id that was offered, once.
func (l *link) takeOffer() string {
	if id := l.offered.Swap(nil); id != nil {
		return *id
	}
	return ""
}

// belongs returns the session that a message is part of: none for a handshake,
// which begins one, and none for what names a stateless revision.
func (l *link) belongs(m *jsonrpc.Outgoing, r transport.Route) *clientSession {
	if m.Method == revision.Initialize {
		return nil
	}
	if f, ok := revision.Lookup(r.Version); ok && r.Carried && !f.Handshake {
		return nil
	}
	return l.session.Load()
}

// leave tells the server that a session is over (spec 2025-11-25,
// basic/transports: clients SHOULD send an HTTP DELETE). What it answers does
// not matter: 405 means that it keeps its sessions, 404 that it had none.
func (l *link) leave(ctx context.Context, s *clientSession) {
	if !s.tracked() || !s.facts.Sessions || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	req, p, err := l.newRequest(ctx, http.MethodDelete, s)
	if err == nil {
		var resp *http.Response
		if resp, err = l.roundTrip(req, p); err == nil {
			err = resp.Body.Close()
		}
	}
	if err != nil {
		l.log.Debug("the server could not be told that the session ends", "error", err)
	}
}
