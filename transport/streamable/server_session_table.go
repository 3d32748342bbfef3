package streamable

import (
	"cmp"
	"crypto/rand"
	"maps"
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

	mu         sync.Mutex
	byID       map[string]*session   // those that clients may use
	all        map[*session]struct{} // those too that begin or end just now
	owners     map[string]*owner     // by limit key
	idle       ranking[*owner]
	registered int         // sessions that clients could use and that have not ended; displaced ones have
	anonymous  int         // those of them that are anonymous callers'
	timer      *time.Timer // runs while there are sessions
	over       bool
	work       sync.WaitGroup // looks, and ends in the background
}

func (t *table) init(h *Handler) {
	t.h = h
	t.every = max(min(h.opts.SessionIdle, h.opts.ReplayTime)/8, time.Millisecond)
	t.byID = make(map[string]*session)
	t.all = make(map[*session]struct{})
	t.owners = make(map[string]*owner)
	t.idle = ranking[*owner]{above: aboveOwner, place: func(o *owner) *int { return &o.place }}
	t.timer = time.AfterFunc(t.every, t.sweep)
	t.timer.Stop()
}

// reserve takes in a session that begins and gives it its id, a new one unless
// it has one from elsewhere, or says why not, with a status. It displaces
// nothing: the handshake may still fail.
func (t *table) reserve(s *session, id string) (status int, e *jsonrpc.Error) {
	s.info = transport.Info{Name: transportName, SessionID: cmp.Or(id, rand.Text())} // never the client's choice: what it chose, others may know
	t.mu.Lock()
	defer t.mu.Unlock()
	opts := &t.h.opts
	o := t.owners[s.key]
	if o == nil {
		o = new(owner)
	}
	switch anonymous := s.who.Anonymous(); {
	case t.over:
		return http.StatusServiceUnavailable, web.ShuttingDown()
	case len(t.all)-t.most(anonymous) >= opts.MaxSessions: // as many again may begin or end
		return http.StatusTooManyRequests, web.TooMany("MaxSessions", "too many sessions begin and end on this server just now; try again later")
	case !anonymous && o.sessions >= opts.MaxSessionsPerPrincipal:
		return http.StatusTooManyRequests, web.TooMany("MaxSessionsPerPrincipal",
			"you have %d sessions, which is the most of one caller (MaxSessionsPerPrincipal); end one with DELETE, or try again later", o.sessions)
	case anonymous && o.sessions-opts.MaxSessionsPerAddress >= opts.MaxSessionsPerAddress: // as many again may begin
		return http.StatusTooManyRequests, t.fullAddress(s, o)
	}
	if _, e := t.victim(s, o); e != nil { // nothing has changed by the time of register, mostly
		return http.StatusTooManyRequests, e
	}
	if t.all[s] = struct{}{}; len(t.all) == 1 {
		t.timer.Reset(t.every)
	}
	t.owners[s.key] = o
	s.owner = o
	o.sessions++
	return 0, nil
}

// most is how many sessions callers of one kind may have together.
func (t *table) most(anonymous bool) int {
	if anonymous {
		return web.AnonymousShare(t.h.opts.MaxSessions)
	}
	return t.h.opts.MaxSessions
}

// victim returns the session that has to end so that s may be registered, nil
// if none has to, or says that there is none. It takes one that nobody uses, of
// the anonymous callers of the address that has the most sessions: who has
// more than the others must not keep them out. The lock is held.
func (t *table) victim(s *session, o *owner) (*session, *jsonrpc.Error) {
	opts, anonymous := &t.h.opts, s.who.Anonymous()
	if anonymous && o.registered >= opts.MaxSessionsPerAddress {
		if o.oldest == nil {
			return nil, t.fullAddress(s, o)
		}
		return o.oldest, nil
	}
	full := t.registered >= opts.MaxSessions
	if !full && (!anonymous || t.anonymous < t.most(true)) {
		return nil, nil
	}
	from := t.idle.first()
	if anonymous && from != nil && o.registered >= from.registered {
		from = o
	}
	switch {
	case from != nil && from.oldest != nil:
		return from.oldest, nil
	case full:
		return nil, web.TooMany("MaxSessions",
			"this server has %d sessions, which is the most it takes (MaxSessions); try again later", t.registered)
	}
	return nil, web.TooMany("MaxSessions",
		"the anonymous callers of this server have %d sessions, which is the most of them together (nine tenths of MaxSessions); sign in, or try again later", t.anonymous)
}

