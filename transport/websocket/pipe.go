package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// Subprotocol is what both ends must agree on, so that neither takes another
// kind of WebSocket for this one.
const Subprotocol = "mcp"

// DefaultKeepAlive is the time between two pings.
const DefaultKeepAlive = 30 * time.Second

const (
	// maxFrame is the most bytes of a message that one WebSocket frame holds.
	// Between frames there is room for pings and pongs, so that a peer is not
	// taken for dead during a long message on a slow connection.
	maxFrame = 64 << 10
	// skipFactor is how many times MaxMessage a message that is skipped may have.
	// Up to there its sender is told by an error and the connection lives;
	// beyond, it is closed (1009).
	skipFactor = 16
	// closeTimeout is how long the peer may take to reply to a close.
	closeTimeout = 2 * time.Second
	// pongWait is how long a pong waits for the frame that is being written.
	pongWait = 2 * time.Second
	// readBuffer is what a message is read into before its length is known.
	readBuffer = 1 << 10
	// maxReason is the length in bytes of the longest reason (RFC 6455, 5.5).
	maxReason = 123
)

var (
	errBinary = errors.New("the peer sent a binary message; messages of MCP are text")
	errSilent = fmt.Errorf("%w: no answer to a ping", transport.ErrStalled)
)

// A trackedConn is the connection beneath the WebSocket. It records what the
// WebSocket does not tell: whether something arrived, whether reading has
// failed, whether a frame is being written.
type trackedConn struct {
	io.ReadWriteCloser
	reads      atomic.Int64 // how often something arrived
	readErr    atomic.Pointer[error]
	writeToken chan struct{} // holds one token while a frame of a message is being written
}

func newTrackedConn(rwc io.ReadWriteCloser) *trackedConn {
	return &trackedConn{ReadWriteCloser: rwc, writeToken: make(chan struct{}, 1)}
}

// pong reports whether a ping can be replied to. The library ends a connection
// on which a pong cannot be written within 5 seconds. A peer that does not read
// for a while is what WriteStall is for; it would not see the pong either.
func (l *trackedConn) pong(ctx context.Context, _ []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, pongWait)
	defer cancel()
	select {
	case l.writeToken <- struct{}{}:
		<-l.writeToken
		return true
	case <-ctx.Done():
		return false
	}
}

// Read reads, and records the read or its error.
func (l *trackedConn) Read(p []byte) (int, error) {
	n, err := l.ReadWriteCloser.Read(p)
	if n > 0 {
		l.reads.Add(1)
	}
	if err != nil {
		l.readErr.CompareAndSwap(nil, &err)
	}
	return n, err
}

// A pipe is a frame.Pipe over a WebSocket.
type pipe struct {
	conn    *websocket.Conn
	tracked *trackedConn
	limit   int
	arrived func() // called when a part of a message has arrived; nil when serving

	reading, writing atomic.Bool   // a Read or a Write is in progress
	pinged           atomic.Bool   // a ping was sent
	closing          atomic.Bool   // Close has been called
	done             chan struct{} // closed when Close begins
	keepAliveDone    chan struct{} // closed when keepAlive has returned

	mu     sync.Mutex
	status websocket.StatusCode // what the close says
	reason string
}

var _ frame.PartReporter = (*pipe)(nil)

// newPipe returns a pipe with messages of at most limit bytes to read, and
// starts keepAlive: after each interval of silence the peer is pinged, and the
// connection is closed if the pong takes longer than pongTimeout. A negative
// interval is never.
func newPipe(conn *websocket.Conn, l *trackedConn, limit int, every, pongTimeout time.Duration) *pipe {
	conn.SetReadLimit(int64(limit) * skipFactor)
	p := &pipe{
		conn:          conn,
		tracked:       l,
		limit:         limit,
		status:        websocket.StatusNormalClosure,
		done:          make(chan struct{}),
		keepAliveDone: make(chan struct{}),
	}
	if every < 0 {
		close(p.keepAliveDone)
	} else {
		go p.keepAlive(every, pongTimeout) // ends with Close; see p.kept
	}
	return p
}

// Read returns the next text message.
//
// The contexts given to the WebSocket never end: if they did, they would cut
// the connection off. Close ends Read and Write.
func (p *pipe) Read() ([]byte, error) {
	p.reading.Store(true)
	defer p.reading.Store(false)
	kind, r, err := p.conn.Reader(context.Background())
	if err != nil {
		return nil, p.ended(err)
	}
	if kind != websocket.MessageText {
		p.setClose(websocket.StatusUnsupportedData, "messages of MCP are text")
		return nil, errBinary
	}
	data, err := p.message(r)
	if long, ok := errors.AsType[*frame.TooLongError](err); ok {
		return nil, long
	}
	if err != nil {
		return nil, p.ended(err)
	}
	return data, nil
}

// OnPart sets what is called when a part of a message has arrived.
func (p *pipe) OnPart(arrived func()) { p.arrived = arrived }

