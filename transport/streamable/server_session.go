package streamable

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// What a session keeps for clients that are away. The whole is bounded too,
// since a client may have many streams.
const (
	maxAway      = 64 // streams
	awayBuffers  = 4  // times ReplayBuffer, in bytes that wait in them
	maxListeners = 4  // streams for what belongs to no request
)

// A session is a client of a revision with a handshake. It has no goroutine
// but those of its requests: a disconnect ends none of them (ruling 13).
type session struct {
	h        *Handler
	who      *principal.Principal
	identity string          // what of who must be the same in every request
	key      string          // what of who is counted under
	info     transport.Info  // with the session's id: visible ASCII, known to the client alone
	ctx      context.Context //nolint:containedctx // lives as long as the session
	cancel   context.CancelCauseFunc
	gone     chan struct{} // closed when nothing more will come

	// These do not change once the session is registered.
	facts *revision.Facts
	rules transport.Rules

	order  sync.Mutex // Begin and Accept come one after the other
	core   transport.Session
	ending sync.Once
	finish sync.Once

	reports  sync.Mutex // held while OnSession is called
	reported SessionState

	// These belong to the table.
	busy           int // requests and streams
	used           time.Time
	known          bool // clients could use it
	unlinked       bool // it ends
	owner          *owner
	before, behind *session // in the owner's list of those that nobody uses

	mu        sync.Mutex
	ended     error
	own       stream           // what belongs to no request
	listeners []*activeRequest // those that give it to the client; the last one does: own is attached to that
	quiet     time.Time        // since when there are none
	streams   map[uint64]*stream
	last      uint64 // number of the newest stream, in a restored session at first of another life
}

// id names the session.
func (s *session) id() string { return s.info.SessionID }

// newSession makes a session that is counted but not known by its id yet; an
// empty id has one made. The error refuses it, with a status.
func (h *Handler) newSession(who *principal.Principal, id string) (_ *session, status int, _ *jsonrpc.Error) {
	now := time.Now()
	s := &session{
		h: h, who: who, identity: who.Identity(), key: who.LimitKey(),
		gone: make(chan struct{}), facts: revision.NewestHandshake(),
		busy: 1, used: now, quiet: now,
	}
	if id != "" {
		// The numbers of streams name events: those of other lives are not used again.
		s.last = uint64(now.UnixMicro()) // it is after 1970
	}
	s.own.init(h, s, formListener)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if status, e := h.sessions.reserve(s, id); e != nil { // from here on Shutdown may end it
		s.cancel(nil)
		return nil, status, e
	}
	return s, 0, nil
}

// caller returns the session that a request names, held until its release; nil
// if the request has been refused. A session of somebody else is unknown, and so
// is one that has ended since it was found.
func (h *Handler) caller(a *activeRequest, hd *head) *session {
	ids := hd.session
	if len(ids) != 1 || ids[0] == "" {
		h.refuse(a, hd, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"one Mcp-Session-Id header is needed; begin with an initialize request, whose answer has it, or name a protocol version in _meta"))
		return nil
	}
	s := h.sessions.find(ids[0], a.x.Principal.Identity())
	if s == nil {
		h.refuse(a, hd, http.StatusNotFound, errUnknown)
		return nil
	}
	s.mu.Lock()
	ended := s.ended != nil
	s.mu.Unlock()
	if ended {
		s.refuse(a, http.StatusNotFound, errUnknown)
	} else if s.speaks(a, hd) {
		return s
	}
	s.release()
	return nil
}

// release takes back one find or hold.
func (s *session) release() { s.h.sessions.release(s) }

// speaks checks the version that a request names; false if it was refused. It
// may be any that is served here, and decides nothing: the session goes on in
// the negotiated one, which a client that names none means (spec 2025-11-25,
// basic/transports, Protocol Version Header: "invalid or unsupported" is 400;
// ruling 32).
func (s *session) speaks(a *activeRequest, hd *head) bool {
	values := hd.version
	if len(values) == 0 || len(values) == 1 && s.serves(values[0]) {
		return true
	}
	why := "is not served here"
	if len(values) > 1 {
		why = errDoubled
	}
	s.refuse(a, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"MCP-Protocol-Version %.32q: %s; the session negotiated %s: send that, or leave the header out", values[0], why, s.facts.Version))
	return false
}

