package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxHops is how many entries of a forwarding header are looked at.
const maxHops = 32

// ParseProxy reads what [Access.TrustedProxies] holds: a network, such as
// 10.0.0.0/8, or one address. It refuses the networks of all addresses, with
// which every caller could claim to be any other.
func ParseProxy(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("trusted proxy %q: write a network like 10.0.0.0/8, or an address", text)
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	if at := network.Addr(); at.Is4In6() && network.Bits() >= 96 { // addresses are compared as IPv4
		network = netip.PrefixFrom(at.Unmap(), network.Bits()-96)
	}
	if network.Bits() == 0 {
		return netip.Prefix{}, fmt.Errorf("trusted proxy %q: every caller could claim to be any other; name the network of the proxy alone", text)
	}
	return network.Masked(), nil
}

// ClientAddress returns the address that a request comes from, without port
// and zone: that of its connection or, if that is in trusted, the last address
// in X-Forwarded-For or Forwarded (RFC 7239) that is not. Each proxy appends
// the address it saw, so that what stands before the last untrusted address is
// the client's own claim. An entry that is no address, such as "unknown" or an
// obfuscated identifier, ends the search: the address of the proxy that wrote
// it counts: to skip the entry would be to believe the entries before it. At
// most 32 entries are looked at.
//
// X-Forwarded-For takes precedence if both headers are present. Nearly every proxy
// writes it, and passes a Forwarded header on as the client wrote it, so clients
// behind such a proxy could choose their address if Forwarded came first. If
// neither header counted where they differ, a client could hide its address from
// the audit. A proxy that writes Forwarded must remove X-Forwarded-For.
//
// Only the address is read. The host, scheme and port of the public URL are
// configured (Access.Hosts, Options.PublicURL): a request must not choose them.
//
// A connection without network address, such as a Unix socket, is trusted by
// no entry: the result is then what net/http calls it.
func ClientAddress(r *http.Request, trusted []netip.Prefix) string {
	at, ok := parseNode(r.RemoteAddr)
	if !ok {
		return remoteOf(r.RemoteAddr)
	}
	if !containedInAny(trusted, at) {
		return at.String()
	}
	lines, read := r.Header["X-Forwarded-For"], parseNode
	if len(lines) == 0 {
		lines, read = r.Header["Forwarded"], forwardedFor
	}
	hops := 0
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; hops++ {
			var entry string
			if rest, entry, more = lastEntry(rest); hops >= maxHops {
				return at.String()
			}
			before, ok := read(entry)
			if !ok {
				return at.String()
			}
			if at = before; !containedInAny(trusted, at) {
				return at.String()
			}
		}
	}
	return at.String()
}

// lastEntry cuts the last entry off a list. A comma within quotes, which no
// address has, cuts too: what is left of the entry is none then.
func lastEntry(list string) (rest, last string, more bool) {
	end := strings.LastIndexByte(list, ',')
	if end < 0 {
		return "", strings.Trim(list, " \t"), false
	}
	return list[:end], strings.Trim(list[end+1:], " \t"), true
}

func containedInAny(networks []netip.Prefix, at netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(at) })
}

// parseNode reads an address with or without port, an IPv6 one with or without
// brackets. Its zone is left out: it means nothing elsewhere.
func parseNode(text string) (netip.Addr, bool) {
	host, port := text, ""
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		var closed bool
		if host, port, closed = strings.Cut(inner, "]"); !closed || !strings.Contains(host, ":") {
			return netip.Addr{}, false
		}
	} else if strings.Count(text, ":") == 1 {
		end := strings.IndexByte(text, ':')
		host, port = text[:end], text[end:]
	}
	if port != "" && !validPort(port) {
		return netip.Addr{}, false
	}
	at, err := netip.ParseAddr(host)
	return at.Unmap().WithZone(""), err == nil
}

// validPort reports whether s is ":" and a port, or an obfuscated one.
func validPort(s string) bool {
	s, found := strings.CutPrefix(s, ":")
	if name, obfuscated := strings.CutPrefix(s, "_"); obfuscated {
		return found && name != "" && len(name) <= maxShown && isName(name)
	}
	return found && s != "" && len(s) <= 5 && strings.Trim(s, digits) == ""
}

// forwardedFor reads the address of an element of a Forwarded header: pairs
// with semicolons between, of which "for" counts.
func forwardedFor(element string) (at netip.Addr, ok bool) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, found := strings.Cut(strings.Trim(pair, " \t"), "=")
		value, sound := bareValue(value)
		if !found || !sound {
			return netip.Addr{}, false
		}
		if strings.EqualFold(name, "for") {
			if ok { // twice
				return netip.Addr{}, false
			}
			if at, ok = parseNode(value); !ok {
				return netip.Addr{}, false
			}
		}
	}
	return at, ok
}

// bareValue takes the quotes off a value. No part of a pair that we read, and of
// those beside it that proxies write, needs a quoted quote or backslash.
func bareValue(s string) (string, bool) {
	inner := s
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		inner = s[1 : len(s)-1]
	}
	return inner, inner != "" && !strings.ContainsAny(inner, `"\`)
}
