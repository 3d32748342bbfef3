package host

import (
	"context"
	"sync"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
)

// A freshness is for how long the server of a connection has said that its list of tools
// stays as it is. Its methods may be called by many goroutines at once.
//
// spec 2026-07-28, server/utilities/caching: a list whose time is over SHOULD be read again
// when it is needed next, and SHOULD NOT be by a clock. Each page has its own time.
type freshness struct {
	mu    sync.Mutex
	pages map[string]time.Time // by cursor; of those whose time was told
}

// noted is a middleware that notes the times of pages. What the client has in its cache it
// does not ask for: the earlier time of such a page stays.
func (f *freshness) noted(next client.Func) client.Func {
	return func(ctx context.Context, r *client.Request) (client.Result, error) {
		res, err := next(ctx, r)
		page, ok := res.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return res, err
		}
		cursor := ""
		if p, ok := r.Params().(*mcp.ListParams); ok && p.Cursor != nil {
			cursor = "at " + *p.Cursor // the empty cursor is not the beginning
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.pages, cursor)
		if ms := page.TTLMs; ms != nil && *ms > 0 {
			if f.pages == nil {
				f.pages = make(map[string]time.Time)
			}
			f.pages[cursor] = time.Now().Add(time.Duration(min(*ms, maxFresh.Milliseconds()))*time.Millisecond + freshMargin)
		}
		return res, nil
	}
}

// Bounds of the time that a list is taken for fresh.
const (
	maxFresh = 24 * time.Hour // whatever the server says, as in the cache of the client
	// freshMargin is added: the time of the client's cache begins a little later, and must
	// be over when the list is read again.
	freshMargin = 100 * time.Millisecond
)

// begin forgets the pages whose time is over: they are read again, or are no longer there.
func (f *freshness) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for cursor, until := range f.pages {
		if !now.Before(until) {
			delete(f.pages, cursor)
		}
	}
}

// until is when the time of the first page is over, or zero if no time was told.
func (f *freshness) until() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first time.Time
	for _, until := range f.pages {
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	return first
}

// refresh has the servers list their tools again whose lists are over their time. It does
// not wait.
func (h *Host) refresh() {
	set := &h.servers
	set.mu.Lock()
	defer set.mu.Unlock()
	now, changed := time.Now(), false
	for _, s := range set.list {
		if s.status.State == StateReady && !s.status.Stale && !s.freshUntil.IsZero() && !now.Before(s.freshUntil) {
			s.status.Stale, changed = true, true
			signal(s.notices)
		}
	}
	if changed {
		set.touch()
	}
}
