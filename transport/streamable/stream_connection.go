package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// primeAfter is when the response to a request that is not answered yet begins
// as an event stream, in revisions where the client can then come back for the
// answer if the connection breaks.
const primeAfter = 200 * time.Millisecond

// maxChunk is about how many bytes of events leave in one write. Those on their
// way must still be in the store if they do not arrive.
const maxChunk = 32 << 10

func (c *connection) chunk() int { return min(maxChunk, c.h.opts.ReplayBuffer/4) }

// A connection writes a stream to one HTTP response, on the goroutine of that.
type connection struct {
	response
	s        *session
	st       *stream
	woken    chan struct{}
	begun    time.Time
	after    uint64          // number of the event that the client has
	missed   []Event         // what it gets before anything new
	stopping <-chan struct{} // the connection ends when it is closed, if there is one
	replaced bool            // another connection has taken over; belongs to the session's mutex
}

// connect makes a connection that is not begun yet.
func (s *session) connect(st *stream) *connection {
	return &connection{s: s, st: st, woken: make(chan struct{}, 1), begun: time.Now()}
}

// rouse has the connection look for something to do.
func (c *connection) rouse() {
	select {
	case c.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// reply waits for the answers to a POST and writes them: as JSON if there is
// nothing else to say, and soon enough, otherwise as events.
func (c *connection) reply(ctx context.Context, batch bool) {
	timer := time.NewTimer(c.patientFor())
	defer timer.Stop()
	for {
		select {
		case <-c.woken:
		case <-c.s.gone:
		case <-ctx.Done():
			return
		case <-timer.C:
			c.follow(ctx, timer)
			return
		}
		switch all, events := c.complete(); {
		case events:
			c.follow(ctx, timer)
			return
		case all:
			c.json(batch)
			return
		}
	}
}

// patientFor is how long an answer may take before its response begins.
func (c *connection) patientFor() time.Duration {
	wait := c.h.opts.KeepAlive
	if c.s.facts.Priming {
		wait = min(wait, primeAfter)
		if c.polls() {
			wait = min(wait, c.h.opts.PollAfter)
		}
	}
	return wait
}

// complete reports whether all answers are there that will come, and whether
// the client is to be told more than those.
func (c *connection) complete() (all, events bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.st.waiting == 0 || c.s.ended != nil, c.st.chatty
}

// json writes the answers as one body. Without any, because the request was
// cancelled, it is a stream without events.
func (c *connection) json(batch bool) {
	c.s.mu.Lock()
	var answers []message
	for len(c.st.box.queue) > 0 {
		answers = append(answers, c.st.box.pop())
	}
	c.s.mu.Unlock()
	defer func() {
		for _, a := range answers {
			c.done(a.buffer)
		}
	}()
	var err error
	switch {
	case len(answers) == 0:
		err = c.stream(nil)
	case batch:
		array := newBuffer()
		defer c.done(array)
		array.b = appendArray(array.b, answers)
		status, e, who := c.together(answers)
		err = c.body(status, array.b, e, who)
	default:
		status, e, who := c.verdict(answers[0])
		err = c.body(status, answers[0].b, e, who)
	}
	if err != nil {
		c.h.log.Debug("answer not delivered", "error", err)
	}
}

// verdict is the status of one answer, its error, and who is told.
func (c *connection) verdict(m message) (status int, e *jsonrpc.Error, who *principal.Principal) {
	if m.failed == nil {
		return http.StatusOK, nil, nil
	}
	return c.s.facts.HTTPStatus(m.failed.Code), m.failed.Error, m.failed.who
}

// together is verdict for the answers to a batch: 200, and the errors tell the
// rest, unless all were refused for want of scopes. Then the first one's scopes
// are asked for; the others are in the body.
func (c *connection) together(answers []message) (status int, e *jsonrpc.Error, who *principal.Principal) {
	for _, m := range answers {
		if status, _, _ := c.verdict(m); status != http.StatusForbidden {
			return http.StatusOK, nil, nil
		}
	}
	return c.verdict(answers[0])
}

func appendArray(dst []byte, messages []message) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.b...)
	}
	return append(dst, ']')
}

// follow writes the stream as events until it is over, its client goes or
// another connection takes over.
func (c *connection) follow(ctx context.Context, timer *time.Timer) {
	begin, err := c.open()
	if err != nil {
		c.h.log.Debug("event stream not begun", "error", err)
		return
	}
	for {
		over, err := c.pump(begin)
		begin = nil
		if err != nil {
			c.h.log.Debug("event stream broken off", "error", err)
		}
		beat := c.wrote.Add(c.h.opts.KeepAlive)
		wait := time.Until(beat)
		if c.polls() {
			wait = min(wait, c.h.opts.PollAfter-time.Since(c.begun))
			over = over || time.Since(c.begun) >= c.h.opts.PollAfter
		}
		if over || err != nil {
			return
		}
		timer.Reset(wait)
		select {
		case <-c.woken:
		case <-c.s.gone: // the next look finds the end
		case <-c.stopping:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			if !time.Now().Before(beat) && c.comment() != nil {
				return
			}
		}
	}
}

