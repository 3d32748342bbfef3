package sse

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/web"
)

// spill is how much of a body over the limit is read all the same, so that the
// client, which may be writing it, gets to read the answer.
const spill = 1 << 20

// errOver says that the session ended before a body had arrived.
var errOver = errors.New("session ended")

// post takes one message for a session (spec 2024-11-05, basic/transports:
// "All subsequent client messages MUST be sent as HTTP POST requests to this
// endpoint").
func (h *Handler) post(w http.ResponseWriter, r *http.Request, who *principal.Principal) {
	s, no := h.findSession(r, who)
	if no != nil {
		h.refuseWith(w, r, no)
		return
	}
	defer h.responses.Release()
	if !isJSON(r) {
		h.refuse(w, r, http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "send the message as application/json in UTF-8, without Content-Encoding")
		return
	}
	if !s.reserve() {
		h.refuseLate(w, r)
		return
	}
	defer func() { <-s.bodies }()
	data, err := s.body(w, r, &h.o)
	switch {
	case errors.Is(err, errOver):
		// The deadline that ended the reading has ended the context of the connection, in
		// which the next request would find itself cancelled.
		w.Header().Set("Connection", "close")
		h.refuseLate(w, r)
	case errors.Is(err, web.ErrTooLarge):
		e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "a message may have at most %d bytes; send less at a time", h.o.MaxMessage)
		e.Limit = "MaxMessage"
		h.refuseWith(w, r, &refusal{http.StatusRequestEntityTooLarge, e})
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "the message took longer than %v to arrive", h.o.ReadTimeout)
		e.Limit = "ReadTimeout"
		h.refuseWith(w, r, &refusal{http.StatusRequestTimeout, e})
	case err != nil:
		h.refuse(w, r, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "the message did not arrive whole")
	default:
		h.deliver(w, r, s, data)
	}
}

// findSession finds the session of a message. One of another user is refused
// like an unknown one (SEC-HTTP-1: sessions are bound to the user).
func (h *Handler) findSession(r *http.Request, who *principal.Principal) (*session, *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[r.URL.Query().Get(sessionParam)]
	switch {
	case h.responses.Closing():
		return nil, refusedClosing
	case s == nil || s.principal.Identity() != who.Identity():
		return nil, refusedUnknown
	}
	h.responses.Hold() // with the response of the session
	return s, nil
}

// isJSON reports whether the body is what it has to be.
func isJSON(r *http.Request) bool {
	types := r.Header["Content-Type"]
	return len(types) == 1 && web.IsJSON(types[0]) && r.Header.Get("Content-Encoding") == ""
}

// reserve waits until the body may be read. It is false if the session ended.
func (s *session) reserve() bool {
	select {
	case s.bodies <- struct{}{}:
		return true
	case <-s.ending:
	case <-s.done:
	}
	return false
}

// body reads a message while its session lives.
func (s *session) body(w http.ResponseWriter, r *http.Request, o *Options) ([]byte, error) {
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(o.ReadTimeout)); err != nil {
		return nil, err
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(s.ctx, func() {
		defer close(stopped)
		_ = rc.SetReadDeadline(time.Unix(1, 0)) // worked before
	})
	data, err := web.ReadBody(r.Body, r.ContentLength, o.MaxMessage)
	if errors.Is(err, web.ErrTooLarge) {
		_, _ = io.CopyN(io.Discard, r.Body, spill) // it is too large in any case
	}
	if !stop() {
		<-stopped
		err = errOver
	}
	if err == nil { // else the rest of the body is not waited for
		_ = rc.SetReadDeadline(time.Time{}) // worked before
	}
	return data, err
}

// deliver gives a message to the reader, and answers once it was taken.
func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, s *session, data []byte) {
	select {
	case s.in <- data:
		w.WriteHeader(http.StatusAccepted)
	case <-s.ending:
		h.refuseLate(w, r)
	case <-s.done:
		h.refuseLate(w, r)
	case <-r.Context().Done(): // the client is gone
	}
}

// refuseLate answers a message that came too late.
func (h *Handler) refuseLate(w http.ResponseWriter, r *http.Request) {
	h.refuse(w, r, http.StatusServiceUnavailable, jsonrpc.CodeInvalidRequest, "the session has ended; open another")
}