// fullAddress refuses one more session of an address.
func (t *table) fullAddress(s *session, o *owner) *jsonrpc.Error {
	return web.TooMany("MaxSessionsPerAddress",
		"the anonymous callers of your address (%s) have %d sessions, all of them in use, which is the most of one address (MaxSessionsPerAddress); end one with DELETE, or try again later",
		cmp.Or(s.who.Remote, "unknown"), o.registered)
}

// displace ends a session that nobody uses. The lock is held.
func (t *table) displace(s *session) {
	t.disown(s)
	s.unlinked = true
	delete(t.byID, s.id())
	t.work.Go(func() { s.end(ErrDisplaced) })
}

// rank finds the place of an owner whose sessions have changed. The lock is held.
func (t *table) rank(o *owner) { t.idle.update(o, o.oldest != nil) }

// disown takes a session out of those of its owner. The lock is held.
func (t *table) disown(s *session) {
	o := s.owner
	if o == nil {
		return
	}
	s.owner = nil
	if o.sessions--; o.sessions == 0 {
		delete(t.owners, s.key)
	}
	if !s.known {
		return
	}
	o.registered--
	t.registered--
	if s.who.Anonymous() {
		t.anonymous--
		o.remove(s)
		t.rank(o)
	}
}

// register lets the client use a session, unless it or the endpoint ends, or
// others have taken its place meanwhile. The error has a status.
func (t *table) register(s *session) (status int, e *jsonrpc.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return http.StatusServiceUnavailable, web.ShuttingDown()
	case s.unlinked:
		return http.StatusServiceUnavailable, web.Unavailable("the session has ended already; try again later")
	case t.byID[s.id()] != nil:
		return http.StatusServiceUnavailable, jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "there is a session with this id already")
	}
	v, e := t.victim(s, s.owner)
	if e != nil {
		return http.StatusTooManyRequests, e
	}
	if v != nil {
		t.displace(v)
	}
	t.byID[s.id()] = s
	s.known = true
	s.owner.registered++
	t.registered++
	if s.who.Anonymous() {
		t.anonymous++
		t.rank(s.owner)
	}
	return 0, nil
}

// find returns a session of the caller, held, or nil.
func (t *table) find(id, identity string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.identity != identity {
		return nil
	}
	if s.busy++; s.busy == 1 && s.owner != nil {
		s.owner.remove(s)
		t.rank(s.owner)
	}
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
	if s.busy == 0 && s.known && !s.unlinked && s.who.Anonymous() {
		s.owner.append(s)
		t.rank(s.owner)
	}
}

// unlink makes a session unknown, and reports whether clients could use it.
func (t *table) unlink(s *session) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.unlinked = true
	if s.owner != nil {
		s.owner.remove(s)
		t.rank(s.owner)
	}
	if t.byID[s.id()] == s { // it may never have been there, and another one is
		delete(t.byID, s.id())
	}
	return s.known
}

// forget takes a session that has ended out of the count.
func (t *table) forget(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
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

// sweep ends the sessions that nobody uses, and what waits in vain in others.
func (t *table) sweep() {
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
	if !t.over && len(t.all) > 0 {
		t.timer.Reset(t.every)
	}
}

// close ends the table and returns what is left in it. Its work goes on.
func (t *table) close() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.timer.Stop()
	return slices.Collect(maps.Keys(t.all))
}

// An owner is who the sessions under one limit key belong to: an identified
// caller, or the anonymous callers of one address. It is in the table while it
// has sessions, and belongs to the lock of that.
type owner struct {
	sessions   int // those too that begin, and end on their own
	registered int // those that count: the table says which

	// The sessions of anonymous callers that nobody uses, a list through the
	// sessions. The oldest was idle the longest.
	oldest, newest *session
	place          int // in the ranking of idle owners
}

// append adds a session that nobody uses any more.
func (o *owner) append(s *session) {
	if s.before = o.newest; s.before != nil {
		s.before.behind = s
	} else {
		o.oldest = s
	}
	o.newest = s
}

// remove takes a session out of those that nobody uses, if it is there.
func (o *owner) remove(s *session) {
	switch {
	case s.before != nil:
		s.before.behind = s.behind
	case o.oldest == s:
		o.oldest = s.behind
	default:
		return
	}
	if s.behind != nil {
		s.behind.before = s.before
	} else {
		o.newest = s.before
	}
	s.before, s.behind = nil, nil
}

// aboveOwner ranks the owners that have a session nobody uses. The first has the
// most sessions, and of several such the one that was idle the longest.
func aboveOwner(a, b *owner) bool {
	if a.registered != b.registered {
		return a.registered > b.registered
	}
	return a.oldest.used.Before(b.oldest.used)
}
