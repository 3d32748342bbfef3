package flows_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A wire forwards connections and can cut them all.
type wiring struct {
	t      *testing.T
	l      net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newWiring(t *testing.T, target string) *wiring {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wiring{t: t, l: l, target: target, conns: make(map[net.Conn]struct{})}
	w.wg.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.wg.Wait()
	})
	return w
}

func (w *wiring) accept() {
	for {
		near, err := w.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns[near], w.conns[far] = struct{}{}, struct{}{}
		w.mu.Unlock()
		for _, c := range [][2]net.Conn{{near, far}, {far, near}} {
			w.wg.Go(func() {
				_, _ = io.Copy(c[0], c[1]) // the end is the end
				_ = c[0].Close()
				_ = c[1].Close()
			})
		}
	}
}

// cut ends all connections, as a network does: without a word.
func (w *wiring) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	clear(w.conns)
}

// overWire connects a client to a server through a wire that can be cut.
func overWire(t *testing.T, version string, o *client.Options, features ...server.Feature) (*client.Client, *wiring) {
	t.Helper()
	mcptest.NoLeaks(t)
	app := server.New("wire", "1", quiet())
	app.Add(features...)
	endpoint := streamable.NewHandler(app, &streamable.Options{Retry: 10 * time.Millisecond})
	s := webtest.Serve(t, endpoint)
	webtest.Abort(t, endpoint.Shutdown, app.Shutdown)
	w := newWiring(t, strings.TrimPrefix(s.URL, "http://"))
	d := streamable.URL("http://" + w.l.Addr().String())
	d.Retry = 10 * time.Millisecond
	opts := client.Options{}
	if o != nil {
		opts = *o
	}
	opts.Versions = []string{version}
	c, err := client.Connect(t.Context(), d, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // what was cut may be said
	return c, w
}

// A stream of a session that breaks again and again is taken up where it was:
// nothing is lost, nothing comes twice. Proves: FLOW-PROGRESS, FLOW-ELICIT-P
// (over a broken connection).
func TestBrokenStreamIsResumed(t *testing.T) {
	const steps = 60
	for _, version := range []string{autumn, june, march} {
		t.Run(version, func(t *testing.T) {
			seenAll := make(chan struct{})
			tool := server.Tool("steps", "Takes steps.", func(ctx context.Context, _ struct{}) (string, error) {
				for i := range steps {
					if err := server.Progress(ctx, float64(i), steps, fmt.Sprint("step ", i)); err != nil {
						return "", err
					}
				}
				<-seenAll
				return "arrived", nil
			})
			c, w := overWire(t, version, nil, tool)
			var seen []float64
			r, err := c.CallTool(t.Context(), "steps", nil, &client.CallOptions{OnProgress: func(progress, _ float64, _ string) {
				if seen = append(seen, progress); len(seen)%20 == 10 || len(seen) == steps {
					w.cut()
				}
				if len(seen) == steps {
					close(seenAll)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if text(t, r) != "arrived" {
				t.Errorf("the result is %q", text(t, r))
			}
			if len(seen) != steps {
				t.Fatalf("%d notifications arrived, want %d: %v", len(seen), steps, seen)
			}
			for i, p := range seen {
				if p != float64(i) {
					t.Errorf("notification %d is %v", i, p)
				}
			}
		})
	}
}

// In the stateless revision there is nothing to take up: the handler is
// cancelled, the caller learns that the request may have run, and what is
// harmless is done again. Rulings 13 and 16. Proves: FLOW-CANCEL.
func TestBrokenStreamCancels(t *testing.T) {
	var w *wiring
	ended := make(chan error, 1)
	var reads atomic.Int32
	c, wire := overWire(t, newest, nil,
		server.Tool("wait", "Waits for the end.", func(ctx context.Context, _ struct{}) (string, error) {
			if err := server.Progress(ctx, 1, 2, ""); err != nil {
				return "", err
			}
			w.cut()
			<-ctx.Done()
			ended <- ctx.Err()
			return "", ctx.Err()
		}),
		server.Resource("site://page", "page", func(context.Context) (string, error) {
			if reads.Add(1) == 1 {
				w.cut()
			}
			return "a page", nil
		}))
	w = wire
	_, err := c.CallTool(t.Context(), "wait", nil, &client.CallOptions{OnProgress: func(float64, float64, string) {}})
	if !errors.Is(err, transport.ErrInterrupted) {
		t.Errorf("the call ended with %v, want ErrInterrupted", err)
	}
	if err := <-ended; err == nil {
		t.Error("the handler was not cancelled")
	}
	page, err := c.ReadResource(t.Context(), "site://page", nil)
	if err != nil || len(page.Contents) != 1 || page.Contents[0].Text != "a page" {
		t.Errorf("the page is %+v, %v", page, err)
	}
}

// A thousand notifications arrive whole and in order although the reader is
// slow. Proves: FLOW-PROGRESS, SEC-PROG-1.
func TestSlowReader(t *testing.T) {
	const count = 1000
	for _, version := range []string{newest, autumn, june, march, y2024} {
		t.Run(version, func(t *testing.T) {
			pad := strings.Repeat("x", 2000)
			c, _ := overWire(t, version, nil, server.Tool("many", "Sends many.", func(ctx context.Context, _ struct{}) (string, error) {
				for i := range count {
					if err := server.Progress(ctx, float64(i), count, pad); err != nil {
						return "", err
					}
				}
				return "all sent", nil
			}))
			n := 0
			r, err := c.CallTool(t.Context(), "many", nil, &client.CallOptions{OnProgress: func(progress, _ float64, _ string) {
				if progress != float64(n) {
					t.Errorf("notification %d is %v", n, progress)
				}
				n++
				if n%100 == 0 {
					time.Sleep(5 * time.Millisecond) // a slow reader, not a wait for something
				}
			}})
			if err != nil || n != count || text(t, r) != "all sent" {
				t.Errorf("%d notifications, %v, %v", n, r, err)
			}
		})
	}
}
