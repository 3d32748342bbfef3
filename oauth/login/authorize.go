package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// plan is what a sign-in is about to do, all of it checked.
type plan struct {
	found  *discovery
	meta   *oauth.ServerMetadata
	before *session // what there was; nil if nothing
	scopes []string
	why    Reason
	dpop   *dpopSigner // nil: bearer tokens
	onAsk  func()
	asked  bool // a person was, in whatever way
}

// authorizationRequest is what one authorization request must be answered with. Its issuer is the
// validated one: spec 2026-07-28, basic/authorization, "Authorization Response Validation": MUST.
type authorizationRequest struct {
	state, verifier string
	meta            *oauth.ServerMetadata
	redirect        string
	used            atomic.Bool
}

// resourceID is what people are told.
func (p *plan) resourceID() string { return cmp.Or(p.found.resource, p.found.id) }

// signIn obtains new tokens: by the grant of the options, or through a person.
func (c *Client) signIn(ctx context.Context, p *plan) (*session, error) {
	if c.o.Grant != nil {
		return c.obtainByGrant(ctx, p)
	}
	if err := c.confirmSignIn(ctx, p); err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		s, creds, err := c.askPerson(ctx, p)
		if err == nil {
			return s, nil
		}
		// The server forgot the client: once, it is registered anew.
		if again || creds == nil || !creds.Dynamic || !clientUnknown(err) {
			return nil, err
		}
		c.unregister(ctx, creds)
	}
}

// askPerson takes the person through a browser: here, or on another device.
func (c *Client) askPerson(ctx context.Context, p *plan) (*session, *Credentials, error) {
	if c.o.Device != nil {
		return c.authorizeDevice(ctx, p)
	}
	return c.authorize(ctx, p)
}

// confirmSignIn makes sure that a person may be sent to the browser.
func (c *Client) confirmSignIn(ctx context.Context, p *plan) error {
	if c.o.NonInteractive {
		return &SignInRequiredError{Resource: p.resourceID(), Issuer: p.meta.Issuer, Scopes: p.scopes, Why: p.why}
	}
	p.onAsk()
	if c.o.Confirm == nil {
		return nil
	}
	p.asked = true
	if err := c.o.Confirm(ctx, p.prompt()); err != nil {
		p.asked = !isSignInRequired(err)
		return fmt.Errorf("sign in to %s: %w", p.resourceID(), err)
	}
	return nil
}

// prompt is what a person is told.
func (p *plan) prompt() Prompt {
	prompt := Prompt{Resource: p.resourceID(), Issuer: p.meta.Issuer, Scopes: slices.Clone(p.scopes), Why: p.why}
	if p.why == ReasonServerChanged {
		prompt.PreviousIssuer = p.before.Issuer
	}
	return prompt
}

// obtainByGrant makes tokens without a person. Only credentials that were registered beforehand, or
// a metadata document, are used: a program that acts for itself is not registered dynamically.
func (c *Client) obtainByGrant(ctx context.Context, p *plan) (*session, error) {
	creds := c.preregistered(p.meta.Issuer)
	if creds == nil && c.o.DocumentURL != "" && p.meta.ClientIDMetadataDocumentSupported {
		creds = c.documentCredentials(p.meta.Issuer)
	}
	q := c.request(p.found, p.meta, creds, p.dpop)
	q.scopes = p.scopes
	answer, err := c.o.Grant.obtain(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("obtain a token at %s: %w", p.meta.Issuer, err)
	}
	return c.saveResponse(ctx, p, creds, answer)
}

// request is what token requests about a resource have in common.
func (c *Client) request(d *discovery, m *oauth.ServerMetadata, creds *Credentials, p *dpopSigner) *grantRequest {
	return &grantRequest{
		fetch: c.fetcher(d.id), meta: m, creds: creds, resource: d.resource, dpop: p, now: c.o.Now, passed: c.logNotes,
	}
}

