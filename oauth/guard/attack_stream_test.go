package guard_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// shortLife is how long short tokens are good, on the clock of a bubble.
const shortLife = 500 * time.Millisecond

// short is a token that ends after shortLife, as the guard counts.
func (x *site) short(user string) string {
	token := x.token(claims{"sub": user, "aud": x.url, "exp": x.clock.Now().Add(-29 * time.Second).Unix()})
	x.clock.Add(time.Second - shortLife)
	return token
}

// open sends a request and returns the status of the response, and its body to be
// read as it comes.
func (x *site) open(method, token, body string, headers ...string) (int, io.Reader) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 20*time.Second)
	x.t.Cleanup(cancel)
	resp, err := x.client.Transport.RoundTrip(x.newRequest(ctx, method, token, body, headers...))
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Body
}

const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["test:a"]},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newest + `","io.modelcontextprotocol/clientCapabilities":{}}}}`

// newFeeds is a site in memory with a resource that may be watched with a scope.
func newFeeds(t *testing.T) *site {
	t.Helper()
	s := newTools(nil)
	s.Add(server.Text("test:a", "a", "text").With(server.ResourceOptions{Scopes: []string{"mcp"}}))
	return newMemorySite(t, s)
}

// What was subscribed to ends with the token, in good order, and goes on with
// another one; a header that hides what a request does is refused. Proves: R4.
// Attack: a stream that outlives its token.
func TestAttackStreamOutlivesToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testStreamOutlivesToken)
}

func testStreamOutlivesToken(t *testing.T) {
	x := newFeeds(t)
	modern := []string{"MCP-Protocol-Version", newest, "Mcp-Method", "subscriptions/listen"}
	start := time.Now()
	status, stream := x.open(http.MethodPost, x.short("ada"), listen, modern...)
	lines := bufio.NewReader(stream)
	for line := ""; !strings.Contains(line, "acknowledged"); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%d: no acknowledgement: %v", status, err)
		}
	}
	rest, err := io.ReadAll(lines)
	if took := time.Since(start); err != nil || took != shortLife || !strings.Contains(string(rest), `"result"`) {
		t.Errorf("the subscription ended after %v with %q, %v", took, rest, err)
	}
	for name, method := range map[string]string{"another": "tools/list", "none": "", "other case": "Subscriptions/Listen"} {
		headers := []string{"MCP-Protocol-Version", newest}
		if method != "" {
			headers = append(headers, "Mcp-Method", method)
		}
		if got := x.send(http.MethodPost, x.tokenOf("ada"), listen, headers...); got.status != 400 {
			t.Errorf("method in the header, %s: %d %s", name, got.status, got.body)
		}
	}
}

// The stream of a session ends with the token, and the session stays for the
// next one, whose scopes count. Proves: R4, R8, R11.
func TestSessionGoesOnWithAnotherToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSessionGoesOnWithAnotherToken)
}

func testSessionGoesOnWithAnotherToken(t *testing.T) {
	x := newFeeds(t)
	ada := x.tokenOf("ada")
	open := x.send(http.MethodPost, ada, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", open.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	x.send(http.MethodPost, ada, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	start := time.Now()
	status, stream := x.open(http.MethodGet, x.short("ada"), "", session...)
	rest, err := io.ReadAll(stream)
	if took := time.Since(start); status != 200 || err != nil || took != shortLife {
		t.Errorf("%d: the stream ended after %v with %q, %v", status, took, rest, err)
	}
	for _, test := range []struct {
		scope  string
		status int
	}{{"mcp", 403}, {"mcp files:read files:write", 200}, {"mcp files:read", 403}} {
		token := x.token(claims{"aud": x.url, "scope": test.scope})
		got := x.send(http.MethodPost, token, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{}}}`, session...)
		if got.status != test.status || strings.Contains(got.body, "written") != (test.status == 200) {
			t.Errorf("with %q: %d %s", test.scope, got.status, got.body)
		}
	}
}

// A wallet is a RoundTripper with tokens of the user ada; the first one that
// subscribes ends soon.
type wallet struct {
	x       *site
	listens atomic.Int32
	again   chan struct{} // closed by the second subscription
}

func (w *wallet) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	token := ""
	switch {
	case r.Header.Get("Mcp-Method") != "subscriptions/listen":
	case w.listens.Add(1) == 1:
		token = w.x.short("ada")
	case w.listens.Load() == 2:
		close(w.again)
	}
	if token == "" {
		token = w.x.tokenOf("ada")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return w.x.client.Transport.RoundTrip(r)
}

// A client whose subscription ends with its token subscribes anew with the next
// one, and hears of changes.
func TestSubscriptionGoesOnWithAnotherToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSubscriptionGoesOnWithAnotherToken)
}

func testSubscriptionGoesOnWithAnotherToken(t *testing.T) {
	s := newTools(nil)
	s.Add(server.Text("test:a", "a", "text"))
	x := newMemorySite(t, s)
	w := &wallet{x: x, again: make(chan struct{})}
	told := make(chan string, 16)
	c, err := client.Connect(t.Context(), &streamable.Dialer{URL: x.url, Client: &http.Client{Transport: w}}, &client.Options{
		OnResourceUpdated: func(_ context.Context, uri string) { told <- uri },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	sub, err := c.Subscribe(t.Context(), "test:a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
	limit := time.After(20 * time.Second)
	select {
	case <-w.again:
	case <-limit:
		t.Fatal("no second subscription")
	}
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case uri := <-told:
			tick.Stop()
			if uri != "test:a" {
				t.Errorf("told of %s", uri)
			}
			return
		case <-tick.C:
			s.ResourceUpdated("test:a")
		case <-limit:
			t.Fatal("no notice")
		}
	}
}
