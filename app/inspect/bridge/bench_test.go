//go:build unix

package bridge_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/inspect/bridge"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
)

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// adder is the server of the benchmark.
func adder() *server.Server {
	s := server.New("adder", "1", &server.Options{Logger: quiet, Limits: unlimited})
	s.Add(server.Tool("add", "Adds.", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil }))
	return s
}

// overPipe serves h over a Unix socket, as over the pipes of a child process.
func overPipe(b *testing.B, h transport.Handler) transport.Dialer {
	b.Helper()
	ln, err := net.Listen("unix", b.TempDir()+"/s")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- stdio.ServeListener(ctx, ln, h, nil) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			b.Errorf("serving: %v", err)
		}
	})
	return stdio.Dial("unix", ln.Addr().String())
}

// overHTTP serves h at a URL.
func overHTTP(b *testing.B, h transport.Handler) transport.Dialer {
	b.Helper()
	o := &streamable.Options{Logger: quiet}
	o.Access.Principal = func(*http.Request) *principal.Principal { return principal.Local } // without rates
	endpoint := streamable.NewHandler(h, o)
	ts := httptest.NewServer(endpoint)
	b.Cleanup(func() {
		_ = endpoint.Shutdown(context.Background())
		ts.Close()
	})
	return streamable.URL(ts.URL)
}

// BenchmarkCall measures a call over HTTP and over a pipe, directly and through a bridge to the
// other transport. cpu-ns/op is the processor time of everything: client, bridge and server.
func BenchmarkCall(b *testing.B) {
	bridged := func(b *testing.B, d transport.Dialer, version string) transport.Handler {
		b.Helper()
		o := &bridge.Options{Logger: quiet}
		o.Proxy.Client.Versions, o.Proxy.Server.Limits = []string{version}, unlimited
		br := bridge.New(d, o)
		if err := br.Start(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = br.Shutdown(context.Background()) })
		return br
	}
	for _, version := range []string{legacy, modern} {
		for _, kind := range []struct {
			name string
			dial func(b *testing.B) transport.Dialer
		}{
			{"http/direct", func(b *testing.B) transport.Dialer { return overHTTP(b, adder()) }},
			{"http/bridge", func(b *testing.B) transport.Dialer { return overHTTP(b, bridged(b, overPipe(b, adder()), version)) }},
			{"pipe/direct", func(b *testing.B) transport.Dialer { return overPipe(b, adder()) }},
			{"pipe/bridge", func(b *testing.B) transport.Dialer { return overPipe(b, bridged(b, overHTTP(b, adder()), version)) }},
		} {
			b.Run(version+"/"+kind.name, func(b *testing.B) {
				c, err := client.Connect(context.Background(), kind.dial(b), &client.Options{Versions: []string{version}})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				before := cpu(b)
				for b.Loop() {
					if got, err := client.Call[int](context.Background(), c, "add", sum{2, 3}); err != nil || got != 5 {
						b.Fatal(got, err)
					}
				}
				b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// cpu is the processor time of the process so far.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
