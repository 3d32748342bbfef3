package streamable

import (
	"bytes"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/internal/eventstream"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport/web"
)

// A writerState says who writes the response of a request. It belongs to the
// mutex of the stream.
//
//	held --> idle --> starting --> writing (<--> storing) --> idle --> detached
//
// An answer is written by the goroutine that gives it, which goes from idle or
// starting to writing; what is sent before it by a goroutine of its own.
type writerState uint8

const (
	writerHeld     writerState = iota // nothing may be written yet
	writerIdle                        // nothing waits, or nothing that may be written
	writerStarting                    // a goroutine that writes is on its way
	writerStoring                     // events that were taken are put into the store
	writerWriting                     // somebody uses the response, without the lock
	writerDetached                    // nothing will be written any more
)

// maxChunk is about how many bytes of events leave in one write. Those on their
// way must still be in the store if they do not arrive.
const maxChunk = 32 << 10

// mayWrite reports whether the caller, who has the lock, may begin to write.
func (a *activeRequest) mayWrite() bool {
	return a.writer == writerIdle || a.writer == writerStarting
}

// work writes what waits, unless somebody has done so meanwhile.
func (a *activeRequest) work() {
	runtime.Gosched() // who sends in one go gets to the next messages
	st := a.stream.Load()
	st.lock()
	defer st.unlock()
	if a.writer == writerStarting {
		a.drain(st, false)
	}
}

// drain writes what waits, and what comes meanwhile: with comment a sign of life
// if that is nothing. The lock is held before and after, and nobody else writes.
func (a *activeRequest) drain(st *stream, comment bool) {
	a.writer = writerWriting
	for a.writer == writerWriting {
		out := a.next(st, comment)
		if !out.due {
			if a.writer == writerWriting {
				a.become(writerIdle)
			}
			return
		}
		comment = false
		if out.last > 0 {
			a.store(st, &out)
		}
		err := a.write(st, &out)
		a.wrote(st, err, out.over)
		if a.writer == writerWriting && st.waiting > 0 {
			st.unlock()
			runtime.Gosched()
			st.lock()
		}
	}
}

// unlocked calls f, which reads or writes, without the lock of the stream.
func (a *activeRequest) unlocked(st *stream, f func() error) error {
	returned := false
	st.unlock()
	defer a.relock(st, &returned)
	err := f()
	returned = true
	return err
}

// relock takes the lock again. If what was done without it has not returned,
// because code of users panics in it, nothing more is written.
func (a *activeRequest) relock(st *stream, returned *bool) {
	st.lock()
	if !*returned {
		a.detach(st, errBroken)
	}
}

// become changes the state, and tells those who wait for that.
func (a *activeRequest) become(state writerState) {
	a.writer = state
	if a.rare != nil && a.rare.changed != nil {
		close(a.rare.changed)
		a.rare.changed = nil
	}
}

// await waits until nobody uses the response, or, with stored, until what was
// taken is in the store. The lock is held before and after.
func (a *activeRequest) await(st *stream, stored bool) {
	for a.writer == writerStoring || a.writer == writerWriting && !stored {
		if a.needs().changed == nil {
			a.rare.changed = make(chan struct{})
		}
		changed := a.rare.changed
		st.unlock()
		<-changed
		st.lock()
	}
}

// An output is what is written at once.
type output struct {
	buf         *buffer
	from        int // where it begins in buf
	form        streamForm
	failed      *failure // decides on the status of a body
	first, last uint64   // the numbers of its events; 0: they have none
	messages    []Event  // the same, for a store that is not ours
	due         bool     // there is something to write
	over        bool     // it is the last for this response
}

