package streamable

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/web"
)

// trusted is how many bytes of a body get memory because its header announces
// them. More is only given to those who have sent so much.
const trusted = 64 << 10

// post serves a POST: it reads the message and finds out whose it is. It
// reports whether the body was read to its end.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, who *principal.Principal) (read bool) {
	data := h.read(w, r)
	if data == nil {
		return false
	}
	if jsonrpc.IsBatch(data) {
		h.batch(w, r, who, data)
	} else {
		h.single(w, r, who, data)
	}
	return true
}

// batch serves an array of messages.
func (h *Handler) batch(w http.ResponseWriter, r *http.Request, who *principal.Principal, data []byte) {
	if isModern(r) {
		h.refuse(w, r, http.StatusBadRequest, errBatch())
		return
	}
	if h.opts.Sessionless {
		h.batchSessionless(w, r, who, data)
		return
	}
	if s := h.caller(w, r, who); s != nil {
		defer s.release()
		s.batch(w, r, who, data)
	}
}

// single serves one message.
func (h *Handler) single(w http.ResponseWriter, r *http.Request, who *principal.Principal, data []byte) {
	modern := isModern(r)
	m, err := jsonrpc.Parse(data, h.limits)
	switch {
	case err != nil:
		h.malformed(w, r, who, modern, err)
	case modern || namesVersion(m):
		h.modern(w, r, who, m)
	case h.opts.Sessionless:
		h.sessionless(w, r, who, m)
	case m.Kind == jsonrpc.Request && m.Method == revision.Initialize && len(r.Header[headerSession]) == 0:
		h.initialize(w, r, who, m)
	default:
		if s := h.caller(w, r, who); s != nil {
			defer s.release()
			s.post(w, r, who, m)
		}
	}
}

// namesVersion reports whether a message names its revision itself, which
// makes it one that stands for itself (ruling 1).
func namesVersion(m *jsonrpc.Incoming) bool {
	meta, ok := m.Params.Object("_meta")
	if !ok {
		return false
	}
	_, ok = meta.Member(revision.MetaVersionKey)
	return ok
}

// caller returns the session that a POST belongs to, or refuses it.
func (h *Handler) caller(w http.ResponseWriter, r *http.Request, who *principal.Principal) *session {
	s := h.find(w, r, who)
	if s == nil {
		return nil
	}
	if !s.speaks(w, r) {
		s.release()
		return nil
	}
	return s
}

// read checks the headers that say what a body is, and returns it; nil if it
// has been refused.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) []byte {
	switch {
	case !acceptsBoth(r.Header["Accept"]):
		h.refuse(w, r, http.StatusNotAcceptable, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"an answer is application/json or text/event-stream; name both in the Accept header"))
		return nil
	case !isJSON(r.Header["Content-Type"]):
		h.refuse(w, r, http.StatusUnsupportedMediaType, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"a message is application/json in UTF-8; say so in the Content-Type header"))
		return nil
	case !isIdentity(r.Header["Content-Encoding"]):
		h.refuse(w, r, http.StatusUnsupportedMediaType, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
			"compressed bodies are not taken; leave Content-Encoding out"))
		return nil
	}
	data, err := h.readWithin(w, r)
	if err == nil {
		h.list.unlimited(r.Context(), w.(*open))
		return data
	}
	// What is left of the body is not waited for.
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, errTooLarge):
		e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "a message has at most %d bytes; send less at a time", h.opts.MaxMessage)
		e.Limit = "MaxMessage"
		h.refuse(w, r, http.StatusRequestEntityTooLarge, e)
	case errors.Is(err, os.ErrDeadlineExceeded):
		e := jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "the body did not arrive within %v; send it faster", h.opts.ReadTimeout)
		e.Limit = "ReadTimeout"
		h.refuse(w, r, http.StatusRequestTimeout, e)
	default:
		h.log.Debug("reading a body", "error", err)
		h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeParseError,
			"the body ended too early; send as much as the header says"))
	}
	return nil
}

// readWithin reads a body while its time lasts.
func (h *Handler) readWithin(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	o := w.(*open)
	o.readDue.Store(time.Now().Add(h.opts.ReadTimeout).UnixNano())
	defer o.readDue.Store(0)
	return readBody(r.Body, r.ContentLength, h.opts.MaxMessage)
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
func (h *Handler) malformed(w http.ResponseWriter, r *http.Request, who *principal.Principal, modern bool, err error) {
	h.log.Debug("message refused", "error", err)
	bad, ok := errors.AsType[*jsonrpc.ParseError](err)
	if !ok {
		bad = &jsonrpc.ParseError{Err: jsonrpc.NewError(jsonrpc.CodeParseError, "%v", err)}
	}
	null, told := false, false
	if !modern {
		null = nullID(r)
		if len(r.Header[headerSession]) > 0 && !h.opts.Sessionless {
			s := h.caller(w, r, who)
			if s == nil {
				return
			}
			defer s.release()
			s.fail(bad)
			s.refused(bad.Err)
			null, told = s.nullID(), true
		}
	}
	if !told {
		h.refused(r, bad.Err)
	}
	complain(w, bad, null)
}

// complain says what is wrong with a message: with its id if it was a request
// and has one.
func complain(w http.ResponseWriter, bad *jsonrpc.ParseError, null bool) {
	id := bad.ID
	if bad.Response {
		id = jsonrpc.ID{} // one of ours
	}
	if id.IsZero() {
		web.Refuse(w, http.StatusBadRequest, bad.Err, null)
		return
	}
	b, err := encode(&jsonrpc.Outgoing{ID: id, Error: bad.Err})
	if err != nil {
		web.Refuse(w, http.StatusBadRequest, bad.Err, null)
		return
	}
	w.Header()["Content-Type"] = typeJSON
	w.WriteHeader(http.StatusBadRequest)
	if _, err := w.Write(b.b); err == nil { // a client that has gone needs no answer
		b.free()
	}
}
