package oauth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/parley-mcp/parley/netguard"
)

// Longest URLs that are read: of metadata, and of a whole authorization
// request, which carries state, scopes and more.
const (
	maxURL              = 2048
	maxAuthorizationURL = 16 << 10
)

// CanonicalResource brings the identifier of a resource into its canonical
// form: absolute, scheme and host in lower case, no default port, no
// fragment, no user, no trailing slash (RFC 8707, section 2; spec 2026-07-28,
// basic/authorization, "Canonical Server URI"). A URL that only differs in
// these is the same resource. Path and query are kept byte for byte. Only http
// and https URLs are resources; a fragment or user is an error.
func CanonicalResource(raw string) (string, error) {
	u, err := parseResource(raw)
	if err != nil {
		return "", err
	}
	return Origin(u) + resourcePath(u), nil
}

// parseResource is the parser behind CanonicalResource.
func parseResource(raw string) (*url.URL, error) {
	u, err := parseURL(raw, maxURL)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	return u, nil
}

// resourcePath is path and query in canonical form.
func resourcePath(u *url.URL) string {
	path := strings.TrimRight(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}

// Origin is scheme, host and port of a URL, in lower case, without a default port.
func Origin(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Host), u.Port()
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return scheme + "://" + host
}

// CheckEndpoint parses the URL of an endpoint of an authorization server:
// https, or http on a loopback host; with a host, without user and fragment,
// without control characters, backslashes or blanks. What browsers and net/url
// read in different ways (hosts such as 127.1, dot segments, characters that
// no URI has) is refused.
func CheckEndpoint(raw string) (*url.URL, error) {
	return checkEndpoint(raw, maxURL)
}

func checkEndpoint(raw string, limit int) (*url.URL, error) {
	u, err := parseURL(raw, limit)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && !LoopbackHost(u.Hostname()) {
		return nil, errors.New("URL must be https: http is for loopback hosts")
	}
	return u, nil
}

// CheckIssuer is CheckEndpoint for an issuer identifier, which has no query
// either (RFC 8414, section 2).
func CheckIssuer(raw string) (*url.URL, error) {
	u, err := CheckEndpoint(raw)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	if strings.Contains(raw, "?") {
		return nil, errors.New("issuer: URL must not have a query")
	}
	return u, nil
}

// CheckAuthorizationURL is CheckEndpoint for a URL that a browser is sent to:
// what it returns is serialised anew and safe to hand to an opener (no leading
// hyphen, nothing that a shell reads as its own when it is quoted). It may be
// 16 KiB long. spec 2026-07-28, security best practices: only http(s) schemes
// MUST be opened.
func CheckAuthorizationURL(raw string) (*url.URL, error) {
	u, err := checkEndpoint(raw, maxAuthorizationURL)
	if err != nil {
		return nil, fmt.Errorf("authorization URL: %w", err)
	}
	u.Host = strings.ToLower(u.Host)
	u.RawPath = shellSafe.Replace(u.EscapedPath())
	u.RawQuery = shellSafe.Replace(u.RawQuery)
	return u, nil
}

// shellSafe escapes what URLs may hold and quotes of shells do not tame. The
// double quote, the backslash and the backtick are no characters of URLs.
var shellSafe = strings.NewReplacer("'", "%27", "$", "%24", "!", "%21")

// CheckRedirectURI checks a redirect URI that a client registers: https; http
// on localhost, 127.0.0.1 or [::1]; for native clients also a private-use
// scheme with a dot in it (RFC 8252, section 7.1), never one that browsers run
// or that reads files (javascript, data, vbscript, file, blob, about, …), none
// of which has a dot. No user, fragment, control characters, backslashes,
// wildcards. The errors do not show the URI.
func CheckRedirectURI(raw string, native bool) error {
	if strings.Contains(raw, "*") {
		return errors.New("redirect URI must not have wildcards")
	}
	scheme, _, ok := strings.Cut(raw, ":")
	if !ok {
		return errors.New("redirect URI must be absolute")
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "https":
		_, err := parseURL(raw, maxURL)
		return redirectError(err)
	case "http":
		u, err := parseURL(raw, maxURL)
		if err == nil && !redirectLoopback(u.Hostname()) {
			err = errors.New("http is for localhost, 127.0.0.1 and [::1]")
		}
		return redirectError(err)
	}
	if !native {
		return errors.New("redirect URI must be https, or http on loopback")
	}
	return redirectError(checkPrivateScheme(raw, scheme))
}

func redirectError(err error) error {
	if err != nil {
		return fmt.Errorf("redirect URI: %w", err)
	}
	return nil
}

