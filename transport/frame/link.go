package frame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	parts, _ := p.(PartReporter)
	if opts.Tap != nil {
		p = &tappedPipe{p, opts.Tap}
	}
	l := &link{
		pipe:    p,
		tap:     opts.Tap,
		in:      in,
		limits:  opts.limits(),
		log:     opts.Logger,
		note:    opts.NoteUnreadable,
		pending: make(map[jsonrpc.ID]waiter),
		read:    make(chan struct{}),
	}
	l.limits.Lenient = true
	l.out = newWriter(p, &opts, &l.inFlight)
	if parts != nil {
		parts.OnPart(l.partArrived)
	}
	go l.run() // Close waits for l.read
	return l
}

// A waiter is a Do that waits.
type waiter struct {
	answer chan reply
	ctx    context.Context //nolint:containedctx // that of the Do, for as long as it waits
}

// A reply ends a Do.
type reply struct {
	m   *jsonrpc.Incoming
	err error
}

// A link is the client's half of a connection.
type link struct {
	pipe     Pipe
	in       transport.Inbox
	out      *writer
	limits   jsonrpc.Limits
	tap      transport.Tap // or nil
	log      *slog.Logger
	inFlight atomic.Int64 // requests that wait

	closing atomic.Bool
	read    chan struct{} // closed when the reader has returned

	heard atomic.Pointer[string] // the first text that is not a message, quoted
	note  bool                   // Options.NoteUnreadable
	flaw  string                 // for the next response; of the reader

	mu      sync.Mutex
	pending map[jsonrpc.ID]waiter // each gets one reply from the goroutine that removes it
	err     error                 // why the link ended
}

var _ transport.Link = (*link)(nil)

// Do sends a request and waits for its response. The Route is not carried.
func (l *link) Do(ctx context.Context, m *jsonrpc.Outgoing, _ transport.Route) (*jsonrpc.Incoming, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	answer, err := l.expect(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	l.inFlight.Add(1)
	defer l.inFlight.Add(-1)
	if err := l.out.send(ctx, m, nil); err != nil {
		l.remove(m.ID)
		return nil, err // nothing has been sent
	}
	select {
	case r := <-answer:
		return r.m, r.err
	case <-ctx.Done():
	}
	if !l.remove(m.ID) { // it was answered, or the link failed, in the same moment
		if r := <-answer; r.err == nil {
			return r.m, nil
		}
	}
	return nil, l.explain(context.Cause(ctx))
}

// explain adds to an error the first text of the peer that was not a message, which can be what it
// says about the error.
func (l *link) explain(err error) error {
	if heard := l.heard.Load(); heard != nil {
		return fmt.Errorf("%w; it sent text that is not a message: %s", err, *heard)
	}
	return err
}

// expect registers a request.
func (l *link) expect(ctx context.Context, id jsonrpc.ID) (chan reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if id.IsZero() {
		return nil, errors.New("a request needs an id")
	}
	if _, twice := l.pending[id]; twice {
		return nil, fmt.Errorf("id %s is in use by another request", id)
	}
	answer := make(chan reply, 1)
	l.pending[id] = waiter{answer, ctx}
	return answer, nil
}

// remove gives a request up; false if its reply is there, or about to be.
func (l *link) remove(id jsonrpc.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waits := l.pending[id]
	delete(l.pending, id)
	return waits
}

// deliver gives r to the Do that waits for id and reports whether one did.
func (l *link) deliver(id jsonrpc.ID, r reply) bool {
	l.mu.Lock()
	w, ok := l.pending[id]
	delete(l.pending, id)
	l.mu.Unlock()
	if ok {
		w.answer <- r // has room for the one that comes
	}
	return ok
}

// partArrived restarts the time that requests may be silent, when a part of a message has
// arrived: the answers of all that wait are in this message or behind it.
func (l *link) partArrived() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.pending {
		transport.Progress(w.ctx)
	}
}

