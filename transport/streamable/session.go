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

// maxBatch is the most messages in one array when the session names no limit.
const maxBatch = 100

// A session is a client of a revision with a handshake. It has no goroutine
// but those of its requests: a disconnect ends none of them (ruling 13).
type session struct {
	h        *Handler
	who      *principal.Principal
	identity string            // what of who must be the same in every request
	key      string            // what of who is counted under
	carrier  transport.Carrier // with the session's id: visible ASCII, known to the client alone
	ctx      context.Context   //nolint:containedctx // lives as long as the session
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
	own       mailbox       // what belongs to no request
	listeners []*connection // those that give it to the client; the last one does
	quiet     time.Time     // since when there are none
	streams   map[uint64]*stream
	last      uint64 // number of the newest stream, in a restored session at first of another life
}

// id names the session.
func (s *session) id() string { return s.carrier.SessionID }

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
		s.last = uint64(now.UnixMicro()) //nolint:gosec // it is after 1970
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if status, e := h.sessions.reserve(s, id); e != nil { // from here on Shutdown may end it
		s.cancel(nil)
		return nil, status, e
	}
	return s, 0, nil
}

// find returns the session that a request names, held until its release; nil
// if the request has been refused. A session of somebody else is unknown.
func (h *Handler) find(w http.ResponseWriter, r *http.Request, who *principal.Principal) *session {
	ids := r.Header[headerSession]
	if len(ids) != 1 || ids[0] == "" {
		h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"one Mcp-Session-Id header is needed; begin with an initialize request, whose answer has it, or name a protocol version in _meta"))
		return nil
	}
	s := h.sessions.find(ids[0], who.Identity())
	if s == nil {
		h.refuse(w, r, http.StatusNotFound, errUnknown())
	}
	return s
}

// alive reports whether the session has not ended since it was found; otherwise
// the request is refused, as if it had come a moment later.
func (s *session) alive(w http.ResponseWriter) bool {
	s.mu.Lock()
	ended := s.ended != nil
	s.mu.Unlock()
	if ended {
		s.refuse(w, http.StatusNotFound, errUnknown())
	}
	return !ended
}

// release takes back one find or hold.
func (s *session) release() { s.h.sessions.release(s) }

// nullID says how an error without id is written.
func (s *session) nullID() bool { return s.facts.NullID }

// speaks checks the version that a request names; false if it was refused. It
// may be any that is served here, and decides nothing: the session goes on in
// the negotiated one, which a client that names none means (spec 2025-11-25,
// basic/transports, Protocol Version Header: "invalid or unsupported" is 400;
// ruling 32).
func (s *session) speaks(w http.ResponseWriter, r *http.Request) bool {
	values := r.Header[headerVersion]
	if len(values) == 0 || len(values) == 1 && s.serves(values[0]) {
		return true
	}
	why := "is not served here"
	if len(values) > 1 {
		why = errDoubled
	}
	s.refuse(w, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
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

// polls reports whether responses end before their requests do.
func (s *session) polls() bool { return s.h.opts.PollAfter > 0 && s.facts.Priming }

// begin has a request handled that its response does not wait for, or one of
// many. Its messages go to st.
func (s *session) begin(r *http.Request, st *stream, m *jsonrpc.Incoming, who *principal.Principal, batched bool) {
	s.mu.Lock()
	st.waiting++
	s.mu.Unlock()
	x := &exchange{st: st}
	x.Exchange = transport.Exchange{In: m, Principal: who, Out: x, Carrier: &s.carrier, Batched: batched}
	run := s.admit(&sessionContext{s.ctx, r}, &x.Exchange)
	if run == nil {
		x.abandon()
		return
	}
	s.h.list.hold()
	s.h.sessions.hold(s)
	go func() { // Shutdown waits for it, by hold
		defer s.h.list.done()
		defer s.release()
		defer x.abandon()
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

// forget drops what is kept of a stream, or of all.
func (s *session) forget(name string) {
	ctx, cancel := s.h.storing(context.Background())
	defer cancel()
	if err := s.h.events.Forget(ctx, s.id(), name); err != nil {
		s.h.log.Warn("forgetting the events of a stream", "error", err)
	}
}

// conn is the session as its handler sees it.
type conn session

var _ transport.Conn = (*conn)(nil)

// Send sends a notification or request on the session's own stream. Without
// one it waits there for a client to open it.
func (c *conn) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	s := (*session)(c)
	return s.send(ctx, &s.own, nil, m)
}

// Principal is who opened the session.
func (c *conn) Principal() *principal.Principal { return c.who }

// Shared says that each request has a stream of its own.
func (c *conn) Shared() bool { return false }

// Close ends the session without waiting for its end.
func (c *conn) Close(cause error) error {
	s := (*session)(c)
	s.h.sessions.background(s, cause)
	return nil
}

// refused tells the core of a request of this session that is refused.
func (s *session) refused(e *jsonrpc.Error) {
	s.h.core.Refused(s.ctx, transport.Refusal{Err: e, Principal: s.who, Carrier: &s.carrier})
}

// refuse answers a request of this session.
func (s *session) refuse(w http.ResponseWriter, status int, e *jsonrpc.Error) {
	s.refused(e)
	web.Refuse(w, status, e, s.nullID())
}
