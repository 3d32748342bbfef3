package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// An endpoint is the host and port of a URL.
type endpoint struct {
	// host is in lower case, without brackets and without a dot at its end; addresses have their
	// canonical spelling.
	host string
	// port is the port, also the default of the scheme.
	port int
}

// A hostPattern is a compiled element of Predicate.Hosts.
type hostPattern struct {
	// host is a host; with subdomains ".example.com"; empty for every host.
	host       string
	subdomains bool
	// port is a port, or 0 for every port.
	port int
}

func (p *hostPattern) match(e *endpoint) bool {
	if p.port != 0 && p.port != e.port {
		return false
	}
	if p.subdomains {
		return strings.HasSuffix(e.host, p.host)
	}
	return p.host == "" || p.host == e.host
}

func compileHost(text string) (hostPattern, error) {
	var p hostPattern
	name, port, d := splitPort(text)
	if d != noDoubt || port == "" && strings.HasSuffix(text, ":") {
		return p, fmt.Errorf("%q is no host; write it without scheme and path, such as \"example.com:8080\"", text)
	}
	if port != "" {
		p.port, _ = strconv.Atoi(port)
		if p.port == 0 {
			return p, fmt.Errorf("%q has the port 0; write another, or none", text)
		}
	}
	if name == "*" {
		return p, nil
	}
	after, subdomains := strings.CutPrefix(name, "*.")
	host, d := parseHost(after)
	if d != noDoubt {
		return p, fmt.Errorf("%q is no host: %w", text, errHost)
	}
	p.host = host
	if subdomains {
		if _, err := netip.ParseAddr(host); err == nil {
			return p, fmt.Errorf("%q is no host: %w", text, errHost)
		}
		p.host, p.subdomains = "."+host, true
	}
	return p, nil
}

var errHost = errors.New(`write a name or address in ASCII, such as "example.com", "*.example.com", "xn--bcher-kva.example" or "[::1]"`)

// defaultPorts has the schemes whose URLs are known to name the host that is connected to, with their
// default ports. What stands after "//" in others is a machine that is not asked ("file:"), one host of
// several or none that counts ("postgres:"), or whatever the server means by it.
var defaultPorts = map[string]int{"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}

// parseURL returns the endpoint of an absolute URL. The doubt says why there is none, also where
// programs understand the text differently.
func parseURL(s string) (endpoint, doubt) {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f || s[i] == '\\' {
			return endpoint{}, doubtURLCharacter
		}
	}
	scheme, rest, found := strings.Cut(s, "://")
	if !found || !validScheme(scheme) {
		return endpoint{}, doubtURL
	}
	defaultPort, known := defaultPorts[strings.ToLower(scheme)]
	if !known {
		return endpoint{}, doubtURLScheme
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if rest == "" {
		return endpoint{}, doubtURL
	}
	if strings.IndexByte(rest, '@') >= 0 {
		return endpoint{}, doubtUserinfo
	}
	name, port, d := splitPort(rest)
	if d != noDoubt {
		return endpoint{}, d
	}
	host, d := parseHost(name)
	if d != noDoubt {
		return endpoint{}, d
	}
	e := endpoint{host: host, port: defaultPort}
	if port != "" {
		e.port, _ = strconv.Atoi(port)
	}
	if e.port == 0 {
		return endpoint{}, doubtPort
	}
	return e, noDoubt
}

// splitPort splits host and port, which is empty or a number up to 65535.
func splitPort(s string) (host, port string, d doubt) {
	host = s
	if colon := strings.LastIndexByte(s, ':'); colon > strings.LastIndexByte(s, ']') {
		host, port = s[:colon], s[colon+1:]
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return "", "", doubtPort
		}
	}
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n > 65535) {
		return "", "", doubtPort
	}
	return host, port, noDoubt
}

// parseHost returns a host as endpoint has it.
func parseHost(s string) (string, doubt) {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		inside, ok = strings.CutSuffix(inside, "]")
		a, err := netip.ParseAddr(inside)
		if !ok || err != nil || !a.Is6() || a.Zone() != "" {
			return "", doubtAddress
		}
		return a.Unmap().String(), noDoubt
	}
	s = strings.TrimSuffix(s, ".")
	for i := range len(s) {
		if !isHostByte(s[i]) {
			return "", doubtHost
		}
	}
	s = strings.ToLower(s)
	if s == "" || s[0] == '.' || strings.Contains(s, "..") || strings.HasSuffix(s, ".") {
		return "", doubtHost
	}
	if isNumeric(s[strings.LastIndexByte(s, '.')+1:]) {
		if a, err := netip.ParseAddr(s); err != nil || !a.Is4() {
			return "", doubtAddress
		}
	}
	return s, noDoubt
}

func isHostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_'
}

// isNumeric reports whether a label in lower case makes an address of its host, as browsers and
// inet_aton read it: digits alone, or "0x" and hexadecimal digits.
func isNumeric(label string) bool {
	digits := "0123456789"
	if after, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = after, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}
