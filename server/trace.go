package server

import (
	"context"
	"regexp"
	"strings"
)

// Trace is the trace context that a request carried, as W3C Trace Context and
// W3C Baggage write it. Empty fields were not given, or were malformed. It
// must never decide who somebody is.
//
// spec 2026-07-28, basic/index: OpenTelemetry trace context.
type Trace struct {
	Parent, State, Baggage string
}

var (
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	traceState  = regexp.MustCompile(`^[\x20-\x7e]{1,512}$`)
)

// maxBaggage is the limit of W3C Baggage, in bytes.
const maxBaggage = 8192

// TraceFrom returns the trace context of the request that ctx belongs to. Bad
// values are dropped with a log line (ruling 27).
func TraceFrom(ctx context.Context) Trace {
	c := CallFrom(ctx)
	if c == nil {
		return Trace{}
	}
	t := Trace{Parent: c.meta.TraceParent, State: c.meta.TraceState, Baggage: c.meta.Baggage}
	if t.Parent != "" && (!traceParent.MatchString(t.Parent) || strings.HasPrefix(t.Parent, "ff-") || zeroTrace(t.Parent)) {
		c.srv.log.InfoContext(c, "malformed traceparent dropped")
		t.Parent = ""
	}
	if t.State != "" && (t.Parent == "" || !traceState.MatchString(t.State)) {
		c.srv.log.InfoContext(c, "malformed tracestate dropped")
		t.State = ""
	}
	if len(t.Baggage) > maxBaggage || strings.ContainsFunc(t.Baggage, func(r rune) bool { return r < ' ' || r > '~' }) {
		c.srv.log.InfoContext(c, "malformed baggage dropped")
		t.Baggage = ""
	}
	return t
}

// zeroTrace reports whether trace or parent id are all zeros, which is invalid.
func zeroTrace(parent string) bool {
	parts := strings.Split(parent, "-")
	return strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == ""
}
