package streamable

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// An activeRequest is one HTTP request that is under way: its response, and, of
// a POST with one request, the exchange of that. It is also the context of that
// exchange, see [requestContext].
type activeRequest struct {
	web.Response
	h *Handler
	r *http.Request
	x exchange // x.Principal is the caller of any request

	ends   context.Context         //nolint:containedctx // ends what is handled; set before stream
	cancel context.CancelCauseFunc // of ends, if it is the request's own
	stream atomic.Pointer[stream]  // that the response is part of, once there is one

	// These belong to the mutex of the stream.
	writer    writerState
	running   bool  // the request is handled on the goroutine of ServeHTTP
	admitting bool  // the session lets nobody else in: no slow client must be waited for
	rare      *rare // what few requests have; see needs
}

// A rare is what few requests have: those of listeners, of batches, and those
// whose clients may come back for their events.
type rare struct {
	changed chan struct{} // closed when the writer changes, if somebody waits for that
	done    chan struct{} // closed when the response is detached, if somebody waits for that
	after   uint64        // number of the event that the client has
	missed  [][]byte      // events that it gets before anything new
	unwatch func() bool   // ends the watch for the client's leaving
}

// needs is what few requests have.
func (a *activeRequest) needs() *rare {
	if a.rare == nil {
		a.rare = new(rare)
	}
	return a.rare
}

// watch has the response detached when its client leaves.
func (a *activeRequest) watch() {
	a.needs().unwatch = context.AfterFunc(a.r.Context(), func() {
		st := a.stream.Load()
		st.lock()
		defer st.unlock()
		if a.mayWrite() {
			a.drain(st, false)
		}
	})
}

// A statelessRequest has its stream within, which does not outlive it.
type statelessRequest struct {
	activeRequest
	st stream
}

// newActiveRequest makes the activeRequest of a request.
func newActiveRequest(h *Handler, r *http.Request, stateless bool) *activeRequest {
	if !stateless {
		return &activeRequest{h: h, r: r}
	}
	q := new(statelessRequest)
	q.h, q.r = h, r
	q.x.st = q.st.init(h, nil, formObject)
	return &q.activeRequest
}

// attach makes st the stream of the response.
func (a *activeRequest) attach(st *stream, state writerState) {
	a.writer = state
	a.x.st, st.attached = st, a
	a.stream.Store(st)
}

// context is the context of what the request has handled.
func (a *activeRequest) context() context.Context { return (*requestContext)(a) }

// KeepAlive gives a sign of life, so that nobody on the way takes the connection
// for dead.
func (a *activeRequest) KeepAlive() {
	st := a.stream.Load()
	if st == nil || a.x.AnswerOnly {
		return
	}
	st.lock()
	defer st.unlock()
	if a.writer == writerIdle && !st.over() {
		st.form = max(st.form, formEvents)
		a.drain(st, true)
	}
}

// Cancel cancels a request without session. Without a cancel function net/http
// does that, once a write fails. Those of sessions end with their session.
func (a *activeRequest) Cancel(cause error) {
	switch st := a.stream.Load(); {
	case st == nil || st.s != nil:
	case a.cancel != nil:
		a.cancel(cause)
	default:
		a.h.responses.Go(a.KeepAlive)
	}
}

// primeAfter is when the response to a request that is not answered yet begins
// as an event stream, in revisions where the client can then come back for the
// answer if the connection breaks.
const primeAfter = 200 * time.Millisecond

// primeSoon has the response begin by a sign of life if it has not by then. It is
// called before anything may be written.
func (a *activeRequest) primeSoon(f *revision.Facts) {
	if f.Priming && !a.x.AnswerOnly {
		a.h.responses.KeepAliveAt(&a.Response, time.Now().Add(min(a.h.opts.KeepAlive, primeAfter)))
	}
}

// conclude ends the response: what waits is written, and from here on it is
// net/http's.
func (a *activeRequest) conclude(st *stream) { st.s.forget(a.finish(st)...) }

// finish writes what waits and detaches the response. It returns the names of
// streams that make place for what the client comes back to.
func (a *activeRequest) finish(st *stream) (stale []string) {
	st.lock()
	defer st.unlock() // also if the store of events panics
	a.await(st, false)
	a.running = false
	if a.writer != writerDetached {
		a.drain(st, false)
		a.detach(st, errNobody)
	}
	return st.trimAway()
}

// wait waits until the response is complete, its client goes, or it has lasted
// for pollAfter, if that is positive: the client is then to ask again.
func (a *activeRequest) wait(st *stream, pollAfter time.Duration, stopping <-chan struct{}) {
	var poll <-chan time.Time
	if pollAfter > 0 {
		t := time.NewTimer(pollAfter)
		defer t.Stop()
		poll = t.C
	}
	select {
	case <-a.rare.done:
	case <-st.s.gone:
	case <-stopping:
	case <-a.r.Context().Done():
	case <-poll:
		st.lock()
		st.form = max(st.form, formEvents)
		st.unlock()
	}
	a.conclude(st)
}

// A requestContext is the context of a request that is handled. It ends as
// activeRequest.ends does, and has the HTTP request among its values: what the
// HTTP request's own context has is found in it too, such as what is traced.
type requestContext activeRequest

var _ context.Context = (*requestContext)(nil)

// Deadline is part of context.Context, as are the methods that follow.
func (c *requestContext) Deadline() (time.Time, bool) { return c.ends.Deadline() }

// Done is closed when the request is cancelled.
func (c *requestContext) Done() <-chan struct{} { return c.ends.Done() }

// Err says why.
func (c *requestContext) Err() error { return c.ends.Err() }

// Value looks at the session, which has what package context wants to know and
// nothing else, before the HTTP request.
func (c *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.r
	}
	v := c.ends.Value(key)
	if v == nil && c.x.Transport != &selfContained {
		v = c.r.Context().Value(key)
	}
	return v
}

// transportName is what the transport is called to handlers of requests.
const transportName = "http"

// selfContained is the transport of requests that belong to no session.
var selfContained = transport.Info{Name: transportName}
