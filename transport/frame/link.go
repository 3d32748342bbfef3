package frame

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// errClosedHere is why a link ended that was closed from our side.
var errClosedHere = fmt.Errorf("%w on this side", transport.ErrClosed)

// errPeerEnded is why a link ended whose peer ended it in good order.
var errPeerEnded = fmt.Errorf("%w by the peer", transport.ErrClosed)

// Dial makes the client's half of a connection that p carries, and begins to
// read it. Responses go to the Do that waits for their id, everything else to
// in. When the connection ends, every pending Do fails with
// transport.ErrInterrupted and in.Closed is told why; the link still has to be
// closed.
func Dial(p Pipe, in transport.Inbox, o *Options) transport.Link {
	opts := o.defaults(DefaultMaxResponse)
	l := &link{
		pipe:    p,
		in:      in,
		limits:  opts.limits(),
		log:     opts.Logger,
		waiting: make(map[jsonrpc.ID]chan reply),
		read:    make(chan struct{}),
	}
	l.out = newWriter(p, &opts, &l.busy)
	go l.run() // Close waits for l.read
	return l
}

// A reply ends a Do.
type reply struct {
	m   *jsonrpc.Incoming
	err error
}

// A link is the client's half of a connection.
type link struct {
	pipe   Pipe
	in     transport.Inbox
	out    *writer
	limits jsonrpc.Limits
	log    *slog.Logger
	busy   atomic.Int64 // requests that wait

	closing atomic.Bool
	read    chan struct{} // closed when the reader has returned

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan reply // each gets one reply from who takes it out
	err     error                     // why the link ended
}

var _ transport.Link = (*link)(nil)

// Do sends a request and waits for its response. The Route is not carried.
func (l *link) Do(ctx context.Context, m *jsonrpc.Outgoing, _ transport.Route) (*jsonrpc.Incoming, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer, err := l.expect(m.ID)
	if err != nil {
		return nil, err
	}
	l.busy.Add(1)
	defer l.busy.Add(-1)
	if err := l.out.send(ctx, m, nil); err != nil {
		l.forget(m.ID)
		return nil, err // nothing has been sent
	}
	select {
	case r := <-answer:
		return r.m, r.err
	case <-ctx.Done():
		l.forget(m.ID)
		return nil, context.Cause(ctx)
	}
}

// expect registers a request.
func (l *link) expect(id jsonrpc.ID) (chan reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if id.IsZero() {
		return nil, errors.New("a request needs an id")
	}
	if _, twice := l.waiting[id]; twice {
		return nil, fmt.Errorf("id %s is in use by another request", id)
	}
	answer := make(chan reply, 1)
	l.waiting[id] = answer
	return answer, nil
}

func (l *link) forget(id jsonrpc.ID) {
	l.mu.Lock()
	delete(l.waiting, id)
	l.mu.Unlock()
}

// settle gives r to whoever waits for id and reports whether somebody did.
func (l *link) settle(id jsonrpc.ID, r reply) bool {
	l.mu.Lock()
	answer, ok := l.waiting[id]
	delete(l.waiting, id)
	l.mu.Unlock()
	if ok {
		answer <- r // has room for the one that comes
	}
	return ok
}

// interrupt refuses further requests and ends those that wait: no answer can
// come any more.
func (l *link) interrupt(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = cause
	for _, answer := range l.waiting {
		answer <- reply{err: fmt.Errorf("%w: %w", transport.ErrInterrupted, cause)} // has room, as in settle
	}
	clear(l.waiting)
}

// Post sends a notification or a response.
func (l *link) Post(ctx context.Context, m *jsonrpc.Outgoing, _ transport.Route) error {
	return l.out.send(ctx, m, nil)
}

// Establish has nothing to do: a pipe carries every revision alike.
func (l *link) Establish(context.Context, transport.Established) error { return nil }

// Traits says that cancelling needs a message and that no Route is carried.
func (l *link) Traits() transport.Traits { return transport.Traits{} }

// Close writes what is queued, closes the pipe and waits for the reader, and
// with it for an Inbox that is receiving. The end of ctx cuts the writing off.
func (l *link) Close(ctx context.Context) error {
	first := l.closing.CompareAndSwap(false, true)
	l.out.seal(errClosedHere)
	l.out.hurry(hurried)
	stop := context.AfterFunc(ctx, func() { _ = l.pipe.Close() }) // close below tells the error
	defer stop()
	l.out.flush()
	err := l.out.close(errClosedHere)
	<-l.read
	if !first || err == nil {
		return nil
	}
	return fmt.Errorf("closing a connection: %w", err)
}

// run reads until the pipe has no more, then lets everybody know.
func (l *link) run() {
	defer close(l.read)
	err := l.why(l.receive())
	l.interrupt(err)
	if !l.closing.Load() {
		if closeErr := l.out.close(err); closeErr != nil {
			l.log.Debug("closing a connection", "error", closeErr)
		}
	}
	l.in.Closed(err)
}

// why explains the end of reading.
func (l *link) why(err error) error {
	failed := l.out.failure()
	switch {
	case l.closing.Load():
		return errClosedHere
	case errors.Is(failed, transport.ErrStalled), failed != nil && self(err):
		return failed // the reader only met the pipe that the writer closed
	case ended(err):
		return errPeerEnded
	}
	return closed(err)
}

// receive reads until the pipe has no more and returns its last error.
func (l *link) receive() error {
	for {
		data, err := next(l.pipe, l.limits.Bytes)
		if err == nil {
			l.take(data)
			continue
		}
		long := tooLong(err)
		if long == nil {
			return err
		}
		l.bad(readHead(long.Head), err)
	}
}

// take deals with one whole message. Arrays are taken in every revision:
// their elements say themselves what they answer.
func (l *link) take(data []byte) {
	if blank(data) {
		return
	}
	if !jsonrpc.IsBatch(data) {
		m, err := jsonrpc.Parse(data, l.limits)
		if err != nil {
			l.bad(headOf(data, err), err)
			return
		}
		l.sort(m)
		return
	}
	items, err := jsonrpc.ParseBatch(data, l.limits, maxReplyBatch)
	if err != nil {
		l.bad(head{}, err)
		return
	}
	for _, item := range items {
		if item.In == nil {
			l.bad(headOf(nil, item.Err), item.Err)
			continue
		}
		l.sort(item.In)
	}
}

// sort gives a response to whoever waits for it and the rest to the inbox.
func (l *link) sort(m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Response && l.settle(m.ID, reply{m: m}) {
		return
	}
	l.in.Receive(m)
}

// bad drops what is not a message. If it was to be a response, whoever waits
// for it is told.
func (l *link) bad(h head, err error) {
	told := h.response && l.settle(h.id, reply{err: fmt.Errorf("reading the response: %w", err)})
	l.log.Warn("message from the server dropped", "error", err, "awaited", told)
}
