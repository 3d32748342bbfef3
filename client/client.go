package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

// closeTime bounds how long Close is polite to the server.
const closeTime = 10 * time.Second

// A Client is one relation with one server. It is made by [Connect].
type Client struct {
	opts       Options
	caps       *mcp.ClientCapabilities // without extensions
	extensions *extensions
	dialer     transport.Dialer
	log        *slog.Logger
	// server names the server in the cache, and partition the principal.
	server, partition string

	ctx  context.Context //nolint:containedctx // the client's life, which its goroutines share
	stop context.CancelCauseFunc

	lastID    atomic.Int64 // ids are never used twice, not even on another link
	level     atomic.Pointer[mcp.LogLevel]
	chain     Func          // of Options.Middleware; nil if there is none
	slot      chan struct{} // with OneAtATime: has an element while a call has the slot
	tools     toolCache
	inbox     inbox
	throttles throttles
	problems  problems
	timers    pausetimer.Scheduler // of all calls

	mu       sync.Mutex
	closed   bool
	cur      *conn    // nil while there is no connection
	last     *session // what was negotiated last
	routed   bool     // the transport of the last connection repeats parts of requests
	dialling *reconnect
	gone     error                          // why the last connection ended, if there will be no other
	failures int                            // connections that failed or died young, in a row
	retryAt  time.Time                      // when to dial next
	calls    map[mcp.ID]*call               // by the id of the next or last attempt
	holder   *call                          // has the slot
	waits    map[*pausetimer.Timer]struct{} // of those who wait for what belongs to no call
	asking   int                            // persons being asked for what belongs to no call
	awaited  map[chan struct{}]string

	wg    sync.WaitGroup // everything that the client started
	quiet chan struct{}  // closed when Close is done
}

// clients numbers the clients of servers that have no name.
var clients atomic.Int64

// Connect connects to a server, finds out what it speaks, and returns a
// client for it. The end of ctx ends the attempt, not the client, and with it
// the process of a server that has not answered yet; its values reach the
// handlers. Errors: those of the dialer, [ErrUnsupportedVersion].
func Connect(ctx context.Context, dialer transport.Dialer, opts *Options) (*Client, error) {
	o, err := opts.defaults()
	if err != nil {
		return nil, err
	}
	if dialer == nil {
		return nil, errors.New("client: Connect: nil dialer")
	}
	known, err := newExtensions(o.Extensions)
	if err != nil {
		return nil, err
	}
	c := &Client{
		opts: o, caps: o.capabilities(), extensions: known, dialer: dialer, log: o.Logger,
		server:  dialer.Key(),
		calls:   make(map[mcp.ID]*call),
		waits:   make(map[*pausetimer.Timer]struct{}),
		awaited: make(map[chan struct{}]string),
		quiet:   make(chan struct{}),
	}
	if c.server == "" {
		c.server = "client " + strconv.FormatInt(clients.Add(1), 10)
	}
	c.chain = chained(o.Middleware)
	c.slot = make(chan struct{}, 1)
	c.ctx, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	// A client without a principal shares results with no other.
	c.partition = cmp.Or(o.Principal, "\x00"+rand.Text())
	c.inbox.start(c)
	c.level.Store(&o.LogLevel)
	if err := c.dial(c.pausing(ctx)); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	c.watchLists(ctx)
	return c, nil
}

// Close ends the relation and returns once nothing of it is left: no
// goroutine, no process. Calls under way end with [ErrClosed]. Logs and other
// notifications that have arrived are handed to their handlers before, for ten
// seconds at most. It must not be called from a handler. The second call waits for
// the first.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.quiet
		return nil
	}
	c.closed = true
	c.stop(ErrClosed)
	cur := c.cur
	c.cur = nil
	cause := ErrClosed
	if c.gone != nil { // the calls were on the connection that ended
		cause = fmt.Errorf("%w: %w", transport.ErrInterrupted, c.gone)
	}
	for _, k := range c.calls {
		k.end(cause)
	}
	c.mu.Unlock()
	defer close(c.quiet)
	var err error
	if cur != nil {
		err = cur.teardown(ErrClosed)
	}
	c.wg.Wait()
	c.timers.Stop()
	return err
}

// spawn runs f on a goroutine that Close waits for. It reports false, and
// does nothing, when the client is closed.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(f)
	return true
}

// Session returns the id of the session that the server keeps for this client;
// empty if there is none, as in the stateless era, on pipes, and while there is
// no connection. It lets its holder act as this client.
func (c *Client) Session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur == nil {
		return ""
	}
	return c.cur.link.Traits().Session
}

// session returns what was negotiated last; never nil once connected.
func (c *Client) session() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// unknown is the session before there is one, for middleware that looks at the
// client while that connects.
var unknown = &session{facts: new(revision.Facts), caps: new(mcp.ServerCapabilities)}

// known is the session, or what is known of it.
func (c *Client) known() *session { return cmp.Or(c.session(), unknown) }

// What follows is of what was negotiated last. Middleware may ask before that:
// then all of it is empty.

// Server returns what the server says about itself, which nothing should be
// decided by; nil if it says nothing. It must not be written to.
func (c *Client) Server() *mcp.Implementation { return c.known().server }

// Capabilities returns what the server declared. It must not be written to.
func (c *Client) Capabilities() *mcp.ServerCapabilities { return c.known().caps }

// Instructions returns the server's advice on how to use it, which is
// untrusted text.
func (c *Client) Instructions() string { return c.known().instructions }

// Version returns the revision in use; "" while Connect negotiates.
func (c *Client) Version() string { return c.known().facts.Version }

// Modern reports whether the revision in use is stateless; otherwise it has
// sessions and a handshake. It is false while Connect negotiates.
func (c *Client) Modern() bool {
	s := c.session()
	return s != nil && !s.facts.Handshake
}

// Connected reports whether there is a connection now. Without one, the next
// call makes one. Over HTTP, where requests connect by themselves, it says
// only that the server has not ended the session.
func (c *Client) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur != nil
}
