package web

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/parley-mcp/parley/principal"
)

// A Gate is an [Access] that caches callers it admitted: a client sends the same
// Host with each request of a connection, and has the same address. Many
// goroutines may use it; it must not be copied.
type Gate struct {
	access Access
	last   atomic.Pointer[hostMemory]
	remote [1 << remoteBits]atomic.Pointer[remoteMemory]
}

const remoteBits = 6

// A hostMemory is a Host that was let in without an Origin.
type hostMemory struct {
	host     string
	tls      bool // the port that is meant without one depends on it
	loopback bool
}

// A remoteMemory is an anonymous caller.
type remoteMemory struct {
	address string
	caller  principal.Principal
}

// NewGate returns the gate of an endpoint. The slices of a must not be written
// to any more.
func NewGate(a Access) *Gate { return &Gate{access: a} }

// Admit is [Access.Admit].
func (g *Gate) Admit(w http.ResponseWriter, r *http.Request, f *Face) (*principal.Principal, bool) {
	if len(r.Header["Origin"]) > 0 {
		return g.access.Admit(w, r, f)
	}
	if !g.remembers(r) {
		if !g.access.admitHost(w, r) {
			return nil, false
		}
		host, _ := splitHost(r.Host)
		g.last.Store(&hostMemory{strings.Clone(r.Host), r.TLS != nil, host.loopback()})
	}
	if p := g.access.principalOf(r); p != nil {
		return p, true
	}
	return g.anonymous(g.access.address(r)), true
}

// remembers reports whether the Host of a request was let in before, and still
// would be: without a list that depends on the connection.
func (g *Gate) remembers(r *http.Request) bool {
	k := g.last.Load()
	return k != nil && k.host == r.Host && k.tls == (r.TLS != nil) && len(r.Header["Host"]) == 0 &&
		(k.loopback || len(g.access.Hosts) > 0 || !onLoopback(r))
}

// anonymous is the caller at an address, which may have a port. It is always
// the same one for as long as the address is remembered.
func (g *Gate) anonymous(address string) *principal.Principal {
	place := &g.remote[spot(address)]
	k := place.Load()
	if k == nil || k.address != address {
		k = &remoteMemory{address, principal.Principal{Remote: remoteOf(address)}}
		if len(address) <= maxShown { // what is longer is no address of a connection
			place.Store(k)
		}
	}
	return &k.caller
}

// spot spreads addresses by their ends, which are ports: neighbours get places
// of their own.
func spot(address string) (n uint64) {
	for _, c := range []byte(address[max(0, len(address)-5):]) {
		n = n*10 + uint64(c)
	}
	return n * 0x9e3779b97f4a7c15 >> (64 - remoteBits)
}

// remoteOf is the host of an address of a connection, or of one without port.
func remoteOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address // without port, or no network address: a Unix socket, or a test
	}
	return host
}
