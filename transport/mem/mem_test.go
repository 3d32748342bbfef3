package mem_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/frame"
	"github.com/parley-mcp/parley/transport/mem"
)

// Proves: SEC-DOS-1, FLOW-SHUTDOWN.
func TestKit(t *testing.T) {
	mcptest.TestTransport(t, func(_ *testing.T, h transport.Handler, o mcptest.TransportOptions) transport.Dialer {
		return mem.New(h, &mem.Options{MaxMessage: o.MaxMessage})
	})
}

// An inbox drops what arrives, once it may.
type inbox struct {
	gate   chan struct{}
	closed chan error
}

func newInbox() *inbox { return &inbox{gate: make(chan struct{}), closed: make(chan error, 1)} }

func (i *inbox) Receive(*jsonrpc.Incoming) { <-i.gate }
func (i *inbox) Closed(err error)          { i.closed <- err }

// A watcher looks at what the handler is given.
type watcher struct {
	transport.Handler
	mu  sync.Mutex
	ctx context.Context //nolint:containedctx // looked at, not used
	who *principal.Principal
}

func (w *watcher) Open(c transport.Conn) (transport.Session, error) {
	s, err := w.Handler.Open(c)
	return watched{s, w}, err
}

type watched struct {
	transport.Session
	w *watcher
}

func (s watched) Begin(ctx context.Context, x *transport.Exchange) func() {
	s.w.mu.Lock()
	s.w.ctx, s.w.who = ctx, x.Principal
	s.w.mu.Unlock()
	return s.Session.Begin(ctx, x)
}

type key struct{}

// Values of the caller's contexts stay with the caller; the principal is the
// one that was configured; closing ends the context of the requests.
func TestIsolation(t *testing.T) {
	who := &principal.Principal{Subject: "ada"}
	w := &watcher{Handler: mcptest.TransportPeer()}
	d := mem.New(w, &mem.Options{Principal: who, Key: "k"})
	if d.Key() != "k" || mem.New(w, nil).Key() != "" {
		t.Errorf("keys are %q and %q", d.Key(), mem.New(w, nil).Key())
	}
	ctx := context.WithValue(t.Context(), key{}, "secret")
	link, err := d.Dial(ctx, newInbox())
	if err != nil {
		t.Fatal(err)
	}
	q := &jsonrpc.Outgoing{ID: jsonrpc.StringID("a"), Method: "kit/echo"}
	if _, err := link.Do(ctx, q, transport.Route{}); err != nil {
		t.Fatal(err)
	}
	if w.ctx.Value(key{}) != nil || w.who != who {
		t.Errorf("the server sees %v and %v", w.ctx.Value(key{}), w.who)
	}
	if err := link.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if w.ctx.Err() == nil {
		t.Error("the connection has ended, its context has not")
	}
}

// Proves: SEC-DOS-1. A client that takes nothing is given up after WriteStall,
// in time that costs nothing: both ends run inside synctest.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox()
		link, err := mem.New(mcptest.TransportPeer(), nil).Dial(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		q := &jsonrpc.Outgoing{
			ID:     jsonrpc.IntID(1),
			Method: "kit/notify",
			Params: jsonrpc.Raw(jsonrpc.RawValue(`{"count":5000,"size":4096}`)),
		}
		done := make(chan error, 1)
		go func() {
			_, err := link.Do(t.Context(), q, transport.Route{})
			done <- err
		}()
		synctest.Wait()
		time.Sleep(frame.DefaultWriteStall + 2*time.Minute) // fake time
		close(in.gate)
		if err := <-done; !errors.Is(err, transport.ErrInterrupted) {
			t.Errorf("the request: %v, want ErrInterrupted", err)
		}
		if err := <-in.closed; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the inbox was told %v, want ErrClosed", err)
		}
		if err := link.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}

// A response over the client's limit is an error of its request alone.
func TestMaxResponse(t *testing.T) {
	mcptest.NoLeaks(t)
	link, err := mem.New(mcptest.TransportPeer(), &mem.Options{MaxResponse: 1000}).Dial(t.Context(), newInbox())
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{10, 2000, 10} {
		params := jsonrpc.RawValue(`{"pad":"` + strings.Repeat("x", size) + `"}`)
		_, err := link.Do(t.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(int64(i + 1)), Method: "kit/echo", Params: jsonrpc.Raw(params)}, transport.Route{})
		var long *frame.TooLongError
		if errors.As(err, &long) != (size > 1000) || (err == nil) != (size <= 1000) {
			t.Errorf("echo of %d bytes: %v", size, err)
		}
	}
	if err := link.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkEcho(b *testing.B) {
	link, err := mem.New(mcptest.TransportPeer(), nil).Dial(b.Context(), newInbox())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = link.Close(context.Background()) }()
	params := jsonrpc.Raw(jsonrpc.RawValue(`{"name":"echo","arguments":{"message":"hello"}}`))
	b.ReportAllocs()
	id := int64(0)
	for b.Loop() {
		id++
		if _, err := link.Do(b.Context(), &jsonrpc.Outgoing{ID: jsonrpc.IntID(id), Method: "kit/echo", Params: params}, transport.Route{}); err != nil {
			b.Fatal(err)
		}
	}
}
