// Package bridge makes a server available over another transport, to callers of every protocol
// version. It extends package proxy with connections for several callers: each session of a
// server with a handshake belongs to one session of a caller, and callers without a session
// share one connection for each principal. A principal never sees the state, input requests or
// logs that another principal's calls left in a connection.
//
//	b := bridge.New(stdio.Command("old-server"), nil)
//	if err := b.Start(ctx); err != nil {
//		return err
//	}
//	endpoint := streamable.NewHandler(b, nil)
package bridge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// Bounds of connecting: a failed attempt is followed by a pause, which doubles from firstPause to
// longPause. Callers wait for the end of one that is shorter than waitPause, and are refused
// during a longer one. connectTime bounds one attempt.
const (
	firstPause  = 250 * time.Millisecond
	longPause   = 30 * time.Second
	waitPause   = 2 * time.Second
	connectTime = 60 * time.Second
)

// Options are what is not required of a bridge. A nil *Options, and each zero field, means the
// default that is told.
type Options struct {
	// Proxy are the options of each connection. Replicas, and connections of one bridge, need
	// the same Proxy.Server.StateKeys; Start makes a key if there is none.
	Proxy proxy.Options
	// MaxSessions is the most sessions of callers for each of which there is a connection of
	// its own. The transport should end idle sessions before there are as many: a bridge refuses
	// those beyond twice the number, since as many again may begin or end. Sessions that are a
	// connection of their caller (transport.Conn.Shared), such as those of WebSocket, are counted
	// apart, and those beyond the number refused. Default 32.
	MaxSessions int
	// MaxCallers is the most principals whose requests belong to no session and for each of
	// which there is a connection. One more takes the place of the one that was idle the
	// longest; it is refused if all were used within Proxy.KeptTime, since questions may be
	// open. Default 32.
	MaxCallers int
	// Idle is how long the connection of a principal is kept that nothing uses, and at least
	// Proxy.KeptTime, since a question may be open. Default 15 min.
	Idle time.Duration
	// OnServer is called with the server that callers of a connection see, before its first
	// request, for middleware, observers and Visible. Default none.
	OnServer func(s *server.Server)
	// Logger logs what no caller is told. Default slog.Default.
	Logger *slog.Logger
}

// A Bridge is a transport.Handler in front of a server elsewhere. Its methods may be called by
// many goroutines at once.
type Bridge struct {
	dialer transport.Dialer
	opts   Options
	log    *slog.Logger
	modern bool // the server has no sessions

	calls    context.Context //nolint:containedctx // ends with Cancel, and calls under way with it
	endCalls context.CancelCauseFunc

	ctx  context.Context //nolint:containedctx // the bridge's life, which its goroutines share
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	spare    *proxy.Proxy // connected, and used by nobody yet
	callers  map[string]*connection
	open     map[*connection]struct{} // all, those of sessions too, until they have ended
	sessions int                      // whose messages come by requests of HTTP
	piped    int                      // that are a connection of their caller
	failures int
	retryAt  time.Time
}

var _ transport.Handler = (*Bridge)(nil)

// New makes a bridge to the server that dialer leads to. Start must be called before it is served.
func New(dialer transport.Dialer, o *Options) *Bridge {
	b := &Bridge{dialer: dialer, callers: make(map[string]*connection), open: make(map[*connection]struct{})}
	b.calls, b.endCalls = context.WithCancelCause(context.Background())
	if o != nil {
		b.opts = *o
	}
	b.opts.MaxSessions = cmp.Or(b.opts.MaxSessions, 32)
	b.opts.MaxCallers = cmp.Or(b.opts.MaxCallers, 32)
	b.opts.Proxy.KeptTime = cmp.Or(b.opts.Proxy.KeptTime, 2*time.Minute)
	b.opts.Idle = max(cmp.Or(b.opts.Idle, 15*time.Minute), b.opts.Proxy.KeptTime)
	b.log = b.opts.Logger
	if b.log == nil {
		b.log = slog.Default()
	}
	b.opts.Proxy.Logger = cmp.Or(b.opts.Proxy.Logger, b.log)
	if len(b.opts.Proxy.Server.StateKeys) == 0 {
		b.opts.Proxy.Server.StateKeys = [][]byte{newKey()}
	}
	return b
}

