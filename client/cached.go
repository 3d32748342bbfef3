package client

import (
	"crypto/sha256"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// cacheKey names the call's result in the cache: the method and the
// parameters (spec 2026-07-28, server/utilities/caching). It is false for
// calls whose results are never kept.
func (k *call) cacheKey() (cacheKey, bool) {
	if k.row == nil || !k.row.Cacheable || k.first != nil || k.c.opts.Cache.maxEntries < 0 {
		return cacheKey{}, false
	}
	text := wire.RawValue("{}")
	if k.params != nil {
		raw, err := wire.Marshal(k.params)
		if err == nil {
			text, err = wire.Canonical(raw)
		}
		if err != nil {
			return cacheKey{}, false
		}
	}
	return cacheKey{
		server: k.c.server, method: k.method, params: sha256.Sum256(text), principal: k.c.partition,
	}, true
}

// forgetPrivate forgets what only the person of this client may see, and keeps
// nothing of it that is on its way: the person who signs in now may be another. spec
// 2026-07-28, server/utilities/caching: a private result MUST NOT be shared
// across authorization contexts.
func (c *Client) forgetPrivate() { c.opts.Cache.dropPrivate(c.server, c.partition) }

// keep stores a complete result if the server allows it. Only what it calls
// public is shown to other principals; a wrong or absent time is none.
func (k *call) keep(key cacheKey, result wire.Object, generation uint64) {
	var hints struct {
		ResultType string         `json:"resultType"`
		TTL        wire.RawValue  `json:"ttlMs"`
		Scope      mcp.CacheScope `json:"cacheScope"`
	}
	if wire.Decode(result.Raw(), &hints) != nil || len(hints.TTL) == 0 {
		return
	}
	var ms int64
	if wire.Decode(hints.TTL, &ms) != nil || ms <= 0 {
		return
	}
	if hints.ResultType != "" && hints.ResultType != mcp.ResultComplete {
		return
	}
	ttl := maxTTL
	if ms < maxTTL.Milliseconds() {
		ttl = time.Duration(ms) * time.Millisecond
	}
	if hints.Scope == mcp.CachePublic {
		key.principal, key.public = "", true
	}
	k.c.opts.Cache.put(key, k.target, result.Raw(), ttl, generation)
}
