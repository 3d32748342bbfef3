package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/principal"
)

// A Guard protects one resource. Its methods may be called by many goroutines
// at once.
type Guard struct {
	resource string
	origin   string // of resource, such as https://api.example
	path     string // of resource, escaped; / if it has none
	verifier Verifier
	issuers  []string
	opts     Options
	scopes   hierarchy
	answers  answers
	document document
	cache    *cache
	slots    chan struct{} // one element for each verification under way
	watcher  *watcher      // nil: requests under way are not verified anew
	proofs   proofs
	nonces   *nonces // nil: none are asked for
	log      *slog.Logger

	// What principals get as Challenge, made once.
	bearer, dpop func(scopes []string) string
}

// New makes a guard of resource, whose tokens verifier verifies. The resource is
// the identifier that clients ask tokens for and that tokens must be made out
// to: the public URL of the endpoint in canonical form (see
// [oauth.CanonicalResource]), https, or http on loopback. Challenges, metadata
// and DPoP are built from it and never from what a request says about its
// host. o may be nil.
func New(resource string, verifier Verifier, o *Options) (*Guard, error) {
	g := &Guard{verifier: verifier, opts: o.filled()}
	if err := g.name(resource); err != nil {
		return nil, err
	}
	if verifier == nil {
		return nil, errors.New("guard: a verifier is needed")
	}
	if v, ok := verifier.(builtinVerifier); ok {
		if err := v.check(); err != nil {
			return nil, fmt.Errorf("guard: verifier: %w", err)
		}
		if g.opts.RequireFresh > 0 && !v.seesRevocation() {
			return nil, errors.New("guard: RequireFresh needs a verifier that sees revocations, such as Introspection; JWT does not")
		}
	}
	g.issuers = verifier.Issuers()
	if err := g.opts.check(g.issuers); err != nil {
		return nil, err
	}
	var err error
	if g.scopes, err = newHierarchy(g.opts.Implies); err != nil {
		return nil, err
	}
	if err := g.describe(); err != nil {
		return nil, err
	}
	g.log = g.opts.Logger
	g.cache = newCache(g.opts.CacheSize)
	g.slots = make(chan struct{}, g.opts.MaxVerifications)
	if g.opts.RequireFresh > 0 {
		g.watcher = newWatcher(g)
	}
	g.proofs.init(g.opts.MaxProofs)
	if g.opts.DPoPNonce {
		if g.nonces, err = newNonces(g.opts.DPoPNonceKey, g.opts.DPoPNonceAge); err != nil {
			return nil, err
		}
	}
	g.answers = g.prepare()
	g.bearer = func(scopes []string) string { return g.challenge(schemeBearer, scopes) }
	g.dpop = func(scopes []string) string { return g.challenge(schemeDPoP, scopes) }
	return g, nil
}

// name takes the resource and its parts.
func (g *Guard) name(resource string) error {
	canonical, err := oauth.CanonicalResource(resource)
	if err != nil {
		return fmt.Errorf("guard: resource: %w", err)
	}
	if canonical != resource {
		return fmt.Errorf("guard: resource %q is not in canonical form; write %q", resource, canonical)
	}
	u, err := oauth.CheckEndpoint(resource)
	if err != nil {
		return fmt.Errorf("guard: resource: %w", err)
	}
	if u.RawQuery != "" || u.ForceQuery {
		return fmt.Errorf("guard: resource %q has a query", resource)
	}
	g.resource = resource
	g.origin = u.Scheme + "://" + u.Host
	g.path = u.EscapedPath()
	if g.path == "" {
		g.path = "/"
	}
	return nil
}

// Resource is the identifier of what is guarded.
func (g *Guard) Resource() string { return g.resource }

// Close ends fetches of the verifiers of this package that are under way, and
// waits for them; it closes no fetcher that options brought in. The guard
// then admits only tokens that are cached, and with RequireFresh what is under
// way ends when its token is due to be verified.
func (g *Guard) Close() {
	if g.watcher != nil {
		g.watcher.close()
	}
	if v, ok := g.verifier.(builtinVerifier); ok {
		v.close()
	}
}

// Protect puts the guard in front of next. A request that passes has its
// caller in the context (principal.FromContext) and neither Authorization nor
// DPoP header any more. Tokens count in the Authorization header alone: one in
// a query string or a form is not looked at.
//
// The answer to a request that does not pass is 401 (no token, or none that is
// valid), 403 (the token lacks scopes), 400 (the header is malformed) or 503
// (the token cannot be verified now). The context of a request that may be
// answered with a stream of its own (a GET, which may also become a WebSocket,
// and a POST of subscriptions/listen) ends when the token does; of other calls
// it does not. spec 2026-07-28, basic/authorization, Error Handling: MUST.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
}