// Start makes the first connection, so that a server that cannot be reached is noticed at once.
// The first caller gets it. Errors are those of proxy.Connect. The end of ctx ends the attempt;
// its values stay those of all connections.
func (b *Bridge) Start(ctx context.Context) error {
	b.ctx, b.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	p, err := b.dial(ctx)
	if err != nil {
		b.stop(err)
		return err
	}
	b.modern = p.Client().Modern()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = p
	return nil
}

// Modern reports whether the server speaks a stateless revision, so that sessions of callers share
// the connection of their principal. It is known after Start.
func (b *Bridge) Modern() bool { return b.modern }

// Serve handles one request that belongs to no session, on the connection of its principal.
func (b *Bridge) Serve(ctx context.Context, x *transport.Exchange) {
	c, err := b.ofPrincipal(ctx, x.Principal.Identity())
	if err != nil {
		e := refusal(err)
		b.Refused(ctx, transport.Refusal{Err: e, Method: x.In.Method, Principal: x.Principal, Transport: x.Transport})
		if err := x.Out.Answer(ctx, &jsonrpc.Outgoing{ID: x.In.ID, Error: e}); err != nil {
			b.log.Debug("a refusal was not delivered", "err", err)
		}
		return
	}
	defer b.release(c)
	c.proxy.Server().Serve(ctx, x)
}

// Open begins a session, with a connection of its own if the server has sessions.
func (b *Bridge) Open(conn transport.Conn) (transport.Session, error) {
	var c *connection
	var err error
	if b.modern {
		c, err = b.ofPrincipal(b.ctx, conn.Principal().Identity())
	} else {
		c, err = b.ofSession(conn.Shared())
	}
	if err != nil {
		return nil, refusal(err)
	}
	s, err := c.proxy.Server().Open(conn)
	if err != nil {
		b.release(c)
		return nil, err
	}
	return &session{Session: s, b: b, c: c}, nil
}

// Cancel cancels the calls under way at the server, and has their callers told that the bridge ends;
// calls that come later are answered so at once. It does not wait for that: Shutdown does.
func (b *Bridge) Cancel() { b.endCalls(server.ErrShutdown) }

// cancelled is the middleware of a connection that ends calls with Cancel. Subscriptions end by
// themselves with Shutdown.
func (b *Bridge) cancelled(next server.Func) server.Func {
	return func(c *server.Call) (server.Result, error) {
		if c.Method() == mcp.MethodListen {
			return next(c)
		}
		if b.calls.Err() != nil {
			return nil, server.ErrShutdown
		}
		ctx, cancel := context.WithCancelCause(c)
		defer cancel(nil)
		defer context.AfterFunc(b.calls, func() { cancel(server.ErrShutdown) })()
		result, err := next(c.WithContext(ctx))
		if err != nil && b.calls.Err() != nil && c.Err() == nil {
			return nil, server.ErrShutdown
		}
		return result, err
	}
}

// Refused is told of what the transport refused.
func (b *Bridge) Refused(_ context.Context, r transport.Refusal) {
	b.log.Debug("a request was refused", "method", r.Method, "err", r.Err)
}

// A session is one of a caller, and holds its connection.
type session struct {
	transport.Session

	b    *Bridge
	c    *connection
	once sync.Once
}

// Close ends the session, and its connection if that is its own.
func (s *session) Close(cause error) {
	s.Session.Close(cause)
	s.once.Do(func() { s.b.release(s.c) })
}

// refusal is what a caller is told who gets no connection. Why is in the log.
func refusal(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	if errors.Is(err, proxy.ErrClosed) {
		return web.ShuttingDown()
	}
	return web.Unavailable("the server behind this bridge cannot be reached; try again later")
}

// Shutdown ends the bridge in good order: requests under way may finish until ctx ends, unless Cancel
// was called before. It returns when nothing of the bridge is left: no goroutine, no process. The
// error is that of ctx, if it was needed.
func (b *Bridge) Shutdown(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	if b.spare != nil {
		c := &connection{proxy: b.spare, ready: closedChannel()}
		b.open[c], b.spare = struct{}{}, nil
	}
	var all []*connection
	for c := range b.open {
		all = append(all, c)
	}
	b.mu.Unlock()
	if b.stop == nil { // not started
		return nil
	}
	b.stop(proxy.ErrClosed) // attempts under way
	errs := make(chan error, len(all))
	for _, c := range all {
		go func() { errs <- c.shutdown(ctx) }()
	}
	var first error
	for range all {
		if err := <-errs; first == nil {
			first = err
		}
	}
	for _, c := range all {
		b.end(c)
	}
	b.wg.Wait()
	return first
}
