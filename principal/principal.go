// Package principal identifies callers: the identity that limits, cursors,
// sealed state, sessions and visibility are bound to. It is a leaf that every
// other package may import.
package principal

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
)

// ErrDenied says that a caller is not let in, or not this far. Users know it as
// transport.ErrDenied.
var ErrDenied = errors.New("access denied")

// A Principal is an authenticated caller. The zero value is an anonymous one.
// A Principal is never written to after it was handed out, so it may be read
// by many goroutines at once.
type Principal struct {
	// Issuer is the URL of the authorization server that vouches for Subject;
	// empty for callers that no authorization server knows.
	Issuer string
	// Subject is the caller within Issuer; empty means anonymous.
	Subject string
	// Client is the OAuth client that acts for Subject; empty if unknown.
	Client string
	// Scopes are what the caller's token allows.
	Scopes []string
	// Groups are the groups or roles that Subject has at Issuer, as a verifier
	// of tokens reports them (guard.Token) or Access.Principal sets them, for
	// policies of the operator: Server.Visible, middleware, a gateway. Nothing
	// in the library decides by them, and they are no part of the identity. Nil
	// if unknown. Like Scopes the slice must not be written to.
	Groups []string
	// Remote is the network address that an anonymous caller is limited by:
	// over HTTP that of the connection, or what a trusted proxy says
	// (web.Access.TrustedProxies). It is never part of the identity that state
	// is bound to.
	Remote string
	// Challenge returns what a transport over HTTP writes into WWW-Authenticate
	// when the caller lacks scopes; nil: nothing. It may be called from many
	// goroutines at once, and is no part of the identity.
	Challenge func(scopes []string) string
}

// Local is the caller of a server that runs as a child process or in the same
// process: the owner of the pipe, who can end the process. Rates do not hold
// for it.
var Local = &Principal{Subject: "local"}

// Anonymous reports whether the caller was not authenticated. It holds for nil.
func (p *Principal) Anonymous() bool {
	return p == nil || p.Issuer == "" && p.Subject == "" && p.Client == ""
}

// Identity is the stable name that state, cursors and sessions are bound to:
// issuer, subject and client, quoted so that no two principals share a name.
// It is empty for an anonymous caller, and for nil.
func (p *Principal) Identity() string {
	if p.Anonymous() {
		return ""
	}
	return escape(p.Issuer) + " " + escape(p.Subject) + " " + escape(p.Client)
}

// LimitKey is the name that rate and session limits count under: the identity,
// or the remote address of an anonymous caller. Of an IPv6 address the network
// of 64 bits counts: one machine has all of its addresses.
func (p *Principal) LimitKey() string {
	if id := p.Identity(); id != "" {
		return id
	}
	if p == nil {
		return ""
	}
	if a, err := netip.ParseAddr(p.Remote); err == nil && a.Is6() && !a.Is4In6() {
		if network, err := a.WithZone("").Prefix(64); err == nil {
			return "@" + network.String()
		}
	}
	return "@" + p.Remote
}

// Has reports whether the principal was granted scope. Local has every scope:
// no token stands between the owner of a pipe and its server.
func (p *Principal) Has(scope string) bool {
	return p != nil && (p == Local || slices.Contains(p.Scopes, scope))
}

// ValidScope reports whether s can be a scope: visible ASCII without quotes,
// backslashes and blanks (RFC 6749, section 3.3).
func ValidScope(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return s != ""
}

// escape makes a part free of the separator, so that identities cannot collide.
func escape(part string) string {
	if !strings.ContainsAny(part, "% ") {
		return part
	}
	return strings.ReplaceAll(strings.ReplaceAll(part, "%", "%25"), " ", "%20")
}

type contextKey struct{}

// NewContext returns a context that carries p.
func NewContext(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// FromContext returns the principal that NewContext put into ctx, or nil.
func FromContext(ctx context.Context) *Principal {
	p, _ := ctx.Value(contextKey{}).(*Principal)
	return p
}