func (g *Guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if g.preflight(r) {
		next.ServeHTTP(w, forward(r, r.Context()))
		return
	}
	token, v, no := g.admit(w, r)
	if no != nil {
		g.refuse(w, r, no)
		return
	}
	ctx := principal.NewContext(r.Context(), v.principal)
	if g.watcher != nil {
		var end func()
		ctx, end = principal.WithRevocation(ctx)
		defer end()
		defer g.watcher.watch(token, v, isLongLived(r), end)()
	}
	if isLongLived(r) && !v.expires.IsZero() {
		// A stream, or a WebSocket, must not outlive what let it in.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.expires.Sub(g.opts.Now()))
		defer cancel()
	}
	if g.opts.ExposeToken {
		ctx = context.WithValue(ctx, tokenKey{}, token)
	}
	next.ServeHTTP(w, forward(r, ctx))
}

// isLongLived reports whether the answer to a request goes on for as long as both ends
// like: everything but a POST may, and of those the one that subscribes, which
// says so in a header that endpoints compare with the body (spec 2026-07-28,
// basic/transports/streamable-http, Server Validation: servers MUST reject
// requests whose headers do not match).
func isLongLived(r *http.Request) bool {
	return r.Method != http.MethodPost || slices.Contains(r.Header["Mcp-Method"], "subscriptions/listen")
}

// admit authenticates a request, or says why it is refused.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request) (token string, v *verified, no *answer) {
	scheme, token, form := parseAuthorization(r.Header["Authorization"])
	switch form {
	case formAbsent:
		return "", nil, g.answers.of(kindMissing, g.opts.DPoPRequired)
	case formMalformed:
		return "", nil, g.answers.of(kindMalformed, g.opts.DPoPRequired)
	case formToken:
	}
	now := g.opts.Now()
	key := digestOf(token)
	v = g.cache.get(key, now)
	if v == nil {
		if !isToken68(token) {
			return "", nil, g.answers.of(kindMalformed, g.opts.DPoPRequired)
		}
		var kind kind
		var wait time.Duration
		if v, kind, wait = g.verify(r.Context(), token, key, time.Time{}); v == nil {
			setRetryAfter(w.Header(), wait)
			return "", nil, g.answers.of(kind, scheme == schemeDPoP || g.opts.DPoPRequired)
		}
	}
	bound := v.thumbprint != ""
	if scheme != schemeDPoP {
		if bound || g.opts.DPoPRequired {
			// RFC 9449, section 7.2: a bound token MUST NOT pass as a bearer
			// token, or binding would be the thief's choice.
			g.logRefused(r.Context(), "proof", "not presented with a DPoP proof")
			return "", nil, g.answers.of(kindInvalid, true)
		}
	} else if kind := g.prove(w, r, v, token, now); kind != kindNone {
		return "", nil, g.answers.of(kind, true)
	}
	if !v.enough {
		g.logRefused(r.Context(), "scope", fmt.Sprintf("the token has %s, and every request needs %s", quoted(v.principal.Scopes), quoted(g.opts.Scopes)))
		return "", nil, g.answers.of(kindScope, bound)
	}
	return token, v, nil
}

// A verified is what is remembered of a valid token. It is never written to.
type verified struct {
	principal  *principal.Principal
	thumbprint string    // of the key that the token is bound to
	enough     bool      // the scopes do for every request
	began      time.Time // when its verification did
	until      time.Time // when it must be verified anew
	expires    time.Time // zero for never
	nominal    time.Time // the same without tolerance for clocks that differ
}

// verify verifies a token of which nothing is cached that began after a time. wait is how long it
// takes at least until one that cannot be verified now can be; 0 is not known.
func (g *Guard) verify(ctx context.Context, token string, key digest, after time.Time) (v *verified, why kind, wait time.Duration) {
	within, cancel := context.WithTimeout(ctx, g.opts.VerifyTimeout)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-within.Done():
		g.logUnverified(ctx, "too many verifications under way")
		return nil, kindUnavailable, 0
	}
	now := g.opts.Now()
	if v := g.cache.get(key, now); v != nil && v.began.After(after) {
		return v, kindNone, 0 // another request was quicker
	}
	t, err := g.verifier.Verify(within, token)
	if err == nil {
		err = g.checkToken(t, now)
	}
	if doubt, ok := errors.AsType[*jwt.DoubtError](err); ok && errors.Is(err, ErrUnavailable) {
		g.log.InfoContext(ctx, "token not judged yet", "reason", redact(err, token))
		return nil, kindUnavailable, doubt.Wait
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrUnavailable) || within.Err() != nil:
		g.logUnverified(ctx, redact(err, token))
		return nil, kindUnavailable, 0
	default:
		g.logRefused(ctx, checkOf(err), redact(err, token))
		return nil, kindInvalid, 0
	}
	v = g.remembered(t, now)
	if g.opts.CacheAge > 0 {
		g.cache.put(key, v, now)
	}
	return v, kindNone, 0
}

