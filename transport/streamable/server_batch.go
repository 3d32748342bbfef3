package streamable

import (
	"context"
	"net/http"
	"sync"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// maxBatch is the most messages in one array when the session names no limit.
const maxBatch = 100

// batch serves an array of messages (spec 2025-03-26, basic/transports, Sending
// Messages; ruling 10).
func (h *Handler) batch(a *activeRequest, hd *head, data []byte) {
	switch {
	case hd.stateless:
		h.refuse(a, hd, http.StatusBadRequest, errBatch)
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
		s.refuse(a, http.StatusBadRequest, errBatch)
		return
	}
	items, requests, e := s.h.readBatch(data, s.rules.MaxBatch)
	switch {
	case e != nil:
		s.refuse(a, http.StatusBadRequest, e)
	case requests:
		a.x.Batched = true
		s.serveMany(a, new(stream).init(s.h, s, formArray), items)
	default:
		for _, item := range items {
			s.element(a, nil, item)
		}
		a.Writer().WriteHeader(http.StatusAccepted)
	}
}

// readBatch reads an array of messages and reports whether there are requests in
// it, or what is answered like one.
func (h *Handler) readBatch(data []byte, most int) (items []jsonrpc.BatchItem, requests bool, _ *jsonrpc.Error) {
	items, err := jsonrpc.ParseBatch(data, h.limits, most)
	if err != nil {
		return nil, false, parseError(err).Err
	}
	var count [jsonrpc.Response + 1]int
	for _, item := range items {
		count[kindOf(item)]++
	}
	if responses := count[jsonrpc.Response]; responses > 0 && responses < len(items) {
		return nil, false, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a batch holds either requests and notifications, or responses, not both")
	}
	return items, count[jsonrpc.Request] > 0, nil
}

// kindOf is what an element of an array is, or would be if it could be read.
func kindOf(item jsonrpc.BatchItem) jsonrpc.Kind {
	switch {
	case item.In != nil:
		return item.In.Kind
	case item.Err.Response:
		return jsonrpc.Response
	case item.Err.Notification:
		return jsonrpc.Notification
	}
	return jsonrpc.Request
}

// element hands one element of an array on, whose answer goes to st. What is no
// message gets an error among the answers.
func (s *session) element(a *activeRequest, st *stream, item jsonrpc.BatchItem) {
	switch {
	case item.In == nil && item.Err.Response:
		s.fail(item.Err)
	case item.In == nil && item.Err.Notification:
		s.h.log.Debug("message refused", "error", item.Err)
	case item.In == nil:
		s.refused(item.Err.Err)
		st.complain(item.Err, s.facts.NullID)
	case item.In.Kind == jsonrpc.Request:
		s.begin(a, st, item.In)
	default:
		s.accept(item.In)
	}
}

// complain puts an error for what is no message among the answers.
func (st *stream) complain(bad *jsonrpc.ParseError, null bool) {
	b, _ := encode(&jsonrpc.Outgoing{ID: bad.ID, Error: bad.Err, NullID: bad.ID.IsZero() && null}) // an error can always be written
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
		h.refuse(a, hd, http.StatusBadRequest, errBatch)
		return
	}
	items, requests, e := h.readBatch(data, h.mostBatched(a.x.Principal))
	switch {
	case e != nil:
		h.refuse(a, hd, http.StatusBadRequest, e)
	case !requests && items[0].In != nil && items[0].In.Kind == jsonrpc.Response:
		h.refuse(a, hd, http.StatusBadRequest, errUnasked)
	case !requests:
		a.Writer().WriteHeader(http.StatusAccepted)
	default:
		h.serveArray(a, f, items)
	}
}

// serveArray has the requests of an array handled without a session.
func (h *Handler) serveArray(a *activeRequest, f *revision.Facts, items []jsonrpc.BatchItem) {
	a.x.Version, a.x.Transport, a.x.Batched = f.Version, &selfContained, true
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
			x := st.newExchange(item.In, a)
			running.Go(func() {
				defer x.abandon()
				ctx, end := principal.UntilRevoked(a.context(), a.r.Context())
				defer end()
				h.core.Serve(ctx, &x.Exchange)
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
	if h.maxBatch > 0 {
		return h.maxBatch
	}
	s, _, e := h.newSession(who, "")
	if e != nil {
		return maxBatch
	}
	defer s.release()
	defer s.end(errRefused)
	if s.start() != nil {
		return maxBatch // the requests will be refused as well
	}
	s.settle()
	h.maxBatch = s.rules.MaxBatch
	return h.maxBatch
}
