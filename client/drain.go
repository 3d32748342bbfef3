package client

import "context"

// Drain returns when the handlers of log messages and of other notifications that
// arrived before it have run: those of a call arrive before its answer, and are
// handled in their own time. It must not be called from such a handler. The error
// is that of ctx, or [ErrClosed].
func (c *Client) Drain(ctx context.Context) error {
	if c.inbox.queued.Load() == 0 {
		return nil
	}
	done := make(chan struct{})
	c.inbox.mu.Lock()
	c.inbox.put(event{handler: "Drain", call: func(context.Context) { close(done) }})
	c.inbox.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return ErrClosed
	}
}
