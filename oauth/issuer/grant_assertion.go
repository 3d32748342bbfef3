package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// maxIDJAG is how far ahead the expiry of an ID-JAG may be: it is a means to
// get a token now.
const maxIDJAG = 15 * time.Minute

const badAssertion = "the assertion is not valid"

// An assertionIssuer is one of the configuration, checked.
type assertionIssuer struct {
	AssertionIssuer
	keys *jwt.Set // those of JWKS, or nil
}

// newAssertionIssuers checks the issuers of assertions.
func newAssertionIssuers(list []AssertionIssuer) ([]*assertionIssuer, error) {
	var issuers []*assertionIssuer
	for _, given := range list {
		a := &assertionIssuer{AssertionIssuer: given}
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("issuer of assertions %q: %w", given.Issuer, err)
		}
		if slices.ContainsFunc(issuers, func(b *assertionIssuer) bool { return a.Issuer == b.Issuer && a.IDJAG == b.IDJAG }) {
			return nil, fmt.Errorf("issuer of assertions %q is there twice", given.Issuer)
		}
		issuers = append(issuers, a)
	}
	return issuers, nil
}

func (a *assertionIssuer) check() (err error) {
	for _, algorithm := range a.Algorithms {
		if !slices.Contains(jwt.DefaultAlgorithms(), algorithm) {
			return fmt.Errorf("algorithm %q is not supported", algorithm)
		}
	}
	if len(a.Algorithms) == 0 {
		a.Algorithms = jwt.DefaultAlgorithms()
	}
	switch {
	case a.Issuer == "":
		return errors.New("an issuer has a name")
	case !a.IDJAG && a.Workload == nil:
		return errors.New("a platform needs a mapping for its workloads")
	case len(a.JWKS) > 0 && a.JWKSURI != "":
		return errors.New("either JWKS or JWKSURI")
	case len(a.JWKS) > 0:
		if a.keys, err = parseKeys(a.JWKS); err != nil {
			return fmt.Errorf("reading JWKS: %w", err)
		}
	case a.JWKSURI != "":
		if _, err := oauth.CheckEndpoint(a.JWKSURI); err != nil {
			return fmt.Errorf("JWKSURI: %w", err)
		}
	default:
		if _, err := oauth.CheckIssuer(a.Issuer); err != nil {
			return fmt.Errorf("without keys it must be a URL that leads to them: %w", err)
		}
	}
	return nil
}

// assertionIssuer finds the claimed issuer of an assertion, among those
// that are trusted for its type.
func (s *Server) assertionIssuer(assertion string) (*assertionIssuer, error) {
	token, err := jwt.Peek(assertion)
	if err != nil {
		return nil, err
	}
	kind := strings.TrimPrefix(strings.ToLower(token.Type), "application/")
	for _, a := range s.issuers {
		if a.Issuer == token.Claims.Issuer && a.IDJAG == (kind == jwt.TypeIDJAG) {
			return a, nil
		}
	}
	return nil, errors.New("no such issuer of assertions is trusted")
}

// fromWorkload says whether a request comes from a workload, whose assertion
// is all the authentication that there is (RFC 7523, section 3.1: client
// authentication is optional).
func (s *Server) fromWorkload(q *tokenRequest) bool {
	if q.form["grant_type"] != oauth.GrantJWTBearer {
		return false
	}
	a, err := s.assertionIssuer(q.form["assertion"])
	return err == nil && !a.IDJAG
}

// redeemAssertion is the grant type jwt-bearer (RFC 7523).
func (s *Server) redeemAssertion(ctx context.Context, q *tokenRequest) (*oauth.TokenResponse, error) {
	assertion := q.form["assertion"]
	if assertion == "" {
		return nil, refuse(oauth.InvalidRequest, "assertion is required", nil)
	}
	a, err := s.assertionIssuer(assertion)
	if err != nil {
		return nil, refuse(oauth.InvalidGrant, badAssertion, err)
	}
	if a.IDJAG {
		return s.redeemIDJAG(ctx, q, a, assertion)
	}
	return s.redeemWorkload(ctx, q, a, assertion)
}

