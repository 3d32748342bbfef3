package websocket

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/web"
)

// Defaults of [Options].
const (
	DefaultMaxConns             = 10_000
	DefaultMaxConnsPerPrincipal = 100
	DefaultMaxConnsPerAddress   = 1000
)

// refusalTimeout is how long a client may take for the end of a body that is not
// read, and once more to read its refusal.
const refusalTimeout = 5 * time.Second

// corsPolicy is the CORS policy. Browsers ask nothing before they open a
// WebSocket, but Origin counts.
var corsPolicy = &web.CORS{Methods: []string{http.MethodGet}}

// errShutdown is the cause of what Shutdown ends.
var errShutdown = fmt.Errorf("%w: the endpoint is shutting down", transport.ErrClosed)

// Options adjust an endpoint. The zero value, and nil, give the defaults.
type Options struct {
	// Access decides which callers may reach the endpoint, and its Origins which
	// pages: browsers open WebSockets to any origin.
	Access web.Access
	// MaxConns is how many connections there may be at once; those of anonymous
	// callers may be nine tenths of them. Others get 429: a connection is never
	// ended for another one. Negative is no limit. Default: 10,000.
	MaxConns int
	// MaxConnsPerPrincipal is how many connections one authenticated caller may
	// have; others get 429. Negative is no limit. Default: 100.
	MaxConnsPerPrincipal int
	// MaxConnsPerAddress is how many connections the anonymous callers of one
	// address may have, who may be many people behind a proxy; others get 429.
	// Negative is no limit. Default: 1,000.
	MaxConnsPerAddress int
	// MaxMessage is the size in bytes of the largest message that is taken.
	// A longer one is answered with an error; one of more than 16 times the
	// size closes the connection (1009). Negative is no limit. Default: 4 MiB.
	MaxMessage int
	// MaxDepth is how deep JSON may be nested. Default: 64.
	MaxDepth int
	// KeepAlive is how long a client may be silent before it is pinged.
	// Negative is never. Default: 30 s.
	KeepAlive time.Duration
	// WriteStall is how long one write may take, and a second more for each
	// 64 KiB of it, or a client to reply to a ping, before the connection is
	// closed. Default: 30 s.
	WriteStall time.Duration
	// Logger logs errors for the operator, and at debug level those of clients.
	// Default: slog.Default.
	Logger *slog.Logger
}

// A Handler is an MCP endpoint over WebSocket. It serves clients of every
// revision at once.
type Handler struct {
	handler transport.Handler
	o       Options

	running sync.WaitGroup // connections; Add only while closing is false

	mu        sync.Mutex
	closing   bool
	count     int
	anonymous int            // connections of anonymous callers
	callers   map[string]int // connections by LimitKey
	open      map[*connection]struct{}
}

// A connection is one that Shutdown can end.
type connection struct {
	pipe *pipe
	end  context.CancelCauseFunc
}

// NewHandler returns the endpoint for h: mount it at a path of its own, such
// as /ws. o may be nil.
func NewHandler(h transport.Handler, o *Options) *Handler {
	if err := transport.CheckHandler(h); err != nil {
		panic("websocket.NewHandler: " + err.Error())
	}
	e := &Handler{handler: h, callers: make(map[string]int), open: make(map[*connection]struct{})}
	if o != nil {
		e.o = *o
	}
	e.o.MaxConns = cmp.Or(e.o.MaxConns, DefaultMaxConns)
	e.o.MaxConnsPerPrincipal = cmp.Or(e.o.MaxConnsPerPrincipal, DefaultMaxConnsPerPrincipal)
	e.o.MaxConnsPerAddress = cmp.Or(e.o.MaxConnsPerAddress, DefaultMaxConnsPerAddress)
	e.o.MaxMessage = size(e.o.MaxMessage, frame.DefaultMaxMessage)
	e.o.KeepAlive = cmp.Or(e.o.KeepAlive, DefaultKeepAlive)
	e.o.WriteStall = writeStall(e.o.WriteStall)
	e.o.Logger = cmp.Or(e.o.Logger, slog.Default())
	e.o.Access = e.o.Access.OnRefused(e.refused)
	return e
}

// size is a limit of messages, its default, or none if it is negative. The
// multiple of it that is read over still fits.
func size(n, byDefault int) int {
	if n < 0 {
		return math.MaxInt / skipFactor
	}
	return cmp.Or(n, byDefault)
}

// writeStall is the option WriteStall, or its default if it is not positive.
func writeStall(d time.Duration) time.Duration {
	if d <= 0 {
		return frame.DefaultWriteStall
	}
	return d
}

