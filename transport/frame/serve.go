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

// now is the time since the connection began.
func (s *server) now() time.Duration { return time.Since(s.started) }

// Serve serves one connection with h. It opens a session, reads messages until
// the peer ends its input, ctx ends or the pipe breaks, and closes the session.
// It returns once every request has ended, every answer was written and the
// pipe is closed: nil after a clean end of input, the cause after the end of
// ctx or Conn.Close, otherwise what broke.
//
// Requests are begun, and notifications and responses accepted, in order of
// arrival. Requests run concurrently: each on a goroutine of its own, or,
// where many quick ones follow each other, on the one that reads; if one of
// these takes long, another goroutine goes on reading. What is not a message
// is answered with an error and never ends the session.
func Serve(ctx context.Context, p Pipe, h transport.Handler, o *Options) error {
	if err := transport.CheckHandler(h); err != nil {
		return fmt.Errorf("serving a pipe: %w", err)
	}
	s := newServer(p, o)
	s.handler = h
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
		s.out.shortenTimeout(closeWriteTimeout)
		s.shutdown(context.Cause(ctx))
	})
	s.startReader = func() {
		s.scheduler.backOff()
		s.read(ctx)
	}
	go s.read(ctx) // ends by a send to s.readEnded
	last := <-s.readEnded
	close(s.tasks)
	if last.panicValue != nil {
		panic(last.panicValue) // on the goroutine of Serve's caller
	}
	defer s.goroutines.Wait()
	err = last.err
	if !stop() {
		<-stopped
		return context.Cause(ctx)
	}
	if failed := s.out.lastError(); failed != nil && isOwnClose(err) {
		err = failed // the reader's error is only that the writer closed the pipe
	}
	return s.end(ctx, err)
}

// A server is the serving half of a connection.
type server struct {
	pipe      Pipe
	out       *writer
	conn      *conn
	handler   transport.Handler
	session   transport.Session
	principal *principal.Principal
	transport *transport.Info
	limits    jsonrpc.Limits
	linger    time.Duration
	log       *slog.Logger
	started   time.Time
	gauge     Gauge // the pipe, if it is one

	reader      // of the goroutine that reads
	token       readerToken
	monitor     monitor
	lastToken   uint64          // the token at the monitor's last check
	spawned     counter         // requests that run on goroutines of their own
	startReader func()          // what another reader runs
	readEnded   chan readResult // why reading ended
	workers
}

func newServer(p Pipe, o *Options) *server {
	opts := o.defaults(DefaultMaxMessage)
	if o == nil || o.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &server{
		pipe:      p,
		principal: opts.Principal,
		transport: opts.Transport,
		limits:    opts.limits(),
		linger:    opts.Linger,
		log:       opts.Logger,
		started:   time.Now(),
		readEnded: make(chan readResult, 1),
		workers:   workers{tasks: make(chan task)},
	}
	s.gauge, _ = p.(Gauge)
	s.scheduler.remaining = warmUp
	s.monitor.check = s.checkReader
	s.monitor.needed = s.needsCheck
	s.out = newWriter(p, &opts, &s.spawned.n)
	s.conn = &conn{out: s.out, principal: s.principal}
	return s
}

// end ends a connection whose reader ended with err, io.EOF for the clean
// end, and returns what Serve returns.
func (s *server) end(ctx context.Context, err error) error {
	if !isCleanEnd(err) {
		err = fmt.Errorf("serving a connection: %w", err)
		s.shutdown(err)
		return err
	}
	if s.linger > 0 {
		s.session.Ending()
		s.waitForRequests(ctx)
	}
	s.shutdown(errInput)
	return nil
}

