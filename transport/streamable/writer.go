package streamable

import (
	"net/http"
	"reflect"
	"time"

	"github.com/parley-mcp/parley/transport/web"
)

// deadlines reports whether a writer takes deadlines, of which net/http ends
// the context of a request that does not keep to them.
func (h *Handler) deadlines(w http.ResponseWriter) bool {
	if o, ok := w.(*open); ok {
		w = o.ResponseWriter
	}
	_, wrapped := w.(interface{ Unwrap() http.ResponseWriter })
	kind := reflect.TypeOf(w)
	if !wrapped && h.known.Load() == kind {
		return true
	}
	if http.NewResponseController(w).SetWriteDeadline(time.Time{}) != nil {
		h.warn(w)
		return false
	}
	if !wrapped {
		h.known.CompareAndSwap(nil, kind)
	}
	return true
}

// warn tells the log, once, what a writer cannot do that middleware in front of
// the endpoint has put around that of net/http. Requests are served all the same.
func (h *Handler) warn(w http.ResponseWriter) {
	h.warned.Do(func() {
		if o, ok := w.(*open); ok {
			w = o.ResponseWriter
		}
		kind, flushes := web.InnerWriter(w)
		effect := "clients that do not read their answers are not timed out"
		if !flushes {
			effect = "nothing is streamed: events reach a client only when its request ends"
		}
		h.log.Warn("the ResponseWriter of middleware in front of this endpoint hides what net/http can do; "+
			"add an Unwrap method (http.ResponseController) to its type, or take the middleware away from this endpoint (http.TimeoutHandler)",
			"type", kind, "effect", effect)
	})
}
