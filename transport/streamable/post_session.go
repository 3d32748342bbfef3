package streamable

import (
	"errors"
	"net/http"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
)

// post serves one message of the session.
func (s *session) post(w http.ResponseWriter, r *http.Request, who *principal.Principal, m *jsonrpc.Incoming) {
	if m.Kind != jsonrpc.Request {
		s.accept(m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if s.polls() {
		s.request(w, r, false, func(st *stream) { s.begin(r, st, m, who, false) })
		return
	}
	s.serve(w, r, who, m)
}

// batch serves an array of messages (spec 2025-03-26, basic/transports, Sending
// Messages; ruling 10).
func (s *session) batch(w http.ResponseWriter, r *http.Request, who *principal.Principal, data []byte) {
	if !s.rules.Batch {
		s.refuse(w, http.StatusBadRequest, errBatch())
		return
	}
	items, requests, e := s.h.readBatch(data, s.rules.MaxBatch)
	switch {
	case e != nil:
		s.refuse(w, http.StatusBadRequest, e)
	case requests:
		s.request(w, r, true, func(st *stream) {
			for _, item := range items {
				s.element(r, st, item, who)
			}
		})
	default:
		for _, item := range items {
			s.element(r, nil, item, who)
		}
		w.WriteHeader(http.StatusAccepted)
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

// element hands one element of an array on. What is no message gets an error
// among the answers.
func (s *session) element(r *http.Request, st *stream, item jsonrpc.BatchItem, who *principal.Principal) {
	switch {
	case item.In == nil && item.Err.Response:
		s.fail(item.Err)
	case item.In == nil && item.Err.Notification:
		s.h.log.Debug("message refused", "error", item.Err)
	case item.In == nil:
		s.refused(item.Err.Err)
		st.complain(item.Err)
	case item.In.Kind == jsonrpc.Request:
		s.begin(r, st, item.In, who, true)
	default:
		s.accept(item.In)
	}
}

// complain puts an error for what is no message among the answers.
func (st *stream) complain(bad *jsonrpc.ParseError) {
	m := &jsonrpc.Outgoing{ID: bad.ID, Error: bad.Err, NullID: bad.ID.IsZero() && st.s.nullID()}
	b, err := encode(m)
	if err != nil {
		return // an error can always be written
	}
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.box.push(message{buffer: b, answer: true, failed: &failure{Error: bad.Err}})
}
