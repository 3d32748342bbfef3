package frame

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// errInput is the cause of what is cancelled when the peer ended its input.
var errInput = fmt.Errorf("%w: end of input", transport.ErrClosed)

// Serve serves one connection with h. It opens a session, reads messages until
// the peer ends its input, ctx ends or the pipe breaks, and closes the session.
// It returns once every request has ended, every answer was written and the
// pipe is closed: nil after a clean end of input, the cause after the end of
// ctx or Conn.Close, otherwise what broke.
//
// Requests are begun, and notifications and responses accepted, in order of
// arrival. Requests run at the same time: each on a goroutine of its own, or,
// where many quick ones follow each other, on the one that reads, from which the
// reading moves on when one of them takes its time. What is not a message is
// answered with an error and never ends the session.
func Serve(ctx context.Context, p Pipe, h transport.Handler, o *Options) error {
	s := newServer(p, o)
	ctx, s.conn.cancel = context.WithCancelCause(ctx)
	defer s.conn.cancel(nil)
	session, err := h.Open(s.conn)
	if err != nil {
		_ = s.out.close(err) // the refusal is what matters
		return fmt.Errorf("opening a session: %w", err)
	}
	s.session = session

	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.out.hurry(hurried)
		s.shutdown(context.Cause(ctx))
	})
	s.resume = func() {
		s.pace.rest()
		s.read(ctx)
	}
	go s.read(ctx) // ends by telling s.over
	last := <-s.over
	if last.fault != nil {
		panic(last.fault) // where whoever called Serve expects it
	}
	err = last.err
	if !stop() {
		<-stopped
		return context.Cause(ctx)
	}
	if failed := s.out.failure(); failed != nil && self(err) {
		err = failed // the reader only met the pipe that the writer closed
	}
	return s.finish(ctx, err)
}

// A server is the serving half of a connection.
type server struct {
	pipe    Pipe
	out     *writer
	conn    *conn
	session transport.Session
	who     *principal.Principal
	carrier *transport.Carrier
	limits  jsonrpc.Limits
	linger  time.Duration
	log     *slog.Logger
	began   time.Time
	gauge   Gauge // the pipe, if it is one

	reader // of the goroutine that reads
	turn   turn
	watch  watch
	seen   uint64      // the turn at the last look of the watch
	beside tally       // requests that run on goroutines of their own
	resume func()      // what another reader does
	over   chan ending // why reading ended
}

func newServer(p Pipe, o *Options) *server {
	opts := o.defaults(DefaultMaxMessage)
	s := &server{
		pipe:    p,
		who:     opts.Principal,
		carrier: opts.Carrier,
		limits:  opts.limits(),
		linger:  opts.Linger,
		log:     opts.Logger,
		began:   time.Now(),
		over:    make(chan ending, 1),
	}
	s.gauge, _ = p.(Gauge)
	s.pace.wait = warmUp
	s.watch.look = s.look
	s.watch.busy = s.watched
	s.out = newWriter(p, &opts, &s.beside.n)
	s.conn = &conn{out: s.out, who: s.who}
	return s
}

// finish ends a connection whose reader ended with err, io.EOF for the clean
// end, and returns what Serve returns.
func (s *server) finish(ctx context.Context, err error) error {
	if !ended(err) {
		err = fmt.Errorf("serving a connection: %w", err)
		s.shutdown(err)
		return err
	}
	if s.linger > 0 {
		s.session.Ending()
		s.await(ctx)
	}
	s.shutdown(errInput)
	return nil
}

// await waits for the requests under way, for a while.
func (s *server) await(ctx context.Context) {
	patience := time.NewTimer(s.linger)
	defer patience.Stop()
	select {
	case <-s.beside.none():
	case <-patience.C:
	case <-ctx.Done():
	}
}

// shutdown ends what is under way, lets the answers out and closes the pipe.
func (s *server) shutdown(cause error) {
	s.out.seal(cause)
	s.conn.cancel(cause)
	s.session.Close(cause)
	if n := s.turn.n.Load(); atWork(n) {
		s.overtake(n) // to be counted among those waited for
	}
	<-s.beside.none()
	s.out.flush()
	if err := s.out.close(cause); err != nil {
		s.log.Debug("closing a connection", "error", err)
	}
}

// take deals with one whole message, and reports whether this goroutine still
// reads afterwards.
func (s *server) take(ctx context.Context, data []byte) bool {
	switch {
	case blank(data):
		return true
	case jsonrpc.IsBatch(data):
		s.takeBatch(ctx, data)
		return true
	}
	m, err := jsonrpc.Parse(data, s.limits)
	if err != nil {
		if id, e := s.complaint(data, err); e != nil {
			s.refuse(id, e)
		}
		return true
	}
	return s.route(ctx, m, nil)
}

