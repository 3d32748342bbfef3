package streamable

import (
	"context"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// A call is one modern request: it stands for itself and is answered by the
// response to its POST (spec 2026-07-28, basic/transports/streamable-http).
type call struct {
	transport.Exchange
	response
	cancel context.CancelCauseFunc // nil where net/http itself ends what it cannot write

	mu       sync.Mutex
	over     bool           // answered, or the response has ended
	answer   *buffer        // the body that waits for the end of Serve
	failure  *jsonrpc.Error // in it
	answered time.Time
}

// Send sends a message as an event, on the caller's goroutine: it returns when
// the client's connection has taken it.
func (c *call) Send(_ context.Context, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	defer b.free()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return jsonrpc.ErrEnded
	}
	return c.event(b)
}

// Answer sends the response: as one JSON body if nothing was sent before it. A
// response that cannot be encoded leaves the exchange open, so that an error
// can be sent in its place.
//
// A body leaves when Serve returns, which is usually at once. Only if it goes
// on does the body leave before, and with it the connection: the next request
// on it would wait for Serve too.
func (c *call) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		b.free()
		return jsonrpc.ErrEnded
	case c.streaming:
		c.over = true
		defer b.free()
		return c.event(b)
	}
	c.over = true
	c.answer, c.answered, c.failure = b, time.Now(), m.Error
	c.h.open.expect()
	return nil
}

// deliver sends the body. Serve has returned, unless it is late.
func (c *call) deliver(late bool) {
	b := c.answer
	if b == nil {
		return
	}
	c.answer = nil
	defer b.free()
	if late {
		c.w.Header().Set("Connection", "close")
	}
	if err := c.body(c.status(c.failure), b.b, c.failure, late); err != nil {
		c.h.log.Debug("answer not delivered", "error", err)
	}
}

// overdue sends the body of a call whose Serve goes on after its answer. It
// reports whether it may still have to be sent.
func (c *call) overdue() (wait bool) {
	if !c.mu.TryLock() {
		return true
	}
	defer c.mu.Unlock()
	switch {
	case c.answer == nil:
		return false
	case time.Since(c.answered) < lateAfter:
		return true
	}
	c.h.open.beats.Go(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deliver(true)
	})
	return false
}

// event writes one message. A client that does not take it has gone, which is
// cancellation.
func (c *call) event(b *buffer) error {
	out := newBuffer()
	defer out.free()
	out.b = eventstream.Append(out.b, &eventstream.Event{Type: messageEvent, Data: b.b})
	if err := c.write(out.b); err != nil {
		c.fail(err)
		return err
	}
	return nil
}

// fail ends the request of a client that does not take what is written.
func (c *call) fail(err error) {
	if c.cancel != nil {
		c.cancel(err)
	}
}

// messageEvent is the type of all our events.
const messageEvent = "message"

// silent reports whether nothing was written for so long. Whoever writes just
// now gives a sign of life.
func (c *call) silent(since time.Duration) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	return !c.over && c.failed == nil && time.Since(c.wrote) >= since
}

// beat gives a sign of life, so that nobody on the way takes the connection
// for dead.
func (c *call) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	if err := c.comment(); err != nil {
		c.fail(err)
	}
}

// close ends the exchange: from here on nobody writes. A request that its
// handler left without an answer gets one.
func (c *call) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over && !c.streaming {
		c.failure = errAbandoned()
		c.answer, _ = encode(&jsonrpc.Outgoing{ID: c.In.ID, Error: c.failure}) // an error can always be written
	}
	c.over = true
	c.deliver(false)
	c.end()
}
