package streamable

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/transport/web"
)

// trusted is how many bytes of a body get memory because its header announces
// them. More is only given to those who have sent so much.
const trusted = 64 << 10

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
	switch h.era(hd, m) {
	case eraStateless:
		h.stateless(a, hd, m)
	case eraSessionless:
		h.sessionless(a, hd, m)
	case eraOpening:
		h.initialize(a, hd, m)
	default:
		if s := h.caller(a, hd); s != nil {
			defer s.release()
			s.post(a, m)
		}
	}
}

// An era says how a message is served.
type era uint8

const (
	eraStateless   era = iota // of a revision without handshake: by itself
	eraSessionless            // of one with a handshake, where no sessions are kept: by itself
	eraOpening                // it opens a session
	eraSession                // in the session that its header names
)

// era decides how a message is served (ruling 1): one that names its revision,
// in its header or by itself, is of a revision without handshake.
func (h *Handler) era(hd *head, m *jsonrpc.Incoming) era {
	switch {
	case hd.stateless || namesVersion(m):
		return eraStateless
	case h.opts.Sessionless:
		return eraSessionless
	case m.Kind == jsonrpc.Request && m.Method == revision.Initialize && len(hd.session) == 0:
		return eraOpening
	}
	return eraSession
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

// caller returns the session that a POST belongs to, held, or refuses it.
func (h *Handler) caller(a *activeRequest, hd *head) *session {
	s := h.find(a, hd)
	if s == nil || s.speaks(a, hd) {
		return s
	}
	s.release()
	return nil
}

// read checks the headers that say what a body is, and returns it; nil if it
// has been refused.
func (h *Handler) read(a *activeRequest, hd *head) []byte {
	switch {
	case !acceptsBoth(hd.accept):
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
		return readBody(a.r.Body, a.r.ContentLength, h.opts.MaxMessage)
	})
	if err == nil {
		_ = a.r.Body.Close() // at its end; net/http looks for more in one that is open
		h.responses.Unlimit(a.r.Context(), &a.Response)
		return data
	}
	// What is left of the body is not waited for.
	a.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, errTooLarge):
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

var errTooLarge = errors.New("body exceeds the limit")

// readBody reads a body of length bytes, -1 if that is not known, into memory
// of its own. It is never nil without an error.
func readBody(body io.Reader, length int64, limit int) ([]byte, error) {
	if length > int64(limit) {
		return nil, errTooLarge
	}
	if length >= 0 && length <= trusted {
		data := make([]byte, length)
		_, err := io.ReadFull(body, data)
		return data, err
	}
	first := newBuffer()
	defer first.free()
	var err error
	if first.b, err = fill(first.b, body, min(trusted, limit)+1); errors.Is(err, io.EOF) && length < 0 {
		if len(first.b) > limit {
			return nil, errTooLarge
		}
		return append(make([]byte, 0, len(first.b)), first.b...), nil
	}
	if err != nil {
		return nil, err
	}
	if len(first.b) > limit {
		return nil, errTooLarge
	}
	if length >= 0 {
		data := make([]byte, length)
		_, err := io.ReadFull(body, data[copy(data, first.b):])
		return data, err
	}
	return readAll(body, first.b, limit)
}

// readAll reads the rest of a body of unknown length.
func readAll(body io.Reader, first []byte, limit int) ([]byte, error) {
	data := append(make([]byte, 0, min(2*len(first), limit)), first...)
	for {
		var err error
		data, err = fill(data, body, min(2*len(data), limit))
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == limit:
			if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
				return nil, errTooLarge
			}
			return data, nil
		}
	}
}

// fill reads until data has n bytes. io.EOF says that there were fewer.
func fill(data []byte, body io.Reader, n int) ([]byte, error) {
	if cap(data) < n {
		data = append(make([]byte, 0, n), data...)
	}
	for len(data) < n {
		m, err := body.Read(data[len(data):n])
		data = data[:len(data)+m]
		if err != nil && len(data) < n {
			return data, err
		}
	}
	return data, nil
}

// malformed answers what is no message.
func (h *Handler) malformed(a *activeRequest, hd *head, err error) {
	h.log.Debug("message refused", "error", err)
	bad, ok := errors.AsType[*jsonrpc.ParseError](err)
	if !ok {
		bad = &jsonrpc.ParseError{Err: jsonrpc.NewError(jsonrpc.CodeParseError, "%v", err)}
	}
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

// complain says what is wrong with a message: with its id if it was a request
// and has one.
func complain(a *activeRequest, bad *jsonrpc.ParseError, null bool) {
	id := bad.ID
	if bad.Response {
		id = jsonrpc.ID{} // one of ours
	}
	if id.IsZero() {
		web.Refuse(a.Writer(), http.StatusBadRequest, bad.Err, null)
		return
	}
	b, err := encode(&jsonrpc.Outgoing{ID: id, Error: bad.Err})
	if err != nil {
		web.Refuse(a.Writer(), http.StatusBadRequest, bad.Err, null)
		return
	}
	_ = a.JSON(http.StatusBadRequest, b.b[prefix:]) // a client that has gone needs no answer
	a.free(b)
}
