package streamable

import (
	"context"
	"net/http"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// modern serves a message of a revision without handshake: a request is a call
// of the handler, on this goroutine.
func (h *Handler) modern(w http.ResponseWriter, r *http.Request, who *principal.Principal, m *jsonrpc.Incoming) {
	if m.Kind != jsonrpc.Request {
		h.unanswered(w, r, m)
		return
	}
	c := new(call)
	c.ctx = requestContext{r.Context(), r}
	if !h.deadlines(w) {
		c.ctx.Context, c.cancel = context.WithCancelCause(c.ctx.Context) // deadlines end it otherwise
		defer c.cancel(nil)
	}
	readRoute(&c.Route, r.Header)
	h.call(w, who, m, c)
}

// call has a request handled that belongs to no session.
func (h *Handler) call(w http.ResponseWriter, who *principal.Principal, m *jsonrpc.Incoming, c *call) {
	// A literal would be made on the stack, which the write of the answer needs:
	// what net/http takes of it and our frames fit into 8 KiB, so that it need not
	// grow for each request.
	c.In, c.Principal, c.Out, c.Carrier, c.Ending = m, who, c, &selfContained, h.ending
	c.begin(h, w)
	defer c.close()
	h.list.attend(c.open, c, ErrStopped)
	h.core.Serve(&c.ctx, &c.Exchange)
	c.abort()
}

// carrierName is what the transport is called to handlers of requests.
const carrierName = "http"

// selfContained is the carrier of requests that belong to no session.
var selfContained = transport.Carrier{Name: carrierName}

// unanswered serves what is no request.
func (h *Handler) unanswered(w http.ResponseWriter, r *http.Request, m *jsonrpc.Incoming) {
	if m.Kind == jsonrpc.Notification {
		h.log.Debug("notification ignored", "bytes", m.Size)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"responses are not sent in this protocol revision; send the request again with its input responses"))
}

// facts are those of the revision that a modern request names, or of the one
// that a request without session is served in.
func (c *call) facts() *revision.Facts {
	if c.legacy != nil {
		return c.legacy
	}
	meta, _ := c.In.Params.Object("_meta")
	raw, _ := meta.Member(revision.MetaVersionKey)
	version := c.Route.Version
	if len(raw) > 0 && raw[0] == '"' {
		version = wire.Text(raw)
	}
	if f, ok := revision.Lookup(version); ok && !f.Handshake {
		return f
	}
	return revision.Newest()
}

// status is the HTTP status of an answer (ruling 12).
func (c *call) status(e *jsonrpc.Error) int {
	if e == nil {
		return http.StatusOK
	}
	f := c.facts()
	if e.Code == jsonrpc.CodeInvalidParams && !hasMeta(c.In, f.RequiredMeta) {
		return http.StatusBadRequest
	}
	return f.HTTPStatus(e.Code)
}

// hasMeta reports whether a request has what its _meta must have: the version
// as a string, all else as objects.
func hasMeta(m *jsonrpc.Incoming, required []string) bool {
	meta, ok := m.Params.Object("_meta")
	if !ok {
		return len(required) == 0
	}
	for _, name := range required {
		kind := byte('{')
		if name == revision.MetaVersionKey {
			kind = '"'
		}
		if raw, ok := meta.Member(name); !ok || raw[0] != kind {
			return false
		}
	}
	return true
}
