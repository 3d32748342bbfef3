package jsonrpc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// Errors of a Peer, to be found with errors.Is.
var (
	// ErrDuplicateID refuses a request whose id is in flight already. It is
	// an *Error and may be sent as it is.
	ErrDuplicateID error = NewError(CodeInvalidRequest, "invalid request: a request with this id is in flight already; use a new id for each request")
	// ErrTooMany says that MaxInFlight or MaxOutbound requests are in flight.
	ErrTooMany = errors.New("too many requests in flight")
	// ErrCancelled is the cause that the context of an inbound request ends
	// with when the other end cancelled the request, or went away and nothing
	// says more.
	ErrCancelled = errors.New("cancelled by the other end")
	// ErrClosed says that the peer has been closed.
	ErrClosed = errors.New("the relation has ended")

	errNoID = errors.New("a request to track has an id")
)

// PeerOptions adjust a Peer. The zero value is what most want.
type PeerOptions struct {
	// MaxInFlight is the most inbound requests tracked at once. Default 256.
	MaxInFlight int
	// MaxOutbound is the most outbound requests waiting at once. Default 256.
	MaxOutbound int
	// Logger takes what is dropped, at debug level. Default slog.Default().
	Logger *slog.Logger
}

// Peer tracks the requests of one long-lived relation in both directions:
// which of the other end are being handled, and which of ours wait for an
// answer. The two directions have separate ids. A Peer is fed; it reads
// nothing and has no goroutine. Its methods may be called by many goroutines.
type Peer struct {
	maxInFlight, maxOutbound int
	log                      *slog.Logger

	mu       sync.Mutex
	first    *Inbound        // one of those inbound, so that most need no map
	inbound  map[ID]*Inbound // the others
	outbound map[ID]*outbound
	closed   bool
	ended    error         // what calls fail with once it is closed
	quiet    chan struct{} // made by wait, and closed once nothing is inbound
}

// Inbound is one inbound request under way: its context, and its tracking. Its
// zero value is for [Peer.Track] and [Inbound.Start].
type Inbound struct {
	life lazyContext
	peer *Peer // nil if it is not tracked
	id   ID
}

type outbound struct {
	method string
	answer chan answer // has room for the one answer
}

type answer struct {
	m   *Incoming
	err error
}

// NewPeer returns a Peer; o may be nil.
func NewPeer(o *PeerOptions) *Peer {
	var opts PeerOptions
	if o != nil {
		opts = *o
	}
	return &Peer{
		maxInFlight: cmp.Or(opts.MaxInFlight, 256),
		maxOutbound: cmp.Or(opts.MaxOutbound, 256),
		log:         opts.Logger,
	}
}

// Begin tracks an inbound request. The context it returns ends with ctx, with
// [Peer.Cancel], with [Peer.Close] or when the function is called, which ends
// the tracking and must be called once the request is done (more calls do
// nothing). It fails with [ErrDuplicateID], [ErrTooMany] or [ErrClosed]; then
// nothing is tracked and the context is ctx.
func (p *Peer) Begin(ctx context.Context, id ID) (context.Context, func(), error) {
	in := new(Inbound)
	tracked, err := p.Track(ctx, id, in)
	if err != nil {
		return ctx, func() {}, err
	}
	return tracked, in.End, nil
}

// Track is [Peer.Begin] for callers that keep the tracking, a zero Inbound, in
// memory of their own. [Inbound.End] ends it; after an error there is nothing
// to end.
func (p *Peer) Track(ctx context.Context, id ID, in *Inbound) (context.Context, error) {
	if id.IsZero() {
		return ctx, errNoID
	}
	in.life.Context, in.peer, in.id = ctx, p, id
	if err := p.admit(in); err != nil {
		return ctx, err
	}
	return &in.life, nil
}

// Start begins a request that belongs to no relation. The context it returns
// ends with ctx, with [Inbound.Cancel] or with [Inbound.End].
func (in *Inbound) Start(ctx context.Context) context.Context {
	in.life.Context = ctx
	return &in.life
}

func (p *Peer) admit(in *Inbound) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if p.find(in.id) != nil {
		return ErrDuplicateID
	}
	if p.under() >= p.maxInFlight {
		return ErrTooMany
	}
	if p.first == nil {
		p.first = in
		return nil
	}
	if p.inbound == nil {
		p.inbound = make(map[ID]*Inbound)
	}
	p.inbound[in.id] = in
	return nil
}

// find returns the inbound request with an id, or nil. The lock is held.
func (p *Peer) find(id ID) *Inbound {
	if p.first != nil && p.first.id == id {
		return p.first
	}
	return p.inbound[id]
}

// under is how many requests are inbound. The lock is held.
func (p *Peer) under() int {
	if p.first != nil {
		return 1 + len(p.inbound)
	}
	return len(p.inbound)
}

// allInbound yields the inbound requests. The lock is held.
func (p *Peer) allInbound(yield func(*Inbound) bool) {
	if p.first != nil && !yield(p.first) {
		return
	}
	for _, in := range p.inbound {
		if !yield(in) {
			return
		}
	}
}

// Cancel ends the context of the request with cause. Unlike [Peer.Cancel] it
// can meet no other request: not one that was given the same id afterwards. It
// does nothing once the request has ended, or was never tracked.
func (in *Inbound) Cancel(cause error) {
	if in.life.Context != nil {
		in.life.cancel(cause)
	}
}

