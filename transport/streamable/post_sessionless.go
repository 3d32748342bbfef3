package streamable

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/parley-mcp/parley/internal/revision"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport"
)

// sessionless serves a message of a revision with a handshake by itself, on an
// endpoint that keeps no sessions.
func (h *Handler) sessionless(w http.ResponseWriter, r *http.Request, who *principal.Principal, m *jsonrpc.Incoming) {
	f := h.assumed(w, r)
	switch {
	case f == nil:
		return
	case m.Kind == jsonrpc.Response:
		h.refuse(w, r, http.StatusBadRequest, errUnasked())
		return
	case m.Kind == jsonrpc.Notification:
		h.log.Debug("notification ignored", "bytes", m.Size)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	c := newSessionless(r, f)
	defer c.cancel(nil)
	h.deadlines(w) // to warn
	h.call(w, who, m, c)
}

// newSessionless makes the call of a request that goes on when its client has
// gone (ruling 13).
func newSessionless(r *http.Request, f *revision.Facts) *call {
	c := new(call)
	c.legacy, c.Version = f, f.Version
	c.ctx.r = r
	c.ctx.Context, c.cancel = context.WithCancelCause(context.WithoutCancel(r.Context()))
	return c
}

// assumed are the facts of the revision that a request without session is of;
// nil if it was refused. Whether it is served here is for the core to say.
func (h *Handler) assumed(w http.ResponseWriter, r *http.Request) *revision.Facts {
	values := r.Header[headerVersion]
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
	h.refuse(w, r, http.StatusBadRequest, jsonrpc.NewError(jsonrpc.CodeInvalidRequest,
		"MCP-Protocol-Version %.32q: %s; send the one that initialize answered", values[0], why))
	return nil
}

func errUnasked() *jsonrpc.Error {
	return jsonrpc.NewError(jsonrpc.CodeInvalidRequest, "this server keeps no sessions, and has asked nothing that this could answer")
}

// batchSessionless serves an array of messages by itself: all requests at once,
// and their answers in one array, in no order.
func (h *Handler) batchSessionless(w http.ResponseWriter, r *http.Request, who *principal.Principal, data []byte) {
	f := h.assumed(w, r)
	if f == nil {
		return
	}
	if !f.Batch {
		h.refuse(w, r, http.StatusBadRequest, errBatch())
		return
	}
	items, requests, e := h.readBatch(data, h.mostBatched(who))
	switch {
	case e != nil:
		h.refuse(w, r, http.StatusBadRequest, e)
		return
	case !requests && items[0].In != nil && items[0].In.Kind == jsonrpc.Response:
		h.refuse(w, r, http.StatusBadRequest, errUnasked())
		return
	case !requests:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	c := newSessionless(r, f)
	defer c.cancel(nil)
	c.begin(h, w)
	defer c.close()
	h.list.attend(c.open, c, ErrStopped)
	array := newBuffer()
	array.b = appendArray(array.b, h.elements(c, who, items))
	if err := c.deliver(array, nil); err != nil {
		h.log.Debug("answer not delivered", "error", err)
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

// elements has the requests of an array handled and returns their answers.
func (h *Handler) elements(c *call, who *principal.Principal, items []jsonrpc.BatchItem) []message {
	var (
		running sync.WaitGroup
		calls   []*keptExchange
	)
	for _, item := range items {
		x := &keptExchange{out: c}
		switch {
		case item.In != nil && item.In.Kind == jsonrpc.Request:
			x.Exchange = transport.Exchange{
				In: item.In, Principal: who, Out: x, Carrier: &selfContained, Version: c.Version, Batched: true,
			}
			running.Go(func() { h.core.Serve(&c.ctx, &x.Exchange) })
		case item.In == nil && !item.Err.Notification:
			h.refused(c.ctx.r, item.Err.Err)
			_ = x.Answer(&c.ctx, &jsonrpc.Outgoing{ID: item.Err.ID, Error: item.Err.Err, NullID: item.Err.ID.IsZero() && c.legacy.NullID})
		default:
			continue // a notification
		}
		calls = append(calls, x)
	}
	running.Wait()
	answers := make([]message, len(calls))
	for i, x := range calls {
		answers[i].buffer, _ = x.end()
	}
	return answers
}
