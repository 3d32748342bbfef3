package apps

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Domains are the origins outside of a page that it uses, such as
// "https://api.example.com", "wss://live.example.com:8443" or "https://*.example.com".
// An origin is a scheme and a host, and a port if it is not the scheme's own. The scheme
// is https or wss; http and ws are for localhost and 127.0.0.1 alone. One wildcard may
// stand for what is before a domain of at least two names.
//
// SEP-1865, McpUiResourceCsp.
type Domains struct {
	// Connect are what scripts may send requests to.
	Connect []string `json:"connectDomains,omitzero"`
	// Resource are where images, scripts, styles, fonts and media may come from.
	Resource []string `json:"resourceDomains,omitzero"`
	// Frame are what may be shown in frames within the page.
	Frame []string `json:"frameDomains,omitzero"`
	// BaseURI are what the page may have as its base.
	BaseURI []string `json:"baseUriDomains,omitzero"`
}

// noDomains is the policy of pages that declare nothing: the defaults that the
// specification lists, and what it says of frames, plugins and bases.
const noDomains = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; media-src 'self' data:; connect-src 'none'; " +
	"frame-src 'none'; object-src 'none'; base-uri 'self'"

// maxPolicy is the longest policy in bytes. Servers and browsers bound headers.
const maxPolicy = 8 << 10

// CSP returns the value of the header Content-Security-Policy under which a host must
// show a page that declares d. A page that declares nothing, which is nil, has no
// network at all. The error names an entry that is no origin: nothing that a server
// declares gets into the policy but such origins. A host may make the policy stricter,
// never wider.
//
// The policy says nothing about forms and about what the page navigates to: a sandbox
// without allow-forms and allow-top-navigation does.
//
// SEP-1865: "Host MUST construct CSP headers based on declared domains", "MUST NOT allow
// undeclared domains".
func CSP(d *Domains) (string, error) {
	if d == nil {
		return noDomains, nil
	}
	for _, list := range []struct {
		name    string
		entries []string
	}{{"connectDomains", d.Connect}, {"resourceDomains", d.Resource}, {"frameDomains", d.Frame}, {"baseUriDomains", d.BaseURI}} {
		for _, entry := range list.entries {
			if err := checkOrigin(entry); err != nil {
				return "", fmt.Errorf("csp: %s: %q: %w", list.name, clip(entry), err)
			}
		}
	}
	var b strings.Builder
	b.WriteString("default-src 'none'")
	add := func(directive string, origins []string) {
		b.WriteString("; " + directive)
		for _, o := range origins {
			b.WriteString(" " + o)
		}
	}
	or := func(origins []string, other string) []string {
		if len(origins) == 0 {
			return []string{other}
		}
		return origins
	}
	add("script-src 'self' 'unsafe-inline'", d.Resource)
	add("style-src 'self' 'unsafe-inline'", d.Resource)
	add("connect-src 'self'", d.Connect)
	add("img-src 'self' data:", d.Resource)
	add("font-src 'self'", d.Resource)
	add("media-src 'self' data:", d.Resource)
	add("frame-src", or(d.Frame, "'none'"))
	add("object-src 'none'", nil)
	add("base-uri", or(d.BaseURI, "'self'"))
	if b.Len() > maxPolicy {
		return "", fmt.Errorf("csp: the policy has %d bytes; at most %d are allowed, so declare fewer origins", b.Len(), maxPolicy)
	}
	return b.String(), nil
}

// maxHost is the longest name of a host (RFC 1035).
const maxHost = 253

// originCharacters are those of origins. Nothing that has a meaning in a policy is
// among them: no space, semicolon, comma or quote.
const originCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:/*"

var errCharacter = errors.New("an origin has letters, digits, hyphens and dots only; a space, a semicolon, a comma, a quote and control characters could change the policy")

// checkOrigin refuses what is no origin.
func checkOrigin(entry string) error {
	if strings.ContainsFunc(entry, func(r rune) bool { return !strings.ContainsRune(originCharacters, r) }) {
		return errCharacter
	}
	scheme, rest, ok := strings.Cut(entry, "://")
	if !ok {
		return errors.New("write an origin with its scheme, such as https://api.example.com")
	}
	host, port, hasPort := strings.Cut(rest, ":")
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || n == 0) {
		return errors.New("the port is not a number from 1 to 65535, or something follows it")
	}
	if strings.Contains(host, "/") {
		return errors.New("an origin ends with its host or port; leave the path out, and the slash at the end")
	}
	if err := checkHost(host); err != nil {
		return err
	}
	switch strings.ToLower(scheme) {
	case "https", "wss":
		return nil
	case "http", "ws":
		if host == "localhost" || host == "127.0.0.1" {
			return nil
		}
		return errors.New("without encryption anyone on the way could change the page; use https or wss (http and ws are for localhost and 127.0.0.1)")
	}
	return fmt.Errorf("the scheme is %s; it must be https or wss", clip(scheme))
}

func checkHost(host string) error {
	name, wild := strings.CutPrefix(host, "*.")
	switch {
	case strings.Contains(name, "*"):
		return errors.New("a wildcard stands for the first names of a host alone: https://*.example.com")
	case wild && !strings.Contains(name, "."):
		return errors.New("the wildcard would allow too much; it must be followed by at least two names: https://*.example.com")
	case name == "" || len(name) > maxHost:
		return fmt.Errorf("the host is empty or longer than %d bytes", maxHost)
	}
	if _, err := netip.ParseAddr(name); err == nil && wild {
		return errors.New("an address has no wildcard")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return errors.New("the host is no name: its parts have 1 to 63 letters, digits and hyphens, with no hyphen at an end")
		}
	}
	return nil
}
