package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
)

// Bounds of what waits for the user's handlers.
const (
	maxEventBytes = 64 << 20 // of all events together
	eventSize     = 512      // what an event takes in addition to its parameters
	maxChanges    = 4096
	maxChangeURI  = 8 << 10
)

// An inbox hands what the server tells to the user's handlers: events (logs) in
// order, and changes coalesced. What arrives never waits for a handler, which may
// wait for what arrives next.
type inbox struct {
	c      *Client
	queued atomic.Int64 // events that wait or are handled

	mu      sync.Mutex
	events  []event
	arrived chan struct{} // told when there are events
	held    int           // bytes of events that wait or are handled
	dropped int           // events, since all were handled
	pending map[change]bool
	order   []change
	wake    chan struct{}
}

// An event is the call of a handler, and the size of what it is called with; that
// of Drain has none.
type event struct {
	handler string
	size    int
	call    func(ctx context.Context)
}

// A change is a notice that something is different now: a list, by its
// notification, or one resource.
type change struct{ method, uri string }

// start begins to work for handlers, if there are any.
func (b *inbox) start(c *Client) {
	b.c = c
	b.arrived = make(chan struct{}, 1)
	b.pending = make(map[change]bool)
	b.wake = make(chan struct{}, 1)
	o := &c.opts
	if o.OnLog != nil || o.OnElicitationComplete != nil || o.OnNotification != nil || c.extensions.handle() {
		c.spawn(b.runEvents)
	}
	if o.OnToolsChanged != nil || o.OnPromptsChanged != nil || o.OnResourcesChanged != nil || o.OnResourceUpdated != nil {
		c.spawn(b.runChanges)
	}
}

// runEvents hands events over until the client is closed, and then, for closeTime
// at most, those that have arrived.
func (b *inbox) runEvents() {
	for {
		select {
		case <-b.arrived:
			for b.c.ctx.Err() == nil && b.handleNext() {
			}
		case <-b.c.ctx.Done():
			for end := time.Now().Add(closeTime); time.Now().Before(end) && b.handleNext(); {
			}
			return
		}
	}
}

// handleNext hands over the oldest event, and reports whether there was one.
func (b *inbox) handleNext() bool {
	e, ok := b.nextEvent()
	if ok {
		_ = b.c.guard(e.handler, func() { e.call(b.c.ctx) }) // the error is logged
		b.handled(e)
	}
	return ok
}

// event queues something for a handler. It is dropped if there is no room; for
// one event there always is.
func (b *inbox) event(m *jsonrpc.Incoming, f func(ctx context.Context)) {
	size := eventSize + len(m.Params.Raw())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held > 0 && b.held+size > maxEventBytes {
		if b.dropped++; b.dropped == 1 {
			b.c.log.Warn("notifications come faster than they are handled and are dropped", "method", m.Method)
		}
		return
	}
	b.queued.Add(1)
	b.put(event{m.Method, size, f})
}

// put queues an event. b.mu is held.
func (b *inbox) put(e event) {
	b.held += e.size
	b.events = append(b.events, e)
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

func (b *inbox) nextEvent() (event, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) == 0 {
		return event{}, false
	}
	next := b.events[0]
	b.events[0] = event{}
	b.events = b.events[1:]
	return next, true
}

// handled makes room for the next event.
func (b *inbox) handled(e event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= e.size
	if e.size > 0 {
		b.queued.Add(-1)
	}
	if len(b.events) == 0 && b.dropped > 0 {
		b.c.log.Warn("notifications were dropped, since they came faster than they were handled", "count", b.dropped)
		b.dropped = 0
	}
}

func (b *inbox) runChanges() {
	for {
		select {
		case <-b.wake:
		case <-b.c.ctx.Done():
			return
		}
		for {
			next, ok := b.next()
			if !ok || b.c.ctx.Err() != nil {
				break
			}
			if f := b.c.opts.onChange(next); f != nil {
				_ = b.c.guard(next.method, func() { f(b.c.ctx) }) // the error is logged
			}
		}
	}
}

func (b *inbox) next() (change, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.order) == 0 {
		return change{}, false
	}
	next := b.order[0]
	b.order = b.order[1:]
	delete(b.pending, next)
	return next, true
}

// onChange returns the handler for a change, or nil.
func (o *Options) onChange(ch change) func(ctx context.Context) {
	switch ch.method {
	case mcp.NotifyToolsListChanged:
		return o.OnToolsChanged
	case mcp.NotifyPromptsListChanged:
		return o.OnPromptsChanged
	case mcp.NotifyResourcesListChanged:
		return o.OnResourcesChanged
	}
	if o.OnResourceUpdated == nil {
		return nil
	}
	return func(ctx context.Context) { o.OnResourceUpdated(ctx, ch.uri) }
}

