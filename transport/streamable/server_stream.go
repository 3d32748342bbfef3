package streamable

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// maxPending is about how many bytes of events of a request without session wait
// for the client; then those who send wait too. In a session it is ReplayBuffer.
const maxPending = 32 << 10

// A stream carries messages to a client in their order: those of one POST, or
// what a session sends outside of requests. It outlives the HTTP responses that
// it is written to, one at a time, if clients may come back for the rest.
type stream struct {
	h        *Handler
	s        *session       // nil: of a request without session
	attached *activeRequest // whose response it is written to; nil: none
	log      *eventLog      // set once its events have ids
	failed   *failure       // the error among the answers, of several the first
	closed   error          // why no message is taken any more

	mu    *sync.Mutex // own, or that of the session
	own   sync.Mutex
	inbox queue // of listeners empty: they share that of session.own

	waiting int32 // answers to come
	form    streamForm
	allowed bool // an answer was something else than status 403
}

// A streamForm is how a stream is written.
type streamForm uint8

const (
	formObject   streamForm = iota // the answer alone, as one JSON body
	formArray                      // all answers, as one JSON array
	formEvents                     // an event stream, since there is more to say, or it takes long
	formListener                   // an event stream of what the session sends outside of requests
)

// A failure is an error that answers a request, and who is told.
type failure struct {
	*jsonrpc.Error
	who    *principal.Principal
	status int
}

// overdue reports whether the handler took too long, and may go on.
func (f *failure) overdue() bool { return f != nil && f.Code == codeTimeout }

// init makes the stream one of s, or of none.
func (st *stream) init(h *Handler, s *session, form streamForm) *stream {
	st.h, st.s, st.form, st.mu = h, s, form, &st.own
	if s != nil {
		st.mu = &s.mu
	}
	return st
}

func (st *stream) lock()   { st.mu.Lock() }
func (st *stream) unlock() { st.mu.Unlock() }

// The methods that follow want the lock, but for send and put.

// isEvents reports whether the stream is written as events.
func (st *stream) isEvents() bool { return st.form >= formEvents }

// over reports whether nothing more will come but what waits already.
func (st *stream) over() bool {
	if st.s != nil && st.s.ended != nil {
		return true
	}
	return st.form != formListener && (st.waiting == 0 || st.closed != nil)
}

// wake has the response write what waits, if nobody writes it already.
func (st *stream) wake() {
	if a := st.attached; a != nil && a.writer == writerIdle {
		a.writer = writerStarting
		st.h.responses.Go(a.work)
	}
}

// send puts a message of the exchange x, nil for none, into the queue. It waits
// for room: a client that reads slowly, or is away, slows its server down.
func (st *stream) send(ctx context.Context, x *exchange, m *jsonrpc.Outgoing) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	var ending <-chan struct{} = st.h.ending
	for {
		room, err := st.put(x, b)
		if room == nil {
			return err
		}
		var ended <-chan struct{}
		if st.s != nil {
			ended = st.s.ctx.Done()
		}
		select {
		case <-room:
			continue
		case <-ending:
			ending = nil // does anybody still read?
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-ended:
			err = context.Cause(st.s.ctx)
		}
		b.free()
		return err
	}
}

// put adds a message if there is room; otherwise it returns what to wait for.
func (st *stream) put(x *exchange, b *buffer) (room <-chan struct{}, err error) {
	most := maxPending
	if st.s != nil {
		most = st.h.opts.ReplayBuffer
	}
	st.lock()
	if err = st.refuses(x); err == nil {
		switch {
		case !st.inbox.full(b, most):
			st.form = max(st.form, formEvents)
			st.push(b)
			stale := st.trimAway()
			st.unlock()
			st.s.forget(stale...)
			return nil, nil
		case st.attached == nil && st.h.responses.Closing():
			err = ErrStopped // nobody comes back
		default:
			st.form = max(st.form, formEvents) // there is more to say than answers: what waits may leave
			room = st.inbox.wait()
			st.wake()
			st.unlock()
			return room, nil
		}
	}
	st.unlock()
	b.free()
	return nil, err
}

// refuses is why no message of an exchange is taken.
func (st *stream) refuses(x *exchange) error {
	switch err := st.takes(); {
	case x != nil && x.over:
		return jsonrpc.ErrEnded
	case err != nil:
		return err
	case st.s != nil && st.form != formListener && st.log == nil && st.attached != nil && st.attached.r.Context().Err() != nil:
		return errNobody // the client has gone and has no id to come back with
	}
	return nil
}

// push adds a message and has it written.
func (st *stream) push(b *buffer) {
	st.inbox.push(b)
	if st.attached == nil {
		st.inbox.fit()
	}
	st.wake()
}

// trimAway keeps what waits within bounds if the client is away, and returns the
// names of the streams that make place.
func (st *stream) trimAway() []string {
	if st.log == nil || st.attached != nil {
		return nil
	}
	return st.s.trim()
}

// close refuses what is still to come, and forgets what waits.
func (st *stream) close(cause error) {
	if st.closed == nil {
		st.closed = cause
	}
	st.inbox.drop()
	st.inbox.wakeSenders()
}

// An eventLog is what is known of the events of a stream that have ids, in the
// store of events too.
type eventLog struct {
	number uint64    // of the stream
	last   uint64    // of the event that was taken last
	since  time.Time // when the last response ended
	lost   bool      // an event could not be stored

	storer *activeRequest // that puts events into the store just now; nil: none
}

// name is what the stream is called in the store.
func (l *eventLog) name() string { return strconv.FormatUint(l.number, 10) }

// appendID appends the id of an event, which names it within the session.
func (l *eventLog) appendID(dst []byte, seq uint64) []byte {
	return strconv.AppendUint(append(strconv.AppendUint(dst, l.number, 10), '-'), seq, 10)
}

// parseEventID reads what appendID wrote.
func parseEventID(s string) (number, seq uint64, ok bool) {
	first, second, _ := strings.Cut(s, "-")
	number, _ = strconv.ParseUint(first, 10, 64) // what cannot be read is not as it would be written
	seq, _ = strconv.ParseUint(second, 10, 64)
	l := eventLog{number: number}
	return number, seq, number > 0 && string(l.appendID(nil, seq)) == s
}

// appendEvent appends a message as an event, with its id if l is not nil.
func (l *eventLog) appendEvent(dst, data []byte, seq uint64) []byte {
	dst = append(dst, "event: message\n"...)
	if l != nil {
		dst = append(l.appendID(append(dst, "id: "...), seq), '\n')
	}
	return eventstream.Append(dst, &eventstream.Event{Data: data})
}
