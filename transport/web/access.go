package web

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// Access decides which callers may reach an HTTP endpoint. The zero value is safe: see the
// fields. It is never written to, and many goroutines may use it.
//
// Only the connection and its request count. Headers that a proxy writes, such
// as X-Forwarded-Host, any client can write too and are ignored, but for the
// address of the caller: see TrustedProxies.
//
// spec 2026-07-28, basic/transports/streamable-http, Security & Endpoint:
// servers MUST validate the Origin header of all requests. SEC-HTTP-1.
type Access struct {
	// Hosts are the names under which the endpoint may be called, as in the
	// Host header: an entry without port stands for every port, one with a
	// port for that one; IPv6 addresses have brackets. "*" allows any name,
	// also one that an attacker rebinds to this address: it is for endpoints
	// behind something that checks names itself. Default: on a loopback
	// connection the loopback names alone (localhost, *.localhost,
	// 127.0.0.0/8, [::1]), so that no rebound DNS name leads there; on others
	// any, but pages of the endpoint's own origin need an IP address, a
	// loopback name or an entry here.
	Hosts []string
	// Origins are further origins, as in "https://app.example", whose pages
	// may call the endpoint; they get CORS headers. An entry is a scheme, a
	// host and, if it is not the scheme's own, a port, with nothing behind;
	// there are no patterns, and "*" matches nothing. Default: only pages of
	// the endpoint's own origin.
	Origins []string
	// Principal identifies the caller; nil is an anonymous caller. Default:
	// principal.FromContext of the request's context, as authentication in
	// front leaves it, else an anonymous caller known by its address (see
	// TrustedProxies).
	Principal func(r *http.Request) *principal.Principal
	// TrustedProxies are the networks of reverse proxies in front. For a
	// connection from one of them the address of an anonymous caller, which
	// limits count by, is the one in X-Forwarded-For or Forwarded, as told at
	// [ClientAddress]; from any other these headers are ignored. Without it all
	// who come through a proxy are one anonymous caller. Every proxy in it must
	// append to the header or replace it: one that hands it on unchanged lets
	// callers choose their address. Default none.
	TrustedProxies []netip.Prefix
	// HostsName and OriginsName are what a refusal calls Hosts and Origins, such as a flag of a
	// program. Defaults "Access.Hosts" and "Access.Origins".
	HostsName, OriginsName string

	refused func(r *http.Request, e *jsonrpc.Error) // see OnRefused
}

// CORS is what an endpoint allows pages of other origins.
type CORS struct {
	// Methods are the methods that may be used.
	Methods []string
	// Headers are the request headers that may be sent; one that ends in "*"
	// stands for all that begin so.
	Headers []string
	// Exposed are the response headers that scripts may read.
	Exposed []string
}

// Admit checks Host and Origin, answers CORS preflights, and adds the CORS
// headers of c to the response of an allowed page. It returns the caller and
// true; or it has answered the request, with 403 or as a preflight, and
// returns false.
func (a *Access) Admit(w http.ResponseWriter, r *http.Request, c *CORS) (*principal.Principal, bool) {
	if !a.admitHost(w, r) {
		return nil, false
	}
	if origins := r.Header["Origin"]; len(origins) > 0 {
		own, listed := a.checkOrigin(origins, r)
		if !own && !listed {
			a.refuseHeader(w, r, "Origin", origins[0], fmt.Sprintf(
				"add it to the endpoint's allowed origins (%s) if you trust its pages, or its own name to the allowed hosts (%s)",
				cmp.Or(a.OriginsName, "Access.Origins"), a.hostsName()))
			return nil, false
		}
		if listed {
			allowOrigin(w.Header(), origins[0], c)
		}
		if preflight(w, r, c) {
			return nil, false
		}
	}
	return a.Caller(r), true
}

// Caller returns the sender of a request, as Admit does of one that it lets in.
func (a *Access) Caller(r *http.Request) *principal.Principal {
	if p := a.principalOf(r); p != nil {
		return p
	}
	return &principal.Principal{Remote: remoteOf(a.address(r))}
}

// OnRefused returns a copy of a that calls f with each request that Admit refuses
// and the reason, before the caller is told.
func (a Access) OnRefused(f func(r *http.Request, e *jsonrpc.Error)) Access {
	a.refused = f
	return a
}

// admitHost checks Host, and answers a request that must not pass.
func (a *Access) admitHost(w http.ResponseWriter, r *http.Request) bool {
	host, ok := splitHost(r.Host)
	// net/http takes the Host header out: one that is there is a second one.
	if ok && len(r.Header["Host"]) == 0 && a.allowsHost(host, r) {
		return true
	}
	a.refuseHeader(w, r, "Host", r.Host, fmt.Sprintf("add the name to the endpoint's allowed hosts (%s) if it is its own", a.hostsName()))
	return false
}

func (a *Access) hostsName() string { return cmp.Or(a.HostsName, "Access.Hosts") }

// allowsHost reports whether the endpoint may be called by this name.
func (a *Access) allowsHost(host hostPort, r *http.Request) bool {
	if len(a.Hosts) == 0 {
		return !onLoopback(r) || host.loopback()
	}
	own := uint16(80)
	if r.TLS != nil {
		own = 443
	}
	for _, entry := range a.Hosts {
		if entry == "*" {
			return true
		}
		e, ok := splitHost(entry)
		if ok && e.sameName(host) && (e.port == 0 || e.port == host.portOr(own)) {
			return true
		}
	}
	return false
}

// checkOrigin reports whether the page that sends the request is one of the
// endpoint's own origin, or of one that is listed.
func (a *Access) checkOrigin(origins []string, r *http.Request) (own, listed bool) {
	if len(origins) != 1 {
		return false, false
	}
	o, ok := parseOrigin(origins[0])
	if !ok {
		return false, false
	}
	listed = slices.ContainsFunc(a.Origins, func(entry string) bool {
		e, ok := parseOrigin(entry)
		return ok && e == o
	})
	if listed {
		return false, true
	}
	host, _ := splitHost(r.Host)
	// Behind a proxy that ends TLS, the page is https and the request is not.
	page := o.scheme == "https" || o.scheme == "http" && r.TLS == nil
	// A page under an unverified name may be an attacker's whose
	// name leads here: then Origin and Host are the same, and that is the attack.
	safe := len(a.Hosts) > 0 || host.safe()
	return page && safe && o.is(host), false
}

// address is what an anonymous caller is known by: where its connection comes
// from, or what a trusted proxy says.
func (a *Access) address(r *http.Request) string {
	if len(a.TrustedProxies) == 0 {
		return r.RemoteAddr
	}
	return ClientAddress(r, a.TrustedProxies)
}

// principalOf returns the sender of an admitted request; nil is an anonymous caller.
func (a *Access) principalOf(r *http.Request) *principal.Principal {
	if a.Principal != nil {
		return a.Principal(r)
	}
	return principal.FromContext(r.Context())
}

// onLoopback reports whether the connection came in on an address that only
// this machine reaches. What is not known, or no network address, is taken for
// one: the stricter rule holds there.
func onLoopback(r *http.Request) bool {
	tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

// maxShown is how many bytes of a header's value a refusal repeats.
const maxShown = 100

// refuseHeader answers 403 and says which header is to blame and what can be
// done about it.
func (a *Access) refuseHeader(w http.ResponseWriter, r *http.Request, name, value, advice string) {
	shown := strconv.QuoteToASCII(value[:min(len(value), maxShown)])
	e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "%s %s is not allowed here; %s", name, shown, advice)
	if a.refused != nil {
		a.refused(r, e)
	}
	Refuse(w, http.StatusForbidden, e, false)
}
