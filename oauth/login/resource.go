package login

import (
	"container/list"
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// An entry is what this process knows of a protected resource.
type entry struct {
	id      string
	session *session // nil: none
	loaded  bool     // session is what the store had, or newer

	refreshFailed time.Time      // when an early refresh did, last
	refused       refusal        // the last sign-in that a person did not complete
	stepUps       map[string]int // by operation: how often scopes were asked for in vain

	// lost is when the server said by 401 that it does not know a session of MCP, last, and which
	// sessions have begun since.
	lost struct {
		at    time.Time
		begun []string
	}

	flight    *flight[*outcome]   // the refresh or sign-in under way; nil: none
	discovery *flight[*discovery] // that of the URL which is the id
	servers   []string            // issuers that the metadata names, in decisions; nil: not known yet
}

// maxResources bounds the resources in memory. What is evicted is read from the store again.
const maxResources = 1024

// A table holds the resources that were used last, each under its id, and all flights.
type table struct {
	mu      sync.Mutex
	byID    map[string]*list.Element // of *entry
	recent  list.List                // the one used last in front
	closed  bool
	running sync.WaitGroup
}

// at is the entry of a resource, made if it is not there; mu is held.
func (t *table) at(id string) *entry {
	if e := t.byID[id]; e != nil {
		t.recent.MoveToFront(e)
		return e.Value.(*entry)
	}
	t.evict()
	if t.byID == nil {
		t.byID = map[string]*list.Element{}
	}
	r := &entry{id: id}
	t.byID[id] = t.recent.PushFront(r)
	return r
}

// evict makes room for an entry. Those that a flight uses stay.
func (t *table) evict() {
	for e := t.recent.Back(); e != nil && len(t.byID) >= maxResources; {
		r, next := e.Value.(*entry), e.Prev()
		if r.flight == nil && r.discovery == nil {
			t.recent.Remove(e)
			delete(t.byID, r.id)
		}
		e = next
	}
}

// with calls f with the entry of a resource, and the table locked.
func (t *table) with(id string, f func(r *entry)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.at(id))
}

// each calls f for all entries, with the table locked.
func (t *table) each(f func(r *entry)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.recent.Front(); e != nil; e = e.Next() {
		f(e.Value.(*entry))
	}
}

// close ends all flights and returns when they have ended. No other can start.
func (t *table) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.each(func(r *entry) {
		if r.flight != nil {
			r.flight.cancel(ErrClosed)
		}
		if r.discovery != nil {
			r.discovery.cancel(ErrClosed)
		}
	})
	t.running.Wait()
}

func (c *Client) cache(id string, s *session) {
	c.resources.with(id, func(r *entry) { r.session, r.loaded = s, true })
}

// cached is what is remembered of a resource; loaded is false if it was never looked up.
func (c *Client) cached(id string) (s *session, loaded bool) {
	c.resources.with(id, func(r *entry) { s, loaded = r.session, r.loaded })
	return s, loaded
}

// cachedOrStored is what is remembered of a resource, or what the store has; nil if nothing.
func (c *Client) cachedOrStored(ctx context.Context, id string) (*session, error) {
	if s, loaded := c.cached(id); loaded {
		return s, nil
	}
	s, err := c.load(ctx, id)
	if err != nil {
		return nil, err
	}
	c.resources.with(id, func(r *entry) {
		if r.loaded { // another caller was faster, and what it has may be newer
			s = r.session
		}
		r.session, r.loaded = s, true
	})
	return s, nil
}

// reload reads the store under the lock of the resource. An equal session in memory stays.
func (c *Client) reload(ctx context.Context, id string) (*session, error) {
	stored, err := c.load(ctx, id)
	if err != nil {
		return nil, err
	}
	known, _ := c.cached(id)
	if (stored == nil) == (known == nil) && generationOf(stored) == generationOf(known) {
		return known, nil
	}
	c.cache(id, stored)
	return stored, nil
}

// find is what is known of the resource that a URL belongs to, the one with the longest path, or
// nil. One without tokens does not get those of a resource above it, which may have another owner.
func (c *Client) find(ctx context.Context, u *url.URL) (*session, error) {
	for _, id := range candidates(u) {
		s, err := c.cachedOrStored(ctx, id)
		if err != nil || s != nil {
			return s, err
		}
	}
	return nil, nil
}

// forgetBetween forgets, in memory, resources that lie between a URL and the one it belongs to.
func (c *Client) forgetBetween(u *url.URL, id string) {
	for _, other := range candidates(u) {
		if other == id {
			return
		}
		c.resources.with(other, func(r *entry) { r.session = nil })
	}
}

// candidates are the ids of the resources that a URL may belong to, the longest first. A path with
// dot segments, which a server may read as another one, belongs to nothing but the whole origin.
func candidates(u *url.URL) []string {
	const maxSegments = 16 // how deep a path is searched
	base := oauth.Origin(u)
	var ids []string
	add := func(raw string) {
		if id, err := oauth.CanonicalResource(raw); err == nil {
			ids = append(ids, id)
		}
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if hasDotSegments(path) {
		path = ""
	}
	if u.RawQuery != "" {
		add(base + path + "?" + u.RawQuery)
	}
	for strings.Count(path, "/") > maxSegments {
		path = path[:strings.LastIndexByte(path, '/')]
	}
	for path != "" {
		add(base + path)
		path = path[:strings.LastIndexByte(path, '/')]
	}
	add(base)
	return ids
}

// hasDotSegments reports whether a path has dot segments, also escaped ones, or backslashes.
func hasDotSegments(path string) bool {
	plain, err := url.PathUnescape(path)
	if err != nil || strings.Contains(plain, `\`) {
		return true
	}
	for segment := range strings.SplitSeq(plain, "/") {
		segment, _, _ = strings.Cut(segment, ";") // some servers leave parameters out
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}
