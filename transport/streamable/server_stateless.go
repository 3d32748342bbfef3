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

// stateless serves a message of a revision without handshake: a request is a
// call of the handler, on this goroutine.
func (h *Handler) stateless(a *activeRequest, hd *head, m *jsonrpc.Incoming) {
	if m.Kind != jsonrpc.Request {
		h.unanswered(a, hd, m, errResponse)
		return
	}
	a.ends = a.r.Context()
	if !a.HasDeadlines() { // they end it otherwise
		a.ends, a.cancel = context.WithCancelCause(a.ends)
		defer a.cancel(nil)
	}
	hd.route(&a.x.Route, a.r.Header)
	h.serveAlone(a, m)
}

// serveAlone has a request handled that belongs to no session.
func (h *Handler) serveAlone(a *activeRequest, m *jsonrpc.Incoming) {
	st := h.begin(a)
	a.x.In, a.x.Out, a.x.Transport, a.x.Ending = m, &a.x, &selfContained, h.ending
	st.waiting, a.running = 1, true
	a.attach(st, writerIdle)
	defer a.conclude(st)
	defer a.x.abandon()
	h.begun(a)
	ctx, end := principal.UntilRevoked(a.context(), a.r.Context())
	defer end()
	h.core.Serve(ctx, &a.x.Exchange)
}

// begin makes the stream of a request that belongs to no session.
func (h *Handler) begin(a *activeRequest) *stream {
	if st := a.x.st; st != nil {
		return st
	}
	return new(stream).init(h, nil, formObject)
}

// begun cancels a request that has begun too late to be cancelled with the
// others.
func (h *Handler) begun(a *activeRequest) {
	if h.responses.Aborting() {
		a.Abort()
		a.Cancel(ErrStopped)
	}
}

// unanswered serves what is no request: notifications are ignored, responses
// refused.
func (h *Handler) unanswered(a *activeRequest, hd *head, m *jsonrpc.Incoming, e *jsonrpc.Error) {
	if m.Kind == jsonrpc.Notification {
		h.log.Debug("notification ignored", "bytes", m.Size)
		a.Writer().WriteHeader(http.StatusAccepted)
		return
	}
	h.refuse(a, hd, http.StatusBadRequest, e)
}

// statelessFacts are those of the revision that a request without session names,
// or is served in.
func statelessFacts(x *transport.Exchange) *revision.Facts {
	if x.Version != "" {
		f, _ := revision.Lookup(x.Version)
		return f
	}
	meta, _ := x.In.Params.Object("_meta")
	raw, _ := meta.Member(revision.MetaVersionKey)
	version := x.Route.Version
	if len(raw) > 0 && raw[0] == '"' {
		version = wire.Text(raw)
	}
	if f, ok := revision.Lookup(version); ok && !f.Handshake {
		return f
	}
	return revision.Newest()
}

// statelessStatus is the HTTP status of an error (ruling 12).
func statelessStatus(x *transport.Exchange, e *jsonrpc.Error) int {
	f := statelessFacts(x)
	if e.Code == jsonrpc.CodeInvalidParams && !hasMeta(x.In, f.RequiredMeta) {
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

// sessionless serves a message of a revision with a handshake by itself, on an
// endpoint that keeps no sessions. It goes on when its client has gone (ruling 13).
func (h *Handler) sessionless(a *activeRequest, hd *head, m *jsonrpc.Incoming) {
	f := h.assumed(a, hd)
	switch {
	case f == nil: // refused
		return
	case m.Kind != jsonrpc.Request:
		h.unanswered(a, hd, m, errUnasked)
		return
	}
	a.x.Version = f.Version
	a.ends, a.cancel = context.WithCancelCause(context.WithoutCancel(a.r.Context()))
	defer a.cancel(nil)
	a.HasDeadlines() // to warn
	h.serveAlone(a, m)
}

// assumed are the facts of the revision that a request without session is of;
// nil if it was refused. Whether it is served here is for the core to say.
func (h *Handler) assumed(a *activeRequest, hd *head) *revision.Facts {
	values := hd.version
	if len(values) == 0 {
		return revision.Assumed()
	}
	if f, ok := revision.Lookup(values[0]); ok && len(values) == 1 {
		return f
	}
	why := "is not served here"
	if len(values) > 1 {
		why = errDoubled
	}
	h.refuse(a, hd, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"MCP-Protocol-Version %.32q: %s; send the one that initialize answered", values[0], why))
	return nil
}
