package web_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/web"
)

// A testRequest is a request to admit.
type testRequest struct {
	host, local, origin string
	tls, twice          bool
	who                 *principal.Principal
}

func (k testRequest) request(tb testing.TB) *http.Request {
	tb.Helper()
	var origins []string
	if k.origin != "" {
		origins = []string{k.origin}
	}
	r := request(tb, http.MethodPost, k.host, k.local, origins...)
	if k.tls {
		r.TLS = new(tls.ConnectionState)
	}
	if k.twice {
		r.Header["Host"] = []string{k.host}
	}
	if k.who != nil {
		r = r.WithContext(principal.NewContext(r.Context(), k.who))
	}
	return r
}

// An outcome is what becomes of a request.
type outcome struct {
	in     bool
	status int
	who    string
}

type admitFunc func(http.ResponseWriter, *http.Request, *web.CORS) (*principal.Principal, bool)

func try(admit admitFunc, r *http.Request) outcome {
	w := httptest.NewRecorder()
	p, in := admit(w, r, cors)
	return outcome{in, w.Code, p.LimitKey()}
}

// Proves: SEC-HTTP-1. What is cached of one request decides nothing for
// another that differs in what counts.
func TestCachedAccessRemembers(t *testing.T) {
	var tests []testRequest
	for _, host := range []string{"localhost:8080", "127.0.0.1", "mcp.example", "mcp.example:443", "evil.example", "bad host", ""} {
		for _, local := range []string{loopback, public} {
			for _, origin := range []string{"", "http://localhost:8080", "http://evil.example"} {
				for _, secure := range []bool{false, true} {
					tests = append(tests, testRequest{host: host, local: local, origin: origin, tls: secure})
				}
			}
			tests = append(tests, testRequest{host: host, local: local, twice: true}, testRequest{host: host, local: local, who: principal.Local})
		}
	}
	for _, hosts := range [][]string{nil, {"mcp.example:443"}, {"mcp.example"}, {"*"}} {
		access := web.Access{Hosts: hosts}
		requests := make([]*http.Request, len(tests))
		alone := make([]outcome, len(tests))
		for i, k := range tests {
			requests[i] = k.request(t)
			alone[i] = try(access.Admit, requests[i])
		}
		for i, first := range requests {
			cached := web.NewCachedAccess(access)
			for j, second := range requests {
				try(cached.Admit, first)
				if got := try(cached.Admit, second); got != alone[j] {
					t.Fatalf("hosts %q, after %+v: %+v gives %+v, want %+v", hosts, tests[i], tests[j], got, alone[j])
				}
			}
		}
	}
}

func TestCachedAccessKnowsCallers(t *testing.T) {
	cached := web.NewCachedAccess(web.Access{})
	admit := func(address string) *principal.Principal {
		r := request(t, http.MethodPost, "localhost", loopback)
		r.RemoteAddr = address
		p, ok := cached.Admit(httptest.NewRecorder(), r, cors)
		if !ok {
			t.Fatalf("%.50q is refused", address)
		}
		return p
	}
	long := strings.Repeat("x", 1000)
	for address, want := range map[string]string{
		"192.0.2.7:4711": "192.0.2.7", "[2001:db8::1]:80": "2001:db8::1", "@": "@", "": "", long: long,
	} {
		for range 2 {
			if got := admit(address).Remote; got != want {
				t.Errorf("the caller at %.50q is %.50q, want %.50q", address, got, want)
			}
		}
	}
	if first, again := admit("192.0.2.7:4711"), admit("192.0.2.7:4711"); first != again {
		t.Error("the cases of a connection have a caller each")
	}
	if first, again := admit(long), admit(long); first == again {
		t.Error("what is no address is kept")
	}
	// Neighbours, as the connections of one client are, do not push each other out.
	var all [32]*principal.Principal
	for i := range all {
		all[i] = admit((&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40000 + 2*i}).String())
	}
	kept := 0
	for i, p := range all {
		if admit((&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40000 + 2*i}).String()) == p {
			kept++
		}
	}
	if kept < 24 {
		t.Errorf("%d of %d callers are remembered", kept, len(all))
	}
}

// Who calls is asked for each request: the answer may change.
func TestCachedAccessAsksForPrincipal(t *testing.T) {
	who := principal.Local
	cached := web.NewCachedAccess(web.Access{Principal: func(*http.Request) *principal.Principal { return who }})
	for _, want := range []*principal.Principal{principal.Local, {Subject: "else"}} {
		who = want
		if got, _ := cached.Admit(httptest.NewRecorder(), request(t, http.MethodPost, "localhost", loopback), cors); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestCachedAccessCost(t *testing.T) {
	cached := web.NewCachedAccess(web.Access{})
	r, w := request(t, http.MethodPost, "localhost:8080", loopback), httptest.NewRecorder()
	r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, new(http.Server)))
	if n := testing.AllocsPerRun(100, func() { cached.Admit(w, r, cors) }); n > 0 {
		t.Errorf("a request that is like the last one takes %v allocations", n)
	}
}
