package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// Options adjust a Guard. The zero value, and nil, give the defaults, which are
// safe. A number or time that is zero is its default.
type Options struct {
	// Scopes are needed for every request. Default none: any valid token does.
	Scopes []string
	// ScopesSupported are what clients ask for if no challenge tells them: the
	// least that is of use (spec 2026-07-28, basic/authorization, Scope
	// Selection Strategy). Default: Scopes.
	ScopesSupported []string
	// Implies says which scopes a broader one includes, and they in turn:
	// {"files:write": {"files:read"}}. A principal has them all. Default none.
	Implies map[string][]string
	// Audiences are what a token may be made out to besides the resource, for
	// authorization servers that cannot name resources. They are compared as
	// they are. Never put the id of an OAuth client here if the verifier takes
	// other types of tokens than access tokens: ID tokens are made out to it.
	// Default none.
	Audiences []string
	// AuthorizationServers are the issuers that the metadata names. Default:
	// those of the verifier.
	AuthorizationServers []string
	// Name and Documentation are told to people by the metadata: a title, and
	// a URL. Default none.
	Name, Documentation string

	// DPoPRequired refuses tokens that are not bound to a key. Default false:
	// both kinds pass, and a bound one with its proof only (RFC 9449).
	DPoPRequired bool
	// DPoPNonce asks for nonces of this guard in proofs, so that none can be
	// made in advance. DPoPNonceAge is for how long one is handed out; it
	// counts for as long again. Default 1 min. DPoPNonceKey, of at least 32
	// bytes, is shared by the guards of several processes. Default: random.
	DPoPNonce    bool
	DPoPNonceAge time.Duration
	DPoPNonceKey []byte
	// DPoPWindow is how far the time of a proof may be from ours, either way.
	// Default 5 min.
	DPoPWindow time.Duration
	// MaxProofs is how many proofs are remembered, so that none counts twice;
	// no key may have more than an eighth of them. When there is no room,
	// requests with proofs are answered 503. Default 500,000.
	MaxProofs int
	// PublicURL gives the URL that the client sent a request to, for proxies
	// that change paths. It must not rely on headers that a client can send.
	// Default: the origin of the resource and the path of the request.
	PublicURL func(r *http.Request) string

	// CacheAge is how long a verified token counts without being verified
	// anew, at most until it expires; within that time a revocation is not
	// seen. Default 60 s; -1: each request is verified.
	CacheAge time.Duration
	// RequireFresh bounds how long a revocation, or the loss of a scope, may go unseen. CacheAge and
	// VerifyTimeout are at most this, and what is under way is verified anew, twice as often: streams,
	// WebSockets and calls end when their token is refused, and when it cannot be verified for so
	// long. A call whose token has expired meanwhile goes on as without. A batch of a session is
	// watched until its response ends. The verifier must see revocations: JWT alone does not, and
	// is refused. Default 0: what CacheAge says, and streams end with their token alone.
	RequireFresh time.Duration
	// CacheSize is how many verified tokens are remembered, at least 16. Default
	// 10,000.
	CacheSize int
	// MaxVerifications is how many tokens are verified at once; others wait,
	// those that are remembered do not. Default 64.
	MaxVerifications int
	// VerifyTimeout is how long a request waits for its token to be verified.
	// Default 10 s.
	VerifyTimeout time.Duration

	// Origins are the pages of other origins that may call the endpoint, as in
	// Access.Origins of the transports: "https://app.example". They may read
	// what the guard answers, and their preflights reach the endpoint, which
	// answers them, without a token and without a principal. Default none.
	Origins []string
	// ExposeToken lets handlers have the token, by TokenFromContext, to
	// exchange it for one for another service. Passing it on as it is is
	// forbidden (spec 2026-07-28, basic/authorization/security-considerations,
	// Access Token Privilege Restriction: MUST NOT). Default false.
	ExposeToken bool
	// Logger is told why tokens were refused, without tokens. Default: none.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// filled returns a copy of o, which may be nil, with its gaps filled.
func (o *Options) filled() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.ScopesSupported == nil {
		d.ScopesSupported = d.Scopes
	}
	fill(&d.DPoPNonceAge, time.Minute)
	fill(&d.DPoPWindow, 5*time.Minute)
	fill(&d.MaxProofs, 500_000)
	fill(&d.CacheSize, 10_000)
	fill(&d.MaxVerifications, 64)
	fill(&d.VerifyTimeout, 10*time.Second)
	if d.CacheAge == 0 {
		d.CacheAge = time.Minute
	}
	d.CacheAge = max(d.CacheAge, 0)
	if d.RequireFresh > 0 {
		d.CacheAge = min(d.CacheAge, d.RequireFresh)
		d.VerifyTimeout = min(d.VerifyTimeout, d.RequireFresh)
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

// fill fills in a number or time that is not positive.
func fill[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// check checks what can be wrong with options.
func (o *Options) check(issuers []string) error {
	for _, list := range [][]string{o.Scopes, o.ScopesSupported} {
		if err := checkScopes(list); err != nil {
			return err
		}
	}
	for _, origin := range o.Origins {
		if err := checkOrigin(origin); err != nil {
			return err
		}
	}
	if o.Documentation != "" {
		// Clients show it to people, who follow it.
		if u, err := url.Parse(o.Documentation); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("guard: documentation %q is not a URL of the web", o.Documentation)
		}
	}
	if slices.Contains(o.Audiences, "") {
		// Such as from a setting that is not there: it would fit tokens that
		// name no server.
		return errors.New("guard: an audience is empty")
	}
	if o.RequireFresh < 0 {
		return fmt.Errorf("guard: RequireFresh %v is negative", o.RequireFresh)
	}
	if len(issuers) == 0 || slices.Contains(issuers, "") {
		return errors.New("guard: the verifier names no issuer")
	}
	if o.AuthorizationServers == nil {
		o.AuthorizationServers = issuers
	}
	// spec 2026-07-28, basic/authorization/authorization-server-discovery: at
	// least one MUST be named.
	if len(o.AuthorizationServers) == 0 {
		return errors.New("guard: no authorization server is named")
	}
	for _, issuer := range o.AuthorizationServers {
		if _, err := oauth.CheckIssuer(issuer); err != nil {
			return fmt.Errorf("guard: authorization server: %w", err)
		}
	}
	return nil
}
