package client

import (
	"context"
	"strings"
)

// A trace is the trace context that goes into _meta of each request (spec
// 2026-07-28, basic: values MUST follow W3C Trace Context and W3C Baggage).
type trace struct {
	parent, state, baggage string
	dropped                string // what was not valid
}

type traceKey struct{}

// Bounds of W3C Trace Context, section 3.3.1.5, and W3C Baggage, section 3.3.2.
const (
	maxTraceState = 512
	maxBaggage    = 8192
)

// WithTrace returns a context whose calls carry a trace context to the
// server: the values of the headers traceparent, tracestate and baggage of
// W3C. Empty values are left out, and so are invalid ones, with a line in the
// client's log; tracestate goes only with a valid traceparent.
func WithTrace(ctx context.Context, traceparent, tracestate, baggage string) context.Context {
	var t trace
	var bad []string
	if validTraceparent(traceparent) {
		t.parent = traceparent
	} else if traceparent != "" {
		bad = append(bad, "traceparent")
	}
	if t.parent != "" && validList(tracestate, maxTraceState) {
		t.state = tracestate
	} else if tracestate != "" {
		bad = append(bad, "tracestate")
	}
	if validList(baggage, maxBaggage) {
		t.baggage = baggage
	} else if baggage != "" {
		bad = append(bad, "baggage")
	}
	t.dropped = strings.Join(bad, ", ")
	return context.WithValue(ctx, traceKey{}, &t)
}

// validTraceparent checks version-traceid-parentid-flags: hexadecimal in lower
// case, neither id all zero, version not ff.
func validTraceparent(s string) bool {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, id, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if !lowerHex(version) || version == "ff" || !lowerHex(id) || !lowerHex(parent) || !lowerHex(flags) {
		return false
	}
	if len(s) > 55 && (version == "00" || s[55] != '-' || len(s) > 256) {
		return false
	}
	for i := 55; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return strings.Trim(id, "0") != "" && strings.Trim(parent, "0") != ""
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// validList checks a list of key=value members in printable ASCII, which is
// what both tracestate and baggage are.
func validList(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] > '~' {
			return false
		}
	}
	for member := range strings.SplitSeq(s, ",") {
		key, _, ok := strings.Cut(strings.TrimSpace(member), "=")
		if !ok || strings.TrimSpace(key) == "" || strings.ContainsAny(strings.TrimSpace(key), " \t") {
			return false
		}
	}
	return true
}