// logUnverified logs why a token could not be verified. That its client has
// gone is not worth a word.
func (g *Guard) logUnverified(ctx context.Context, reason string) {
	if ctx.Err() == nil {
		g.log.ErrorContext(ctx, "token not judged", "reason", reason)
	}
}

// checkToken checks what must hold of every verified token.
func (g *Guard) checkToken(t *Token, now time.Time) error {
	switch {
	case t == nil:
		return errors.New("the verifier returned no token")
	case !slices.Contains(g.issuers, t.Issuer):
		return failed("issuer", "the token is of %.200q, and those trusted are %s", t.Issuer, quoted(g.issuers))
	case !slices.ContainsFunc(t.Audience, g.isAudience):
		return failed("audience", "the token is for %s, and this is %s", quoted(t.Audience), quoted(slices.Concat([]string{g.resource}, g.opts.Audiences)))
	case !t.Expiry.IsZero() && !now.Before(t.Expiry):
		return failed("expiry", "the token has expired")
	case !t.NotBefore.IsZero() && now.Before(t.NotBefore):
		return failed("expiry", "the token is not valid yet")
	case t.Subject == "" && t.Client == "":
		// All such callers would be one to sessions, cursors and limits.
		return failed("subject", "the token names neither subject nor client")
	}
	return nil
}

// isAudience reports whether a token made out to audience is made out to us.
func (g *Guard) isAudience(audience string) bool {
	if audience == g.resource || slices.Contains(g.opts.Audiences, audience) {
		return true
	}
	canonical, err := oauth.CanonicalResource(audience)
	return err == nil && canonical == g.resource
}

// remembered is what a valid token amounts to.
func (g *Guard) remembered(t *Token, now time.Time) *verified {
	p := &principal.Principal{
		Issuer: t.Issuer, Subject: t.Subject, Client: t.Client, Scopes: g.scopes.expand(t.Scopes), Groups: slices.Clone(t.Groups), Challenge: g.bearer,
	}
	if t.Thumbprint != "" {
		p.Challenge = g.dpop
	}
	v := &verified{
		principal: p, thumbprint: t.Thumbprint, enough: true,
		began: now, until: now.Add(g.opts.CacheAge), expires: t.Expiry, nominal: t.nominal,
	}
	if v.nominal.IsZero() {
		v.nominal = t.Expiry
	}
	for _, scope := range g.opts.Scopes {
		v.enough = v.enough && p.Has(scope)
	}
	if !t.Expiry.IsZero() && t.Expiry.Before(v.until) {
		v.until = t.Expiry
	}
	if !t.Recheck.IsZero() && t.Recheck.Before(v.until) {
		v.until = t.Recheck
	}
	return v
}

// redact is the text of an error for the log, without the token that it may
// repeat.
func redact(err error, token string) string {
	return strings.ReplaceAll(err.Error(), token, "[token]")
}

// publicURL is the URL under which the client sent a request, as configured.
func (g *Guard) publicURL(r *http.Request) string {
	if g.opts.PublicURL != nil {
		return g.opts.PublicURL(r)
	}
	return g.origin + r.URL.EscapedPath()
}

// preflight reports whether a request is the question of a browser whether a
// page that is allowed here may send one. It carries no token, by design of
// CORS, and is for what is behind the guard to answer.
func (g *Guard) preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Access-Control-Request-Method"]) > 0 && g.page(r) != ""
}

// page is the allowed origin whose page sends a request, or empty.
func (g *Guard) page(r *http.Request) string {
	origins := r.Header["Origin"]
	if len(g.opts.Origins) == 0 || len(origins) != 1 || !slices.Contains(g.opts.Origins, origins[0]) {
		return ""
	}
	return origins[0]
}

// checkOrigin checks an entry of Options.Origins: what a browser sends.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ToLower(origin) != origin || strings.ContainsAny(origin, "*,\" ") {
		return fmt.Errorf("guard: %q is not an origin such as https://app.example", origin)
	}
	return nil
}