// authorize takes the person through the browser once and redeems the code.
func (c *Client) authorize(ctx context.Context, p *plan) (*session, *Credentials, error) {
	creds, visit, err := c.prepareClient(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err := visit.Close(); err != nil {
			c.log.WarnContext(ctx, "visit did not end well", "error", err)
		}
	}()
	r := &authorizationRequest{
		state: oauth.NewSecret(), verifier: oauth.NewVerifier(), meta: p.meta, redirect: visit.RedirectURI(),
	}
	target, err := p.authorizationURL(creds, r)
	if err != nil {
		return nil, creds, err
	}
	c.log.InfoContext(ctx, "asking a person to sign in", "resource", p.resourceID(), "issuer", p.meta.Issuer, "why", string(p.why))
	p.asked = true
	answer, err := visit.Wait(ctx, target, r.accept)
	if err != nil {
		return nil, creds, fmt.Errorf("sign in to %s at %s: %w", p.resourceID(), p.meta.Issuer, err)
	}
	code, err := r.check(answer)
	if err != nil {
		return nil, creds, err
	}
	q := c.request(p.found, p.meta, creds, p.dpop)
	form := q.form(oauth.GrantAuthorizationCode)
	form.Set("code", code)
	form.Set("redirect_uri", r.redirect)
	form.Set("code_verifier", r.verifier)
	tokens, err := requestToken(ctx, q, form)
	if err != nil {
		return nil, creds, fmt.Errorf("redeem the code at %s: %w", p.meta.Issuer, explainMissingEndpoint(p.found, StepToken, p.meta.TokenEndpoint, err))
	}
	s, err := c.saveResponse(ctx, p, creds, tokens)
	return s, creds, err
}

// authorizationURL is where the browser is sent.
func (p *plan) authorizationURL(creds *Credentials, r *authorizationRequest) (*url.URL, error) {
	u, err := oauth.CheckAuthorizationURL(p.meta.AuthorizationEndpoint)
	if err != nil {
		return nil, newDiscoveryError(StepAuthorize, p.meta.AuthorizationEndpoint, err, "", adviceTellServer)
	}
	q := u.Query() // RFC 6749, section 3.1: a query of the endpoint's own is kept
	q.Set("response_type", "code")
	q.Set("client_id", creds.ClientID)
	q.Set("redirect_uri", r.redirect)
	q.Set("state", r.state)
	q.Set("code_challenge", oauth.ChallengeS256(r.verifier))
	q.Set("code_challenge_method", oauth.MethodS256)
	if len(p.scopes) > 0 {
		q.Set("scope", oauth.JoinScope(p.scopes))
	}
	// spec 2026-07-28, basic/authorization, "Resource Parameter Implementation": MUST be sent.
	if p.found.resource != "" {
		q.Set("resource", p.found.resource)
	}
	if p.dpop != nil { // RFC 9449, section 10
		q.Set("dpop_jkt", p.dpop.key.Thumbprint())
	}
	for name, value := range ownParameters[p.meta.Issuer] {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return oauth.CheckAuthorizationURL(u.String())
}

// ownParameters are what single issuers want in an authorization request that no specification has.
// Google gives a refresh token only for offline access, and that only when the person is asked again:
// https://developers.google.com/identity/protocols/oauth2/web-server#offline
var ownParameters = map[string]map[string]string{
	"https://accounts.google.com": {"access_type": "offline", "prompt": "consent"},
}

// accept says whether a response is the one to this request, once: check finds what is wrong with it
// otherwise, so that nobody waits for another.
func (r *authorizationRequest) accept(answer url.Values) bool {
	return r.matchesState(answer) && r.used.CompareAndSwap(false, true)
}

func (r *authorizationRequest) matchesState(answer url.Values) bool {
	return answer.Has("state") && !slices.ContainsFunc(answer["state"], func(state string) bool {
		return subtle.ConstantTimeCompare([]byte(state), []byte(r.state)) != 1
	})
}

// check reads a response: state, issuer (RFC 9207, section 2.4; spec 2026-07-28,
// basic/authorization, "Authorization Response Validation"), then the rest. Strings are compared
// as is.
func (r *authorizationRequest) check(answer url.Values) (code string, err error) {
	refuse := func(reason string) (string, error) {
		return "", &AuthorizationError{Issuer: r.meta.Issuer, Reason: reason}
	}
	if !r.matchesState(answer) {
		return refuse("the response is not one to this request (state)")
	}
	switch iss := answer["iss"]; {
	case len(iss) > 1:
		return refuse("the response names several issuers")
	case len(iss) == 1 && iss[0] != r.meta.Issuer:
		return refuse("the response came from another authorization server (iss, RFC 9207); it was dropped, since it may be an attack")
	case len(iss) == 0 && r.meta.AuthorizationResponseIssParameterSupported:
		return refuse("the response does not say which authorization server it came from, as the server's metadata promises (iss, RFC 9207)")
	}
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		if len(answer[name]) > 1 { // RFC 6749, section 3.1: MUST NOT
			return refuse("the response has a parameter more than once: " + printable(name, 64))
		}
	}
	if answer.Has("error") {
		return "", &AuthorizationError{
			Issuer: r.meta.Issuer, Code: printable(answer.Get("error"), 64),
			Description: printable(answer.Get("error_description"), 512),
		}
	}
	if answer.Get("code") == "" {
		return refuse("the response has neither a code nor an error")
	}
	return answer.Get("code"), nil
}