// next takes what is to be written now. A client of a session that has
// disconnected gets nothing, nor does a response in whose place another one is.
func (a *activeRequest) next(st *stream, comment bool) (out output) {
	switch {
	case st.s != nil && st.attached != a && a.Unsent() && a.r.Context().Err() == nil:
		out = output{form: formEvents, due: true, over: true, buf: newBuffer()}
		out.buf.b = a.begin(st, out.buf.b)
	case st.s != nil && (st.attached != a || a.r.Context().Err() != nil):
		a.detach(st, errNobody)
	case st.isEvents():
		out = a.nextEvents(st, comment)
	case st.over():
		out = output{form: st.form, due: true, over: true, failed: st.verdict()}
		out.buf, out.from = st.inbox.take()
		st.inbox.wakeSenders()
	}
	return out
}

// verdict is what decides on the status of a body: the error of the answer. With
// several answers it is 200, and the errors tell the rest, unless all of a
// session were refused for want of scopes. Then the first one's scopes are asked
// for; the others are in the body.
func (st *stream) verdict() *failure {
	if st.form == formArray && (st.allowed || st.s == nil) {
		return nil
	}
	return st.failed
}

// nextEvents takes as many messages as leave together, and what begins the
// stream before them.
func (a *activeRequest) nextEvents(st *stream, comment bool) (out output) {
	q, begin := &st.inbox, a.Unsent()
	if st.form == formListener && st.s.own.attached == a {
		q = &st.s.own.inbox
	}
	if q.n == 0 && !begin && !comment && !st.over() {
		return output{}
	}
	out = output{form: st.form, due: true, buf: newBuffer(), failed: st.failed}
	text := out.buf.b
	if begin {
		text = a.begin(st, text)
	}
	chunk := min(maxChunk, st.h.opts.ReplayBuffer/4)
	for q.n > 0 && (len(text) == 0 || len(text) < chunk) {
		var seq uint64
		if st.log != nil {
			st.log.last++
			seq = st.log.last
			if out.first == 0 {
				out.first, out.from = seq, len(text)
			}
			out.last = seq
			if st.h.memory == nil {
				out.messages = append(out.messages, Event{Seq: seq, Data: bytes.Clone(q.first())})
			}
		}
		text = st.log.appendEvent(text, q.first(), seq)
		q.pop()
		q.wakeSenders()
	}
	out.over = q.n == 0 && st.over()
	if comment && len(text) == 0 {
		text = eventstream.AppendComment(text)
	}
	out.buf.b = text
	return out
}

// begin begins an event stream: with an event without data that gives the client
// an id to come back with, in revisions that know it, and with what it has
// missed.
func (a *activeRequest) begin(st *stream, text []byte) []byte {
	s := st.s
	if s == nil {
		return text
	}
	if s.facts.Resume {
		if st.log == nil {
			s.last++
			st.log = &eventLog{number: s.last}
			if s.streams == nil {
				s.streams = make(map[uint64]*stream)
			}
			s.streams[s.last] = st
		}
		a.watch()
	}
	if s.facts.Priming {
		text = eventstream.Append(text, &eventstream.Event{
			ID: string(st.log.appendID(nil, a.rare.after)), HasID: true,
			Retry: st.h.opts.Retry, HasRetry: true,
		})
	}
	if a.rare != nil {
		text = append(text, bytes.Join(a.rare.missed, nil)...)
		a.rare.missed = nil
	}
	return text
}

// store keeps events for a client that comes back. If that fails the stream goes
// on, but cannot be resumed any more. The lock is given up meanwhile.
func (a *activeRequest) store(st *stream, out *output) {
	s, l := st.s, st.log
	if l.lost {
		return
	}
	a.become(writerStoring)
	l.storer = a
	defer func() {
		l.storer = nil
		if a.writer == writerStoring {
			a.become(writerWriting)
		}
	}()
	if err := a.unlocked(st, func() error { return st.h.store(s, l.name(), out) }); err != nil {
		st.h.log.Warn("event not stored; its stream cannot be resumed", "error", err)
		l.lost = true
	}
	if s.ended != nil { // what the end of the session has forgotten may have been less
		_ = a.unlocked(st, func() error { s.forget(""); return nil })
	}
}

