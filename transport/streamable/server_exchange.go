package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport"
)

// An exchange is one request on its way to its answer, which goes to a stream.
type exchange struct {
	transport.Exchange
	st   *stream
	over bool // answered or abandoned; belongs to the stream's mutex
}

// newExchange makes the exchange of one of the requests that a carries, whose
// answer goes to the stream.
func (st *stream) newExchange(m *jsonrpc.Incoming, a *activeRequest) *exchange {
	st.lock()
	st.waiting++
	st.unlock()
	x := &exchange{Exchange: a.x.Exchange, st: st}
	x.In, x.Out = m, x
	return x
}

// errAnswerOnly says that a client cannot be asked.
var errAnswerOnly = errors.New("the client takes one JSON answer only; its Accept header does not name text/event-stream")

// Send sends a message on the stream of the request. A client that takes one JSON answer only
// gets no notification (ruling 46).
func (x *exchange) Send(ctx context.Context, m *jsonrpc.Outgoing) error {
	switch {
	case !x.AnswerOnly:
		return x.st.send(ctx, x, m)
	case !m.ID.IsZero():
		return errAnswerOnly
	}
	return ctx.Err()
}

// Answer sends the response. It does not wait for room: there is one for each
// request. A response that cannot be encoded leaves the exchange open, so that
// an error can be sent in its place.
func (x *exchange) Answer(_ context.Context, m *jsonrpc.Outgoing) error {
	if size := m.Size(); size > maxPending {
		if done, err := x.answerLarge(size, m.WriteJSON); done {
			return err
		}
	}
	b, err := encode(m)
	if err != nil {
		return err
	}
	var failed *failure
	if m.Error != nil {
		failed = &failure{m.Error, x.Principal, x.status(m.Error)}
	} else if x.st.s != nil && revision.Stateful(x.In.Method) {
		x.st.s.reportMessage(SessionChanged, x.In)
	}
	stale, err := x.end(b, failed)
	x.st.s.forget(stale...)
	return err
}

// end ends the exchange with an answer; it returns the names of streams that make
// place for it.
func (x *exchange) end(b *buffer, failed *failure) (stale []string, _ error) {
	x.st.lock()
	defer x.st.unlock()
	if x.over {
		b.free()
		return nil, jsonrpc.ErrEnded
	}
	err := x.settle(b, failed)
	return x.st.trimAway(), err
}

// status is the HTTP status of an error (ruling 12).
func (x *exchange) status(e *jsonrpc.Error) int {
	if x.st.s != nil {
		return x.st.s.facts.HTTPStatus(e.Code)
	}
	return statelessStatus(&x.Exchange, e)
}

// settle ends the exchange, with an answer if there is one, and has that
// written, if nothing else is to come on the goroutine that answers: its handler
// may go on for long. The lock of the stream is held, and given up while
// something is written.
func (x *exchange) settle(b *buffer, failed *failure) error {
	st := x.st
	x.over = true
	st.waiting--
	st.inbox.wakeSenders() // for this exchange they wait in vain
	if b != nil {
		if err := st.takes(); err != nil {
			b.free()
			return err
		}
		st.fail(failed)
		st.inbox.push(b)
		if st.attached == nil {
			st.inbox.fit()
		}
	}
	a := st.attached
	switch {
	case a == nil:
	case st.waiting == 0 && st.s == nil && a.writer == writerWriting:
		a.await(st, false) // it writes the answer too
		return a.Err()
	case st.waiting == 0 && a.mayWrite() && !a.admitting:
		a.drain(st, false)
		if st.s == nil {
			return a.Err()
		}
	case st.isEvents():
		st.wake()
	}
	return nil
}

// takes is why the stream takes no answer.
func (st *stream) takes() error {
	if st.s != nil && st.s.ended != nil {
		return st.s.ended
	}
	return st.closed
}

// fail notes whether an answer is an error.
func (st *stream) fail(failed *failure) {
	if failed == nil || failed.status != http.StatusForbidden {
		st.allowed = true
	}
	if failed != nil && st.failed == nil {
		st.failed = failed
	}
}

// answerLarge sends a large response in pieces that are never held together,
// unless it is an event: of that all lines must be known. It reports whether it
// did. In a session a body that cannot be encoded is answered with an error.
func (x *exchange) answerLarge(size int64, encode func(io.Writer) error) (done bool, _ error) {
	st := x.st
	st.lock()
	defer st.unlock()
	a := st.attached
	if st.s != nil || x.over || st.form != formObject || st.inbox.n > 0 || st.closed != nil || !a.mayWrite() || !a.Unsent() {
		return false, nil
	}
	x.over = true
	st.waiting--
	a.writer = writerWriting
	err := a.unlocked(st, func() error { return a.EncodeJSON(size, encode) })
	a.wrote(st, err, true)
	return true, err
}

// abandon notes that there will be no answer, if there was none. Without a
// session the client is told so, unless it has been told something.
func (x *exchange) abandon() {
	st := x.st
	st.lock()
	defer st.unlock()
	if x.over {
		return
	}
	var b *buffer
	var failed *failure
	if st.s == nil && (x.Batched || !st.isEvents()) {
		failed = &failure{errAbandoned, x.Principal, x.status(errAbandoned)}
		b, _ = encode(&jsonrpc.Outgoing{ID: x.In.ID, Error: errAbandoned}) // an error can always be written
	}
	_ = x.settle(b, failed) // a client that has disconnected needs no answer
}
