package dev

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
)

// A dialer connects the outer proxy to the current process.
type dialer Runner

// Key is empty: what is behind changes.
func (d *dialer) Key() string { return "" }

// Dial makes a link. Nothing is connected by it.
func (d *dialer) Dial(_ context.Context, in transport.Inbox) (transport.Link, error) {
	l := &link{r: (*Runner)(d), in: in}
	l.r.mu.Lock()
	l.first = l.r.current
	l.r.mu.Unlock()
	l.life, l.end = context.WithCancelCause(l.r.life)
	return l, nil
}

// A link gives each request to the server of a process, in memory: requests of a stateless revision,
// since that server speaks every one.
type link struct {
	r     *Runner
	in    transport.Inbox
	first *generation // the current one when the link was made

	life context.Context //nolint:containedctx // the link's life, which its requests share
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// spawn runs f on a goroutine that Close waits for. It reports false, and does nothing, when the link
// is closed.
func (l *link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.wg.Go(f)
	}
	return !l.closed
}

// errRestarted is why a request is given up whose process is about to end.
var errRestarted = errors.New("the server was started again")

// Do sends a request to the current process, or to the one that asked what it answers.
func (l *link) Do(ctx context.Context, m *jsonrpc.Outgoing, _ transport.Route) (*jsonrpc.Incoming, error) {
	in, err := parsed(m)
	if err != nil {
		return nil, err
	}
	if in.Method == mcp.MethodListen {
		return l.listen(ctx, in)
	}
	state := member(in.Params, "requestState")
	for {
		g, err := l.r.take(ctx, state)
		switch {
		case errors.Is(err, errLost):
			return failed(in.ID, mcp.CodeShuttingDown, "the server was started again while the call waited for an answer; what it did before that may have run"), nil
		case err != nil:
			return nil, err
		}
		answer, err := l.serve(ctx, g, in, &responder{link: l, id: in.ID})
		if err == nil {
			if asked := member(answer.Result, "requestState"); asked != "" {
				g.asks(asked)
			}
		}
		g.done()
		switch {
		case !errors.Is(err, errRestarted):
			return answer, err
		case in.Method == mcp.MethodToolsCall:
			return failed(in.ID, mcp.CodeShuttingDown, fmt.Sprintf("the server was started again, and the call did not end within %v; it may have run", l.r.opts.Drain)), nil
		case state != "":
			return failed(in.ID, mcp.CodeShuttingDown, "the server was started again before it answered"), nil
		}
	}
}

// serve has a server handle a request.
func (l *link) serve(ctx context.Context, g *generation, in *jsonrpc.Incoming, out *responder) (*jsonrpc.Incoming, error) {
	out.answered = make(chan struct{})
	handled, cancel := context.WithCancelCause(l.life) // values of ctx are the outer proxy's
	done := make(chan struct{})
	x := &transport.Exchange{In: in, Principal: principal.Local, Out: out, Transport: &transport.Info{Name: "memory"}, Ending: g.ending}
	if caller := server.CallFrom(ctx); caller != nil { // questions reach the caller of their own call
		x.Principal = caller.Principal()
		x.Transport = &transport.Info{Name: "memory", SessionID: caller.SessionID()}
	}
	if !l.spawn(func() {
		defer cancel(nil)
		defer close(done)
		g.server.Serve(handled, x)
	}) {
		cancel(nil)
		return nil, transport.ErrClosed
	}
	var err error
	select {
	case <-out.answered:
	case <-done: // it may have been answered at the same time
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-g.expired:
		err = errRestarted
	case <-l.life.Done():
		err = fmt.Errorf("%w: %w", transport.ErrInterrupted, context.Cause(l.life))
	}
	answer := out.close()
	switch {
	case answer != nil:
		return answer, nil
	case err == nil:
		err = fmt.Errorf("%w: no answer was given", transport.ErrInterrupted)
	}
	cancel(err)
	return nil, err
}

// Post takes notifications, of which there are none in a stateless revision that counts here.
func (l *link) Post(context.Context, *jsonrpc.Outgoing, transport.Route) error { return nil }

// Establish is told the revision, which each request says by itself.
func (l *link) Establish(context.Context, transport.Established) error { return nil }

// Traits say that the end of a request's context ends the request.
func (l *link) Traits() transport.Traits { return transport.Traits{Abandons: true} }

// Close ends all requests and waits for them.
func (l *link) Close(context.Context) error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	l.end(transport.ErrClosed)
	l.wg.Wait()
	if first {
		l.in.Closed(transport.ErrClosed)
	}
	return nil
}

// errLost says that the process which a call waits for an answer at has ended.
var errLost = errors.New("the process has ended")

// take returns the process that a request goes to, which is under way there from then on. While one
// is starting, it waits.
func (r *Runner) take(ctx context.Context, state string) (*generation, error) {
	if state != "" {
		return r.owner(state)
	}
	if err := r.settled(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.begin()
	return r.current, nil
}

// owner is the process that gave a state.
func (r *Runner) owner(state string) (*generation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for g := range r.all {
		if g.answered(state) {
			g.begin()
			return g, nil
		}
	}
	return nil, errLost
}

// settled waits for the process that is starting, if one is: for Options.WaitTime at most, where there
// is one before that still serves.
func (r *Runner) settled(ctx context.Context) error {
	r.mu.Lock()
	starting := r.starting
	r.mu.Unlock()
	if starting == nil {
		return nil
	}
	var late <-chan time.Time
	if !r.opts.StopFirst {
		timer := time.NewTimer(r.opts.WaitTime)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-starting:
	case <-late:
	case <-r.life.Done():
		return fmt.Errorf("%w: %w", transport.ErrClosed, context.Cause(r.life))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// A responder takes what a server sends for one request.
type responder struct {
	link     *link
	id       jsonrpc.ID
	answered chan struct{} // closed with the answer
	// notice, if not nil, gets notifications first, and says what is passed on in their place.
	notice func(m *jsonrpc.Incoming) []*jsonrpc.Incoming

	mu     sync.Mutex
	closed bool
	answer *jsonrpc.Incoming
}

// Send passes a notification on.
func (o *responder) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	in, err := parsed(m)
	if err != nil {
		return err
	}
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		return jsonrpc.ErrEnded
	}
	list := []*jsonrpc.Incoming{in}
	if o.notice != nil {
		list = o.notice(in)
	}
	for _, in := range list {
		in.During = o.id
		o.link.in.Receive(in)
	}
	return nil
}

// Answer keeps the answer.
func (o *responder) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	in, err := parsed(m)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return jsonrpc.ErrEnded
	}
	o.closed, o.answer = true, in
	close(o.answered)
	return nil
}

// close returns the answer, if there is one. None is taken any more.
func (o *responder) close() *jsonrpc.Incoming {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return o.answer
}

// parsed is a message as the other side of a link gets it.
func parsed(m *jsonrpc.Outgoing) (*jsonrpc.Incoming, error) {
	raw, err := m.AppendJSON(nil)
	if err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	in, err := jsonrpc.Parse(raw, jsonrpc.Limits{})
	if err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return in, nil
}

// failed is the answer of a request that ended with an error of this package.
func failed(id jsonrpc.ID, code int64, text string) *jsonrpc.Incoming {
	return &jsonrpc.Incoming{Kind: jsonrpc.Response, ID: id, Error: jsonrpc.NewError(code, "%s", text)}
}

// member is the text of a member, or empty.
func member(o jsonrpc.Object, name string) string {
	raw, _ := o.Member(name)
	return string(raw)
}
