package netguard

import (
	"net/netip"
	"strings"
)

// LoopbackHost reports whether a host name, without port, stands for this
// machine by itself: localhost, names below it (RFC 6761, section 6.3),
// 127.0.0.0/8, ::1, the last with or without brackets. Other spellings of these
// addresses, such as 127.1, do not.
func LoopbackHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok || !strings.Contains(host, ":") {
			return false
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() && addr.Zone() == "" && !addr.Is4In6()
	}
	host = strings.ToLower(host)
	below, ok := strings.CutSuffix(host, ".localhost")
	return host == "localhost" || ok && len(host) <= 253 && labels(below)
}

// labels reports whether a name in lower case consists of labels that hosts
// have.
func labels(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
