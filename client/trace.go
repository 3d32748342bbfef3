package client

import (
	"context"
	"strings"

	"github.com/parley-mcp/parley/internal/tracecontext"
)

// A trace is the trace context that goes into _meta of each request (spec
// 2026-07-28, basic: values MUST follow W3C Trace Context and W3C Baggage).
type trace struct {
	parent, state, baggage string
	dropped                string // what was not valid
}

type traceKey struct{}

// WithTrace returns a context whose calls carry a trace context to the
// server: the values of the headers traceparent, tracestate and baggage of
// W3C. Empty values are left out, and so are invalid ones, with a line in the
// client's log; tracestate goes only with a valid traceparent.
func WithTrace(ctx context.Context, traceparent, tracestate, baggage string) context.Context {
	var t trace
	var bad []string
	if tracecontext.ValidParent(traceparent) {
		t.parent = traceparent
	} else if traceparent != "" {
		bad = append(bad, "traceparent")
	}
	if t.parent != "" && tracecontext.ValidState(tracestate) {
		t.state = tracestate
	} else if tracestate != "" {
		bad = append(bad, "tracestate")
	}
	if tracecontext.ValidBaggage(baggage) {
		t.baggage = baggage
	} else if baggage != "" {
		bad = append(bad, "baggage")
	}
	t.dropped = strings.Join(bad, ", ")
	return context.WithValue(ctx, traceKey{}, &t)
}
