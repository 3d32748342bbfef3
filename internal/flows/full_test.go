package flows_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// A defaultSite is an endpoint with all limits at their defaults, behind a proxy that
// tells the addresses of callers; a header names those who are signed in.
type defaultSite struct {
	t    *testing.T
	url  string
	http *http.Client

	mu    sync.Mutex
	ended map[string]map[error]int // by caller and cause; "" is anonymous
}

func newDefaultSite(t *testing.T) *defaultSite {
	t.Helper()
	mcptest.NoLeaks(t)
	core := with(server.Tool("sum", "Adds.", sum))(t, quiet())
	site := &defaultSite{t: t, ended: make(map[string]map[error]int)}
	endpoint := streamable.NewHandler(core, &streamable.Options{
		OnSession: site.told,
		Access: web.Access{
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			Principal: func(r *http.Request) *principal.Principal {
				if user := r.Header.Get(userHeader); user != "" {
					return &principal.Principal{Issuer: "test", Subject: user}
				}
				return nil
			},
		},
	})
	site.url, site.http = webtest.Serve(t, endpoint).URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 400}}
	t.Cleanup(site.http.CloseIdleConnections)
	webtest.ShutDown(t, endpoint.Shutdown)
	return site
}

func (s *defaultSite) told(e streamable.SessionEvent) {
	if e.State != streamable.SessionEnded {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	causes := s.ended[e.Principal.Subject]
	if causes == nil {
		causes = make(map[error]int)
		s.ended[e.Principal.Subject] = causes
	}
	for _, cause := range []error{streamable.ErrDisplaced, streamable.ErrDeleted, streamable.ErrIdle} {
		if errors.Is(e.Cause, cause) {
			causes[cause]++
		}
	}
}

// count is how many sessions of a caller ended for a reason.
func (s *defaultSite) count(user string, cause error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[user][cause]
}

// dialer is how a client at an address, with a name or without, reaches the
// endpoint. Each client has connections of its own.
func (s *defaultSite) dialer(address, user string, stream bool) *streamable.Dialer {
	header := http.Header{"X-Forwarded-For": {address}}
	if user != "" {
		header.Set(userHeader, user)
	}
	return &streamable.Dialer{
		URL: s.url, NoStream: !stream,
		Header: func(context.Context) (http.Header, error) { return header, nil },
	}
}

// connect opens a session for a client that stays until the test ends.
func (s *defaultSite) connect(address, user string, stream bool) *client.Client {
	s.t.Helper()
	c, err := client.Connect(s.t.Context(), s.dialer(address, user, stream), &client.Options{Versions: []string{autumn}})
	if err != nil {
		s.t.Fatalf("a client of %s: %v", address, err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// abandon opens a session that nobody will use.
func (s *defaultSite) abandon(address string) {
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + autumn + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	r, err := webtest.Read(s.http, webtest.NewRequest(s.t, s.t.Context(), http.MethodPost, s.url, body,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "X-Forwarded-For", address))
	if err != nil || r.Status != http.StatusOK {
		s.t.Errorf("initialize from %s: %d %s %v", address, r.Status, r.Body, err)
	}
}

// add calls a tool.
func add(t *testing.T, c *client.Client) error {
	t.Helper()
	out, err := client.Call[sumOut](t.Context(), c, "sum", sumIn{1, 2})
	if err == nil && out != (sumOut{3}) {
		err = fmt.Errorf("the sum is %v", out)
	}
	return err
}

// Proves: SEC-DOS-1. Fifty addresses open 200 sessions each, more than there is
// room for, and nobody is kept out: a caller with a name works on meanwhile and
// loses no session, another one comes later, and so do anonymous callers of
// other addresses, one of whom had a single session all the while.
func TestFullOfSessions(t *testing.T) {
	const addresses, each = 50, 200
	s := newDefaultSite(t)
	ada := []*client.Client{s.connect("198.51.100.1", "ada", true), s.connect("198.51.100.1", "ada", false), s.connect("198.51.100.1", "ada", false)}
	small := s.connect("198.51.100.2", "", false)
	var (
		filling, working sync.WaitGroup
		filled           atomic.Bool
		calls            int
	)
	working.Go(func() {
		for !filled.Load() {
			calls++
			if err := add(t, ada[0]); err != nil {
				t.Errorf("call %d of a caller with a name: %v", calls, err)
				return
			}
		}
	})
	for worker := range 10 {
		filling.Go(func() {
			for i := worker; i < addresses*each; i += 10 {
				s.abandon(fmt.Sprintf("203.0.113.%d", i%addresses))
			}
		})
	}
	filling.Wait()
	filled.Store(true)
	working.Wait()
	later := s.connect("198.51.100.3", "bob", false)
	other := s.connect("198.51.100.4", "", false)
	for i, c := range append(ada, small, later, other) {
		if err := add(t, c); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	}
	if n := s.count("ada", streamable.ErrDisplaced); n != 0 || calls == 0 {
		t.Errorf("%d sessions of a caller with a name were displaced in %d calls", n, calls)
	}
	// 9,000 of 10,002 are left.
	if n := s.count("", streamable.ErrDisplaced); n < 990 || n > 1002 {
		t.Errorf("%d sessions of anonymous callers were displaced, want 1,002, some of which end just now", n)
	}
}

// 300 clients at one address, who have no names, come, call and go, again and
// again. Three of four sessions are left behind, more than the address may have,
// and no client that is there notices.
func TestHonestSessionsOfOneAddress(t *testing.T) {
	const address = "203.0.113.1"
	s := newDefaultSite(t)
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			for round := range 2 {
				c, err := client.Connect(t.Context(), s.dialer(address, "", i%2 == 0), &client.Options{Versions: []string{autumn}})
				if err != nil {
					t.Errorf("client %d, round %d: %v", i, round, err)
					return
				}
				for range 3 {
					s.abandon(address)
					if err := add(t, c); err != nil {
						t.Errorf("client %d, round %d: %v", i, round, err)
					}
				}
				_ = c.Close() // on a busy machine it may give up, and leave its session behind
			}
		})
	}
	wg.Wait()
	// Of 2,400 sessions 1,000 may be left, some of which end just now.
	if n := s.count("", streamable.ErrDisplaced) + s.count("", streamable.ErrDeleted); n < 1390 {
		t.Errorf("%d sessions have ended, want 1,400", n)
	}
	if n := s.count("", streamable.ErrDisplaced); n < 790 {
		t.Errorf("%d sessions were displaced, want at least 800 of 1,800 that were left behind", n)
	}
}
