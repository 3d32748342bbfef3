package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// A guard is authentication in front of a site: it refuses the requests of a
// method, or all.
type guard struct {
	next   http.RoundTripper
	method string
	refuse denial
	times  atomic.Int32 // refused
	gets   atomic.Int32 // streams asked for
}

func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		g.gets.Add(1)
	}
	if m := methodOf(r); g.method != "" && m != g.method {
		return g.next.RoundTrip(r)
	}
	g.times.Add(1)
	if g.refuse.err != nil {
		return nil, g.refuse.err
	}
	resp := whole(g.refuse.status, g.refuse.body)
	resp.Header.Set("WWW-Authenticate", g.refuse.challenge)
	resp.Request = r
	return resp, nil
}

// A denial is a response, or the error of a login.
type denial struct {
	status          int
	challenge, body string
	err             error
}

const (
	invalidToken = `Bearer error="invalid_token", resource_metadata="https://r.example/.well-known/oauth-protected-resource"`
	tooFew       = `Bearer error="insufficient_scope", scope="files.read files.write"`
	tooFewBody   = `{"jsonrpc":"2.0","id":1,"error":{"code":-31006,"message":"this call needs the scopes files.read, files.write","data":{"scopes":["files.read","files.write"]}}}`
	// The words of servers of the handshake era, in which they refuse what is stateless.
	oldWords = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`
)

// Who is not let in is told so at once: no other revision and no other transport
// is tried, since none would be let in, and the error tells what is wanted.
// Rulings 4 and 16. Proves: C3 (without a login).
func TestDenied(t *testing.T) {
	failed := errors.New("the person closed the window")
	for name, test := range map[string]struct {
		refuse denial
		text   string
	}{
		"401":                {denial{401, invalidToken, "", nil}, "the server answered 401 Unauthorized; it wants authorization"},
		"401 in old words":   {denial{401, invalidToken, oldWords, nil}, "it wants authorization (it said: no)"},
		"403":                {denial{403, "", "", nil}, "it does not let this caller in"},
		"403 in old words":   {denial{403, "", oldWords, nil}, "it does not let this caller in (it said: no)"},
		"403 for scopes":     {denial{403, tooFew, tooFewBody, nil}, "it wants authorization with the scope files.read files.write (it said: this call needs"},
		"nobody to sign in":  {denial{err: fmt.Errorf("%w: %w", transport.ErrDenied, failed)}, failed.Error()},
		"nobody, in a chain": {denial{err: &wrapped{fmt.Errorf("%w: %w", transport.ErrDenied, failed)}}, failed.Error()},
	} {
		check := func(t *testing.T, what string, err error) {
			t.Helper()
			status, ok := errors.AsType[*web.StatusError](err)
			if !errors.Is(err, transport.ErrDenied) || ok != (test.refuse.status > 0) || ok && status.Status != test.refuse.status || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			g := &guard{next: &site{}, refuse: test.refuse}
			far := &http.Client{Transport: g}
			eras := client.NewEraMemory()
			d := transport.First(&streamable.Dialer{URL: "http://far.example/mcp", Client: far}, &sse.Dialer{URL: "http://far.example/sse", Client: far})
			for _, known := range []string{"", newest} { // with a memory of an old server too
				eras.Remember(d.Key(), known)
				g.times.Store(0)
				_, err := client.Connect(t.Context(), d, &client.Options{Eras: eras})
				check(t, "connect", err)
				if n, gets := g.times.Load(), g.gets.Load(); n != 1 || gets != 0 {
					t.Errorf("%s, known %q: %d requests and %d streams, want one", name, known, n, gets)
				}
				if got, _ := eras.Recall(d.Key()); got != known {
					t.Errorf("%s: the era became %q, was %q", name, got, known)
				}
			}
		})
		for _, old := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &site{old: old}
				g := &guard{next: s, method: mcp.MethodResourcesRead, refuse: test.refuse}
				c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: g}}, &client.Options{Eras: client.NewEraMemory()})
				s.became(old, nil)
				_, err := c.ReadResource(t.Context(), "a:b", nil)
				check(t, "call", err)
				if n := g.times.Load(); n != 1 || s.count(mcp.MethodDiscover)+s.count(mcp.MethodInitialize) != 0 || c.Modern() == old {
					t.Errorf("%s, old %t: %d requests; then heard %v", name, old, n, s.heard)
				}
				if e, ok := errors.AsType[*jsonrpc.Error](err); strings.Contains(test.text, "this call needs") && (!ok || e.Code != mcp.CodeInsufficientScope) {
					t.Errorf("%s: the error of the protocol is %v", name, e)
				}
			})
		}
	}
}

// wrapped is an error of some layer between.
type wrapped struct{ err error }

func (e *wrapped) Error() string { return "between: " + e.err.Error() }
func (e *wrapped) Unwrap() error { return e.err }

// A subscription that is not let in fails at once, and does not ask again; one
// that was let in before is renewed, since its token may be.
func TestDeniedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		s := &site{on: map[string]func(*http.Request, string) *http.Response{
			mcp.MethodListen: func(r *http.Request, id string) *http.Response { return listening(r, id, stop) },
		}}
		g := &guard{next: s, method: mcp.MethodListen, refuse: denial{403, tooFew, tooFewBody, nil}}
		c := dial(t, &streamable.Dialer{URL: "http://far.example/mcp", Client: &http.Client{Transport: g}},
			&client.Options{Eras: client.NewEraMemory(), OnResourceUpdated: func(context.Context, string) {}})
		start := time.Now()
		if _, err := c.Subscribe(t.Context(), "a:b"); !errors.Is(err, transport.ErrDenied) || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Hour) // of fake time
		if n := g.times.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		g.method = "nothing"
		sub, err := c.Subscribe(t.Context(), "a:b")
		if err != nil {
			t.Fatal(err)
		}
		g.method, g.refuse = mcp.MethodListen, denial{401, invalidToken, "", nil}
		close(stop)
		time.Sleep(time.Hour)
		if n := g.times.Load(); n < 50 || len(sub.URIs()) != 1 {
			t.Errorf("asked %d times; watched is %q", n, sub.URIs())
		}
	})
}