// verifyAssertion checks what holds for both kinds: signature, issuer,
// subject, times, and this server as audience.
func (s *Server) verifyAssertion(ctx context.Context, q *tokenRequest, a *assertionIssuer, assertion string, types ...string) (*jwt.Token, error) {
	token, err := jwt.Verify(ctx, assertion, s.assertionKeys(a), &jwt.Check{
		Algorithms: a.Algorithms, Types: types, Issuer: a.Issuer, Audience: s.audiences(),
		Skew: assertionSkew, Now: q.now, NeedExpiry: true,
	})
	if err != nil {
		return nil, refuseAssertion(oauth.InvalidGrant, badAssertion, err)
	}
	if token.Claims.Subject == "" {
		return nil, refuse(oauth.InvalidGrant, badAssertion, errors.New("sub is missing"))
	}
	return token, nil
}

// redeemIDJAG takes an identity assertion of an enterprise's identity provider:
// typ, aud, client_id and resource are checked, the jti is good for one use
// (extension enterprise-managed-authorization: MUST). It gives no refresh token:
// whether the person may still be here is for the enterprise to say anew.
func (s *Server) redeemIDJAG(ctx context.Context, q *tokenRequest, a *assertionIssuer, assertion string) (*oauth.TokenResponse, error) {
	if q.client == nil || q.public {
		return nil, refuse(oauth.UnauthorizedClient, "this assertion is for clients that authenticate", nil)
	}
	token, err := s.verifyAssertion(ctx, q, a, assertion, jwt.TypeIDJAG)
	if err != nil {
		return nil, err
	}
	claims := &token.Claims
	var wrong string
	switch {
	case claims.ClientID != q.client.ID:
		wrong = "client_id is of another client"
	case claims.ID == "":
		wrong = "jti is missing"
	case claims.Expiry.After(q.now.Add(maxIDJAG)):
		wrong = "expires too far ahead"
	}
	if wrong != "" {
		return nil, refuse(oauth.InvalidGrant, badAssertion, errors.New(wrong))
	}
	res, err := s.assertedResource(q, claims)
	if err != nil {
		return nil, err
	}
	bound, err := oauth.ParseScope(claims.Scope)
	if err != nil {
		return nil, refuse(oauth.InvalidGrant, badAssertion, err)
	}
	if len(bound) == 0 {
		bound = res.Default // the enterprise left it to us, which is not to the client
	}
	g := &Grant{ClientID: q.client.ID, Subject: a.Issuer + "|" + claims.Subject, Asserted: true, AuthTime: claims.AuthTime}
	if a.Workload != nil {
		mapped, err := a.Workload(ctx, claims.Subject, token.Raw)
		if err != nil || mapped == nil || mapped.Subject == "" {
			return nil, refuse(oauth.InvalidGrant, badAssertion, fmt.Errorf("mapping the subject: %w", unmapped(err)))
		}
		g.Subject = mapped.Subject
		if len(mapped.Scopes) > 0 {
			bound = mapped.Scopes
		}
	}
	if err := s.useOnce(q, "assertion "+a.Issuer, claims, oauth.InvalidGrant); err != nil {
		return nil, err
	}
	return s.answerAssertion(ctx, q, &access{client: q.client, resource: res, grant: g}, bound)
}

// assertedResource is the resource that an ID-JAG is for. The request may name
// it, and must if there are several.
func (s *Server) assertedResource(q *tokenRequest, claims *jwt.Claims) (*Resource, error) {
	if len(claims.Resource) == 0 {
		return nil, refuse(oauth.InvalidGrant, badAssertion, errors.New("resource is missing"))
	}
	var asserted []string
	for _, uri := range claims.Resource {
		canonical, err := oauth.CanonicalResource(uri)
		if err != nil {
			return nil, refuse(oauth.InvalidGrant, badAssertion, err)
		}
		asserted = append(asserted, canonical)
	}
	named := q.form["resource"]
	if named == "" && len(asserted) == 1 {
		named = asserted[0]
	}
	if named == "" {
		return nil, refuse(oauth.InvalidTarget, "the request names no resource", nil)
	}
	res, err := s.resourceFor(q.Context(), named, q.client)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(asserted, res.URI) {
		return nil, refuse(oauth.InvalidTarget, "the assertion is for another resource", nil)
	}
	return res, nil
}