// polls reports whether the client is to ask again after a while.
func (c *connection) polls() bool {
	return c.h.opts.PollAfter > 0 && c.s.facts.Priming && !c.st.own
}

// open begins the event stream: with an event without data that gives the
// client an id to come back with, in revisions that know it, and with what it
// has missed. What it returns, if anything, is still to be written: it leaves
// with what there is to say already.
func (c *connection) open() (begin *buffer, _ error) {
	s, st := c.s, c.st
	s.mu.Lock()
	if st.number == 0 && s.facts.Resume && !c.replaced {
		s.last++
		st.number = s.last
		if s.streams == nil {
			s.streams = make(map[uint64]*stream)
		}
		s.streams[st.number] = st
	}
	s.mu.Unlock()
	out := newBuffer()
	if s.facts.Priming {
		out.b = eventstream.Append(out.b, &eventstream.Event{
			ID: st.id(c.after), HasID: true,
			Retry: c.h.opts.Retry, HasRetry: true,
		})
	}
	for _, e := range c.missed {
		out.b = st.event(out.b, e.Data, e.Seq)
		if len(out.b) >= c.chunk() {
			if err := c.write(out.b); err != nil {
				return nil, err
			}
			out.b = out.b[:0]
		}
	}
	c.missed = nil
	return out, nil
}

// pump writes what begins the stream, if it has not begun, and what waits in the
// box. It reports whether the stream is over for this connection.
func (c *connection) pump(begin *buffer) (over bool, err error) {
	for more := true; more && !over && err == nil; begin = nil {
		out := begin
		if out == nil {
			out = newBuffer()
		}
		out.b, more, over = c.gather(out.b)
		switch {
		case over && !c.streaming:
			err = c.events(out.b)
		case len(out.b) > 0 || !c.streaming:
			err = c.write(out.b)
		}
		c.done(out)
	}
	return over, err
}

// gather takes messages out of the box, as many as leave together with what is
// in out.
func (c *connection) gather(out []byte) (_ []byte, more, over bool) {
	c.st.log.Lock()
	defer c.st.log.Unlock()
	for len(out) == 0 || len(out) < c.chunk() {
		m, seq, over := c.take()
		if m.buffer == nil {
			return out, false, over
		}
		if seq > 0 {
			c.store(m.b, seq)
		}
		out = c.st.event(out, m.b, seq)
		m.free()
	}
	return out, true, false // there may be more
}

// take takes one message, if there is one for this connection.
func (c *connection) take() (m message, seq uint64, over bool) {
	s, st := c.s, c.st
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.replaced:
		return message{}, 0, true
	case st.box.reader == c && len(st.box.queue) > 0:
	case st.own:
		return message{}, 0, s.ended != nil
	default:
		return message{}, 0, st.waiting == 0 || s.ended != nil || st.box.closed != nil
	}
	m = st.box.pop()
	st.answered = st.answered || m.answer
	if st.number > 0 {
		st.last++
		seq = st.last
	}
	return m, seq, false
}

// store keeps an event for a client that comes back. If that fails the stream
// goes on, but cannot be resumed any more.
func (c *connection) store(data []byte, seq uint64) {
	s, st := c.s, c.st
	if st.lost {
		return
	}
	ctx, cancel := c.h.storing(s.ctx)
	defer cancel()
	if err := c.h.events.Append(ctx, Event{Session: s.id(), Stream: st.name(), Seq: seq, Data: data, owner: s.key}); err != nil {
		c.h.log.Warn("event not stored; its stream cannot be resumed", "error", err)
		st.lost = true
	}
	s.mu.Lock()
	ended := s.ended != nil
	s.mu.Unlock()
	if ended {
		s.forget("") // what the end of the session has forgotten may have been less
	}
}

// detach ends the connection. The stream waits for another one, if it can.
func (c *connection) detach() {
	c.end()
	c.s.mu.Lock()
	c.leave()
	stale := c.s.trim()
	c.s.mu.Unlock()
	c.s.forgetAll(stale)
}

// leave takes the connection off its stream.
func (c *connection) leave() {
	s, st := c.s, c.st
	if c.replaced {
		return
	}
	st.conn, st.since = nil, time.Now()
	if st.own {
		s.unlisten(c)
		return
	}
	st.box.reader = nil
	st.box.look()
	if st.number > 0 && s.ended == nil {
		return
	}
	cause := errNobody
	if c.failed != nil {
		cause = c.failed
	}
	st.box.close(cause)
}
