package web

import (
	"net/netip"
	"strconv"
	"strings"
)

// A hostPort is the value of a Host header, or the end of an origin. It points
// into the text it was read from.
type hostPort struct {
	name string     // as written, without the brackets of an IPv6 address
	ip   netip.Addr // the address, if name is one
	port uint16     // 0 if there is none
}

// splitHost reads host [":" port]. It takes what a browser or client sends and
// nothing else: no user, no zone, no blank, no percent-encoding, no number that
// only some programs take for an address.
func splitHost(s string) (hostPort, bool) {
	var h hostPort
	rest := ""
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
		end := strings.IndexByte(inner, ']')
		if end < 0 {
			return h, false
		}
		h.name, rest = inner[:end], inner[end+1:]
		if !strings.Contains(h.name, ":") || strings.Contains(h.name, "%") {
			return h, false
		}
	} else {
		end := strings.IndexByte(s, ':')
		if end < 0 {
			end = len(s)
		}
		h.name, rest = s[:end], s[end:]
		if !isName(h.name) {
			return h, false
		}
	}
	if strings.Contains(h.name, ":") || strings.Trim(h.name, digits+".") == "" {
		// An error is accepted: 1.2.3 is a name, which no host has.
		h.ip, _ = netip.ParseAddr(h.name)
		if !h.ip.IsValid() && strings.Contains(h.name, ":") {
			return h, false
		}
	}
	if rest == "" {
		return h, true
	}
	var ok bool
	h.port, ok = parsePort(rest)
	return h, ok
}

// What names are made of. What strings.Trim leaves of a text has something else.
const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// isName reports whether s could be a DNS name or an IPv4 address: labels of
// ASCII letters, digits, "-" and "_". One dot at the end is part of the name.
func isName(s string) bool {
	if s == "" || len(s) > 254 || s[0] == '.' || strings.Contains(s, "..") {
		return false
	}
	return strings.Trim(s, letters+digits+"-_.") == ""
}

// parsePort reads ":" and a port from 1 to 65535 without leading zeros.
func parsePort(s string) (uint16, bool) {
	digits, ok := strings.CutPrefix(s, ":")
	if !ok || len(digits) == 0 || len(digits) > 5 || digits[0] < '1' || digits[0] > '9' {
		return 0, false
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	return uint16(port), err == nil
}

// sameName reports whether a and b are the same host, whatever their ports.
func (a hostPort) sameName(b hostPort) bool {
	if a.ip.IsValid() || b.ip.IsValid() {
		return a.ip == b.ip
	}
	return strings.EqualFold(a.name, b.name)
}

// portOr is the port, or the given one if there is none.
func (a hostPort) portOr(own uint16) uint16 {
	if a.port == 0 {
		return own
	}
	return a.port
}

// loopback reports whether the host is this machine by definition (RFC 6761,
// section 6.3), so that no DNS server can say otherwise.
func (a hostPort) loopback() bool {
	const local = ".localhost"
	if a.ip.IsValid() {
		return a.ip.IsLoopback()
	}
	if cut := len(a.name) - len(local); cut > 0 {
		return strings.EqualFold(a.name[cut:], local)
	}
	return strings.EqualFold(a.name, local[1:])
}

// safe reports whether the host cannot be a rebound name: an
// address is no name. The unspecified address is how pages reach for servers
// on their visitor's machine, and nobody's own.
func (a hostPort) safe() bool {
	return a.loopback() || a.ip.IsValid() && !a.ip.IsUnspecified()
}

// An origin is the value of an Origin header in a form that can be compared.
type origin struct {
	scheme   string // in lower case
	hostPort        // the name in lower case and empty for an address, the port that of the scheme if there is none
}

// parseOrigin reads scheme "://" host [":" port]. "null" is no origin.
func parseOrigin(s string) (origin, bool) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found || !isScheme(scheme) {
		return origin{}, false
	}
	h, ok := splitHost(rest)
	if !ok {
		return origin{}, false
	}
	scheme, h.name = strings.ToLower(scheme), strings.ToLower(h.name)
	if h.ip.IsValid() {
		h.name = ""
	}
	h.port = h.portOr(schemePort(scheme))
	return origin{scheme, h}, true
}

// is reports whether h, as the Host header of a request, is o's host and port.
// A Host without port has the port of the page's scheme.
func (o origin) is(h hostPort) bool {
	return h.sameName(o.hostPort) && h.portOr(schemePort(o.scheme)) == o.port
}

// isScheme reports whether s is the scheme of a URI (RFC 3986, section 3.1).
func isScheme(s string) bool {
	return s != "" && strings.Trim(s[:1], letters) == "" && strings.Trim(s, letters+digits+"+-.") == ""
}

// schemePort is the port that a scheme has of its own, or 0.
func schemePort(scheme string) uint16 {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	}
	return 0
}
