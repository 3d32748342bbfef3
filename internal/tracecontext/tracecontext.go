// Package tracecontext checks the trace context that a request carries in its
// `_meta`, for both ends: values of W3C Trace Context and W3C Baggage.
//
// spec 2026-07-28, basic: values MUST follow those two.
package tracecontext

import "strings"

// Bounds of W3C Trace Context, section 3.3.1.5, and W3C Baggage, section 3.3.2.
const (
	maxState   = 512
	maxBaggage = 8192
)

// ValidState reports whether s is a tracestate.
func ValidState(s string) bool { return validList(s, maxState) }

// ValidBaggage reports whether s is a baggage.
func ValidBaggage(s string) bool { return validList(s, maxBaggage) }

// ValidParent reports whether s is a traceparent: version-traceid-parentid-flags,
// hexadecimal in lower case, neither id all zero, version not ff. Versions to come
// may add to it.
func ValidParent(s string) bool {
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
