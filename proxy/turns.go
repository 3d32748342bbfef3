package proxy

import (
	"context"
	"sync/atomic"
	"time"
)

// settleTime bounds how long a cancelled call keeps others waiting.
const settleTime = 2 * time.Second

// turns let the calls of an upstream server with a handshake go one after
// another, since on a pipe nothing says which call a question belongs to.
type turns struct {
	free chan struct{} // has an element while nobody has the turn
	now  atomic.Pointer[asking]
}

func (t *turns) init() {
	t.free = make(chan struct{}, 1)
	t.free <- struct{}{}
}

// take waits for the turn of a call, which must leave then. ctx is that of the
// call: if it has ended when the call leaves, the upstream server is asked for a
// sign of life first, so that a question which it sent before it heard of the
// cancellation is not taken for one of the next call.
func (t *turns) take(ctx context.Context, p *Proxy, a *asking) (leave func(), err error) {
	if p.opts.NoQuestions || p.client.Modern() {
		return func() {}, nil
	}
	select {
	case <-t.free:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.ctx.Done():
		return nil, ErrClosed
	}
	t.now.Store(a)
	return func() {
		t.now.Store(nil)
		if ctx.Err() != nil && p.ctx.Err() == nil && p.client.Connected() {
			ping, cancel := context.WithTimeout(p.ctx, settleTime)
			if err := p.client.Ping(ping); err != nil {
				p.log.Debug("the upstream server gave no sign of life after a call was cancelled", "server", p.name(), "err", err)
			}
			cancel()
		}
		t.free <- struct{}{}
	}, nil
}
