package streamable

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// What a session keeps for clients that are away. The whole is bounded too,
// since a client may have many streams.
const (
	maxAway      = 64 // streams
	awayBuffers  = 4  // times ReplayBuffer, in bytes that wait in them
	maxListeners = 4  // streams for what belongs to no request
)

// A stream carries messages of a session to its client: those of one POST, or
// what belongs to none. It outlives the connections that it is written to, one
// at a time.
type stream struct {
	s     *session
	own   bool // it gives what belongs to no request: box is the session's
	box   *mailbox
	inbox mailbox    // the box of a POST
	one   [1]message // room for what is mostly all: the answer

	// log is held from taking a message out of the box until it is stored, so
	// that whoever takes the stream over finds it in one of the two.
	log sync.Mutex

	// These belong to the session's mutex.
	number   uint64 // names it, once it is an event stream that can be resumed
	last     uint64 // number of the event that was taken last
	conn     *connection
	post     *posting  // the POST with one request, while it lasts
	since    time.Time // when the last connection went
	waiting  int       // answers to come
	chatty   bool      // there was more than answers
	answered bool      // an answer was taken
	lost     bool      // an event could not be stored
}

// A message is one that waits to be written.
type message struct {
	*buffer
	answer bool
	failed *failure // of the answer
}

// A failure is an error that answers a request, and who is told.
type failure struct {
	*jsonrpc.Error
	who *principal.Principal
}

// A mailbox is the queue of messages that no connection has taken yet. It
// belongs to the session's mutex.
type mailbox struct {
	queue  []message
	size   int           // bytes in the queue
	room   chan struct{} // closed when it is worth to look for room again, if somebody waits
	reader *connection   // who takes messages out, or nil
	closed error         // why none is taken any more
}

// push adds a message and wakes the reader.
func (b *mailbox) push(m message) {
	b.queue = append(b.queue, m)
	b.size += len(m.b)
	b.wake()
}

// pop takes the oldest message out.
func (b *mailbox) pop() message {
	m := b.queue[0]
	b.queue[0] = message{}
	b.queue = b.queue[1:]
	if len(b.queue) == 0 {
		b.queue = nil
	}
	b.size -= len(m.b)
	b.look()
	return m
}

// look lets those who wait for room look again.
func (b *mailbox) look() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// wake has the reader look into the box.
func (b *mailbox) wake() {
	if b.reader != nil {
		b.reader.rouse()
	}
}

// full reports whether there is no room for b. One large message may pass when
// it is alone.
func (b *mailbox) full(m *buffer, most int) bool { return b.size > 0 && b.size+len(m.b) > most }

// drop forgets what waits.
func (b *mailbox) drop() {
	for _, m := range b.queue {
		m.free()
	}
	b.queue, b.size = nil, 0
	b.look()
}

// close refuses what is still to come, and forgets what waits.
func (b *mailbox) close(cause error) {
	if b.closed == nil {
		b.closed = cause
	}
	b.drop()
}

// send puts a message into a box of the session, for the exchange x if there
// is one. It waits for room: a client that reads slowly, or is away, slows its
// server down.
func (s *session) send(ctx context.Context, box *mailbox, x *exchange, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	ending := s.h.ending
	for {
		room, err := s.put(box, x, b)
		if room == nil {
			if x != nil {
				s.tend(x.st)
			}
			return err
		}
		select {
		case <-room:
		case <-ending:
			ending = nil // look once whether anybody still reads
		case <-ctx.Done():
			b.free()
			return context.Cause(ctx)
		case <-s.ctx.Done():
			b.free()
			return context.Cause(s.ctx)
		}
	}
}

// put adds a message if there is room; otherwise it returns what to wait for.
func (s *session) put(box *mailbox, x *exchange, b *buffer) (room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case x != nil && x.over:
		err = jsonrpc.ErrEnded
	case s.ended != nil:
		err = s.ended
	case box.closed != nil:
		err = box.closed
	case box.reader == nil && box.full(b, s.h.opts.ReplayBuffer) && s.h.stopping():
		err = ErrStopped // nobody comes back
	case x != nil && x.st.post != nil && x.st.post.lost():
		err = errNobody
	case box.full(b, s.h.opts.ReplayBuffer):
		if box.room == nil {
			box.room = make(chan struct{})
		}
		return box.room, nil
	default:
		if x != nil {
			x.st.chatty = true
		}
		box.push(message{buffer: b.fit()})
		if x != nil && x.st.post != nil {
			x.st.post.start()
		}
		return nil, nil
	}
	b.free()
	return nil, err
}

// An exchange is one request of a session.
type exchange struct {
	transport.Exchange
	st   *stream
	over bool // answered or abandoned; belongs to the session's mutex
}

// Send sends a message on the stream of the request's POST.
func (x *exchange) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	return x.st.s.send(ctx, x.st.box, x, m)
}