// saveResponse checks a token response and makes it the session of the resource.
func (c *Client) saveResponse(ctx context.Context, p *plan, creds *Credentials, r *oauth.TokenResponse) (*session, error) {
	bound, err := checkType(r.TokenType, p.dpop != nil, p.found.bound)
	if err != nil {
		return nil, newDiscoveryError(StepToken, p.meta.TokenEndpoint, err, "", adviceTellServer)
	}
	b := binding{ID: p.found.id, Resource: p.found.resource, Metadata: p.found.metadataURL, Issuer: p.meta.Issuer, Requested: p.scopes}
	if creds != nil {
		b.ClientID = creds.ClientID
	}
	t := newTokens(&b, p.meta.TokenEndpoint, r, c.o.Now())
	s := &session{binding: b, tokens: t, signedIn: c.o.Now(), signInBackoff: p.before.nextBackoff()}
	if bound {
		key, err := p.dpop.key.Private()
		if err != nil {
			return nil, fmt.Errorf("keep the key of the tokens: %w", err)
		}
		t.Key, s.dpop = key, p.dpop
	}
	c.save(ctx, s)
	return s, nil
}

// checkType reads token_type: bearer, or DPoP if a proof was sent. A server may answer a proof with
// a bearer token (RFC 9449, section 5), which is refused if the resource demands a bound one.
func checkType(kind string, proved, demanded bool) (bound bool, err error) {
	switch {
	case strings.EqualFold(kind, "DPoP") && proved:
		return true, nil
	case strings.EqualFold(kind, "Bearer") && proved && demanded:
		return false, errors.New("the resource demands tokens that are bound to a key (DPoP), and the server gave one that is not")
	case strings.EqualFold(kind, "Bearer"):
		return false, nil
	}
	return false, fmt.Errorf("the server gave a token of a type that was not asked for: %q", printable(kind, 32))
}

// clientUnknown reports whether the server does not know the client (any more).
func clientUnknown(err error) bool {
	return errors.Is(err, &oauth.Error{Code: oauth.InvalidClient}) ||
		errors.Is(err, &oauth.Error{Code: oauth.UnauthorizedClient})
}

// newSignerFor makes a signer with a fresh key if tokens shall be bound to one: the resource
// demands it, or the options want it and the server can.
func (c *Client) newSignerFor(d *discovery, m *oauth.ServerMetadata) (*dpopSigner, error) {
	if !d.bound && !c.o.DPoP {
		return nil, nil
	}
	// ES256 is what everybody knows.
	for _, algorithm := range []string{"ES256", "EdDSA", "RS256"} {
		if !slices.Contains(m.DPoPSigningAlgValuesSupported, algorithm) || len(d.boundAlgs) > 0 && !slices.Contains(d.boundAlgs, algorithm) {
			continue
		}
		key, err := jwt.NewKey(algorithm)
		if err != nil {
			return nil, fmt.Errorf("make a key for DPoP: %w", err)
		}
		return newDPoPSigner(key), nil
	}
	if d.bound {
		return nil, newDiscoveryError(StepServer, m.Issuer,
			errors.New("the resource demands tokens that are bound to a key, and its server offers no algorithm for that"),
			"RFC 9449, section 5.1: dpop_signing_alg_values_supported", adviceTellServer)
	}
	return nil, nil
}
