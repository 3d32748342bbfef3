package chaos

import (
	"hash/maphash"
	"net/http"
	"sync"
)

// Bounds of what is kept about HTTP traffic.
const (
	maxRequests = 1 << 20 // different requests that are counted
	maxExpired  = 1 << 12 // sessions that were expired
)

// requestCounts count the requests that are the same, so that one that is sent again is not
// treated as before.
type requestCounts struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[uint64]uint64
}

// next is how many such requests came before.
func (c *requestCounts) next(method, path string, body []byte) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seed, c.seen = maphash.MakeSeed(), make(map[uint64]uint64)
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(method + " " + path + "\n") // never fails
	_, _ = h.Write(body)
	key := h.Sum64()
	n, known := c.seen[key]
	if known || len(c.seen) < maxRequests {
		c.seen[key] = n + 1
	}
	return n
}

// sessionHeader is the header that names a session of HTTP.
const sessionHeader = "Mcp-Session-Id"

// sessions are those that were expired.
type sessions struct {
	mu  sync.Mutex
	ids map[string]bool
}

// has says whether the session of a request was expired.
func (s *sessions) has(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[r.Header.Get(sessionHeader)]
}

// takes says whether the session of a request can be expired.
func (s *sessions) takes(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.Header.Get(sessionHeader) != "" && len(s.ids) < maxExpired
}

// expire expires the session of a request.
func (s *sessions) expire(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = make(map[string]bool)
	}
	s.ids[r.Header.Get(sessionHeader)] = true
}
