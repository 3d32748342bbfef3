package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport/streamable"
)

// The server runs as its page says: callers without a key are refused, those
// with one are known by it, and it ends when it is told to.
func TestRun(t *testing.T) {
	addr := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, addr, "127.0.0.1", "127.0.0.1/32", "ada:secret,bob:other") }()
	defer func() {
		stop()
		if err := <-ended; err != nil && !strings.Contains(err.Error(), http.ErrServerClosed.Error()) {
			t.Errorf("the end: %v", err)
		}
	}()
	awaitServer(t, addr)

	d := streamable.URL("http://" + addr + "/mcp")
	if _, err := client.Connect(t.Context(), d, nil); err == nil {
		t.Error("without a key: connected")
	}
	d.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer secret"}}, nil
	}
	c, err := client.Connect(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if who, err := client.Call[string](t.Context(), c, "whoami", nil); err != nil || who != "ada" {
		t.Errorf("whoami: %q, %v", who, err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func awaitServer(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the server does not answer")
		}
	}
}