// ServeHTTP makes the request a WebSocket and serves the client at its other
// end. It returns when the connection has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// These hold until the connection is taken over, which lifts them, or until
	// net/http has done with a refusal. Not every server has them.
	rc, now := http.NewResponseController(w), time.Now()
	_ = rc.SetWriteDeadline(now.Add(2 * refusalTimeout))
	if r.ContentLength != 0 { // net/http reads it before it answers
		_ = rc.SetReadDeadline(now.Add(refusalTimeout))
	}
	caller, ok := h.o.Access.Admit(w, r, corsPolicy)
	if !ok {
		return
	}
	if r.ContentLength != 0 {
		// net/http would wait for the body before it gives the connection away.
		w.Header().Set("Connection", "close")
		h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a WebSocket begins with a GET without body"))
		return
	}
	if r.Header.Get("Upgrade") == "" { // a browser's visit, or a client of another transport
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		h.refuse(w, r, http.StatusUpgradeRequired, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"this endpoint speaks MCP over WebSocket; connect to it with a ws:// or wss:// URL"))
		return
	}
	// A request without key is no WebSocket: Accept tells it so.
	if r.Header.Get("Sec-WebSocket-Key") != "" && !offered(r.Header) {
		h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"this endpoint speaks MCP alone: offer the subprotocol %q (Sec-WebSocket-Protocol)", Subprotocol))
		return
	}
	hijacker, ok := hijackable(w)
	if !ok {
		h.refuse(w, r, http.StatusNotImplemented, jsonrpc.NewError(jsonrpc.CodeInternalError,
			"this connection cannot become a WebSocket; use HTTP/1.1, and no middleware that hides http.Hijacker"))
		return
	}
	if status, e := h.admit(caller); e != nil {
		h.refuse(w, r, status, e)
		return
	}
	defer h.release(caller)
	t := &hijackRecorder{ResponseWriter: w, hijacker: hijacker}
	conn, err := websocket.Accept(t, r, &websocket.AcceptOptions{
		Subprotocols: []string{Subprotocol},
		// Admit has looked at Origin already, and at Host, which the library
		// believes: its own check would let in the page of a rebound name and
		// refuse the pages that Access lists.
		InsecureSkipVerify: true,
		// Compression keeps a window of up to 64 KiB for each connection, lets
		// a few bytes grow to megabytes, and tells by the size of a message
		// that carries a secret beside a stranger's text what the secret is.
		CompressionMode: websocket.CompressionDisabled,
		OnPingReceived:  func(ctx context.Context, p []byte) bool { return t.conn.pong(ctx, p) },
	})
	if err != nil {
		h.o.Logger.Debug("a request did not become a WebSocket", "remote", caller.Remote, "error", err)
		h.refused(r, jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "%v", err))
		return // Accept has answered
	}
	h.serve(r, conn, t.conn, caller)
}

// refuse answers a request that becomes no WebSocket.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, e *jsonrpc.Error) {
	h.refused(r, e)
	web.Refuse(w, status, e, false)
}

// refused tells the handler of a request that is refused.
func (h *Handler) refused(r *http.Request, e *jsonrpc.Error) {
	h.handler.Refused(r.Context(), transport.Refusal{Err: e, Principal: h.o.Access.Caller(r), Transport: transportInfo})
}

// serve serves one connection. What is in the context of its request, its
// handlers find in theirs; the end of the HTTP server's base context ends it.
func (h *Handler) serve(r *http.Request, conn *websocket.Conn, l *trackedConn, caller *principal.Principal) {
	p := newPipe(conn, l, h.o.MaxMessage, h.o.KeepAlive, h.o.WriteStall)
	defer func() { // it is closed, unless something panicked
		_ = p.Close()
		<-p.keepAliveDone
	}()
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	c := &connection{pipe: p, end: end}
	h.add(c)
	defer h.remove(c)
	err := frame.Serve(ctx, p, refusalWriter{h.handler, p}, &frame.Options{
		MaxMessage: h.o.MaxMessage,
		MaxDepth:   h.o.MaxDepth,
		WriteStall: h.o.WriteStall,
		Principal:  caller,
		Transport:  transportInfo,
		Logger:     h.o.Logger,
	})
	if err != nil {
		h.o.Logger.Debug("a connection ended", "remote", caller.Remote, "error", err)
	}
}