// Answer sends the response. It does not wait for room: there is one for each
// request. A response that cannot be encoded leaves the exchange open, so that
// an error can be sent in its place.
func (x *exchange) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	var failed *failure
	if m.Error != nil {
		failed = &failure{m.Error, x.Principal}
	} else if revision.Stateful(x.In.Method) {
		x.st.s.reportMessage(SessionChanged, x.In)
	}
	away, post, err := x.answer(b, failed)
	if err != nil {
		b.free()
		return err
	}
	switch {
	case away:
		x.st.s.tend(x.st)
	case post != nil:
		post.answered()
	}
	return nil
}

// answer puts the response into the box. It reports whether the client is away,
// and who may have to write what is in the box.
func (x *exchange) answer(b *buffer, failed *failure) (away bool, post *posting, _ error) {
	st := x.st
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if x.over {
		return false, nil, jsonrpc.ErrEnded
	}
	x.settle()
	if err := cmp.Or(st.s.ended, st.box.closed); err != nil {
		return false, nil, err
	}
	if away = st.conn == nil; away {
		b = b.fit()
	}
	if post = st.post; post != nil {
		post.overdue = failed != nil && failed.Code == codeTimeout
	}
	st.box.push(message{buffer: b, answer: true, failed: failed})
	return away, post, nil
}

// abandon notes that there will be no answer, if there was none.
func (x *exchange) abandon() {
	x.st.s.mu.Lock()
	defer x.st.s.mu.Unlock()
	if !x.over {
		x.settle()
		x.st.box.wake()
	}
}

// settle notes that the request is done with. Those who wait for room to send
// for it do so in vain.
func (x *exchange) settle() {
	x.over = true
	x.st.waiting--
	x.st.box.look()
}

// trim gives up the streams whose clients have been away the longest, as long
// as there is too much of them, and returns their names. Those that hold nothing
// make no room.
func (s *session) trim() (stale []string) {
	for {
		count, full, size := 0, 0, 0
		var oldest, holder *stream
		for _, st := range s.streams {
			if st.conn != nil {
				continue
			}
			count++
			if oldest == nil || st.since.Before(oldest.since) {
				oldest = st
			}
			if st.inbox.size == 0 {
				continue
			}
			full++
			size += st.inbox.size
			if holder == nil || st.since.Before(holder.since) {
				holder = st
			}
		}
		switch {
		case count > maxAway:
			stale = append(stale, s.giveUp(oldest))
		case full > 1 && size/awayBuffers > s.h.opts.ReplayBuffer:
			stale = append(stale, s.giveUp(holder))
		default:
			return stale
		}
	}
}

// tend keeps what waits within bounds when a stream has got more, if its client
// is away.
func (s *session) tend(st *stream) {
	var stale []string
	s.mu.Lock()
	if st.conn == nil {
		stale = s.trim()
	}
	s.mu.Unlock()
	s.forgetAll(stale)
}

// giveUp ends a stream that its client does not come back to, and returns its
// name.
func (s *session) giveUp(st *stream) string {
	delete(s.streams, st.number)
	if !st.own {
		st.box.close(errNobody)
	}
	return st.name()
}

// tidy gives up what clients have not come back to for too long.
func (s *session) tidy(now time.Time) {
	s.mu.Lock()
	stale := s.trim()
	for _, st := range s.streams {
		if st.conn == nil && now.Sub(st.since) >= s.h.opts.ReplayTime {
			stale = append(stale, s.giveUp(st))
		}
	}
	if len(s.listeners) == 0 && len(s.own.queue) > 0 && now.Sub(s.quiet) >= s.h.opts.ReplayTime {
		s.own.drop()
		s.h.log.Debug("messages of a session dropped: nobody listens to its stream")
	}
	s.mu.Unlock()
	s.forgetAll(stale)
}

// forgetAll drops what is kept of streams.
func (s *session) forgetAll(names []string) {
	for _, name := range names {
		s.forget(name)
	}
}

// name is what the stream is called in the store.
func (st *stream) name() string { return strconv.FormatUint(st.number, 10) }

// id names an event within the session.
func (st *stream) id(seq uint64) string {
	return string(strconv.AppendUint(append(strconv.AppendUint(nil, st.number, 10), '-'), seq, 10))
}

// parseEventID reads what id wrote.
func parseEventID(s string) (number, seq uint64, ok bool) {
	first, second, ok := strings.Cut(s, "-")
	if !ok {
		return 0, 0, false
	}
	number, ok1 := parseNumber(first)
	seq, ok2 := parseNumber(second)
	return number, seq, ok1 && ok2 && number > 0
}

// parseNumber reads a number in its one form.
func parseNumber(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == s
}

// event writes a message with its id, if it has one.
func (st *stream) event(dst, data []byte, seq uint64) []byte {
	e := eventstream.Event{Type: messageEvent, Data: data}
	if seq > 0 {
		e.ID, e.HasID = st.id(seq), true
	}
	return eventstream.Append(dst, &e)
}
