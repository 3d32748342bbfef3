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

// parting is how long a client may take for the end of a body that nobody
// wants, and once more to read what it is refused for.
const parting = 5 * time.Second

// face is what pages of other origins are shown. Browsers ask nothing before
// they open a WebSocket, but Origin counts.
var face = &web.Face{Methods: []string{http.MethodGet}}

// errShutdown is the cause of what Shutdown ends.
var errShutdown = fmt.Errorf("%w: the endpoint is shutting down", transport.ErrClosed)

// Options adjust an endpoint. The zero value, and nil, give the defaults.
type Options struct {
	// Access says who may reach the endpoint. Its Origins decide which pages
	// may: a browser asks nobody else before it opens a WebSocket.
	Access web.Access
	// MaxConns is how many connections there may be at once; others get 429.
	// Negative is no limit. Default: 10,000.
	MaxConns int
	// MaxConnsPerPrincipal is how many connections one caller may have whom
	// authentication has named; others get 429. Negative is no limit. Default: 100.
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
	// Logger is told what clients do wrong. Default: nobody.
	Logger *slog.Logger
}

// A Handler is an MCP endpoint over WebSocket. It serves clients of every
// revision at once.
type Handler struct {
	handler transport.Handler
	o       Options

	running sync.WaitGroup // connections; Add only while closing is false

	mu      sync.Mutex
	closing bool
	count   int
	callers map[string]int // connections by LimitKey
	open    map[*served]struct{}
}

// A served connection can be ended from outside.
type served struct {
	pipe *pipe
	end  context.CancelCauseFunc
}

// NewHandler returns the endpoint for h: mount it at a path of its own, such
// as /ws. o may be nil.
func NewHandler(h transport.Handler, o *Options) *Handler {
	e := &Handler{handler: h, callers: make(map[string]int), open: make(map[*served]struct{})}
	if o != nil {
		e.o = *o
	}
	e.o.MaxConns = cmp.Or(e.o.MaxConns, DefaultMaxConns)
	e.o.MaxConnsPerPrincipal = cmp.Or(e.o.MaxConnsPerPrincipal, DefaultMaxConnsPerPrincipal)
	e.o.MaxConnsPerAddress = cmp.Or(e.o.MaxConnsPerAddress, DefaultMaxConnsPerAddress)
	e.o.MaxMessage = size(e.o.MaxMessage, frame.DefaultMaxMessage)
	e.o.KeepAlive = cmp.Or(e.o.KeepAlive, DefaultKeepAlive)
	e.o.WriteStall = patience(e.o.WriteStall)
	e.o.Logger = cmp.Or(e.o.Logger, slog.New(slog.DiscardHandler))
	return e
}

// size is a limit of messages, its default, or none if it is negative. The
// multiple of it that is read over still fits.
func size(n, byDefault int) int {
	if n < 0 {
		return math.MaxInt / skipped
	}
	return cmp.Or(n, byDefault)
}

// patience is a WriteStall, or its default if it is no time at all.
func patience(d time.Duration) time.Duration {
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
	_ = rc.SetWriteDeadline(now.Add(2 * parting))
	if r.ContentLength != 0 { // net/http reads it before it answers
		_ = rc.SetReadDeadline(now.Add(parting))
	}
	who, ok := h.o.Access.Admit(w, r, face)
	if !ok {
		return
	}
	if r.ContentLength != 0 {
		// net/http would wait for the body before it gives the connection away.
		w.Header().Set("Connection", "close")
		web.Refuse(w, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a WebSocket begins with a GET without body"), false)
		return
	}
	if r.Header.Get("Upgrade") == "" { // a browser's visit, or a client of another transport
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		web.Refuse(w, http.StatusUpgradeRequired, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"this endpoint speaks MCP over WebSocket; connect to it with a ws:// or wss:// URL"), false)
		return
	}
	// A request without key is no WebSocket: Accept tells it so.
	if r.Header.Get("Sec-WebSocket-Key") != "" && !offered(r.Header) {
		web.Refuse(w, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"this endpoint speaks MCP alone: offer the subprotocol %q (Sec-WebSocket-Protocol)", Subprotocol), false)
		return
	}
	hijacker, ok := hijackable(w)
	if !ok {
		web.Refuse(w, http.StatusNotImplemented, jsonrpc.NewError(jsonrpc.CodeInternalError,
			"this connection cannot become a WebSocket; use HTTP/1.1, and no middleware that hides http.Hijacker"), false)
		return
	}
	if status, e := h.enter(who); e != nil {
		web.Refuse(w, status, e, false)
		return
	}
	defer h.leave(who)
	t := &tap{ResponseWriter: w, hijacker: hijacker}
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
		OnPingReceived:  func(ctx context.Context, p []byte) bool { return t.line.pong(ctx, p) },
	})
	if err != nil {
		h.o.Logger.Debug("a request did not become a WebSocket", "remote", who.Remote, "error", err)
		return // Accept has answered
	}
	h.serve(r, conn, t.line, who)
}

