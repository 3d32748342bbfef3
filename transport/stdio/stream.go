// Package stdio carries MCP messages as lines of text: over the standard
// streams of this process or of a child process, and over anything else that
// is a stream of bytes, such as a TCP connection or a Unix socket (spec
// 2026-07-28, basic/transports/stdio).
//
// A server is one line:
//
//	err := stdio.Serve(ctx, handler)
//
// A client dials a command, an address or an open stream:
//
//	stdio.Command("./dbserver", "--read-only")
//	stdio.Dial("unix", "/run/db.sock")
//	stdio.Conn(rwc)
package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// DefaultLinger is how long a server finishes what is under way after the end
// of its input.
const DefaultLinger = 500 * time.Millisecond

// DefaultMaxConns is how many connections ServeListener serves at once.
const DefaultMaxConns = 256

// Options adjust a connection. The zero value, and nil, give the defaults.
type Options struct {
	// MaxMessage is the most bytes that a line read may have. Default: 4 MiB
	// for servers, 64 MiB for clients.
	MaxMessage int
	// MaxDepth is how deep JSON may be nested. Default: 64.
	MaxDepth int
	// MaxQueued is how many bytes may wait to be written before senders wait
	// for room. Default: 4 MiB.
	MaxQueued int
	// WriteStall is how long one write may take before the connection is
	// given up. Default: 30 s.
	WriteStall time.Duration
	// Linger is how long requests under way may go on after the end of the
	// input, before they are cancelled; negative: not at all. Default: 500 ms.
	// Servers only.
	Linger time.Duration
	// Principal is the principal of the peer. Default: the remote address,
	// anonymous, of a connection over a network; otherwise principal.Local.
	// Servers only.
	Principal *principal.Principal
	// MaxConns is how many connections ServeListener serves at once; others
	// wait to be accepted. Default: 256.
	MaxConns int
	// Logger is told what the operator should mend, and at debug what the peer
	// does wrong. Default: slog.Default for servers, none for [Conn].
	Logger *slog.Logger
}

func (o *Options) orZero() Options {
	if o == nil {
		return Options{}
	}
	return *o
}

// frame gives the part of o that concerns framing.
func (o *Options) frame() *frame.Options {
	return &frame.Options{
		MaxMessage: o.MaxMessage,
		MaxDepth:   o.MaxDepth,
		MaxQueued:  o.MaxQueued,
		WriteStall: o.WriteStall,
		Linger:     max(cmp.Or(o.Linger, DefaultLinger), 0),
		Principal:  o.Principal,
		Transport:  transportInfo,
		Logger:     o.Logger,
	}
}

// ServeConn serves one client at the other end of rwc and closes rwc. It
// returns when the client has ended its input (nil), ctx has ended (its cause)
// or the stream is broken, and all requests have ended. A Close of rwc must
// unblock its Read and Write, as it does for connections and pipes.
func ServeConn(ctx context.Context, rwc io.ReadWriteCloser, h transport.Handler, o *Options) error {
	opts := o.orZero()
	if opts.Principal == nil {
		opts.Principal = remoteAddress(rwc)
	}
	p := newStream(rwc, cmp.Or(opts.MaxMessage, frame.DefaultMaxMessage))
	return frame.Serve(ctx, p, h, opts.frame())
}

// remoteAddress is the address of the peer of a stream that came without a name.
func remoteAddress(rwc io.ReadWriteCloser) *principal.Principal {
	c, ok := rwc.(net.Conn)
	if !ok {
		return principal.Local
	}
	switch addr := c.RemoteAddr().(type) {
	case *net.TCPAddr:
		return &principal.Principal{Remote: addr.IP.String()}
	default:
		return principal.Local
	}
}

