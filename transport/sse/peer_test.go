package sse_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/linktest"
	"github.com/parley-mcp/parley/mcptest"
)

// A peer is a client by hand.
type peer struct {
	t        *testing.T
	client   *http.Client
	hang     func()
	response *http.Response
	events   *eventstream.Reader
	url      *url.URL // for messages
	header   http.Header
}

// open opens a stream and reads the endpoint event.
func open(t *testing.T, c *http.Client, address string, header http.Header) *peer {
	t.Helper()
	p := &peer{t: t, client: c, header: header}
	ctx, cancel := context.WithCancel(context.Background())
	p.hang = cancel
	t.Cleanup(cancel)
	resp := do(t, c, ctx, http.MethodGet, address, header, nil)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("GET %s: %s %s", address, resp.Status, body)
	}
	p.response = resp
	p.events = eventstream.NewReader(resp.Body, 8<<20)
	e := p.next()
	if e.Type != "endpoint" {
		t.Fatalf("the first event is %q, want endpoint", e.Type)
	}
	u, err := resp.Request.URL.Parse(string(e.Data))
	if err != nil {
		t.Fatal(err)
	}
	p.url = u
	return p
}

// do makes a request.
func do(t *testing.T, c *http.Client, ctx context.Context, method, address string, header http.Header, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// status makes a request and gives the status of its answer, and its body.
func status(t *testing.T, c *http.Client, method, address string, header http.Header, body io.Reader) (int, string, http.Header) {
	t.Helper()
	resp := do(t, c, t.Context(), method, address, header, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

// next reads an event.
func (p *peer) next() eventstream.Event {
	p.t.Helper()
	e, err := p.events.Next()
	if err != nil {
		p.t.Fatalf("reading an event: %v", err)
	}
	return e
}

// post sends a message and gives the status of the answer.
func (p *peer) post(message string) int {
	p.t.Helper()
	code, _, _ := p.postHeader(message, nil)
	return code
}

func (p *peer) postHeader(message string, header http.Header) (int, string, http.Header) {
	p.t.Helper()
	all := http.Header{"Content-Type": {"application/json"}}
	for _, h := range []http.Header{p.header, header} {
		for name, values := range h {
			all[name] = values
		}
	}
	return status(p.t, p.client, http.MethodPost, p.url.String(), all, strings.NewReader(message))
}

// ask sends a request and reads its answer.
func (p *peer) ask(request string) string {
	p.t.Helper()
	if code := p.post(request); code != http.StatusAccepted {
		p.t.Fatalf("POST: %d, want 202", code)
	}
	e := p.next()
	if e.Type != "message" {
		p.t.Fatalf("an event of type %q, want message", e.Type)
	}
	return string(e.Data)
}

const (
	echo   = `{"jsonrpc":"2.0","id":1,"method":"kit/echo","params":{"n":1}}`
	echoed = `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`
	wait   = `{"jsonrpc":"2.0","id":2,"method":"kit/wait"}`
	free   = `{"jsonrpc":"2.0","method":"kit/release"}`
	freed  = `{"jsonrpc":"2.0","id":2,"result":{}}`
)

// watch is a handler that tells of the end of its sessions.
func watch() (h *linktest.Handler, ended chan error) {
	ended = make(chan error, 100)
	return &linktest.Handler{Handler: mcptest.TransportPeer(), OnClose: func(cause error) { ended <- cause }}, ended
}
