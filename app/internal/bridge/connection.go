package bridge

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/transport/web"
)

// A connection is one to the server, with the server that its callers see.
type connection struct {
	key     string // the principal's identity
	session *int   // the count of what it is among, if it is one session's alone and ends with it

	ready chan struct{} // closed when proxy or err is set
	proxy *proxy.Proxy
	err   error

	// The bridge's mutex holds these.
	users int
	used  time.Time   // when the last user went
	timer *time.Timer // ends it when nobody uses it; nil while somebody does
	over  bool        // it ends
}

// ofPrincipal returns the connection of a principal's requests without session, and makes it if
// there is none. The caller releases it.
func (b *Bridge) ofPrincipal(ctx context.Context, key string) (*connection, error) {
	c, err := b.join(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		b.release(c)
		return nil, context.Cause(ctx)
	}
	if c.err != nil {
		b.release(c)
		return nil, c.err
	}
	return c, nil
}

// join makes the caller a user of the principal's connection, which may not be ready.
func (b *Bridge) join(key string) (*connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, proxy.ErrClosed
	}
	c := b.callers[key]
	if c == nil {
		if err := b.paused(); err != nil {
			return nil, err
		}
		if err := b.roomForCaller(); err != nil {
			return nil, err
		}
		c = &connection{key: key, ready: make(chan struct{})}
		b.callers[key] = c
		b.connect(c)
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	c.users++
	return c, nil
}

// roomForCaller sees to it that one more principal may have a connection. mu is held.
func (b *Bridge) roomForCaller() error {
	if len(b.callers) < b.opts.MaxCallers {
		return nil
	}
	var oldest *connection
	for _, c := range b.callers {
		if c.users == 0 && (oldest == nil || c.used.Before(oldest.used)) {
			oldest = c
		}
	}
	if oldest == nil || time.Since(oldest.used) < b.opts.Proxy.KeptTime {
		return web.TooMany("MaxCallers", "the server behind this bridge is in use by %d callers, the maximum (MaxCallers); try again later", len(b.callers))
	}
	b.log.Info("a connection makes place for another caller's", "idle", time.Since(oldest.used).Round(time.Second))
	b.drop(oldest)
	return nil
}

// paused refuses a new connection during a long pause after attempts that failed. mu is held.
func (b *Bridge) paused() error {
	if pause := time.Until(b.retryAt); b.spare == nil && pause > waitPause {
		return jsonrpc.NewError(jsonrpc.CodeInternalError, "the server behind this bridge could not be reached; the next attempt is in %d s", int(pause.Seconds()+1)).
			With(mcp.RetryData{RetryAfterMs: pause.Milliseconds()})
	}
	return nil
}

// ofSession makes a connection for one session, which may be a connection of the caller's. The
// caller releases it.
func (b *Bridge) ofSession(piped bool) (*connection, error) {
	c, err := b.newOfSession(piped)
	if err != nil {
		return nil, err
	}
	<-c.ready // bounded by connectTime, and by Shutdown
	if c.err != nil {
		b.release(c)
		return nil, c.err
	}
	return c, nil
}

// newOfSession makes a connection for one session, which may not be ready.
func (b *Bridge) newOfSession(piped bool) (*connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, proxy.ErrClosed
	}
	count, most := &b.sessions, 2*b.opts.MaxSessions
	if piped {
		count, most = &b.piped, b.opts.MaxSessions
	}
	if *count >= most {
		return nil, web.TooMany("MaxSessions", "the server behind this bridge is in use by too many sessions (MaxSessions is %d); end one, or try again later", b.opts.MaxSessions)
	}
	if err := b.paused(); err != nil {
		return nil, err
	}
	c := &connection{session: count, ready: make(chan struct{}), users: 1}
	*count++
	b.connect(c)
	return c, nil
}

// connect makes the connection in the background, or takes the spare one. mu is held.
func (b *Bridge) connect(c *connection) {
	b.open[c] = struct{}{}
	if b.spare != nil {
		c.proxy, b.spare = b.spare, nil
		close(c.ready)
		return
	}
	pause := time.Until(b.retryAt)
	b.wg.Go(func() {
		defer close(c.ready)
		if c.err = sleep(b.ctx, pause); c.err == nil {
			c.proxy, c.err = b.dial(b.ctx)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if c.err == nil {
			b.failures = 0
			return
		}
		if b.ctx.Err() == nil {
			b.log.Warn("connecting to the server behind this bridge", "err", c.err)
		}
		b.retryAt = time.Now().Add(min(firstPause<<min(b.failures, 20), longPause))
		b.failures++
		if b.callers[c.key] == c { // the next request tries again
			delete(b.callers, c.key)
		}
	})
}

// dial connects once.
func (b *Bridge) dial(ctx context.Context) (*proxy.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	o := b.opts.Proxy
	p, err := proxy.Connect(ctx, b.dialer, &o)
	if err != nil {
		return nil, err
	}
	p.Server().Use(b.cancelled)
	if b.opts.OnServer != nil {
		b.opts.OnServer(p.Server())
	}
	return p, nil
}

// release ends the use of a connection. One without users ends: at once if it was a session's or
// never came to be, otherwise after a while.
func (b *Bridge) release(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.users--
	c.used = time.Now()
	switch {
	case c.users > 0 || c.over:
	case c.session != nil || b.callers[c.key] != c:
		b.drop(c)
	default:
		c.timer = time.AfterFunc(b.opts.Idle, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if c.users == 0 && time.Since(c.used) >= b.opts.Idle {
				b.drop(c)
			}
		})
	}
}

// drop ends a connection in the background. mu is held.
func (b *Bridge) drop(c *connection) {
	if c.over {
		return
	}
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if b.callers[c.key] == c {
		delete(b.callers, c.key)
	}
	b.wg.Go(func() {
		<-c.ready
		if c.proxy != nil {
			if err := c.proxy.Close(); err != nil {
				b.log.Debug("closing a connection", "err", err)
			}
			over, cancel := context.WithCancel(context.Background())
			cancel() // its calls have ended; timers of theirs would keep all of it until they are due
			_ = c.proxy.Server().Shutdown(over)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, c)
		if c.session != nil {
			*c.session--
		}
	})
}

// end is drop for callers without the lock.
func (b *Bridge) end(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(c)
}

// shutdown lets what is under way finish until ctx ends.
func (c *connection) shutdown(ctx context.Context) error {
	<-c.ready
	if c.proxy == nil {
		return nil
	}
	return c.proxy.Server().Shutdown(ctx)
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newKey makes a key that seals what callers carry between requests.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key
}

// closedChannel is the ready channel of a connection that is there.
func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
