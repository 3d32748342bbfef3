package server

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/parley-mcp/parley/principal"
)

// A caller is a client that the limits of self-contained requests count for.
type caller struct {
	key      string // LimitKey of its principal
	inFlight int    // requests
}

// callers holds the callers with requests in flight, and some without.
type callers struct {
	byKey map[string]*caller // belongs to the server's mutex
	keys  [16]atomic.Pointer[remoteKey]
}

// A remoteKey is the LimitKey of an anonymous principal.
type remoteKey struct{ remote, key string }

// maxIdleCallers is the size of callers above which those without a request in
// flight are dropped. Most come back at once.
const maxIdleCallers = 1000

// keyOf is the LimitKey of a principal, which is built each time. Those of
// anonymous callers, who may have many connections, are cached.
func (s *callers) keyOf(p *principal.Principal) string {
	if p == nil || !p.Anonymous() || len(p.Remote) > maxRemote {
		return p.LimitKey()
	}
	place := &s.keys[maphash.String(slotSeed, p.Remote)%uint64(len(s.keys))]
	k := place.Load()
	if k == nil || k.remote != p.Remote {
		k = &remoteKey{p.Remote, p.LimitKey()}
		place.Store(k)
	}
	return k.key
}

// maxRemote is the longest address that is cached, in bytes.
const maxRemote = 100

// at returns the caller with this key.
func (s *callers) at(key string) *caller {
	entry := s.byKey[key]
	if entry == nil {
		entry = &caller{key: key}
		s.byKey[key] = entry
	}
	return entry
}

// dropIdle drops a caller without requests in flight if there are many callers.
func (s *callers) dropIdle(entry *caller) {
	if entry.inFlight == 0 && len(s.byKey) > maxIdleCallers {
		delete(s.byKey, entry.key)
	}
}