// ServeListener serves each connection that ln accepts. It returns when ctx
// ends (its cause) or ln fails, after closing ln and all connections and
// waiting for their requests.
func ServeListener(ctx context.Context, ln net.Listener, h transport.Handler, o *Options) error {
	if err := transport.CheckHandler(h); err != nil {
		_ = ln.Close() // as at every return
		return fmt.Errorf("stdio.ServeListener: %w", err)
	}
	opts := o.orZero()
	log := cmp.Or(opts.Logger, slog.Default())
	free := make(chan struct{}, cmp.Or(opts.MaxConns, DefaultMaxConns))
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // makes Accept return
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel(transport.ErrClosed)
	defer func() { stop(); _ = ln.Close() }() // a second Close is harmless
	for pause := time.Duration(0); ; {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close() // too late for it
			}
			return context.Cause(ctx)
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting connections: %w", err)
		case err != nil: // out of file descriptors, perhaps; others may be closing
			<-free
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			log.Warn("accepting a connection", "error", err, "again in", pause)
			sleep(ctx, pause)
			continue
		}
		pause = 0
		conns.Go(func() {
			defer func() { <-free }()
			if err := ServeConn(ctx, c, h, &opts); err != nil {
				log.Debug("a connection ended", "remote", c.RemoteAddr(), "error", err)
			}
		})
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// A StreamDialer dials servers that are already running. Its fields may be set
// before the first Dial.
type StreamDialer struct {
	// Options adjust the connections; nil gives the defaults.
	Options *Options
	// Tap is shown what each link carries. Default: none, which costs nothing.
	Tap transport.Tap

	key  string
	open func(ctx context.Context) (io.ReadWriteCloser, error)
}

var _ transport.Dialer = (*StreamDialer)(nil)

// Conn returns a dialer for a stream that is open. It can be dialled once, and
// has no key. Closing the link closes rwc, which must unblock its Read.
func Conn(rwc io.ReadWriteCloser) *StreamDialer {
	once := make(chan io.ReadWriteCloser, 1)
	once <- rwc
	return &StreamDialer{open: func(context.Context) (io.ReadWriteCloser, error) {
		select {
		case rwc := <-once:
			return rwc, nil
		default:
			return nil, errors.New("the stream has been used; a stream cannot be dialled twice")
		}
	}}
}

// Dial returns a dialer for a network address, as net.Dial takes them, such as
// "tcp" and "localhost:4000" or "unix" and "/run/db.sock".
func Dial(network, addr string) *StreamDialer {
	return &StreamDialer{
		key: network + ":" + addr,
		open: func(ctx context.Context) (io.ReadWriteCloser, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, network, addr)
			if err != nil {
				return nil, fmt.Errorf("connecting to %s: %w", addr, err)
			}
			return c, nil
		},
	}
}

// Key names the address; it is empty for a stream that was already open.
func (d *StreamDialer) Key() string { return d.key }

// Dial connects.
func (d *StreamDialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rwc, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	opts := d.Options.orZero()
	p := newStream(rwc, cmp.Or(opts.MaxMessage, frame.DefaultMaxResponse))
	f := opts.frame()
	f.Tap = tap.Link(d.Tap)
	return frame.Dial(p, in, f), nil
}

// A stream is a frame.Pipe of lines over a stream of bytes.
type stream struct {
	in    *lines
	out   lineWriter
	close func() error
}

var (
	_ frame.Gauge        = (*stream)(nil)
	_ frame.PartReporter = (*stream)(nil)
)

func newStream(rwc io.ReadWriteCloser, limit int) *stream {
	return &stream{in: newLines(rwc, limit), out: lineWriter{w: rwc}, close: sync.OnceValue(rwc.Close)}
}

// Read returns the next line.
func (s *stream) Read() ([]byte, error) { return s.in.next() }

// Buffered reports whether the next line is there.
func (s *stream) Buffered() bool { return s.in.buffered() }

// OnPart sets what is called when a part of a line has arrived.
func (s *stream) OnPart(arrived func()) { s.in.onPart(arrived) }

// Room is not known.
func (s *stream) Room() int { return 0 }

// Write writes messages as lines.
func (s *stream) Write(messages [][]byte) error { return s.out.write(messages) }

// Close closes the stream.
func (s *stream) Close() error { return s.close() }

// transportInfo describes this transport to handlers.
var transportInfo = &transport.Info{Name: "stdio"}
