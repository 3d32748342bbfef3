package server

import (
	"context"

	"github.com/parley-mcp/parley/internal/tracecontext"
)

// Trace is the trace context that a request carried, as W3C Trace Context and
// W3C Baggage write it. Empty fields were not given, or were malformed. It
// must never be used for authentication.
//
// spec 2026-07-28, basic/index: OpenTelemetry trace context.
type Trace struct {
	Parent, State, Baggage string
}

// TraceFrom returns the trace context of the request that ctx belongs to. Bad
// values are dropped with a log line (ruling 27).
func TraceFrom(ctx context.Context) Trace {
	c := CallFrom(ctx)
	if c == nil {
		return Trace{}
	}
	t := Trace{Parent: c.meta.TraceParent, State: c.meta.TraceState, Baggage: c.meta.Baggage}
	if t.Parent != "" && !tracecontext.ValidParent(t.Parent) {
		c.srv.log.InfoContext(c, "malformed traceparent dropped")
		t.Parent = ""
	}
	if t.State != "" && (t.Parent == "" || !tracecontext.ValidState(t.State)) {
		c.srv.log.InfoContext(c, "malformed tracestate dropped")
		t.State = ""
	}
	if t.Baggage != "" && !tracecontext.ValidBaggage(t.Baggage) {
		c.srv.log.InfoContext(c, "malformed baggage dropped")
		t.Baggage = ""
	}
	return t
}
