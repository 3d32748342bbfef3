//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/proxy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

// Bounds of what a thousand abandoned questions may leave while the bridge goes on: what the first half of
// them left is what any use leaves.
const (
	moreHeap       = 1 << 20
	moreGoroutines = 30
)

// Questions that are never answered leave nothing in front of a program, while the bridge goes on and
// after it: no process, no goroutine, no memory. A session at a server with sessions is a process, so
// that there are fewer of those. Each question starts a process, which takes a sixth of a second with
// the race detector: it sees a tenth of them.
func TestBridgeAbandoned(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	many := 1000
	if racetest.Enabled {
		many = 100
	}
	for _, test := range []struct {
		behind, caller string
		questions      int
	}{
		{bridgedEras[0], stateless, many},
		{stateless, stateless, many},
		{bridgedEras[0], bridgedEras[0], 4},
		{stateless, bridgedEras[0], 40},
	} {
		t.Run("server "+test.behind+", client "+test.caller, func(t *testing.T) {
			mcptest.NoLeaks(t)
			dir := shortDir(t)
			processes := newCensus(t, dir)
			url, end := abandonedBridge(t, test.behind, dir, time.Second)
			abandon := abandonRound
			if test.caller != stateless {
				abandon = abandonSession
			}
			some := func() (heap uint64, goroutines int) {
				for i := range test.questions / 2 {
					abandon(t, url, fmt.Sprint("caller-", i%8))
					if n := processes.alive.Load(); n > 2*8+1 {
						t.Fatalf("%d processes of 8 callers", n)
					}
				}
				idle(t, processes)
				http.DefaultTransport.(*http.Transport).CloseIdleConnections()
				return used()
			}
			heap, goroutines := some()
			heapAfter, goroutinesAfter := some()
			if heapAfter > heap+moreHeap || goroutinesAfter > goroutines+moreGoroutines {
				t.Errorf("after %d questions %d bytes and %d goroutines, after twice as many %d bytes and %d goroutines",
					test.questions/2, heap, goroutines, heapAfter, goroutinesAfter)
			}
			t.Logf("%d processes; %d and %d bytes; %d and %d goroutines", processes.count.Load(), heap, heapAfter, goroutines, goroutinesAfter)
			end()
			processes.none()
		})
	}
}

// abandonedBridge serves a bridge to an interviewer, for callers whom a header names.
func abandonedBridge(t *testing.T, version, dir string, idle time.Duration) (url string, end func()) {
	t.Helper()
	free := server.Limits{ToolRate: server.Unlimited, ListRate: server.Unlimited, MaxInFlight: server.Unlimited}
	quiet := slog.New(slog.DiscardHandler)
	b := bridge.New(stdio.Command("interviewer", dir), &bridge.Options{
		Idle: idle, Logger: quiet,
		Proxy: proxy.Options{
			KeptTime: 50 * time.Millisecond, MaxKeptPerPrincipal: 256,
			Client: client.Options{Versions: []string{version}}, Server: server.Options{Limits: free},
		},
	})
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := &streamable.Options{Logger: quiet}
	o.Access.Principal = func(r *http.Request) *principal.Principal {
		return &principal.Principal{Issuer: "https://as.example", Subject: r.Header.Get("X-User")}
	}
	endpoint := streamable.NewHandler(b, o)
	site := httptest.NewServer(endpoint)
	return site.URL, func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := errors.Join(endpoint.Shutdown(ctx), b.Shutdown(ctx)); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		site.Close()
	}
}

// dialAs dials as a caller.
func dialAs(url, caller string) *streamable.Dialer {
	d := streamable.URL(url)
	d.Header = func(context.Context) (http.Header, error) { return http.Header{"X-User": {caller}}, nil }
	return d
}

// abandonRound asks, and never comes back with an answer.
func abandonRound(t *testing.T, url, caller string) {
	t.Helper()
	for {
		c, err := client.Connect(t.Context(), dialAs(url, caller), &client.Options{
			Versions: []string{stateless}, Retries: -1, OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) { return nil, errAbandoned },
		})
		if err != nil {
			t.Fatal(err)
		}
		asked, result, err := interviewRound(t.Context(), c, nil, nil)
		_ = c.Close()
		e, refused := errors.AsType[*jsonrpc.Error](err)
		switch {
		case asked != nil:
			return
		case !refused || e.Code != mcp.CodeTimeout && e.Code != mcp.CodeTooManyInFlight:
			t.Fatalf("no question, but %s, %v", result, err)
		}
	}
}

var errAbandoned = errors.New("nobody answers")

// abandonSession begins a session, has itself asked, and leaves.
func abandonSession(t *testing.T, url, caller string) {
	t.Helper()
	asked := make(chan struct{}, 1)
	c, err := client.Connect(t.Context(), dialAs(url, caller), &client.Options{
		Versions: []string{bridgedEras[0]}, Retries: -1, OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), "interview", nil, nil)
		over <- err
	}()
	select {
	case <-asked:
		_ = c.Close()
		<-over //nolint:errcheck // it was left
	case err := <-over:
		t.Fatalf("no question, but %v", err)
	}
}

// idle waits until no process is left: their connections are ended when nothing uses them.
func idle(t *testing.T, processes *census) {
	t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for processes.alive.Load() > 0 {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%d processes are left although nobody uses them", processes.alive.Load())
		}
	}
}

// used is what the program uses when nothing is under way.
func used() (heap uint64, goroutines int) {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}