// changed forgets what was kept of what has changed, and tells the handler.
func (b *inbox) changed(ch change) {
	c := b.c
	switch ch.method {
	case mcp.NotifyToolsListChanged:
		c.opts.Cache.drop(c.server, mcp.MethodToolsList, "")
	case mcp.NotifyPromptsListChanged:
		c.opts.Cache.drop(c.server, mcp.MethodPromptsList, "")
	case mcp.NotifyResourcesListChanged:
		c.opts.Cache.drop(c.server, mcp.MethodResourcesList, "")
		c.opts.Cache.drop(c.server, mcp.MethodResourcesTemplates, "")
	case mcp.NotifyResourcesUpdated:
		c.opts.Cache.drop(c.server, mcp.MethodResourcesRead, ch.uri)
	}
	if c.opts.onChange(ch) == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending[ch] {
		return
	}
	if len(b.order) >= maxChanges {
		c.log.Warn("change notices come faster than they are handled; one was dropped", "uri", ch.uri)
		return
	}
	b.pending[ch] = true
	b.order = append(b.order, ch)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Receive takes what arrives outside of answers, in order.
func (cn *conn) Receive(m *jsonrpc.Incoming) {
	switch m.Kind {
	case jsonrpc.Request:
		cn.request(m)
	case jsonrpc.Response:
		cn.c.log.Debug("an answer that nobody waits for", "id", m.ID.String())
		if m.Error == nil {
			cn.lateAnswer(m.ID)
		}
	case jsonrpc.Notification:
		if err := cn.notified(m); err != nil {
			cn.c.log.Debug("a notification was ignored", "method", m.Method, "err", err)
		}
	}
}

// params decodes a notification's parameters in the newest shape.
func (cn *conn) params(m *jsonrpc.Incoming, v any) error {
	raw := m.Params.Raw()
	if len(raw) == 0 {
		return errors.New("it has no params")
	}
	if s := cn.session(); s != nil {
		return s.shape.UpParams(m.Method, raw, v)
	}
	return wire.DecodeParams(raw, v)
}

// notified takes a notification. The error says why it is ignored.
func (cn *conn) notified(m *jsonrpc.Incoming) error {
	c := cn.c
	switch m.Method {
	case mcp.NotifyProgress:
		var p mcp.ProgressParams
		if err := cn.params(m, &p); err != nil {
			return err
		}
		c.report(&p)
	case mcp.NotifyMessage:
		return cn.logged(m)
	case mcp.NotifyCancelled:
		var p mcp.CancelledParams
		if err := cn.params(m, &p); err != nil {
			return err
		}
		if s := cn.session(); s != nil {
			s.era.cancelled(cn, &p)
		}
	case mcp.NotifySubscriptionsAcknowledged:
		var p mcp.AcknowledgedParams
		if err := cn.params(m, &p); err != nil {
			return err
		}
		return cn.acknowledged(m, &p)
	case mcp.NotifyToolsListChanged, mcp.NotifyPromptsListChanged, mcp.NotifyResourcesListChanged, mcp.NotifyResourcesUpdated:
		return cn.changed(m)
	case mcp.NotifyElicitationComplete:
		var p mcp.ElicitationCompleteParams
		if err := cn.params(m, &p); err != nil {
			return err
		}
		c.completed(p.ElicitationID)
		if f := c.opts.OnElicitationComplete; f != nil {
			c.inbox.event(m, func(ctx context.Context) { f(ctx, p.ElicitationID) })
		}
	default:
		if n := c.extensions.notifications[m.Method]; n != nil {
			return cn.extensionNotified(n, m)
		}
		f := c.opts.OnNotification
		if f == nil {
			return errors.New("nobody takes it")
		}
		c.inbox.event(m, func(ctx context.Context) { f(ctx, m.Method, m.Params.Raw()) })
	}
	return nil
}

// logged takes a log message.
func (cn *conn) logged(m *jsonrpc.Incoming) error {
	c := cn.c
	f := c.opts.OnLog
	if f == nil {
		return errors.New("nobody takes logs")
	}
	if s := cn.session(); s != nil && s.caps.Logging == nil {
		return errors.New("the server did not declare logging")
	}
	p := new(mcp.LogParams)
	if err := cn.params(m, p); err != nil {
		return err
	}
	c.inbox.event(m, func(ctx context.Context) { f(ctx, p) })
	return nil
}

// changed takes a change notice, if it was asked for.
func (cn *conn) changed(m *jsonrpc.Incoming) error {
	s := cn.session()
	if s == nil {
		return errors.New("it came before negotiation was over")
	}
	meta, _ := m.Params.Object("_meta")
	if err := s.era.expects(cn, s, m.Method, meta); err != nil {
		return err
	}
	ch := change{method: m.Method}
	if m.Method == mcp.NotifyResourcesUpdated {
		var p mcp.ResourceUpdatedParams
		if err := cn.params(m, &p); err != nil {
			return err
		}
		if ch.uri = p.URI; len(ch.uri) > maxChangeURI {
			return fmt.Errorf("its URI is longer than %d bytes", maxChangeURI)
		}
	}
	cn.c.inbox.changed(ch)
	return nil
}
