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

	mu   sync.Mutex
	over bool // answered, or the response has ended
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
func (c *call) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
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
	c.over = true
	if c.streaming {
		return c.event(b)
	}
	if m.Error != nil && m.Error.Code == codeTimeout {
		// Its handler may go on, and the next request on the connection would
		// wait for it.
		c.Header().Set("Connection", "close")
	}
	if err := c.body(c.status(m.Error), b.b, m.Error); err != nil {
		c.fail(err)
		return err
	}
	return nil
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
	defer c.end()
	if c.over || c.streaming {
		c.over = true
		return
	}
	c.over = true
	e := errAbandoned()
	b, err := encode(&jsonrpc.Outgoing{ID: c.In.ID, Error: e})
	if err != nil {
		return // an error can always be written
	}
	defer b.free()
	_ = c.body(c.status(e), b.b, e) // a client that has gone needs no answer
}