// serve serves one connection. What is in the context of its request, its
// handlers find in theirs; the end of the HTTP server's base context ends it.
func (h *Handler) serve(r *http.Request, conn *websocket.Conn, l *line, who *principal.Principal) {
	p := newPipe(conn, l, h.o.MaxMessage, h.o.KeepAlive, h.o.WriteStall)
	defer func() { // it is closed, unless something panicked
		_ = p.Close()
		<-p.kept
	}()
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	c := &served{pipe: p, end: end}
	h.add(c)
	defer h.remove(c)
	err := frame.Serve(ctx, p, opener{h.handler, p}, &frame.Options{
		MaxMessage: h.o.MaxMessage,
		MaxDepth:   h.o.MaxDepth,
		WriteStall: h.o.WriteStall,
		Principal:  who,
		Carrier:    carrier,
		Logger:     h.o.Logger,
	})
	if err != nil {
		h.o.Logger.Debug("a connection ended", "remote", who.Remote, "error", err)
	}
}

// Shutdown ends the endpoint: new clients get 503, and every connection is
// ended as that of a stdio server is whose context ends: requests under way are
// cancelled, answers that are ready are sent, and the WebSocket is closed with
// status 1001 (going away). What takes longer than ctx is cut off. It returns
// when nothing of the endpoint runs any more; the error is that of ctx, if it
// was needed. Whoever wants requests to finish first shuts the server down
// first.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	for c := range h.open {
		c.goAway()
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
		c.pipe.cut()
	}
	h.mu.Unlock()
	<-done
	return fmt.Errorf("ending connections: %w", context.Cause(ctx))
}

// goAway ends a connection.
func (c *served) goAway() {
	c.pipe.say(websocket.StatusGoingAway, "the server is shutting down")
	c.end(errShutdown)
}

// enter counts a connection in, or says why there is no room for it.
func (h *Handler) enter(who *principal.Principal) (status int, e *jsonrpc.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := who.LimitKey()
	open := h.callers[key]
	switch anonymous := who.Anonymous(); {
	case h.closing:
		return http.StatusServiceUnavailable, web.ShuttingDown()
	case over(h.count+1, h.o.MaxConns):
		return http.StatusTooManyRequests, web.TooMany(
			"this server has %d connections, which is the most it takes (MaxConns); try again later", h.count)
	case !anonymous && over(open+1, h.o.MaxConnsPerPrincipal):
		return http.StatusTooManyRequests, web.TooMany(
			"you have %d connections, which is the most of one caller (MaxConnsPerPrincipal); close one first", open)
	case anonymous && over(open+1, h.o.MaxConnsPerAddress):
		return http.StatusTooManyRequests, web.TooMany(
			"the anonymous callers of your address (%s) have %d connections, which is the most of one address (MaxConnsPerAddress); close one first",
			cmp.Or(who.Remote, "unknown"), open)
	}
	h.count++
	h.callers[key]++
	h.running.Add(1)
	return 0, nil
}

// over reports whether n is beyond limit, which a negative one never is.
func over(n, limit int) bool { return limit >= 0 && n > limit }

// leave counts a connection out.
func (h *Handler) leave(who *principal.Principal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := who.LimitKey()
	h.count--
	if h.callers[key]--; h.callers[key] == 0 {
		delete(h.callers, key)
	}
	h.running.Done()
}

// add makes a connection known to Shutdown, which may have begun meanwhile.
func (h *Handler) add(c *served) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[c] = struct{}{}
	if h.closing {
		c.goAway()
	}
}

func (h *Handler) remove(c *served) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, c)
}

// An opener tells a client that the handler refuses what the reason is.
type opener struct {
	transport.Handler
	pipe *pipe
}

// Open opens a session.
func (o opener) Open(c transport.Conn) (transport.Session, error) {
	s, err := o.Handler.Open(c)
	if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok {
		o.pipe.say(websocket.StatusPolicyViolation, refusal.Message)
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

// A tap is a ResponseWriter that keeps hold of the connection that is taken
// over.
type tap struct {
	http.ResponseWriter
	hijacker http.Hijacker
	line     *line
}

// Hijack takes the connection over.
func (t *tap) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := t.hijacker.Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("taking the connection over: %w", err)
	}
	t.line = newLine(conn)
	return tapped{conn, t.line}, buffered, nil
}

// A tapped connection is read and closed through its line.
type tapped struct {
	net.Conn
	line *line
}

// Read reads from the line.
func (t tapped) Read(p []byte) (int, error) { return t.line.Read(p) }

// carrier is what exchanges come by.
var carrier = &transport.Carrier{Name: "websocket"}