// write writes what was taken. The lock is given up meanwhile.
func (a *activeRequest) write(st *stream, out *output) (err error) {
	returned := false
	st.unlock()
	defer a.relock(st, &returned)
	if out.over && a.running && a.Unsent() && out.failed.overdue() {
		// Its handler may go on, and the next request on the connection would
		// wait for it.
		a.Header().Set("Connection", "close")
	}
	switch {
	case out.buf == nil: // without an answer, because the request was cancelled
		err = a.WriteEvents(nil)
	case out.form == formObject:
		err = a.JSON(a.status(out.failed), out.buf.b[out.from+prefix:])
	case out.form == formArray:
		array := newBuffer()
		array.b = appendArray(array.b, out.buf.b[out.from:])
		out.buf.free()
		out.buf = array
		err = a.JSON(a.status(out.failed), array.b)
	case out.over && a.Unsent():
		err = a.Events(out.buf.b)
	case len(out.buf.b) > 0 || !a.Streaming():
		err = a.WriteEvents(out.buf.b)
	}
	a.free(out.buf)
	returned = true
	return err
}

// status is the status of a body, whose header says what its error needs.
func (a *activeRequest) status(failed *failure) int {
	if failed == nil {
		return http.StatusOK
	}
	if failed.status >= http.StatusTooManyRequests {
		if seconds, ok := web.RetryAfter(failed.Error); ok {
			a.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
	}
	if failed.status == http.StatusForbidden {
		web.Challenge(a.Header(), failed.who, scopesOf(failed.Error))
	}
	return failed.status
}

// appendArray appends the messages of a queue as one array.
func appendArray(dst, messages []byte) []byte {
	dst = append(dst, '[')
	for q := (queue{buf: &buffer{messages}}); q.from < len(messages); q.from += prefix + len(q.first()) {
		if q.from > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, q.first()...)
	}
	return append(dst, ']')
}

// free gives a buffer back that was written. net/http may go on reading what it
// could not write: over HTTP/2 it does not wait for its own writer then.
func (a *activeRequest) free(b *buffer) {
	if a.Err() == nil {
		b.free()
	}
}

// wrote notes the outcome of a write. The lock is held.
func (a *activeRequest) wrote(st *stream, err error, over bool) {
	switch {
	case err != nil:
		a.h.log.Debug("response broken off", "error", err)
		a.detach(st, err)
		if st.s == nil && a.cancel != nil && a.x.Version == "" {
			a.cancel(err) // in revisions with a handshake a disconnect is no cancellation (ruling 13)
		}
	case over:
		a.detach(st, jsonrpc.ErrEnded)
	}
}

// detach ends the writing of a response: the stream waits for another one, if it
// can. cause is why it takes nothing more if it cannot. The lock is held, and
// given up while the connection of a response is ended whose handler goes on:
// net/http would end it when that returns.
func (a *activeRequest) detach(st *stream, cause error) {
	if a.writer == writerDetached {
		return
	}
	if a.running && st.s != nil && (st.failed.overdue() && a.Streaming() || st.waiting > 0) {
		a.become(writerWriting)
		st.unlock()
		a.HangUp(a.r)
		st.lock()
	}
	a.become(writerDetached)
	if a.rare != nil && a.rare.unwatch != nil {
		a.rare.unwatch()
	}
	if a.rare != nil && a.rare.done != nil {
		close(a.rare.done)
	}
	if st.form == formListener {
		st.s.unlisten(a)
	}
	if st.attached != a { // another response has taken the stream over
		return
	}
	st.attached = nil
	if st.log != nil {
		st.log.since = time.Now()
	}
	if st.form != formListener && (st.log == nil || st.s.ended != nil) {
		st.close(cause)
	}
	st.inbox.fit()
	st.inbox.wakeSenders() // do they wait for a client that is away?
}
