package streamable

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
)

// request serves the requests of one POST. begin hands them, and what came with
// them, to the handler.
func (s *session) request(w http.ResponseWriter, r *http.Request, batch bool, begin func(st *stream)) {
	if !s.alive(w) {
		return
	}
	st := &stream{s: s, waiting: 1} // one for begin, so that nothing is complete before it has returned
	st.box = &st.inbox
	c := s.connect(st)
	st.conn, st.box.reader = c, c
	c.begin(s.h, w)
	defer c.detach()
	begin(st)
	s.mu.Lock()
	st.waiting--
	s.mu.Unlock()
	c.rouse()
	c.reply(r.Context(), batch)
}

// listen serves a stream for what belongs to no request. Several may be open;
// each message goes to one of them (spec 2025-11-25, basic/transports,
// Multiple Connections).
func (s *session) listen(w http.ResponseWriter, r *http.Request) {
	if !s.alive(w) {
		return
	}
	c := s.connect(&stream{s: s, own: true, box: &s.own})
	s.mu.Lock()
	ok := s.attach(c)
	s.mu.Unlock()
	if !ok {
		s.crowded(w)
		return
	}
	c.serve(w, r)
}

// attach makes c the connection of its stream, if it may be one more of those
// that listen.
func (s *session) attach(c *connection) bool {
	if old := c.st.conn; old != nil {
		old.replaced = true
		old.rouse()
		s.unlisten(old)
	}
	c.st.conn = c
	if !c.st.own {
		c.st.box.reader = c
		return true
	}
	if len(s.listeners) >= maxListeners {
		c.st.conn = nil
		return false
	}
	s.listeners = append(s.listeners, c)
	s.own.reader = c
	return true
}

// unlisten takes a connection out of those that give what belongs to no
// request. The one that came before it goes on.
func (s *session) unlisten(c *connection) {
	i := slices.Index(s.listeners, c)
	if i < 0 {
		return
	}
	s.listeners = slices.Delete(s.listeners, i, i+1)
	s.own.reader = nil
	s.own.look()
	if n := len(s.listeners); n > 0 {
		s.own.reader = s.listeners[n-1]
		s.own.wake()
		return
	}
	s.quiet = time.Now()
}

func (s *session) crowded(w http.ResponseWriter) {
	s.refuse(w, http.StatusConflict, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"the session has %d streams open already, which is the most; close one first", maxListeners))
}

// serve writes events to a GET until one of the ends is reached.
func (c *connection) serve(w http.ResponseWriter, r *http.Request) {
	if c.st.own {
		c.stopping = c.s.h.ending
	}
	c.begin(c.s.h, w)
	defer c.detach()
	timer := time.NewTimer(c.h.opts.KeepAlive)
	defer timer.Stop()
	c.follow(r.Context(), timer)
}

// Why a stream cannot be resumed. The client is told with 400: what it waits
// for will not come.
var (
	errEventID   = errors.New("the Last-Event-ID is none of this session")
	errNoAnswer  = errors.New("the request ended without an answer, and nothing was missed")
	errListeners = errors.New("too many streams")
)

// resume goes on with a stream that the client has lost, after the event that
// it names (spec 2025-11-25, basic/transports, Resumability and Redelivery).
func (s *session) resume(w http.ResponseWriter, r *http.Request, ids []string) {
	number, seq, ok := parseEventID(ids[0])
	c := (*connection)(nil)
	err := errEventID
	if ok && len(ids) == 1 {
		c, err = s.takeOver(r, number, seq)
	}
	switch {
	case err == nil:
		c.serve(w, r)
	case errors.Is(err, errListeners):
		s.crowded(w)
	default:
		s.h.log.Debug("stream not resumed", "error", err)
		s.refuse(w, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"this stream cannot be resumed: %v; the answer to its request is lost", err))
	}
}

// takeOver attaches a new connection to a stream, with what the client has
// missed. An older connection of it ends: it may be one that is only half gone.
func (s *session) takeOver(r *http.Request, number, seq uint64) (*connection, error) {
	s.mu.Lock()
	st := s.streams[number]
	s.mu.Unlock()
	if st == nil {
		return nil, errEventID
	}
	st.log.Lock() // what is taken out of the box just now is in the store then
	defer st.log.Unlock()
	s.mu.Lock()
	last, over := st.last, !st.own && st.waiting == 0 && len(st.box.queue) == 0 && !st.answered
	s.mu.Unlock()
	switch {
	case seq > last:
		return nil, errEventID
	case st.lost:
		return nil, ErrEventsGone
	case seq == last && over:
		return nil, errNoAnswer
	}
	c := s.connect(st)
	c.after = seq
	if seq < last {
		var err error
		if c.missed, err = s.missed(r, st, seq, last); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[number] != st {
		return nil, ErrEventsGone // given up meanwhile
	}
	if !s.attach(c) {
		return nil, errListeners
	}
	return c, nil
}

// missed reads the events after seq up to last. A store that has not all of
// them has none that are of use.
func (s *session) missed(r *http.Request, st *stream, seq, last uint64) ([]Event, error) {
	ctx, cancel := s.h.storing(r.Context())
	defer cancel()
	events, err := s.h.events.After(ctx, s.id(), st.name(), seq)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Seq != seq+uint64(i)+1 {
			return nil, ErrEventsGone
		}
	}
	if seq+uint64(len(events)) != last {
		return nil, ErrEventsGone
	}
	return events, nil
}
