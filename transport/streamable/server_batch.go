package streamable

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// maxBatch is the most messages in one array when the session names no limit.
const maxBatch = 100

// batch serves an array of messages (spec 2025-03-26, basic/transports, Sending
// Messages; ruling 10).
func (h *Handler) batch(a *activeRequest, hd *head, data []byte) {
	switch {
	case hd.stateless:
		h.refuse(a, hd, http.StatusBadRequest, errBatch())
	case h.opts.Sessionless:
		h.batchSessionless(a, hd, data)
	default:
		if s := h.caller(a, hd); s != nil {
			defer s.release()
			s.batch(a, data)
		}
	}
}

// batch serves an array of messages of the session.
func (s *session) batch(a *activeRequest, data []byte) {
	if !s.rules.Batch {
		s.refuse(a, http.StatusBadRequest, errBatch())
		return
	}
	items, requests, e := s.h.readBatch(data, s.rules.MaxBatch)
	switch {
	case e != nil:
		s.refuse(a, http.StatusBadRequest, e)
	case requests:
		s.serveMany(a, &stream{h: s.h, s: s, form: formArray}, items, true)
	default:
		for _, item := range items {
			s.element(a, nil, item, true)
		}
		a.Writer().WriteHeader(http.StatusAccepted)
	}
}

// readBatch reads an array of messages and reports whether there are requests in
// it, or what is answered like one.
func (h *Handler) readBatch(data []byte, most int) (items []jsonrpc.BatchItem, requests bool, _ *jsonrpc.Error) {
	items, err := jsonrpc.ParseBatch(data, h.limits, most)
	if err != nil {
		bad, ok := errors.AsType[*jsonrpc.ParseError](err)
		if !ok {
			return nil, false, jsonrpc.NewError(jsonrpc.CodeParseError, "%v", err)
		}
		return nil, false, bad.Err
	}
	requests, responses, others := census(items)
	if responses && (requests || others) {
		return nil, false, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a batch holds either requests and notifications, or responses, not both")
	}
	return items, requests, nil
}

// census says what is in a batch: requests, and what is answered like one;
// responses; notifications.
func census(items []jsonrpc.BatchItem) (requests, responses, notifications bool) {
	for _, item := range items {
		switch {
		case item.In == nil && !item.Err.Response && !item.Err.Notification,
			item.In != nil && item.In.Kind == jsonrpc.Request:
			requests = true
		case item.In == nil && item.Err.Response, item.In != nil && item.In.Kind == jsonrpc.Response:
			responses = true
		default:
			notifications = true
		}
	}
	return requests, responses, notifications
}

// element hands one element of an array on, whose answer goes to st. What is no
// message gets an error among the answers.
func (s *session) element(a *activeRequest, st *stream, item jsonrpc.BatchItem, batched bool) {
	switch {
	case item.In == nil && item.Err.Response:
		s.fail(item.Err)
	case item.In == nil && item.Err.Notification:
		s.h.log.Debug("message refused", "error", item.Err)
	case item.In == nil:
		s.refused(item.Err.Err)
		st.complain(item.Err, s.facts.NullID)
	case item.In.Kind == jsonrpc.Request:
		s.begin(a, st, item.In, batched)
	default:
		s.accept(item.In)
	}
}

// complain puts an error for what is no message among the answers.
func (st *stream) complain(bad *jsonrpc.ParseError, null bool) {
	b, err := encode(&jsonrpc.Outgoing{ID: bad.ID, Error: bad.Err, NullID: bad.ID.IsZero() && null})
	if err != nil {
		return // an error can always be written
	}
	st.lock()
	defer st.unlock()
	st.fail(&failure{Error: bad.Err, status: http.StatusBadRequest})
	st.push(b)
}

// batchSessionless serves an array of messages by itself: all requests at once,
// and their answers in one array, in no order.
func (h *Handler) batchSessionless(a *activeRequest, hd *head, data []byte) {
	f := h.assumed(a, hd)
	if f == nil {
		return
	}
	if !f.Batch {
		h.refuse(a, hd, http.StatusBadRequest, errBatch())
		return
	}
	items, requests, e := h.readBatch(data, h.mostBatched(a.x.Principal))
	switch {
	case e != nil:
		h.refuse(a, hd, http.StatusBadRequest, e)
	case !requests && items[0].In != nil && items[0].In.Kind == jsonrpc.Response:
		h.refuse(a, hd, http.StatusBadRequest, errUnasked())
	case !requests:
		a.Writer().WriteHeader(http.StatusAccepted)
	default:
		h.serveArray(a, f, items)
	}
}

// serveArray has the requests of an array handled without a session.
func (h *Handler) serveArray(a *activeRequest, f *revision.Facts, items []jsonrpc.BatchItem) {
	a.x.Version, a.x.Transport = f.Version, &selfContained
	a.ends, a.cancel = context.WithCancelCause(context.WithoutCancel(a.r.Context()))
	defer a.cancel(nil)
	st := h.begin(a)
	st.form, st.waiting = formArray, 1 // one until all have begun
	a.attach(st, writerIdle)
	defer a.conclude(st)
	h.begun(a)
	var running sync.WaitGroup
	for _, item := range items {
		switch {
		case item.In != nil && item.In.Kind == jsonrpc.Request:
			x := st.newExchange(item.In, a.x.Principal, &selfContained)
			x.Version, x.Batched = f.Version, true
			running.Go(func() {
				defer x.abandon()
				h.core.Serve(a.context(), &x.Exchange)
			})
		case item.In == nil && !item.Err.Notification:
			h.refused(a, item.Err.Err)
			st.complain(item.Err, f.NullID)
		}
	}
	running.Wait()
	st.allBegun(a)
}

// allBegun notes that all requests of a POST have been given to the handler.
func (st *stream) allBegun(a *activeRequest) {
	st.lock()
	defer st.unlock()
	if st.waiting--; st.waiting == 0 && a.mayWrite() {
		a.drain(st, false)
	}
}

// mostBatched is how many messages an array may hold. The handler says so in
// the rules of a relation, so that one is opened to ask for them, once.
func (h *Handler) mostBatched(who *principal.Principal) int {
	h.asking.Lock()
	defer h.asking.Unlock()
	if h.maxBatch == 0 {
		s, err := h.core.Open(nowhere{who})
		if err != nil {
			return maxBatch // the requests will be refused as well
		}
		h.maxBatch = cmp.Or(s.Rules().MaxBatch, maxBatch)
		s.Close(errRefused)
	}
	return h.maxBatch
}

// nowhere is the conn of a relation that is closed at once.
type nowhere struct{ who *principal.Principal }

var _ transport.Conn = nowhere{}

// Send fails.
func (nowhere) Send(context.Context, *jsonrpc.Outgoing) error { return errRefused }

// Principal is who sent the array.
func (n nowhere) Principal() *principal.Principal { return n.who }

// Shared says that each request has a stream of its own.
func (nowhere) Shared() bool { return false }

// Close does nothing.
func (nowhere) Close(error) error { return nil }
