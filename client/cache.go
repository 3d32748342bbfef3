package client

import (
	"cmp"
	"container/list"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
)

// maxTTL is the longest that a result is kept, whatever the server says.
const maxTTL = 24 * time.Hour

// A Cache keeps results for as long as servers allow (spec 2026-07-28,
// server/utilities/caching). What it holds is bounded; the least recently
// used goes first. Clients of any servers and principals may share one: a
// result that is not public is only ever shown to the principal it was for.
type Cache struct {
	maxEntries, maxBytes int

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	order   list.List // of *cacheEntry, the most recently used first
	bytes   int
	dropped uint64 // how often something was invalidated
}

// A cacheKey is what a result depends on. A public result has no principal.
type cacheKey struct {
	server    string
	method    string
	version   string            // the revision that it was asked for in, and is worded in
	request   [sha256.Size]byte // parameters, and what the caller gave with them
	principal string
	public    bool
}

type cacheEntry struct {
	key    cacheKey
	target string
	result wire.RawValue
	until  time.Time
}

// NewCache returns a cache of at most so many entries and bytes; zero means
// 1,000 and 16 MiB, a negative number that nothing is kept.
func NewCache(entries, bytes int) *Cache {
	return &Cache{
		maxEntries: cmp.Or(entries, 1000),
		maxBytes:   cmp.Or(bytes, 16<<20),
		entries:    make(map[cacheKey]*list.Element),
	}
}

// generation changes with each invalidation: what was asked for before one
// must not be stored after it.
func (c *Cache) generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

// get returns a fresh result, which must not be written to, or nil. The key
// is the private one; a public result under the same key serves as well.
func (c *Cache) get(key cacheKey) wire.RawValue {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.fresh(key); r != nil {
		return r
	}
	key.principal, key.public = "", true
	return c.fresh(key)
}

func (c *Cache) fresh(key cacheKey) wire.RawValue {
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	entry := e.Value.(*cacheEntry)
	if !time.Now().Before(entry.until) {
		c.remove(e)
		return nil
	}
	c.order.MoveToFront(e)
	return entry.result
}

// put stores a result for ttl unless something was invalidated since
// generation.
func (c *Cache) put(key cacheKey, target string, result wire.RawValue, ttl time.Duration, generation uint64) {
	size := entrySize(key, target, result)
	if ttl <= 0 || size > c.maxBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped != generation {
		return
	}
	if old, ok := c.entries[key]; ok {
		c.remove(old)
	}
	c.entries[key] = c.order.PushFront(&cacheEntry{key, target, result, time.Now().Add(min(ttl, maxTTL))})
	c.bytes += size
	for c.order.Len() > 0 && (c.order.Len() > c.maxEntries || c.bytes > c.maxBytes) {
		c.remove(c.order.Back())
	}
}

// drop forgets the results of a server's method, for all principals; a target
// other than "" limits it to that one.
func (c *Cache) drop(server, method, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped++
	for key, e := range c.entries {
		if key.server == server && key.method == method && (target == "" || e.Value.(*cacheEntry).target == target) {
			c.remove(e)
		}
	}
}

// dropPrivate forgets the results of a server that are a principal's alone.
func (c *Cache) dropPrivate(server, principal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped++
	for key, e := range c.entries {
		if key.server == server && key.principal == principal && !key.public {
			c.remove(e)
		}
	}
}

func (c *Cache) remove(e *list.Element) {
	entry := c.order.Remove(e).(*cacheEntry)
	delete(c.entries, entry.key)
	c.bytes -= entrySize(entry.key, entry.target, entry.result)
}

func entrySize(key cacheKey, target string, result wire.RawValue) int {
	return 256 + len(key.server) + len(key.method) + len(key.principal) + len(target) + len(result)
}
