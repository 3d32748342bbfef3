package streamable

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// maxPending is about how many bytes of events wait for the one who writes:
// then those who send wait too.
const maxPending = 32 << 10

// A call is one request that belongs to no session: it stands for itself and is
// answered by the response to its POST (spec 2026-07-28,
// basic/transports/streamable-http).
//
// Whoever sets writing is the only one who uses the response, without holding
// mu: what comes meanwhile waits, and leaves in his next write.
type call struct {
	transport.Exchange
	response
	ctx    requestContext
	cancel context.CancelCauseFunc // nil where net/http itself ends what it cannot write
	legacy *revision.Facts         // of a request of a revision with a handshake, else nil

	mu      sync.Mutex
	over    bool          // answered, or the response has ended
	writing bool          // somebody uses the response
	begun   bool          // a goroutine that writes is on its way
	broken  error         // why nothing can be written any more
	torn    bool          // a part of the response was written, and the rest cannot be
	pending *buffer       // events that wait to be written, or nil
	room    chan struct{} // closed when something was written, if somebody waits for that
}

// Send sends a message as an event. It waits for room, not for the client: a
// goroutine of its own writes what is there when it gets to it, so that what is
// sent in one go leaves together, and nothing waits for a timer.
func (c *call) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	defer b.free()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending != nil && len(c.pending.b)+len(b.b) > maxPending && !c.over && c.broken == nil {
		if err := c.wait(ctx); err != nil {
			return err
		}
	}
	switch {
	case c.over:
		return jsonrpc.ErrEnded
	case c.broken != nil:
		return c.broken
	}
	c.add(b)
	if !c.writing && !c.begun {
		c.begun = true
		c.h.list.beats.Add(1)
		go c.drain()
	}
	return nil
}

// wait waits until something has been written. mu is held before and after.
func (c *call) wait(ctx context.Context) error {
	if c.room == nil {
		c.room = make(chan struct{})
	}
	room := c.room
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add puts an event behind those that wait.
func (c *call) add(b *buffer) {
	if c.pending == nil {
		c.pending = newBuffer()
	}
	c.pending.b = eventstream.Append(c.pending.b, &eventstream.Event{Type: messageEvent, Data: b.b})
}

// drain writes what waits, unless somebody has done so meanwhile.
func (c *call) drain() {
	defer c.h.list.beats.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = false
	if !c.writing {
		c.pump()
	}
}

// pump writes what waits, and what comes meanwhile. mu is held before and
// after, and nobody else is writing. A client that does not take it has gone,
// which is cancellation.
func (c *call) pump() {
	if c.pending == nil {
		return
	}
	c.writing = true
	for c.pending != nil && c.broken == nil {
		if !c.over {
			c.mu.Unlock()
			runtime.Gosched() // who sends in one go gets to the next messages
			c.mu.Lock()
		}
		out := c.pending
		c.pending = nil
		c.mu.Unlock()
		err := c.write(out.b)
		c.done(out)
		c.mu.Lock()
		c.written(err)
	}
	c.writing = false
	c.written(nil)
}

// written notes the outcome of a write.
func (c *call) written(err error) {
	if err != nil {
		c.broken = err
		c.fail(err)
		if c.pending != nil {
			c.pending.free()
			c.pending = nil
		}
	}
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
}

// Answer sends the response: as one JSON body if nothing was sent before it. A
// response that cannot be encoded leaves the exchange open, so that an error
// can be sent in its place.
func (c *call) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	if size := m.Size(); size > maxPending {
		if done, err := c.large(m, size); done {
			return err
		}
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	return c.deliver(b, m.Error)
}

// deliver sends what answers the request, which is e if it is an error.
func (c *call) deliver(b *buffer, e *jsonrpc.Error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		b.free()
		return jsonrpc.ErrEnded
	}
	c.over = true
	defer c.done(b) // nobody else is writing by then
	switch {
	case c.writing:
		c.add(b)
		c.settle()
	case c.streaming:
		c.add(b)
		c.pump()
	case c.broken == nil:
		c.written(c.whole(e, b))
	}
	return c.broken
}

// large sends a large response in pieces that are never held together, unless
// it is an event: of that all lines must be known. It reports whether it did.
func (c *call) large(m *jsonrpc.Outgoing, size int64) (done bool, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.writing || c.streaming || c.pending != nil || c.broken != nil {
		return false, nil
	}
	c.over = true
	err := c.pieces(size, m)
	if err != nil {
		c.torn = true
		c.h.log.Debug("answer broken off", "error", err)
	}
	c.written(err)
	return true, err
}

// abort ends the response in disorder if a part of it is missing.
func (c *call) abort() {
	c.mu.Lock()
	torn := c.torn
	c.mu.Unlock()
	if torn {
		panic(http.ErrAbortHandler)
	}
}

// settle waits until nobody writes any more. mu is held before and after.
func (c *call) settle() {
	for c.writing {
		_ = c.wait(context.Background()) // which does not end; the write does
	}
}

// whole sends the response at once: as JSON, or, with what waits before it, as
// a stream that is complete.
func (c *call) whole(e *jsonrpc.Error, b *buffer) error {
	if e != nil && e.Code == codeTimeout {
		// Its handler may go on, and the next request on the connection would
		// wait for it.
		c.Header().Set("Connection", "close")
	}
	if c.pending == nil {
		return c.body(c.status(e), b.b, e, c.Principal)
	}
	c.add(b)
	out := c.pending
	c.pending = nil
	defer c.done(out)
	return c.events(out.b)
}

// fail ends the request of a client that does not take what is written; in
// revisions with a handshake a disconnect is no cancellation (ruling 13).
func (c *call) fail(err error) {
	if c.cancel != nil && c.legacy == nil {
		c.cancel(err)
	}
}

// messageEvent is the type of all our events.
const messageEvent = "message"

// silent reports whether nothing was written for so long. Whoever writes just
// now gives a sign of life. It never waits.
func (c *call) silent(since time.Duration) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	return !c.over && !c.writing && c.broken == nil && time.Since(c.wrote) >= since
}

// beat gives a sign of life, so that nobody on the way takes the connection
// for dead.
func (c *call) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.writing || c.broken != nil {
		return
	}
	if c.pending == nil {
		c.pending = newBuffer()
		c.pending.b = eventstream.AppendComment(c.pending.b)
	}
	c.pump()
}

// close ends the exchange: from here on nobody writes. A request that its
// handler left without an answer gets one.
func (c *call) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.end()
	answered := c.over
	c.over = true
	if c.room != nil {
		c.written(nil) // those who wait for room do so in vain
	}
	c.settle()
	c.pump()
	if answered || c.streaming || c.broken != nil {
		return
	}
	e := errAbandoned()
	b, err := encode(&jsonrpc.Outgoing{ID: c.In.ID, Error: e})
	if err != nil {
		return // an error can always be written
	}
	defer c.done(b)
	_ = c.body(c.status(e), b.b, e, c.Principal) // a client that has gone needs no answer
}