// waitForRequests waits for the requests in flight, at most for s.linger.
func (s *server) waitForRequests(ctx context.Context) {
	timer := time.NewTimer(s.linger)
	defer timer.Stop()
	select {
	case <-s.spawned.whenZero():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// shutdown ends what is in flight, writes the answers and closes the pipe.
func (s *server) shutdown(cause error) {
	s.out.seal(cause)
	s.conn.cancel(cause)
	s.session.Close(cause)
	if n := s.token.n.Load(); isWorking(n) {
		s.handOff(n) // which counts it among the spawned
	}
	<-s.spawned.whenZero()
	s.out.flush()
	if err := s.out.close(cause); err != nil {
		s.log.Debug("closing a connection", "error", err)
	}
}

// handleMessage handles one whole message, and reports whether this goroutine
// still reads afterwards.
func (s *server) handleMessage(ctx context.Context, data []byte) bool {
	switch {
	case isBlank(data):
		return true
	case jsonrpc.IsBatch(data):
		s.handleBatch(ctx, data)
		return true
	}
	m, err := jsonrpc.Parse(data, s.limits)
	if err != nil {
		if id, e := s.parseFailure(data, err); e != nil {
			s.refuse(ctx, id, e)
		}
		return true
	}
	return s.route(ctx, m, nil)
}

// parseFailure turns a parse error into the error to answer: none, if the
// message was to be a notification or a response (MSG-4). The request of ours
// that a malformed response belongs to fails.
func (s *server) parseFailure(data []byte, err error) (jsonrpc.ID, *jsonrpc.Error) {
	s.log.Debug("message refused", "error", err)
	var bad *jsonrpc.ParseError
	if !errors.As(err, &bad) {
		return jsonrpc.ID{}, jsonrpc.NewError(jsonrpc.CodeParseError, "%s", err.Error())
	}
	h := headOf(data, err)
	switch {
	case h.response:
		s.failRequest(h.id, bad.Err)
		return jsonrpc.ID{}, nil
	case bad.Notification:
		return jsonrpc.ID{}, nil
	}
	return h.id, bad.Err
}

// failRequest fails the request of ours whose response could not be parsed, if
// its id could be read: no other response will come.
func (s *server) failRequest(id jsonrpc.ID, e *jsonrpc.Error) {
	if m := (&jsonrpc.ParseError{Err: e, ID: id, Response: true}).Failure(); m != nil {
		s.session.Accept(m)
	}
}

// refuse answers an invalid message with an error. The revision says how a
// missing id is written (ruling 9).
func (s *server) refuse(ctx context.Context, id jsonrpc.ID, e *jsonrpc.Error) {
	s.reportRefusal(ctx, e)
	if err := s.out.answer(s.errorResponse(id, e), nil, byNewGoroutine); err != nil {
		s.log.Debug("refusing a message", "error", err)
	}
}

// reportRefusal reports a refused message to the handler.
func (s *server) reportRefusal(ctx context.Context, e *jsonrpc.Error) {
	s.handler.Refused(ctx, transport.Refusal{Err: e, Principal: s.principal, Transport: s.transport})
}

func (s *server) errorResponse(id jsonrpc.ID, e *jsonrpc.Error) *jsonrpc.Outgoing {
	return &jsonrpc.Outgoing{ID: id, Error: e, NullID: id.IsZero() && s.session.Rules().NullID}
}

// refuseLong answers a message that was skipped. The answer to a request of
// ours gets none, but ends the request.
func (s *server) refuseLong(ctx context.Context, long *TooLongError) {
	h := readHead(long.Head)
	e := jsonrpc.NewError(jsonrpc.CodeParseError, "%s; send less at a time", long.Error())
	if h.response {
		s.failRequest(h.id, e)
		return
	}
	e.Limit = "MaxMessage"
	s.refuse(ctx, h.id, e)
}

// route gives a message to the session: a request is begun and run, the rest
// is accepted. b is the batch it came in, or nil; requests of a batch run on
// goroutines of their own. It reports whether this goroutine still reads
// afterwards.
func (s *server) route(ctx context.Context, m *jsonrpc.Incoming, b *batch) bool {
	if m.Kind != jsonrpc.Request {
		s.session.Accept(m)
		return true
	}
	came := s.now()
	x := &exchange{server: s, batch: b}
	x.Exchange = transport.Exchange{In: m, Principal: s.principal, Out: x, Transport: s.transport, Batched: b != nil}
	run := s.session.Begin(ctx, &x.Exchange)
	switch {
	case run == nil:
		x.abandon()
	case s.scheduler.onReader(came) && b == nil:
		return x.runOnReader(run, came)
	default:
		x.workNumber.Store(ownGoroutine)
		s.runOnGoroutine(task{x, run})
	}
	return true
}

// A conn is the transport's half of the session: what belongs to no exchange.
type conn struct {
	out       *writer
	principal *principal.Principal
	cancel    context.CancelCauseFunc
}

var _ transport.Conn = (*conn)(nil)

// Send sends a notification or request of its own.
func (c *conn) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	return c.out.send(ctx, m, nil)
}

// Principal is the peer's principal.
func (c *conn) Principal() *principal.Principal { return c.principal }

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
