// Package mem joins a client and a server in one process. Messages are encoded
// and parsed as on any other pipe, so that what works here works there, but
// nothing leaves the process: it runs inside testing/synctest.
package mem

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/parley-mcp/parley/internal/tap"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
)

// depth is how many messages one direction holds before its writer waits.
const depth = 16

// Options adjust the two ends. The zero value, and nil, give the defaults.
type Options struct {
	// Principal is the client's principal at the server. Default:
	// principal.Local.
	Principal *principal.Principal
	// Key is the dialer's key, under which a client remembers the server.
	// Default: none, nothing is remembered.
	Key string
	// MaxMessage is the size in bytes of the largest message that the server
	// takes. Default: 4 MiB.
	MaxMessage int
	// MaxResponse is the same for the client. Default: 64 MiB.
	MaxResponse int
	// Tap is shown what each link carries, at the client's end. Default: none,
	// which costs nothing.
	Tap transport.Tap
	// Logger is told what either end does wrong. Default: slog.Default for the
	// server's end, none for the client's.
	Logger *slog.Logger
}

// New returns a dialer each of whose links is a connection of its own to h.
// Values of the dialling context never reach the server. Closing a link ends
// its session and waits for it.
func New(h transport.Handler, o *Options) transport.Dialer {
	if err := transport.CheckHandler(h); err != nil {
		panic("mem.New: " + err.Error())
	}
	d := &dialer{handler: h}
	if o != nil {
		d.o = *o
	}
	d.o.MaxMessage = cmp.Or(d.o.MaxMessage, frame.DefaultMaxMessage)
	d.o.MaxResponse = cmp.Or(d.o.MaxResponse, frame.DefaultMaxResponse)
	return d
}

type dialer struct {
	handler transport.Handler
	o       Options
}

// Key gives what Options.Key says.
func (d *dialer) Key() string { return d.o.Key }

// Dial begins to serve a new connection and returns its client's end.
func (d *dialer) Dial(ctx context.Context, in transport.Inbox) (transport.Link, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("connecting in memory: %w", context.Cause(ctx))
	}
	near, far := newPipe(d.o.MaxResponse, d.o.MaxMessage)
	log := cmp.Or(d.o.Logger, slog.New(slog.DiscardHandler))
	l := &link{served: make(chan struct{})}
	go func() { // Close waits for l.served
		defer close(l.served)
		err := frame.Serve(context.Background(), far, d.handler, &frame.Options{
			MaxMessage: d.o.MaxMessage,
			Principal:  d.o.Principal,
			Transport:  transportInfo,
			Logger:     d.o.Logger,
		})
		if err != nil {
			log.Debug("a connection in memory ended", "error", err)
		}
	}()
	l.Link = frame.Dial(near, in, &frame.Options{MaxMessage: d.o.MaxResponse, Tap: tap.Link(d.o.Tap), Logger: d.o.Logger})
	return l, nil
}

// A link is a client's end that waits for the server's.
type link struct {
	transport.Link
	served chan struct{}
}

// Close closes both ends and returns when the session has ended.
func (l *link) Close(ctx context.Context) error {
	err := l.Link.Close(ctx)
	<-l.served
	return err
}

// A pipeEnd is one end of a pair: a frame.Pipe over channels.
type pipeEnd struct {
	limit int
	in    <-chan []byte
	out   chan<- []byte
	mine  *closeSignal
	other *closeSignal
}

var _ frame.Gauge = (*pipeEnd)(nil)

// A closeSignal says that an end is closed.
type closeSignal struct {
	once sync.Once
	done chan struct{}
}

func newCloseSignal() *closeSignal { return &closeSignal{done: make(chan struct{})} }

func (g *closeSignal) close() { g.once.Do(func() { close(g.done) }) }

// newPipe returns two joined ends with the limits of what each may read.
func newPipe(near, far int) (*pipeEnd, *pipeEnd) {
	there, back := make(chan []byte, depth), make(chan []byte, depth)
	a, b := newCloseSignal(), newCloseSignal()
	return &pipeEnd{limit: near, in: back, out: there, mine: a, other: b},
		&pipeEnd{limit: far, in: there, out: back, mine: b, other: a}
}

// Read returns the next message. What the other end wrote before it closed is
// still read.
func (e *pipeEnd) Read() ([]byte, error) {
	select { // closing comes after what was written, and costs less when it is not looked at
	case m := <-e.in:
		return e.check(m)
	default:
	}
	select {
	case m := <-e.in:
		return e.check(m)
	case <-e.mine.done:
		return nil, os.ErrClosed
	case <-e.other.done:
	}
	select {
	case m := <-e.in:
		return e.check(m)
	default:
		return nil, io.EOF
	}
}

func (e *pipeEnd) check(m []byte) ([]byte, error) {
	if len(m) > e.limit {
		return nil, frame.NewTooLongError(e.limit, m)
	}
	return m, nil
}

// Buffered reports whether a message waits to be read.
func (e *pipeEnd) Buffered() bool { return len(e.in) > 0 }

// Room is how many messages may be written before one has to be read.
func (e *pipeEnd) Room() int { return cap(e.out) - len(e.out) }

// Write gives the other end a copy of each message.
func (e *pipeEnd) Write(messages [][]byte) error {
	for i, m := range messages {
		select {
		case e.out <- slices.Clone(m):
		case <-e.mine.done:
			return &frame.WriteError{Sent: i, Err: os.ErrClosed}
		case <-e.other.done:
			return &frame.WriteError{Sent: i, Err: io.ErrClosedPipe}
		}
	}
	return nil
}

// Close closes this end; the other reads what was written and then io.EOF.
func (e *pipeEnd) Close() error {
	e.mine.close()
	return nil
}

// transportInfo describes this transport to handlers.
var transportInfo = &transport.Info{Name: "memory"}
