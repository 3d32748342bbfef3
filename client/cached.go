package client

import (
	"crypto/sha256"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/mcp"
)

// cacheKey names the call's result in the cache: the method and the parameters
// (spec 2026-07-28, server/utilities/caching), and what else the result may
// depend on: the revision, and the _meta and the capabilities that the caller
// gave. It is false for calls whose results are never kept.
func (k *call) cacheKey(f *revision.Facts) (cacheKey, bool) {
	if k.row == nil || !k.row.Cacheable || k.first != nil || k.opts.NoCache || k.c.opts.Cache.maxEntries < 0 {
		return cacheKey{}, false
	}
	text := wire.RawValue("{}")
	var err error
	if k.params != nil {
		text, err = canonical(k.params)
	}
	if err == nil && (len(k.opts.Meta) > 0 || k.opts.Capabilities != nil) {
		// Objects one behind another cannot be taken for one object.
		var extra wire.RawValue
		extra, err = canonical(struct {
			Meta         map[string]mcp.RawValue `json:"meta"`
			Capabilities *mcp.ClientCapabilities `json:"capabilities"`
		}{k.opts.Meta, k.opts.Capabilities})
		text = append(text, extra...)
	}
	if err != nil {
		return cacheKey{}, false
	}
	return cacheKey{
		server: k.c.server, method: k.method, version: f.Version, request: sha256.Sum256(text), principal: k.c.partition,
	}, true
}

// canonical is the one JSON text of a value.
func canonical(v any) (wire.RawValue, error) {
	raw, err := wire.Marshal(v)
	if err != nil {
		return nil, err
	}
	return wire.Canonical(raw)
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