// Shutdown ends the endpoint: new clients get 503, and every connection is
// ended as that of a stdio server is whose context ends: requests under way are
// cancelled, answers that are ready are sent, and the WebSocket is closed with
// status 1001 (going away). What takes longer than ctx is cut off. It returns
// when nothing of the endpoint runs any more; the error is that of ctx, if it
// was needed. To let requests finish first, shut the server down first.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	for c := range h.open {
		c.shutDown()
	}
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the last connection, which is waited for below
		h.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	for c := range h.open {
		c.pipe.abort()
	}
	h.mu.Unlock()
	<-done
	return fmt.Errorf("ending connections: %w", context.Cause(ctx))
}

// shutDown ends a connection.
func (c *connection) shutDown() {
	c.pipe.setClose(websocket.StatusGoingAway, "the server is shutting down")
	c.end(errShutdown)
}

// admit counts a connection, or says why there is no room for it.
func (h *Handler) admit(caller *principal.Principal) (status int, e *jsonrpc.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := caller.LimitKey()
	open := h.callers[key]
	switch anonymous := caller.Anonymous(); {
	case h.closing:
		return http.StatusServiceUnavailable, web.ShuttingDown()
	case exceeds(h.count+1, h.o.MaxConns):
		return http.StatusTooManyRequests, web.TooMany("MaxConns",
			"this server has %d connections, which is the most it takes (MaxConns); try again later", h.count)
	case anonymous && exceeds(h.anonymous+1, web.AnonymousShare(h.o.MaxConns)):
		return http.StatusTooManyRequests, web.TooMany("MaxConns",
			"the anonymous callers of this server have %d connections, which is the most of them together (nine tenths of MaxConns); sign in, or try again later", h.anonymous)
	case !anonymous && exceeds(open+1, h.o.MaxConnsPerPrincipal):
		return http.StatusTooManyRequests, web.TooMany("MaxConnsPerPrincipal",
			"you have %d connections, which is the most of one caller (MaxConnsPerPrincipal); close one first", open)
	case anonymous && exceeds(open+1, h.o.MaxConnsPerAddress):
		return http.StatusTooManyRequests, web.TooMany("MaxConnsPerAddress",
			"the anonymous callers of your address (%s) have %d connections, which is the most of one address (MaxConnsPerAddress); close one first",
			cmp.Or(caller.Remote, "unknown"), open)
	}
	h.count++
	h.callers[key]++
	if caller.Anonymous() {
		h.anonymous++
	}
	h.running.Add(1)
	return 0, nil
}

// exceeds reports whether n is beyond limit, which a negative one never is.
func exceeds(n, limit int) bool { return limit >= 0 && n > limit }

// release ends the count of a connection.
func (h *Handler) release(caller *principal.Principal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := caller.LimitKey()
	h.count--
	if caller.Anonymous() {
		h.anonymous--
	}
	if h.callers[key]--; h.callers[key] == 0 {
		delete(h.callers, key)
	}
	h.running.Done()
}

// add registers a connection for Shutdown, which may have begun meanwhile.
func (h *Handler) add(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[c] = struct{}{}
	if h.closing {
		c.shutDown()
	}
}

func (h *Handler) remove(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
}

// A refusalWriter tells a client that the handler refuses what the reason is.
type refusalWriter struct {
	transport.Handler
	pipe *pipe
}

// Open opens a session.
func (o refusalWriter) Open(c transport.Conn) (transport.Session, error) {
	s, err := o.Handler.Open(c)
	if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok {
		o.pipe.setClose(websocket.StatusPolicyViolation, refusal.Message)
	}
	return s, err
}

// offered reports whether the client speaks our subprotocol.
func offered(h http.Header) bool {
	for _, value := range h["Sec-Websocket-Protocol"] {
		for name := range strings.SplitSeq(value, ",") {
			if strings.TrimSpace(name) == Subprotocol {
				return true
			}
		}
	}
	return false
}

// hijackable finds the http.Hijacker that w is or wraps. Accept finds out too
// late that there is none.
func hijackable(w http.ResponseWriter) (http.Hijacker, bool) {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return t, true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil, false
		}
	}
}

// A hijackRecorder is a ResponseWriter that records the hijacked connection.
type hijackRecorder struct {
	http.ResponseWriter
	hijacker http.Hijacker
	conn     *trackedConn
}

// Hijack takes the connection over.
func (t *hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := t.hijacker.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking the connection over: %w", err)
	}
	t.conn = newTrackedConn(conn)
	return hijackedConn{conn, t.conn}, buffered, nil
}

// A hijackedConn is read and closed through its trackedConn.
type hijackedConn struct {
	net.Conn
	tracked *trackedConn
}

// Read reads from the trackedConn.
func (t hijackedConn) Read(p []byte) (int, error) { return t.tracked.Read(p) }

// transportInfo describes this transport to handlers.
var transportInfo = &transport.Info{Name: "websocket"}
