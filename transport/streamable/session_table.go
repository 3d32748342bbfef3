package streamable

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// A table holds the sessions of an endpoint. While there are any, one timer
// looks for those that nobody uses.
type table struct {
	h     *Handler
	every time.Duration // between two looks

	mu    sync.Mutex
	byID  map[string]*session   // those that clients may use
	all   map[*session]struct{} // those too that begin or end just now
	owned map[string][]*session // by the limit key of their owner, in no order
	timer *time.Timer
	armed bool
	over  bool
	work  sync.WaitGroup // looks, and ends in the background
}

func (t *table) init(h *Handler) {
	t.h = h
	t.every = max(min(h.opts.SessionIdle, h.opts.ReplayTime)/8, time.Millisecond)
	t.byID = make(map[string]*session)
	t.all = make(map[*session]struct{})
	t.owned = make(map[string][]*session)
}

// reserve counts a session that begins and gives it its id, a new one unless it
// has one from elsewhere, or says why not, with a status. To make place for an
// anonymous caller it ends an idle session of the same address: a caller that
// sends more than the others must not keep them out.
func (t *table) reserve(s *session, id string) (status int, e *jsonrpc.Error) {
	s.carrier = transport.Carrier{Name: carrierName, SessionID: cmp.Or(id, rand.Text())} // never the client's choice: what it chose, others may know
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &t.h.opts
	owned := len(t.owned[s.key])
	switch anonymous := s.who.Anonymous(); {
	case t.over:
		return http.StatusServiceUnavailable, web.ShuttingDown()
	case len(t.all) >= o.MaxSessions:
		return http.StatusTooManyRequests, web.TooMany(
			"this server has %d sessions, which is the most it takes (MaxSessions); try again later", len(t.all))
	case !anonymous && owned >= o.MaxSessionsPerPrincipal:
		return http.StatusTooManyRequests, web.TooMany(
			"you have %d sessions, which is the most of one caller (MaxSessionsPerPrincipal); end one with DELETE, or try again later", owned)
	case anonymous && owned >= o.MaxSessionsPerAddress && !t.displace(s.key):
		return http.StatusTooManyRequests, web.TooMany(
			"the anonymous callers of your address (%s) have %d sessions, all of them in use, which is the most of one address (MaxSessionsPerAddress); end one with DELETE, or try again later",
			cmp.Or(s.who.Remote, "unknown"), owned)
	}
	t.all[s] = struct{}{}
	t.owned[s.key] = append(t.owned[s.key], s)
	t.arm()
	return 0, nil
}

// displace ends the session under key that nobody has used for the longest
// time; false if all are in use. The lock is held.
func (t *table) displace(key string) bool {
	var oldest *session
	for _, s := range t.owned[key] {
		if s.busy == 0 && !s.unlinked && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	oldest.unlinked = true
	delete(t.byID, oldest.id())
	t.disown(oldest)
	t.work.Go(func() { oldest.end(ErrDisplaced) })
	return true
}

// disown takes a session out of those of its owner. The lock is held.
func (t *table) disown(s *session) {
	owned := t.owned[s.key]
	i := slices.Index(owned, s)
	if i < 0 {
		return
	}
	if owned = slices.Delete(owned, i, i+1); len(owned) == 0 {
		delete(t.owned, s.key)
		return
	}
	t.owned[s.key] = owned
}

// register lets the client use a session, unless it or the endpoint ends.
func (t *table) register(s *session) *jsonrpc.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return web.ShuttingDown()
	case s.unlinked:
		return web.Unavailable("the session has ended already; try again later")
	case t.byID[s.id()] != nil:
		return jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "there is a session with this id already")
	}
	t.byID[s.id()] = s
	s.known = true
	return nil
}

// find returns a session of the caller, held, or nil.
func (t *table) find(id, identity string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.identity != identity {
		return nil
	}
	s.busy++
	return s
}

// hold keeps a session that is held already.
func (t *table) hold(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy++
}

func (t *table) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy--
	s.used = time.Now()
}

// unlink makes a session unknown, and reports whether clients could use it.
func (t *table) unlink(s *session) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.unlinked = true
	if t.byID[s.id()] == s { // it may never have been there, and another one is
		delete(t.byID, s.id())
	}
	return s.known
}

// forget takes a session that has ended out of the count.
func (t *table) forget(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.all[s]; !ok {
		return
	}
	delete(t.all, s)
	t.disown(s)
}

// background ends a session on a goroutine that wait waits for. While the
// endpoint ends, that is what happens to all of them anyway.
func (t *table) background(s *session, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		s.cancel(closed(cause))
		return
	}
	t.work.Go(func() { s.end(cause) })
}

// arm has the table looked at after a while, if there is anything in it.
func (t *table) arm() {
	switch {
	case t.armed || t.over || len(t.all) == 0:
	case t.timer == nil:
		t.armed = true
		t.timer = time.AfterFunc(t.every, t.look)
	default:
		t.armed = true
		t.timer.Reset(t.every)
	}
}

// look ends the sessions that nobody uses, and what waits in vain in others.
func (t *table) look() {
	now := time.Now()
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.work.Add(1)
	defer t.work.Done()
	var idle, rest []*session
	for s := range t.all {
		if s.busy == 0 && now.Sub(s.used) >= t.h.opts.SessionIdle {
			delete(t.byID, s.id())
			idle = append(idle, s)
		} else {
			rest = append(rest, s)
		}
	}
	t.mu.Unlock()
	for _, s := range idle {
		s.end(ErrIdle)
	}
	for _, s := range rest {
		s.tidy(now)
	}
	if t.h.memory != nil {
		t.h.memory.expire(now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	t.arm()
}

// close ends the table and returns what is left in it. wait returns when
// nothing of it runs any more.
func (t *table) close() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	left := make([]*session, 0, len(t.all))
	for s := range t.all {
		left = append(left, s)
	}
	return left
}

func (t *table) wait() { t.work.Wait() }
