package web

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/parley-mcp/parley/principal"
)

// CachedAccess is an [Access] that caches what it admitted: a client sends the same
// Host with each request of a connection, and has the same address. Many
// goroutines may use it; it must not be copied.
type CachedAccess struct {
	access  Access
	host    atomic.Pointer[cachedHost]
	callers [1 << callerCacheBits]atomic.Pointer[cachedCaller]
}

const callerCacheBits = 6

// A cachedHost is a Host that was admitted without an Origin.
type cachedHost struct {
	host     string
	tls      bool // the port that is meant without one depends on it
	loopback bool
}

// A cachedCaller is an anonymous caller.
type cachedCaller struct {
	address string
	caller  principal.Principal
}

// NewCachedAccess returns a with a cache. The slices of a must not be written to
// any more.
func NewCachedAccess(a Access) *CachedAccess { return &CachedAccess{access: a} }

// Admit is [Access.Admit].
func (a *CachedAccess) Admit(w http.ResponseWriter, r *http.Request, c *CORS) (*principal.Principal, bool) {
	if len(r.Header["Origin"]) > 0 {
		return a.access.Admit(w, r, c)
	}
	if !a.isCached(r) {
		if !a.access.admitHost(w, r) {
			return nil, false
		}
		name, _ := splitHost(r.Host)
		a.host.Store(&cachedHost{strings.Clone(r.Host), r.TLS != nil, name.loopback()})
	}
	if p := a.access.principalOf(r); p != nil {
		return p, true
	}
	return a.anonymous(a.access.address(r)), true
}

// isCached reports whether the Host of a request was admitted before, and still
// would be: without Hosts that depends on the connection.
func (a *CachedAccess) isCached(r *http.Request) bool {
	c := a.host.Load()
	return c != nil && c.host == r.Host && c.tls == (r.TLS != nil) && len(r.Header["Host"]) == 0 &&
		(c.loopback || len(a.access.Hosts) > 0 || !onLoopback(r))
}

// anonymous is the caller at an address, which may have a port. It is the same
// one for as long as the address is in the cache.
func (a *CachedAccess) anonymous(address string) *principal.Principal {
	slot := &a.callers[cacheIndex(address)]
	c := slot.Load()
	if c == nil || c.address != address {
		c = &cachedCaller{address, principal.Principal{Remote: remoteOf(address)}}
		if len(address) <= maxShown { // what is longer is no address of a connection
			slot.Store(c)
		}
	}
	return &c.caller
}

// cacheIndex hashes addresses by their ends, which are ports: neighbours differ.
func cacheIndex(address string) (n uint64) {
	for _, c := range []byte(address[max(0, len(address)-5):]) {
		n = n*10 + uint64(c)
	}
	return n * 0x9e3779b97f4a7c15 >> (64 - callerCacheBits)
}

// remoteOf is the host of an address of a connection, or of one without port.
func remoteOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address // without port, or no network address: a Unix socket, or a test
	}
	return host
}