// serves reports whether messages of the session may name a version.
func (s *session) serves(version string) bool {
	if version == s.rules.Version {
		return version != ""
	}
	f, ok := revision.Lookup(version)
	return ok && f.Handshake && (s.rules.Serves == nil || slices.Contains(s.rules.Serves, version))
}

// settle takes over what the handshake negotiated.
func (s *session) settle() {
	s.rules = s.core.Rules()
	if f, ok := revision.Lookup(s.rules.Version); ok {
		s.facts = f
	}
	s.rules.MaxBatch = cmp.Or(s.rules.MaxBatch, maxBatch)
}

// accept gives a notification or response to the handler.
func (s *session) accept(m *jsonrpc.Incoming) {
	s.order.Lock()
	defer s.order.Unlock()
	s.core.Accept(m)
}

// fail ends the request of ours whose response was unreadable: it would wait
// for another one in vain.
func (s *session) fail(bad *jsonrpc.ParseError) {
	if m := bad.Failure(); m != nil {
		s.accept(m)
	}
}

// post serves one message of the session.
func (s *session) post(a *activeRequest, m *jsonrpc.Incoming) {
	if m.Kind != jsonrpc.Request {
		s.accept(m)
		a.Writer().WriteHeader(http.StatusAccepted)
		return
	}
	st := new(stream).init(s.h, s, formObject)
	if s.pollAfter() > 0 && !a.x.AnswerOnly { // the response ends before the request does
		s.serveMany(a, st, []jsonrpc.BatchItem{{In: m}})
		return
	}
	s.serve(a, st, m)
}

// serve has a request handled on the goroutine of its POST, also when the client
// has gone: a disconnect is not cancellation (ruling 13).
func (s *session) serve(a *activeRequest, st *stream, m *jsonrpc.Incoming) {
	a.ends = s.ctx
	a.x.In, a.x.Out, a.x.Transport = m, &a.x, &s.info
	st.waiting, a.running, a.admitting = 1, true, true
	a.attach(st, writerIdle)
	a.primeSoon(s.facts)
	defer a.conclude(st) // also if the handler ends its goroutine
	defer a.x.abandon()
	ctx, end := principal.UntilRevoked(a.context(), a.r.Context())
	defer end()
	run := s.admit(ctx, &a.x.Exchange)
	if run == nil {
		return
	}
	st.lock()
	a.admitting = false
	st.unlock()
	run()
}

// serveMany has the requests of a POST handled on goroutines of their own: there
// are several, or they outlast its response.
func (s *session) serveMany(a *activeRequest, st *stream, items []jsonrpc.BatchItem) {
	a.ends, a.x.Transport = s.ctx, &s.info
	st.waiting = 1 // until all have begun, so that nothing is complete before
	a.needs().done = make(chan struct{})
	a.attach(st, writerIdle)
	a.primeSoon(s.facts)
	for _, item := range items {
		s.element(a, st, item)
	}
	st.allBegun(a)
	a.wait(st, s.pollAfter(), nil)
}

// begin has one request of several handled, whose answer goes to st.
func (s *session) begin(a *activeRequest, st *stream, m *jsonrpc.Incoming) {
	x := st.newExchange(m, a)
	ctx, end := principal.UntilRevoked(a.context(), a.r.Context())
	run := s.admit(ctx, &x.Exchange)
	if run == nil {
		end()
		x.abandon()
		return
	}
	s.h.responses.Hold()
	s.h.sessions.hold(s)
	go func() { // Shutdown waits for it, by Hold
		defer s.h.responses.Release()
		defer s.release()
		defer x.abandon()
		defer end()
		run()
	}()
}

// admit gives a request to the handler. A panic of it must not lock the session.
func (s *session) admit(ctx context.Context, x *transport.Exchange) (run func()) {
	s.order.Lock()
	defer s.order.Unlock()
	return s.core.Begin(ctx, x)
}