// redeemWorkload takes the JWT that a platform gave a workload. Platforms let
// them be used many times, so its jti is not remembered.
func (s *Server) redeemWorkload(ctx context.Context, q *tokenRequest, a *assertionIssuer, assertion string) (*oauth.TokenResponse, error) {
	if err := s.count(q, "token", ""); err != nil {
		return nil, err
	}
	token, err := s.verifyAssertion(ctx, q, a, assertion, "", jwt.TypeJWT)
	if err != nil {
		return nil, err
	}
	mapped, err := a.Workload(ctx, token.Claims.Subject, token.Raw)
	if err != nil || mapped == nil || mapped.ClientID == "" {
		return nil, refuse(oauth.InvalidGrant, badAssertion, fmt.Errorf("mapping a workload: %w", unmapped(err)))
	}
	if id := q.form["client_id"]; id != "" && id != mapped.ClientID {
		return nil, refuse(oauth.InvalidGrant, badAssertion, errors.New("workload is another client"))
	}
	c, err := s.workloadClient(ctx, mapped.ClientID)
	if errors.Is(err, errDisabled) {
		return nil, refuse(oauth.InvalidGrant, badAssertion, err)
	}
	if err != nil {
		return nil, err
	}
	res, err := s.resourceFor(ctx, q.form["resource"], c)
	if err != nil {
		return nil, err
	}
	return s.answerAssertion(ctx, q, &access{
		client: c, resource: res, grant: &Grant{ClientID: c.ID, Subject: mapped.Subject, Asserted: true}, platform: a.Issuer,
	}, mapped.Scopes) // without scopes it has none: the mapping says what it may do
}

func unmapped(err error) error {
	if err == nil {
		return errors.New("incomplete mapping")
	}
	return err
}

// answerAssertion issues a token for what is asked for, as far as bound and the
// client permit.
func (s *Server) answerAssertion(ctx context.Context, q *tokenRequest, a *access, bound []string) (*oauth.TokenResponse, error) {
	asked, err := q.form.scopes()
	if err != nil {
		return nil, err
	}
	scopes, err := s.boundedScopes(a.resource, a.client, asked, bound)
	if err != nil {
		return nil, err
	}
	if a.scopes, err = s.allowedSome(ctx, a, scopes); err != nil {
		return nil, err
	}
	return s.startGrant(ctx, q, a)
}

// boundedScopes are the scopes of those asked for that bound includes and the client may have:
// all of them if none is asked for.
func (s *Server) boundedScopes(res *Resource, c *Client, asked, bound []string) ([]string, error) {
	allowed := allowedScopes(res, c)
	asked = withoutOffline(asked)
	if len(asked) == 0 {
		return intersect(oauth.UnionScopes(bound), allowed), nil
	}
	scopes := intersect(intersect(oauth.UnionScopes(asked), res.impliedScopes(bound)), allowed)
	if len(scopes) == 0 {
		return nil, errNoScopes()
	}
	return scopes, nil
}

// assertionKeys are the keys of an issuer of assertions.
func (s *Server) assertionKeys(a *assertionIssuer) jwt.Source {
	if a.keys != nil {
		return a.keys
	}
	find := func(ctx context.Context) (string, error) { return s.discoverKeys(ctx, a.Issuer) }
	if a.JWKSURI != "" {
		find = func(context.Context) (string, error) { return a.JWKSURI, nil }
	}
	return s.keys.others.remote("assertion "+a.Issuer+" "+a.JWKSURI, s.now(), func() *jwt.Remote {
		return jwt.NewRemote(s.fetch, find, &jwt.RemoteOptions{Now: s.now})
	})
}

// discoverKeys finds the jwks_uri in an issuer's metadata.
func (s *Server) discoverKeys(ctx context.Context, issuer string) (string, error) {
	places, err := oauth.ServerMetadataURLs(issuer)
	if err != nil {
		return "", fmt.Errorf("issuer %s: %w", issuer, err)
	}
	err = errors.New("no metadata")
	for _, place := range places {
		answer, failed := s.fetch.Get(ctx, place, nil)
		if failed != nil {
			err = failed
			continue
		}
		if answer.Status != http.StatusOK {
			continue
		}
		metadata, failed := oauth.ParseServerMetadata(answer.Body, issuer)
		if failed != nil {
			err = failed
			continue
		}
		if metadata.JWKSURI != "" {
			return metadata.JWKSURI, nil
		}
	}
	return "", fmt.Errorf("looking for the keys of %s: %w", issuer, err)
}