// failPending refuses further requests and ends those that wait: no answer can
// come any more. Those that were not sent cannot have run.
func (l *link) failPending(cause error) {
	unsent := l.out.abandon(cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = cause
	for id, w := range l.pending {
		err := fmt.Errorf("%w: %w", transport.ErrInterrupted, cause)
		if slices.Contains(unsent, id) {
			err = closed(cause)
		}
		w.answer <- reply{err: err} // has room, as in deliver
	}
	clear(l.pending)
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
	l.out.shortenTimeout(closeWriteTimeout)
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

// run reads until the pipe has no more, then fails what is pending.
func (l *link) run() {
	defer close(l.read)
	err := l.endError(l.receive())
	l.failPending(err)
	if !l.closing.Load() {
		if closeErr := l.out.close(err); closeErr != nil {
			l.log.Debug("closing a connection", "error", closeErr)
		}
	}
	if l.tap != nil {
		e := transport.TapEvent{Kind: transport.TapClosed, Err: err}
		if l.closing.Load() {
			e.Err = nil
		}
		l.tap(e)
	}
	l.in.Closed(err)
}

// endError explains the end of reading.
func (l *link) endError(err error) error {
	failed := l.out.lastError()
	switch {
	case l.closing.Load():
		return errClosedHere
	case errors.Is(failed, transport.ErrStalled), failed != nil && isOwnClose(err):
		return failed // the reader's error is only that the writer closed the pipe
	case isCleanEnd(err):
		return l.explain(errPeerEnded)
	}
	return l.explain(closed(err))
}

// receive reads until the pipe has no more and returns its last error.
func (l *link) receive() error {
	for {
		data, err := readMessage(l.pipe, l.limits.Bytes)
		if err == nil {
			l.handleMessage(data)
			continue
		}
		long := tooLong(err)
		if long == nil {
			return err
		}
		l.dropInvalid(readHead(long.Head), long.Head, err)
	}
}

// handleMessage handles one whole message. Arrays are taken in every revision:
// each element says what it answers.
func (l *link) handleMessage(data []byte) {
	if isBlank(data) {
		return
	}
	if !jsonrpc.IsBatch(data) {
		m, err := jsonrpc.Parse(data, l.limits)
		if err != nil {
			l.dropInvalid(headOf(data, err), data, err)
			return
		}
		l.dispatch(m)
		return
	}
	items, err := jsonrpc.ParseBatch(data, l.limits, maxReplyBatch)
	if err != nil {
		l.dropInvalid(head{}, data, err)
		return
	}
	for _, item := range items {
		if item.In == nil {
			l.dropInvalid(headOf(nil, item.Err), data, item.Err)
			continue
		}
		l.dispatch(item.In)
	}
}

// dispatch gives a response to the Do that waits for it and the rest to the inbox.
func (l *link) dispatch(m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Response {
		if l.flaw != "" {
			m.AddFlaw(l.flaw)
			l.flaw = ""
		}
		if l.deliver(m.ID, reply{m: m}) {
			return
		}
	}
	l.in.Receive(m)
}

// dropInvalid drops an invalid message, of which data is what there is. If it
// was to be a response, the Do that waits for it fails.
func (l *link) dropInvalid(h head, data []byte, err error) {
	if l.tap != nil {
		l.tap(transport.TapEvent{Kind: transport.TapRefused, Data: data, Err: err})
	}
	told := h.response && l.deliver(h.id, reply{err: fmt.Errorf("reading the response: %w", err)})
	l.log.Warn("message from the server dropped", "error", err, "awaited", told)
	if told {
		return
	}
	text := fmt.Sprintf("%.200q", bytes.TrimSpace(data))
	l.heard.CompareAndSwap(nil, &text)
	if bad, ok := errors.AsType[*jsonrpc.ParseError](err); l.note && (!ok || !bad.Notification) {
		l.flaw = fmt.Sprintf("an event that is not a message was ignored: %v", err)
	}
}
