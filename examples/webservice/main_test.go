package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/streamable"
)

func serve(t *testing.T) string {
	t.Helper()
	h, endpoint := routes(keys{sha256.Sum256([]byte("secret")): "ada"}, prometheus.NewRegistry())
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		if err := endpoint.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	return ts.URL
}

func dial(url, key string) *streamable.Dialer {
	d := streamable.URL(url + streamable.Path)
	d.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + key}}, nil
	}
	return d
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestWebservice(t *testing.T) {
	url := serve(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c, err := client.Connect(t.Context(), dial(url, "secret"), &client.Options{Versions: []string{version}})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := client.Call[string](t.Context(), c, "hello", nil); err != nil || text != "Hello, ada!" {
			t.Errorf("%s: %q, %v", version, text, err)
		}
		if _, err := client.Call[string](t.Context(), c, "made-up", nil); err == nil {
			t.Errorf("%s: a tool that is not there was called", version)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := get(t, url+"/metrics"); !strings.Contains(got, `mcp_requests_total{method="tools/call",outcome="ok",target="hello"} 2`) {
		t.Errorf("metrics: %s", got)
	} else if strings.Contains(got, "made-up") {
		t.Errorf("callers make labels: %s", got)
	}
	if got := get(t, url+"/healthz"); got != "ok\n" {
		t.Errorf("health: %s", got)
	}
}

func TestNoKey(t *testing.T) {
	_, err := client.Connect(t.Context(), dial(serve(t), "wrong"), nil)
	if !errors.Is(err, transport.ErrDenied) {
		t.Errorf("%v", err)
	}
}

// Answers are compressed for clients that ask for it.
func TestCompression(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serve(t)+streamable.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Authorization": {"Bearer secret"}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Accept-Encoding": {"gzip"},
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%s, %v", res.Status, res.Header)
	}
}
