//go:build unix

package stdio_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

// A duplex is one end of two pipes.
type duplex struct {
	io.ReadCloser
	w io.WriteCloser
}

func (d duplex) Write(p []byte) (int, error) { return d.w.Write(p) }
func (d duplex) Close() error                { return errors.Join(d.ReadCloser.Close(), d.w.Close()) }

// osPipes gives the two ends of a pair of the system's pipes.
func osPipes(tb testing.TB) (duplex, duplex) {
	tb.Helper()
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		tb.Fatal(err)
	}
	return duplex{r1, w2}, duplex{r2, w1}
}

// background runs f until its context is ended by the test's end, and waits.
func background(tb testing.TB, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, transport.ErrClosed) {
			tb.Errorf("serving: %v", err)
		}
	})
}

func options(o mcptest.TransportOptions) *stdio.Options {
	return &stdio.Options{MaxMessage: o.MaxMessage}
}

// Proves: SEC-DOS-1, FLOW-SHUTDOWN.
func TestKitNetPipe(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		near, far := net.Pipe()
		background(t, func(ctx context.Context) error { return stdio.ServeConn(ctx, far, h, options(o)) })
		return stdio.Conn(near)
	})
}

func TestKitOSPipe(t *testing.T) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		near, far := osPipes(t)
		background(t, func(ctx context.Context) error { return stdio.ServeConn(ctx, far, h, options(o)) })
		return stdio.Conn(near)
	})
}

func TestKitTCP(t *testing.T) {
	kitListener(t, "tcp", func(*testing.T) string { return "127.0.0.1:0" })
}

func TestKitUnix(t *testing.T) {
	kitListener(t, "unix", func(t *testing.T) string { return filepath.Join(t.TempDir(), "s") })
}

func kitListener(t *testing.T, network string, addr func(*testing.T) string) {
	mcptest.TestTransport(t, func(t *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		ln, err := net.Listen(network, addr(t))
		if err != nil {
			t.Fatal(err)
		}
		background(t, func(ctx context.Context) error { return stdio.ServeListener(ctx, ln, h, options(o)) })
		return stdio.Dial(network, ln.Addr().String())
	})
}

// Proves: FLOW-SHUTDOWN. The server is a real child process.
func TestKitChild(t *testing.T) {
	mcptest.TestTransport(t, func(_ *testing.T, _ transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		return command("serve", "LIMIT="+strconv.Itoa(cmp.Or(o.MaxMessage, 4<<20)))
	})
}