// complaint turns a parse error into what the peer is told: nothing, if the
// message was to be a notification or a response (MSG-4). The request of ours
// that a malformed response belongs to fails.
func (s *server) complaint(data []byte, err error) (jsonrpc.ID, *jsonrpc.Error) {
	s.log.Warn("message refused", "error", err)
	var bad *jsonrpc.ParseError
	if !errors.As(err, &bad) {
		return jsonrpc.ID{}, jsonrpc.NewError(jsonrpc.CodeParseError, "%s", err.Error())
	}
	h := headOf(data, err)
	switch {
	case h.response:
		s.fail(h.id, bad.Err)
		return jsonrpc.ID{}, nil
	case bad.Notification:
		return jsonrpc.ID{}, nil
	}
	return h.id, bad.Err
}

// fail ends the request of ours with an id, as far as it could be read, whose
// response was unreadable: it would wait for another one in vain.
func (s *server) fail(id jsonrpc.ID, e *jsonrpc.Error) {
	if m := (&jsonrpc.ParseError{Err: e, ID: id, Response: true}).Failure(); m != nil {
		s.session.Accept(m)
	}
}

// refuse answers what is not a message. Without an id the revision says how
// its absence is written (ruling 9).
func (s *server) refuse(id jsonrpc.ID, e *jsonrpc.Error) {
	if err := s.out.answer(s.refusal(id, e), nil, byOther); err != nil {
		s.log.Debug("refusing a message", "error", err)
	}
}

func (s *server) refusal(id jsonrpc.ID, e *jsonrpc.Error) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{ID: id, Error: e, NullID: id.IsZero() && s.session.Rules().NullID}
}

// refuseLong answers a message that was skipped. The answer to a request of
// ours gets none, but ends the request.
func (s *server) refuseLong(long *TooLongError) {
	h := readHead(long.Head)
	e := jsonrpc.NewError(jsonrpc.CodeParseError, "%s; send less at a time", long.Error())
	if h.response {
		s.fail(h.id, e)
		return
	}
	s.refuse(h.id, e)
}

// route gives a message to the session: a request is begun and run, the rest
// is accepted. b is the batch it came in, or nil: those run side by side. It
// reports whether this goroutine still reads afterwards.
func (s *server) route(ctx context.Context, m *jsonrpc.Incoming, b *batch) bool {
	if m.Kind != jsonrpc.Request {
		s.session.Accept(m)
		return true
	}
	came := s.now()
	x := &exchange{s: s, batch: b}
	x.Exchange = transport.Exchange{In: m, Principal: s.who, Out: x, Carrier: s.carrier, Batched: b != nil}
	run := s.session.Begin(ctx, &x.Exchange)
	switch {
	case run == nil:
		x.abandon()
	case s.pace.here(came) && b == nil:
		return x.here(run, came)
	default:
		x.place.Store(apart)
		s.beside.add()
		go x.beside(run)
	}
	return true
}

// Send sends a message that belongs to the exchange. It waits for room in the
// queue until ctx ends. Whoever has something to say before the answer often
// waits for a reply, and always for room: the reading goes on elsewhere.
func (x *exchange) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	if n := x.place.Load(); atWork(n) && n != apart {
		x.s.overtake(n)
	}
	return x.s.out.send(ctx, m, &x.answered)
}

// Answer sends the response. It waits for room until the connection ends, not
// only until ctx does: the answer to a request that ran out of time goes out
// too. A response that cannot be encoded leaves the exchange open, so that an
// error can be sent in its place.
func (x *exchange) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	if x.batch != nil {
		return x.batch.answer(x, m)
	}
	out := x.s.out
	switch n := x.place.Load(); {
	case n == 0:
		return out.answer(m, &x.answered, byOther)
	case !x.s.turn.at(n): // also if it runs apart
		return out.answer(m, &x.answered, byCaller)
	default:
		err := out.answer(m, &x.answered, byReader)
		if !x.s.turn.at(n) {
			out.kick() // the next reader may have looked before the answer was there
		}
		return err
	}
}

// abandon notes that there will be no answer, if there was none.
func (x *exchange) abandon() {
	if claim(&x.answered) && x.batch != nil {
		_ = x.batch.settle(nil) // fails only when the connection has ended
	}
}

// A conn is the carrier's half of the session: what belongs to no exchange.
type conn struct {
	out    *writer
	who    *principal.Principal
	cancel context.CancelCauseFunc
}

var _ transport.Conn = (*conn)(nil)

// Send sends a notification or request of its own.
func (c *conn) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	return c.out.send(ctx, m, nil)
}

// Principal is who is at the other end.
func (c *conn) Principal() *principal.Principal { return c.who }

// Shared says that a pipe is one channel for everything.
func (c *conn) Shared() bool { return true }

// Close ends the connection without waiting for its end. Answers that are
// queued are still written; everything else fails with cause.
func (c *conn) Close(cause error) error {
	cause = closed(cause)
	c.out.seal(cause)
	c.cancel(cause)
	return nil
}