func redirectLoopback(host string) bool {
	switch strings.ToLower(host) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

// checkPrivateScheme checks a URI such as com.example.app:/callback. The dot
// makes the scheme a domain name in reverse, so that no scheme which means
// something to a browser or an operating system passes.
func checkPrivateScheme(raw, scheme string) error {
	if err := checkCharacters(raw, maxURL); err != nil {
		return err
	}
	for label := range strings.SplitSeq(scheme, ".") {
		if label == "" {
			return errors.New("private-use scheme must be a domain name in reverse")
		}
	}
	if !strings.Contains(scheme, ".") {
		return errors.New("scheme is not allowed: a private-use scheme has a dot")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != scheme:
		return errors.New("not an absolute URL")
	case u.Opaque != "" || u.Host == "" && u.Path == "":
		return errors.New("private-use scheme must be followed by a path")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return errors.New("URL must not have a user")
	case hasDotSegment(u.EscapedPath()):
		return errors.New("URL must not have dot segments")
	}
	return nil
}

// MatchRedirectURI reports whether given is the registered redirect URI: the
// same string, or, if loopbackPorts, the same but for the port where both are
// http on the same one of 127.0.0.1, [::1] and localhost (RFC 8252, section 7.3).
func MatchRedirectURI(registered, given string, loopbackPorts bool) bool {
	if registered == given {
		return registered != ""
	}
	if !loopbackPorts {
		return false
	}
	host, rest, ok := cutLoopbackPort(registered)
	givenHost, givenRest, givenOK := cutLoopbackPort(given)
	return ok && givenOK && host == givenHost && rest == givenRest
}

// cutLoopbackPort splits a loopback redirect URI textually into its host and
// what follows the port.
func cutLoopbackPort(raw string) (host, rest string, ok bool) {
	after, ok := strings.CutPrefix(raw, "http://")
	if !ok {
		return "", "", false
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost"} {
		rest, ok := strings.CutPrefix(after, host)
		if !ok {
			continue
		}
		if port, ok := strings.CutPrefix(rest, ":"); ok {
			rest = strings.TrimLeft(port, "0123456789")
			if !validPort(port[:len(port)-len(rest)]) {
				return "", "", false
			}
		}
		return host, rest, rest == "" || rest[0] == '/' || rest[0] == '?'
	}
	return "", "", false
}

// LoopbackHost reports whether a host name, without port, stands for this
// machine by itself: localhost, names below it, 127.0.0.0/8, ::1. Other
// spellings of these addresses, such as 127.1, do not.
func LoopbackHost(host string) bool { return netguard.LoopbackHost(host) }

// withoutQuery is u for errors and logs.
func withoutQuery(u *url.URL) string {
	return Origin(u) + u.EscapedPath()
}

// parseURL parses an absolute http or https URL that browsers and net/url read
// alike, and whose parts stay what they are when it is written anew.
func parseURL(raw string, limit int) (*url.URL, error) {
	if err := checkCharacters(raw, limit); err != nil {
		return nil, err
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	if !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return nil, errors.New("URL must be absolute, https or http")
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
	}
	if strings.Contains(authority, "@") {
		return nil, errors.New("URL must not have a user")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("not a URL") // its own error would show the URL
	}
	if err := checkAuthority(u); err != nil {
		return nil, err
	}
	if hasDotSegment(u.EscapedPath()) {
		return nil, errors.New("URL must not have dot segments")
	}
	return u, nil
}

// checkCharacters refuses what RFC 3986 has no place for, and fragments.
func checkCharacters(raw string, limit int) error {
	if len(raw) > limit {
		return fmt.Errorf("URL is longer than %d bytes", limit)
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c <= ' ' || c >= 0x7f:
			return errors.New("URL must not have blanks, control characters or characters beyond ASCII")
		case c == '#':
			return errors.New("URL must not have a fragment")
		case strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return errors.New("URL has a character that must be escaped")
		case c == '%' && !isEscape(raw[i:]):
			return errors.New("URL has a broken or forbidden escape")
		}
	}
	return nil
}

// isEscape reports whether s starts with an escape of something that is no
// control character.
func isEscape(s string) bool {
	if len(s) < 3 {
		return false
	}
	c, err := strconv.ParseUint(s[1:3], 16, 8)
	return err == nil && c >= ' ' && c != 0x7f
}

func checkAuthority(u *url.URL) error {
	host, port := u.Hostname(), u.Port()
	if port == "" && strings.HasSuffix(u.Host, ":") || port != "" && !validPort(port) {
		return errors.New("URL has a bad port")
	}
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return errors.New("URL has a bad IPv6 address")
		}
		return nil
	}
	return checkHost(host)
}

// validPort reports whether port is 1 to 65535, without leading zeros.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}

// checkHost accepts names of ASCII labels and IPv4 addresses in their one
// form. Browsers take a name whose last label is a number for an IPv4 address
// in one of its many old forms (WHATWG URL, "ends in a number").
func checkHost(host string) error {
	if host == "" || len(host) > 253 {
		return errors.New("URL must have a host of at most 253 characters")
	}
	last := ""
	for last = range strings.SplitSeq(host, ".") {
		if last == "" || len(last) > 63 || last[0] == '-' || strings.Trim(last, hostCharacters) != "" {
			return errors.New("URL has a bad host")
		}
	}
	hex := len(last) > 1 && strings.EqualFold(last[:2], "0x") && strings.Trim(last[2:], "0123456789abcdefABCDEF") == ""
	if hex || strings.Trim(last, "0123456789") == "" {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() {
			return errors.New("URL has a bad IPv4 address")
		}
	}
	return nil
}

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

func hasDotSegment(escapedPath string) bool {
	for segment := range strings.SplitSeq(escapedPath, "/") {
		if len(segment) > 6 {
			continue
		}
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".", "..":
			return true
		}
	}
	return false
}
