package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/parley-mcp/parley/jsonrpc"
)

// First returns a dialer that tries the dialers in their order: the next one
// is dialled when the server of the one before answers the handshake with
// [ErrOtherTransport], and is sent the same request. Its Key is that of the
// first.
func First(dialers ...Dialer) Dialer { return first(dialers) }

type first []Dialer

// Key is that of the first dialer.
func (f first) Key() string {
	if len(f) == 0 {
		return ""
	}
	return f[0].Key()
}

// Dial connects with the first dialer that does not find another transport.
func (f first) Dial(ctx context.Context, in Inbox) (Link, error) {
	life, end := context.WithCancelCause(context.Background())
	l := &firstLink{left: f, in: in, life: life, end: end, switching: make(chan struct{}, 1)}
	if err := l.next(ctx); err != nil {
		end(nil)
		return nil, err
	}
	return l, nil
}

// A firstLink passes everything on to the link that is current.
type firstLink struct {
	in   Inbox
	life context.Context //nolint:containedctx // it is what ends when Close begins
	end  context.CancelCauseFunc

	switching chan struct{} // a lock: held while another link is dialled, or Close runs
	left      []Dialer      // not tried yet; belongs to the holder of switching

	mu          sync.Mutex
	cur         *firstCandidate
	established bool // negotiation is over
}

// A firstCandidate is a link that First tries, and its inbox.
type firstCandidate struct {
	Link
	inbox *firstInbox
}

// Do sends a request, to the next server if that of the current link speaks
// another transport.
func (l *firstLink) Do(ctx context.Context, m *jsonrpc.Outgoing, r Route) (*jsonrpc.Incoming, error) {
	for {
		cur := l.current()
		in, err := cur.Do(ctx, m, r)
		if err == nil || !errors.Is(err, ErrOtherTransport) {
			return in, err
		}
		if err := l.advance(ctx, cur, err); err != nil {
			return nil, err
		}
	}
}

// Post sends a notification or response on the current link.
func (l *firstLink) Post(ctx context.Context, m *jsonrpc.Outgoing, r Route) error {
	return l.current().Post(ctx, m, r)
}

// Establish makes the current link the one that stays.
func (l *firstLink) Establish(ctx context.Context, e Established) error {
	l.mu.Lock()
	l.established = true
	cur := l.cur
	l.mu.Unlock()
	return cur.Establish(ctx, e)
}

// Traits are those of the current link.
func (l *firstLink) Traits() Traits { return l.current().Traits() }

// Close closes the current link. One that is being dialled is given up.
func (l *firstLink) Close(ctx context.Context) error {
	l.end(fmt.Errorf("%w on this side", ErrClosed))
	l.switching <- struct{}{}
	defer func() { <-l.switching }()
	l.left = nil
	return l.current().Close(ctx)
}

func (l *firstLink) current() *firstCandidate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur
}

// advance replaces the link from, whose server gave the reason cause, by the
// next; if another call has done so already, it does nothing. The error is cause
// if there is none to go on to.
func (l *firstLink) advance(ctx context.Context, from *firstCandidate, cause error) error {
	select {
	case l.switching <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.switching }()
	l.mu.Lock()
	replaced, settled := l.cur != from, l.established
	l.mu.Unlock()
	switch {
	case replaced:
		return nil
	case settled || len(l.left) == 0:
		return cause
	}
	from.inbox.hold()
	if err := l.next(ctx); err != nil {
		from.inbox.open()
		if errors.Is(err, ErrOtherTransport) {
			return cause // the server speaks none of them; the first is what was asked for
		}
		return fmt.Errorf("%w (after %w)", err, cause)
	}
	from.inbox.close()
	_ = from.Close(ctx) // it was of no use anyway
	return nil
}

// next dials what is left until there is a link, which becomes the current
// one. The caller moves, or is the only one to have l.
func (l *firstLink) next(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.life, func() { cancel(context.Cause(l.life)) })()
	err := errors.New("no transport to try: First needs a dialer")
	for len(l.left) > 0 {
		if l.life.Err() != nil {
			return context.Cause(l.life)
		}
		d := l.left[0]
		l.left = l.left[1:]
		g := &firstInbox{in: l.in}
		var link Link
		if link, err = d.Dial(ctx, g); err == nil {
			l.mu.Lock()
			l.cur = &firstCandidate{link, g}
			l.mu.Unlock()
			return nil
		}
		if !errors.Is(err, ErrOtherTransport) {
			break
		}
	}
	return err
}

// A firstInbox is the inbox of a link that First tries:
//
//	open --hold--> held --open--> open
//	held --close--> closed
//
// Held, it keeps back that the link has ended; closed, it drops everything.
type firstInbox struct {
	in Inbox

	mu    sync.Mutex
	state inboxState
	over  bool // the end is kept back
	err   error
}

type inboxState uint8

const (
	inboxOpen inboxState = iota
	inboxHeld
	inboxClosed
)

// Receive passes m on, unless the inbox is closed.
func (g *firstInbox) Receive(m *jsonrpc.Incoming) {
	g.mu.Lock()
	closed := g.state == inboxClosed
	g.mu.Unlock()
	if !closed {
		g.in.Receive(m)
	}
}

// Closed passes the end on if the inbox is open.
func (g *firstInbox) Closed(err error) {
	g.mu.Lock()
	pass := g.state == inboxOpen
	if !pass {
		g.over, g.err = true, err
	}
	g.mu.Unlock()
	if pass {
		g.in.Closed(err)
	}
}

func (g *firstInbox) hold()  { g.setState(inboxHeld) }
func (g *firstInbox) close() { g.setState(inboxClosed) }

// open lets everything through again, and what was kept back.
func (g *firstInbox) open() {
	if g.setState(inboxOpen) {
		g.in.Closed(g.err)
	}
}

// setState changes the state and reports whether an end is kept back.
func (g *firstInbox) setState(s inboxState) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = s
	return g.over
}
