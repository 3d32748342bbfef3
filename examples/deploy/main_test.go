package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/examples/testpage"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// start runs the server until stop is called, or the test ends.
func start(t *testing.T, c config) (addr string, stop func()) {
	t.Helper()
	c.addr, c.host, c.proxy, c.apiKeys = testpage.FreeAddress(t), "127.0.0.1", "127.0.0.1/32", "ada:secret,bob:other"
	if c.after == nil {
		c.after = time.After
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !strings.Contains(err.Error(), http.ErrServerClosed.Error()) {
			t.Errorf("the end: %v", err)
		}
	})
	t.Cleanup(stop)
	testpage.Await(t, "http://"+c.addr+"/healthz", http.StatusOK)
	return c.addr, stop
}

func dial(url, key string) *streamable.Dialer {
	d := streamable.URL(url)
	d.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + key}}, nil
	}
	return d
}

// The server runs as its page says: callers without a key are refused, those
// with one are known by it, and it ends when it is told to.
func TestRun(t *testing.T) {
	addr, _ := start(t, config{})
	if _, err := client.Connect(t.Context(), streamable.URL("http://"+addr+"/mcp"), nil); err == nil {
		t.Error("without a key: connected")
	}
	c, err := client.Connect(t.Context(), dial("http://"+addr+"/mcp", "secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if who, err := client.Call[string](t.Context(), c, "whoami", nil); err != nil || who != "ada" {
		t.Errorf("whoami: %q, %v", who, err)
	}
}

// Each request of a client goes to another of two replicas. Clients of all
// revisions can call; those of the newest can be asked too, if the replicas have
// one key.
func TestReplicas(t *testing.T) {
	key := strings.Repeat("0f", 32)
	for name, test := range map[string]struct {
		version, key, tool, want string
	}{
		"newest":            {"2026-07-28", key, "whoami", "ada"},
		"newest, asked":     {"2026-07-28", key, "wipe", "Everything is gone."},
		"asked, no key":     {"2026-07-28", "", "wipe", "requestState is not valid"},
		"with a handshake":  {"2025-11-25", key, "whoami", "ada"},
		"oldest":            {"2025-03-26", key, "whoami", "ada"},
		"handshake, asked":  {"2025-11-25", key, "wipe", "keeps no sessions"},
		"handshake, no key": {"2025-06-18", "", "whoami", "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := start(t, config{stateKey: test.key})
			second, _ := start(t, config{stateKey: test.key})
			served := [2]atomic.Int64{}
			var n atomic.Int64
			proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				i := n.Add(1) % 2
				served[i].Add(1)
				r.SetURL(&url.URL{Scheme: "http", Host: []string{first, second}[i]})
				r.SetXForwarded()
			}}
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// Otherwise net/http closes the body as soon as the answer begins, and a
				// proxy that has not seen its end yet gives the replica up.
				if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
					t.Error(err)
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			c, err := client.Connect(t.Context(), dial(front.URL+"/mcp", "secret"), &client.Options{
				Versions: []string{test.version},
				OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return client.Accept(sure{true})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			text, err := client.Call[string](t.Context(), c, test.tool, nil)
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("%q, want %q", text, test.want)
			}
			if served[0].Load() == 0 || served[1].Load() == 0 {
				t.Error("one replica was never asked")
			}
		})
	}
}

// A server that is to end says so first, and serves on for a while.
func TestDrain(t *testing.T) {
	drained := make(chan time.Time)
	addr, stop := start(t, config{drain: time.Hour, after: func(time.Duration) <-chan time.Time { return drained }})
	testpage.Await(t, "http://"+addr+"/readyz", http.StatusOK)
	c, err := client.Connect(t.Context(), dial("http://"+addr+"/mcp", "other"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	testpage.Await(t, "http://"+addr+"/readyz", http.StatusServiceUnavailable)
	if who, err := client.Call[string](t.Context(), c, "whoami", nil); err != nil || who != "bob" {
		t.Errorf("while it ends: %q, %v", who, err)
	}
	close(drained)
	<-ended
	if _, err := client.Call[string](t.Context(), c, "whoami", nil); err == nil {
		t.Error("it has ended, and answers")
	}
}

func TestFaults(t *testing.T) {
	for want, c := range map[string]config{
		"STATE_KEY": {stateKey: "no digits"},
		"-proxy":    {proxy: "here"},
	} {
		if err := run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