// tell says, once, that the client will send no more.
func (s *session) tell() {
	s.order.Lock()
	core := s.core
	s.order.Unlock()
	if core != nil {
		s.ending.Do(core.Ending)
	}
}

// end ends the session: nobody finds it any more, its requests are cancelled
// and waited for, then its streams end. More calls wait too.
func (s *session) end(cause error) {
	s.finish.Do(func() {
		cause = closed(cause)
		known := s.h.sessions.unlink(s)
		s.cancel(cause) // also those who wait for room
		s.order.Lock()
		core := s.core
		s.order.Unlock()
		if core != nil {
			core.Close(cause)
		}
		s.mu.Lock()
		s.ended = cause
		s.own.close(cause)
		stored := known && s.last > 0 // else what is stored under its id is not its own
		close(s.gone)
		s.mu.Unlock()
		if stored {
			s.forget("")
		}
		s.h.sessions.forget(s)
		s.report(SessionEvent{State: SessionEnded, Cause: cause})
	})
}

// trim closes the streams whose clients have been away the longest, as long as
// there is too much of them, and returns their names. Those that hold nothing
// make no room. mu is held.
func (s *session) trim() (stale []string) {
	for {
		count, full, size := 0, 0, 0
		var oldest, holder *stream
		for _, st := range s.streams {
			if st.attached != nil {
				continue
			}
			count++
			if oldest == nil || st.log.since.Before(oldest.log.since) {
				oldest = st
			}
			if st.inbox.n == 0 {
				continue
			}
			full++
			size += st.inbox.size()
			if holder == nil || st.log.since.Before(holder.log.since) {
				holder = st
			}
		}
		switch {
		case count > maxAway:
			stale = append(stale, s.closeAway(oldest))
		case full > 1 && size/awayBuffers > s.h.opts.ReplayBuffer:
			stale = append(stale, s.closeAway(holder))
		default:
			return stale
		}
	}
}

// closeAway closes a stream that its client does not come back to, and returns
// its name. mu is held.
func (s *session) closeAway(st *stream) string {
	delete(s.streams, st.log.number)
	if st.form != formListener {
		st.close(errNobody)
	}
	return st.log.name()
}

// tidy closes what clients have not come back to for too long.
func (s *session) tidy(now time.Time) {
	s.mu.Lock()
	stale := s.trim()
	for _, st := range s.streams {
		if st.attached == nil && now.Sub(st.log.since) >= s.h.opts.ReplayTime {
			stale = append(stale, s.closeAway(st))
		}
	}
	if s.own.attached == nil && s.own.inbox.n > 0 && now.Sub(s.quiet) >= s.h.opts.ReplayTime {
		s.own.inbox.drop()
		s.own.inbox.wakeSenders()
		s.h.log.Debug("messages of a session dropped: nobody listens to its stream")
	}
	s.mu.Unlock()
	s.forget(stale...)
}

// forget drops what is kept of streams, or with "" of all.
func (s *session) forget(names ...string) {
	for _, name := range names {
		if err := s.h.forget(s.id(), name); err != nil {
			s.h.log.Warn("forgetting the events of a stream", "error", err)
		}
	}
}

var _ transport.Conn = (*session)(nil)

// Send sends a notification or request on the session's own stream. Without
// one it waits there for a client to open it.
func (s *session) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	return s.own.send(ctx, nil, m)
}

// Principal is who opened the session.
func (s *session) Principal() *principal.Principal { return s.who }

// Shared says that each request has a stream of its own.
func (s *session) Shared() bool { return false }

// Close ends the session without waiting for its end.
func (s *session) Close(cause error) error {
	s.h.sessions.background(s, cause)
	return nil
}

// refused tells the core of a request of this session that is refused.
func (s *session) refused(e *jsonrpc.Error) {
	s.h.core.Refused(s.ctx, transport.Refusal{Err: e, Principal: s.who, Transport: &s.info})
}

// refuse answers a request of this session.
func (s *session) refuse(a *activeRequest, status int, e *jsonrpc.Error) {
	s.refused(e)
	web.Refuse(a.Writer(), status, e, s.facts.NullID)
}
