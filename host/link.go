package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// Back-off between attempts to connect to a server that cannot be reached.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// A link is the host's end of one server.
type link struct {
	host    *Host
	spec    Server
	stale   atomic.Bool // the list of tools may have changed
	samples atomic.Int64
	asked   atomic.Int64 // questions to the person

	turn   chan struct{} // holds a token while a goroutine uses what follows
	client *client.Client
	tools  []*mcp.Tool
	err    error // why the last attempt to connect was in vain
	pause  time.Duration
	retry  time.Time // when to try again
	closed bool
}

func newLink(h *Host, s Server) *link {
	l := &link{host: h, spec: s, turn: make(chan struct{}, 1)}
	l.stale.Store(true)
	return l
}

// lock waits for the turn, until ctx ends.
func (l *link) lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *link) unlock() { <-l.turn }

// connect returns the client, and makes it if need be.
func (l *link) connect(ctx context.Context) (*client.Client, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	return l.connected(ctx)
}

// connected is connect for a caller that holds the token of turn.
func (l *link) connected(ctx context.Context) (*client.Client, error) {
	switch {
	case l.closed:
		return nil, &ServerError{l.spec.Name, ErrClosed}
	case l.client != nil:
		return l.client, nil
	case l.err != nil && time.Now().Before(l.retry):
		return nil, l.err
	}
	dialCtx, cancel := l.waitContext(ctx, errSlow)
	defer cancel()
	c, err := client.Connect(dialCtx, l.spec.Dialer, l.options())
	if err == nil {
		l.client, l.err, l.pause = c, nil, 0
		return c, nil
	}
	if ctx.Err() != nil { // the caller gave up: says nothing about the server
		return nil, context.Cause(ctx)
	}
	if dialCtx.Err() != nil {
		err = context.Cause(dialCtx) // too slow, or the host was closed
	}
	l.pause = min(max(2*l.pause, firstRetry), lastRetry)
	l.retry = time.Now().Add(l.pause)
	l.err = &ServerError{l.spec.Name, err}
	return nil, l.err
}

// waitContext is a context for waiting for the server: it ends with slow after
// ConnectTimeout, not counting the time of a person who is asked, and with
// ErrClosed when the host is closed. Without it a server that says nothing, or has
// no end of tools, would block other calls and Close.
func (l *link) waitContext(ctx context.Context, slow error) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	ctx, cancel := transport.WithTimeout(ctx, l.host.opts.ConnectTimeout, slow)
	done := make(chan struct{})
	go func() { // ends with the function that is returned
		defer close(done)
		select {
		case <-l.host.ended:
			end(ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		end(nil)
		<-done
	}
}

// errSlowList says that a list has no end.
var errSlowList = errors.New("the server did not list its tools in time")

// errSlow says that a server did not start in time.
var errSlow = errors.New("the server did not answer within the time to connect; start its command by hand to see what it waits for")

// list returns the server's tools, read again if they may have changed. A
// server without tools has none.
//
// FLOW-LIST-CHANGED-H: a notice makes the list stale; the next turn of the
// model reads it again, so that a running conversation sees the new tools.
func (l *link) list(ctx context.Context) ([]*mcp.Tool, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	c, err := l.connected(ctx)
	if err != nil {
		return nil, err
	}
	if !l.stale.Swap(false) { // before reading: a notice meanwhile counts
		return l.tools, nil
	}
	var tools []*mcp.Tool
	listCtx, cancel := l.waitContext(ctx, errSlowList)
	defer cancel()
	for t, err := range c.Tools(listCtx) {
		if errors.Is(err, client.ErrNotCapable) {
			break
		}
		if err != nil {
			l.stale.Store(true)
			return nil, &ServerError{l.spec.Name, err}
		}
		tools = append(tools, t)
	}
	l.tools = tools
	return tools, nil
}

// instructions are what a trusted server tells the model, bounded; empty for
// any other server.
func (l *link) instructions(ctx context.Context) string {
	if !l.spec.Trusted || l.lock(ctx) != nil {
		return ""
	}
	defer l.unlock()
	if l.client == nil {
		return ""
	}
	text, _ := cut(l.client.Instructions(), l.host.opts.MaxInstructions)
	return text
}

// close ends the connection for good.
func (l *link) close() error {
	l.turn <- struct{}{} // connecting ends with its context
	defer l.unlock()
	l.closed = true
	if l.client == nil {
		return nil
	}
	c := l.client
	l.client = nil
	return c.Close()
}
