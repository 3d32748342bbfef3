package cli_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport/streamable"
)

// roundRobin sends each request to another of the addresses.
func roundRobin(t *testing.T, addresses ...string) string {
	t.Helper()
	var n atomic.Int64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		next := addresses[int(n.Add(1))%len(addresses)]
		r.SetURL(&url.URL{Scheme: "http", Host: next})
	}}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Otherwise net/http closes the body as soon as the answer begins, and a
		// proxy that has not seen its end yet gives the replica up.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	return ts.URL + streamable.Path
}

func keyFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// With one key a question that one replica asks is answered to another; each
// round of the call goes to another here. Without, the answer is refused.
func TestServeReplicas(t *testing.T) {
	key := keyFile(t, strings.Repeat("0f", 32)+"\n")
	next := keyFile(t, strings.Repeat("\x01", 32))
	for name, test := range map[string]struct {
		first, second []string
		ok            bool
	}{
		"one key":   {[]string{"--state-key-file", key}, []string{"--state-key-file", key}, true},
		"rotation":  {[]string{"--state-key-file", key}, []string{"--state-key-file", next, "--state-key-file", key}, true},
		"no key":    {nil, nil, false},
		"other key": {[]string{"--state-key-file", key}, []string{"--state-key-file", next}, false},
	} {
		t.Run(name, func(t *testing.T) {
			first, stop := startHTTP(t, append(test.first, "--sessionless")...)
			defer stop()
			second, stop := startHTTP(t, append(test.second, "--sessionless")...)
			defer stop()
			// The connection's first request goes to the second replica, the call
			// to the first, the answer to the second.
			c, err := client.Connect(t.Context(), streamable.URL(roundRobin(t, first, second)), &client.Options{
				Versions: []string{"2026-07-28"},
				OnElicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return client.Accept(map[string]any{"name": "Ada"})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = client.Call[string](t.Context(), c, "trigger-elicitation-request", nil)
			if (err == nil) != test.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Sessionless replicas serve clients of older revisions too.
func TestServeReplicasOfSessions(t *testing.T) {
	first, stop := startHTTP(t, "--sessionless")
	defer stop()
	second, stop := startHTTP(t, "--sessionless")
	defer stop()
	target := roundRobin(t, first, second)
	for range 3 {
		code, out, errs := command(t, "call", "add", "a=2", "b=3", "--server", target, "--protocol", "2025-06-18")
		if code != 0 || out != "5\n" {
			t.Errorf("exit code %d, %q\n%s", code, out, errs)
		}
	}
}

func TestStateKeyFaults(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"no file":  {filepath.Join(t.TempDir(), "none"), "no such file"},
		"short":    {keyFile(t, "secret"), "invalid key; the file must contain 32 random bytes"},
		"long":     {keyFile(t, strings.Repeat("ab", 33)), "invalid key"},
		"empty":    {keyFile(t, ""), "invalid key"},
		"no digit": {keyFile(t, strings.Repeat("xy", 32)), "invalid key"},
	} {
		code, _, errs := command(t, "serve", "everything", "--http", "127.0.0.1:0", "--state-key-file", test.file)
		if code != 1 || !strings.Contains(errs, test.want) || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
	}
}