// End ends the tracking, and the context of the request. More calls do nothing.
func (in *Inbound) End() {
	if in.peer != nil {
		in.peer.forgetInbound(in)
	}
	if in.life.Context != nil {
		in.life.end()
	}
}

func (p *Peer) forgetInbound(in *Inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.find(in.id) != in {
		return
	}
	if p.first == in {
		p.first = nil
	} else {
		delete(p.inbound, in.id)
	}
	if p.under() == 0 && p.quiet != nil {
		close(p.quiet)
		p.quiet = nil
	}
}

// Cancel ends the context of an inbound request with cause. It reports false
// if no such request is in flight: only what the other end itself asked for
// here, and what still runs, can be cancelled (spec 2026-07-28,
// basic/patterns/cancellation). The request stays tracked until it ends.
func (p *Peer) Cancel(id ID, cause error) bool {
	p.mu.Lock()
	in := p.find(id)
	p.mu.Unlock()
	if in == nil {
		return false
	}
	in.life.cancel(cause)
	return true
}

// AbandonedError says that the caller's context ended before the answer to an
// outbound request. The other end should be told with a notification that
// the request ID is cancelled.
type AbandonedError struct {
	ID     ID
	Method string
	// Cause is the cause of the context's end.
	Cause error
}

// Error says what was abandoned and why.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("%s: no answer yet: %v", e.Method, e.Cause)
}

// Unwrap returns the cause.
func (e *AbandonedError) Unwrap() error { return e.Cause }

// Call sends a request through via with a random id, which is never used again and cannot be guessed
// from other ids, and waits for its response to come to [Peer.Resolve]. An error answer of the other
// end is in the message, not in the error. If ctx ends first the error is an *[AbandonedError] and a
// late response is dropped; if the peer is closed first the error is [ErrClosed] with the cause of
// that. A via that blocks must end with ctx or with its connection. params may be nil.
func (p *Peer) Call(ctx context.Context, via Sender, method string, params Body) (*Incoming, error) {
	id, out, err := p.expect(method)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if err := via.Send(ctx, &Outgoing{ID: id, Method: method, Params: params}); err != nil {
		p.forget(id)
		return nil, fmt.Errorf("sending %s: %w", method, err)
	}
	select {
	case a := <-out.answer:
		return out.unpack(a)
	case <-ctx.Done():
	}
	if !p.forget(id) {
		// Resolved or closed in the same moment: the answer is there.
		return out.unpack(<-out.answer)
	}
	return nil, &AbandonedError{ID: id, Method: method, Cause: context.Cause(ctx)}
}

// idLength is the length of a random id: 65 bits in base32. A string passes through every client
// unchanged, whereas a large integer may become a float.
const idLength = 13

// expect registers an outbound request.
func (p *Peer) expect(method string) (ID, *outbound, error) {
	out := &outbound{method: method, answer: make(chan answer, 1)}
	id := StringID(rand.Text()[:idLength])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ID{}, nil, p.ended
	}
	if len(p.outbound) >= p.maxOutbound {
		return ID{}, nil, ErrTooMany
	}
	if p.outbound == nil {
		p.outbound = make(map[ID]*outbound)
	}
	p.outbound[id] = out
	return id, out, nil
}

// forget gives an outbound request up; false if it has its answer already.
func (p *Peer) forget(id ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.outbound[id]
	delete(p.outbound, id)
	return ok
}

func (out *outbound) unpack(a answer) (*Incoming, error) {
	if a.err != nil {
		return nil, fmt.Errorf("%s: %w", out.method, a.err)
	}
	return a.m, nil
}

// Resolve gives a response to the call that waits for it. It reports false if
// none does, because the response is late or unknown: then it is dropped with
// a line in the log.
func (p *Peer) Resolve(m *Incoming) bool {
	p.mu.Lock()
	out, ok := p.outbound[m.ID]
	delete(p.outbound, m.ID)
	p.mu.Unlock()
	if !ok {
		log := p.log
		if log == nil {
			log = slog.Default()
		}
		log.Debug("dropped a response that nobody waits for", "id", m.ID.String())
		return false
	}
	out.answer <- answer{m: m}
	return true
}

// Close ends the relation: inbound requests are cancelled with cause, calls
// that wait fail with it and [ErrClosed], later requests are refused.
// Close returns once every inbound request has ended, so it must not be
// called by one of them. More calls wait too, and keep the first cause.
func (p *Peer) Close(cause error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.wait()
		return
	}
	p.closed, p.ended = true, ErrClosed
	if cause == nil {
		cause = ErrClosed
	} else {
		p.ended = fmt.Errorf("%w: %w", ErrClosed, cause)
	}
	inbound := slices.Collect(p.allInbound)
	for _, out := range p.outbound {
		out.answer <- answer{err: p.ended}
	}
	clear(p.outbound)
	p.mu.Unlock()
	for _, in := range inbound {
		in.life.cancel(cause)
	}
	p.wait()
}

// wait waits until nothing is inbound. The peer is closed.
func (p *Peer) wait() {
	p.mu.Lock()
	if p.under() == 0 {
		p.mu.Unlock()
		return
	}
	if p.quiet == nil {
		p.quiet = make(chan struct{})
	}
	quiet := p.quiet
	p.mu.Unlock()
	<-quiet
}
