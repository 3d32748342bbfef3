package streamable

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
)

// get serves the stream of a session: what the server sends outside of requests,
// or what the client missed of any stream (spec 2025-11-25, basic/transports,
// Listening for Messages, Resumability).
func (h *Handler) get(a *activeRequest, hd *head) {
	h.responses.Unlimit(a.r.Context(), &a.Response)
	if hd.stateless || h.opts.Sessionless || len(hd.session) == 0 {
		h.notAllowed(a, hd, http.MethodPost)
		return
	}
	if len(hd.accept) > 0 && !accepts(hd.accept, "text", "event-stream") {
		h.refuse(a, hd, http.StatusNotAcceptable, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a GET gives text/event-stream; say so in the Accept header"))
		return
	}
	s := h.caller(a, hd)
	if s == nil {
		return
	}
	defer s.release()
	var st *stream
	var err error
	if len(hd.lastEvent) > 0 && s.facts.Resume {
		st, err = s.resume(a, hd.lastEvent)
	} else {
		st, err = s.listen(a)
	}
	switch {
	case err == nil:
		a.follow(st)
	case errors.Is(err, errListeners):
		s.refuse(a, http.StatusConflict, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"the session has %d streams open already, which is the most; close one first", maxListeners))
	default:
		s.h.log.Debug("stream not resumed", "error", err)
		s.refuse(a, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"this stream cannot be resumed: %v; the answer to its request is lost", err))
	}
}

// Why a GET gets no stream. But for the last one the client is told with 400: what
// it waits for will not come.
var (
	errEventID   = errors.New("the Last-Event-ID is none of this session")
	errNoAnswer  = errors.New("the request ended without an answer, and nothing was missed")
	errListeners = errors.New("too many streams")
)

// listen makes a the response of a stream for what belongs to no request. Several
// may be open; each message goes to one of them (spec 2025-11-25,
// basic/transports, Multiple Connections).
func (s *session) listen(a *activeRequest) (*stream, error) {
	st := new(stream).init(s.h, s, formListener)
	st.lock()
	defer st.unlock()
	if !a.takes(st) {
		return nil, errListeners
	}
	return st, nil
}

// takes makes a the response of a stream, if it may be one more of those that
// listen. It writes nothing yet. The lock is held.
func (a *activeRequest) takes(st *stream) bool {
	s, old := st.s, st.attached
	if st.form == formListener {
		others := len(s.listeners)
		if slices.Contains(s.listeners, old) {
			others--
		}
		if others >= maxListeners {
			return false
		}
		s.unlisten(old)
		s.listeners = append(s.listeners, a)
		s.own.attached = a
	}
	a.needs().done = make(chan struct{})
	a.attach(st, writerHeld)
	if old != nil && old.mayWrite() { // it finds that another one has its place
		old.become(writerStarting)
		st.h.responses.Go(old.work)
	}
	return true
}

// follow writes a stream to a GET until one of the ends is reached.
func (a *activeRequest) follow(st *stream) {
	if a.drainHeld(st) == formListener {
		a.wait(st, 0, a.h.ending)
		return
	}
	a.wait(st, st.s.pollAfter(), nil)
}

// drainHeld writes what waited until the response was there.
func (a *activeRequest) drainHeld(st *stream) streamForm {
	st.lock()
	defer st.unlock() // also if the store of events panics
	a.drain(st, false)
	return st.form
}

// pollAfter is how long the response to a request lasts; 0 if it has no limit.
func (s *session) pollAfter() time.Duration {
	if !s.facts.Priming {
		return 0
	}
	return s.h.opts.PollAfter
}

// unlisten takes a response out of those that listen. The one that came before
// it goes on. The lock is held.
func (s *session) unlisten(a *activeRequest) {
	i := slices.Index(s.listeners, a)
	if i < 0 {
		return
	}
	s.listeners = slices.Delete(s.listeners, i, i+1)
	s.own.attached, s.quiet = nil, time.Now()
	if n := len(s.listeners); n > 0 {
		s.own.attached = s.listeners[n-1]
	}
	s.own.inbox.wakeSenders()
	if s.own.inbox.n > 0 {
		s.own.inbox.fit()
		s.own.wake()
	}
}

// resume makes a the response of a stream that the client has lost, with what it
// has missed after the event that it names (spec 2025-11-25, basic/transports,
// Resumability and Redelivery). An older response of the stream ends: it may be
// one that is only half gone.
func (s *session) resume(a *activeRequest, ids []string) (*stream, error) {
	number, seq, ok := parseEventID(ids[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[number]
	if !ok || len(ids) > 1 || st == nil {
		return nil, errEventID
	}
	switch nothing := st.form != formListener && st.waiting == 0 && st.inbox.n == 0 && !st.allowed && st.failed == nil; {
	case seq > st.log.last:
		return nil, errEventID
	case st.log.lost:
		return nil, ErrEventsGone
	case seq == st.log.last && nothing:
		return nil, errNoAnswer
	case !a.takes(st):
		return nil, errListeners
	}
	for st.log.storer != nil { // what was taken is in the store then
		st.log.storer.await(st, true)
	}
	a.rare.after = seq
	if last := st.log.last; seq < last && st.attached == a {
		err := a.unlocked(st, func() (err error) {
			a.rare.missed, err = s.h.missed(a.r.Context(), s, st.log, seq, last)
			return err
		})
		if err != nil {
			a.detach(st, err)
			return nil, err
		}
	}
	if s.streams[number] != st {
		a.detach(st, ErrEventsGone)
		return nil, ErrEventsGone // closed meanwhile
	}
	return st, nil
}