// message reads the rest of a message into memory of its own. One over the
// limit is read over without being held.
func (p *pipe) message(r io.Reader) ([]byte, error) {
	data := make([]byte, 0, min(readBuffer, p.limit+1))
	seen := p.tracked.reads.Load()
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if reads := p.tracked.reads.Load(); n > 0 && reads != seen { // not what came with the beginning
			seen = reads
			if p.arrived != nil {
				p.arrived()
			}
		}
		// A connection that breaks within a message ends it like its last
		// byte does: only the line knows.
		if broken := p.tracked.readErr.Load(); broken != nil && err != nil {
			return nil, *broken
		}
		switch {
		case len(data) > p.limit:
			if _, err := io.Copy(io.Discard, r); err != nil {
				return nil, err
			}
			return nil, frame.NewTooLongError(p.limit, data)
		case err == io.EOF: // the WebSocket's own sign for the end of a message
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			room := min(2*cap(data), p.limit+1)
			data = append(make([]byte, 0, room), data...)
		}
	}
}

// ended says why reading ended: io.EOF if the peer closed in good order.
func (p *pipe) ended(err error) error {
	if last, ok := errors.AsType[websocket.CloseError](err); ok {
		return closedBy(last)
	}
	here := errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
	switch {
	case here && p.pinged.Load() && !p.closing.Load():
		return errSilent // it was keepAlive, or the library that it asked
	case here:
		return fmt.Errorf("reading: %w", net.ErrClosed)
	case errors.Is(err, websocket.ErrMessageTooBig):
		return fmt.Errorf("the peer sent a message of more than %d bytes, where the limit is %d", p.limit*skipFactor, p.limit)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the peer ended the connection without closing the WebSocket: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("reading: %w", err)
}

// closedBy says what the peer's close frame means. Its reason is a stranger's
// text.
func closedBy(e websocket.CloseError) error {
	switch e.Code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
		return io.EOF
	default:
		if e.Reason == "" {
			return fmt.Errorf("the peer closed the WebSocket with status %d", e.Code)
		}
		return fmt.Errorf("the peer closed the WebSocket with status %d: %+q", e.Code, e.Reason)
	}
}

// Write sends each message as a text message.
func (p *pipe) Write(messages [][]byte) error {
	p.writing.Store(true)
	defer p.writing.Store(false)
	for _, m := range messages {
		if err := p.send(m); err != nil {
			return err
		}
	}
	return nil
}

// send sends one message, a long one in several frames.
func (p *pipe) send(m []byte) error {
	if len(m) <= maxFrame {
		p.tracked.writeToken <- struct{}{}
		defer func() { <-p.tracked.writeToken }()
		return p.conn.Write(context.Background(), websocket.MessageText, m)
	}
	w, err := p.conn.Writer(context.Background(), websocket.MessageText)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(m, maxFrame) {
		p.tracked.writeToken <- struct{}{}
		_, err := w.Write(part)
		<-p.tracked.writeToken
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// setClose sets the status and reason of the close, unless they are set.
func (p *pipe) setClose(status websocket.StatusCode, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason != "" {
		return
	}
	p.status = status
	p.reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}

// Close closes the WebSocket and waits at most closeTimeout for the peer's reply.
// A peer that does not read the current message would not read a close frame
// either, so that it gets none. A second Close aborts the first one.
func (p *pipe) Close() error {
	if !p.closing.CompareAndSwap(false, true) {
		p.abort()
		return nil
	}
	close(p.done)
	if p.writing.Load() {
		p.abort()
	}
	// The library's own timeouts do not hold while it skips the rest of a
	// message.
	timer := time.AfterFunc(closeTimeout, p.abort)
	defer timer.Stop()
	p.mu.Lock()
	status, reason := p.status, p.reason
	p.mu.Unlock()
	// Whatever is wrong now, the connection is gone: a peer that has closed
	// first, or is no longer there, is no error of ours.
	_ = p.conn.Close(status, reason)
	p.abort()
	return nil
}

// abort closes the connection beneath without a close frame.
func (p *pipe) abort() {
	_ = p.tracked.Close() // it may be closed already, and nothing can be done
}

// keepAlive finds peers that are gone without a close, such as a laptop that
// was shut: otherwise only the next write would find out.
func (p *pipe) keepAlive(every, pongTimeout time.Duration) {
	defer close(p.keepAliveDone)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := p.tracked.reads.Load()
	for {
		select {
		case <-p.done:
			return
		case <-ticker.C:
		}
		if now := p.tracked.reads.Load(); now != last {
			last = now
			continue
		}
		// While we do not read, no pong can arrive, and while we write
		// WriteStall bounds the time.
		if !p.reading.Load() || p.writing.Load() {
			continue
		}
		if !p.ping(pongTimeout) && p.tracked.reads.Load() == last && p.reading.Load() && !p.writing.Load() {
			p.abort() // makes Read return, and that ends the rest
			return
		}
		p.pinged.Store(false)
		last = p.tracked.reads.Load()
	}
}

// ping reports whether the peer replied in time. The library may find out by
// itself that it does not even take the ping, and ends the connection.
func (p *pipe) ping(timeout time.Duration) bool {
	p.pinged.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return p.conn.Ping(ctx) == nil
}
