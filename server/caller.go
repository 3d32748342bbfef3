package server

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/parley-mcp/parley/principal"
)

// A caller is whom the limits of self-contained requests count for.
type caller struct {
	key   string // LimitKey of its principal
	under int    // its requests under way
}

// callers are those who have requests under way, and some that had.
type callers struct {
	byKey map[string]*caller // belongs to the server's mutex
	keys  [16]atomic.Pointer[remoteKey]
}

// A remoteKey is the LimitKey of an anonymous principal.
type remoteKey struct{ remote, key string }

// maxIdleCallers is how many callers are remembered that have no request under
// way: most come back at once.
const maxIdleCallers = 1000

// keyOf is the LimitKey of a principal. It is made of text each time; those of
// anonymous callers, who may have many connections, are remembered.
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

// maxRemote is the longest address that is remembered, in bytes.
const maxRemote = 100

// at returns the caller with this key.
func (s *callers) at(key string) *caller {
	who := s.byKey[key]
	if who == nil {
		who = &caller{key: key}
		s.byKey[key] = who
	}
	return who
}

// tidy forgets a caller that has nothing under way if there are many.
func (s *callers) tidy(who *caller) {
	if who.under == 0 && len(s.byKey) > maxIdleCallers {
		delete(s.byKey, who.key)
	}
}
