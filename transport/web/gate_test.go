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

// A knock is a request at a gate.
type knock struct {
	host, local, origin string
	tls, twice          bool
	who                 *principal.Principal
}

func (k knock) request(tb testing.TB) *http.Request {
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

// An outcome is what becomes of a knock.
type outcome struct {
	in     bool
	status int
	who    string
}

type door func(http.ResponseWriter, *http.Request, *web.Face) (*principal.Principal, bool)

func try(admit door, r *http.Request) outcome {
	w := httptest.NewRecorder()
	p, in := admit(w, r, face)
	return outcome{in, w.Code, p.LimitKey()}
}

// Proves: SEC-HTTP-1. What a gate remembers of one request decides nothing for
// another that differs in what counts.
func TestGateRemembers(t *testing.T) {
	var knocks []knock
	for _, host := range []string{"localhost:8080", "127.0.0.1", "mcp.example", "mcp.example:443", "evil.example", "bad host", ""} {
		for _, local := range []string{loopback, public} {
			for _, origin := range []string{"", "http://localhost:8080", "http://evil.example"} {
				for _, secure := range []bool{false, true} {
					knocks = append(knocks, knock{host: host, local: local, origin: origin, tls: secure})
				}
			}
			knocks = append(knocks, knock{host: host, local: local, twice: true}, knock{host: host, local: local, who: principal.Local})
		}
	}
	for _, hosts := range [][]string{nil, {"mcp.example:443"}, {"mcp.example"}, {"*"}} {
		access := web.Access{Hosts: hosts}
		requests := make([]*http.Request, len(knocks))
		alone := make([]outcome, len(knocks))
		for i, k := range knocks {
			requests[i] = k.request(t)
			alone[i] = try(access.Admit, requests[i])
		}
		for i, first := range requests {
			gate := web.NewGate(access)
			for j, second := range requests {
				try(gate.Admit, first)
				if got := try(gate.Admit, second); got != alone[j] {
					t.Fatalf("hosts %q, after %+v: %+v gives %+v, want %+v", hosts, knocks[i], knocks[j], got, alone[j])
				}
			}
		}
	}
}

func TestGateKnowsCallers(t *testing.T) {
	gate := web.NewGate(web.Access{})
	admit := func(address string) *principal.Principal {
		r := request(t, http.MethodPost, "localhost", loopback)
		r.RemoteAddr = address
		p, ok := gate.Admit(httptest.NewRecorder(), r, face)
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
		t.Error("the requests of a connection have a caller each")
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
func TestGateAsksForPrincipal(t *testing.T) {
	who := principal.Local
	gate := web.NewGate(web.Access{Principal: func(*http.Request) *principal.Principal { return who }})
	for _, want := range []*principal.Principal{principal.Local, {Subject: "else"}} {
		who = want
		if got, _ := gate.Admit(httptest.NewRecorder(), request(t, http.MethodPost, "localhost", loopback), face); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestGateCost(t *testing.T) {
	gate := web.NewGate(web.Access{})
	r, w := request(t, http.MethodPost, "localhost:8080", loopback), httptest.NewRecorder()
	r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, new(http.Server)))
	if n := testing.AllocsPerRun(100, func() { gate.Admit(w, r, face) }); n > 0 {
		t.Errorf("a request that is like the last one takes %v allocations", n)
	}
}
