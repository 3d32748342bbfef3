package mem_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/linktest"
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

type key struct{}

// Values of the caller's contexts stay with the caller; the principal is the
// one that was configured; closing ends the context of the requests.
func TestIsolation(t *testing.T) {
	who := &principal.Principal{Subject: "ada"}
	var seen struct {
		sync.Mutex
		ctx context.Context //nolint:containedctx // looked at, not used
		who *principal.Principal
	}
	w := &linktest.Handler{Handler: mcptest.TransportPeer(), OnBegin: func(ctx context.Context, x *transport.Exchange, s transport.Session) func() {
		seen.Lock()
		seen.ctx, seen.who = ctx, x.Principal
		seen.Unlock()
		return s.Begin(ctx, x)
	}}
	d := mem.New(w, &mem.Options{Principal: who, Key: "k"})
	if d.Key() != "k" || mem.New(w, nil).Key() != "" {
		t.Errorf("keys are %q and %q", d.Key(), mem.New(w, nil).Key())
	}
	ctx := context.WithValue(t.Context(), key{}, "secret")
	link, err := d.Dial(ctx, linktest.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	q := &jsonrpc.Outgoing{ID: jsonrpc.StringID("a"), Method: "kit/echo"}
	if _, err := link.Do(ctx, q, transport.Route{}); err != nil {
		t.Fatal(err)
	}
	if seen.ctx.Value(key{}) != nil || seen.who != who {
		t.Errorf("the server sees %v and %v", seen.ctx.Value(key{}), seen.who)
	}
	if err := link.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if seen.ctx.Err() == nil {
		t.Error("the connection has ended, its context has not")
	}
}

// Proves: SEC-DOS-1. A client that takes nothing is given up after WriteStall,
// in time that costs nothing: both ends run inside synctest.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, gate := linktest.NewInbox(), make(chan struct{})
		in.OnReceive = func(*jsonrpc.Incoming) { <-gate }
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
		close(gate)
		if err := <-done; !errors.Is(err, transport.ErrInterrupted) {
			t.Errorf("the request: %v, want ErrInterrupted", err)
		}
		if err := <-in.Ended; !errors.Is(err, transport.ErrClosed) {
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
	link, err := mem.New(mcptest.TransportPeer(), &mem.Options{MaxResponse: 1000}).Dial(t.Context(), linktest.NewInbox())
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
	link, err := mem.New(mcptest.TransportPeer(), nil).Dial(b.Context(), linktest.NewInbox())
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
