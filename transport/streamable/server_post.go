package streamable

import (
	"errors"
	"net/http"
	"os"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport/web"
)

// post serves a POST: it reads the message and finds out which it is.
func (h *Handler) post(a *activeRequest, hd *head) {
	data := h.read(a, hd)
	if data == nil {
		return
	}
	if jsonrpc.IsBatch(data) {
		h.batch(a, hd, data)
		return
	}
	m, err := jsonrpc.Parse(data, h.limits)
	if err != nil {
		h.malformed(a, hd, err)
		return
	}
	switch {
	case hd.stateless || namesVersion(m): // of a revision without handshake (ruling 1)
		h.stateless(a, hd, m)
	case h.opts.Sessionless:
		h.sessionless(a, hd, m)
	case m.Kind == jsonrpc.Request && m.Method == revision.Initialize && len(hd.session) == 0:
		h.initialize(a, hd, m)
	default:
		if s := h.caller(a, hd); s != nil {
			defer s.release()
			s.post(a, m)
		}
	}
}

// namesVersion reports whether a message names its revision itself.
func namesVersion(m *jsonrpc.Incoming) bool {
	meta, ok := m.Params.Object("_meta")
	if !ok {
		return false
	}
	_, ok = meta.Member(revision.MetaVersionKey)
	return ok
}

// read checks the headers that say what a body is, and returns it; nil if it
// has been refused.
func (h *Handler) read(a *activeRequest, hd *head) []byte {
	json, events := acceptedForms(hd.accept)
	a.x.AnswerOnly = !events // ruling 46
	switch {
	case !json:
		h.refuse(a, hd, http.StatusNotAcceptable, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"an answer is application/json or text/event-stream; name both in the Accept header"))
		return nil
	case !isJSON(hd.contentType):
		h.refuse(a, hd, http.StatusUnsupportedMediaType, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a message is application/json in UTF-8; say so in the Content-Type header"))
		return nil
	case !isIdentity(hd.contentEncoding):
		h.refuse(a, hd, http.StatusUnsupportedMediaType, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"compressed bodies are not taken; leave Content-Encoding out"))
		return nil
	}
	data, err := a.ReadBody(func() ([]byte, error) {
		return web.ReadBody(a.r.Body, a.r.ContentLength, h.opts.MaxMessage)
	})
	if err == nil {
		if a.r.Body != nil { // net/http never leaves it out
			_ = a.r.Body.Close() // at its end; net/http looks for more in one that is open
		}
		h.responses.Unlimit(a.r.Context(), &a.Response)
		return data
	}
	// What is left of the body is not waited for.
	a.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, web.ErrTooLarge):
		e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "a message has at most %d bytes; send less at a time", h.opts.MaxMessage)
		e.Limit = "MaxMessage"
		h.refuse(a, hd, http.StatusRequestEntityTooLarge, e)
	case errors.Is(err, os.ErrDeadlineExceeded):
		e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "the body did not arrive within %v; send it faster", h.opts.ReadTimeout)
		e.Limit = "ReadTimeout"
		h.refuse(a, hd, http.StatusRequestTimeout, e)
	default:
		h.log.Debug("reading a body", "error", err)
		h.refuse(a, hd, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeParseError,
			"the body ended too early; send as much as the header says"))
	}
	return nil
}

// malformed answers what is no message.
func (h *Handler) malformed(a *activeRequest, hd *head, err error) {
	h.log.Debug("message refused", "error", err)
	bad := parseError(err)
	if hd.stateless || h.opts.Sessionless || len(hd.session) == 0 {
		h.refused(a, bad.Err)
		complain(a, bad, !hd.stateless && hd.nullID())
		return
	}
	s := h.caller(a, hd)
	if s == nil {
		return
	}
	defer s.release()
	s.fail(bad)
	s.refused(bad.Err)
	complain(a, bad, s.facts.NullID)
}

// parseError is what jsonrpc says of what is no message.
func parseError(err error) *jsonrpc.ParseError {
	if bad, ok := errors.AsType[*jsonrpc.ParseError](err); ok {
		return bad
	}
	return &jsonrpc.ParseError{Err: jsonrpc.NewError(jsonrpc.CodeParseError, "%v", err)}
}

// complain says what is wrong with a message: with its id if it was a request
// and has one.
func complain(a *activeRequest, bad *jsonrpc.ParseError, null bool) {
	if bad.ID.IsZero() || bad.Response { // an id of ours
		web.Refuse(a.Writer(), http.StatusBadRequest, bad.Err, null)
		return
	}
	b, _ := encode(&jsonrpc.Outgoing{ID: bad.ID, Error: bad.Err}) // an error can always be written
	_ = a.JSON(http.StatusBadRequest, b.b[prefix:])               // a client that has disconnected needs no answer
	a.free(b)
}
