package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
)

const badSubjectToken = "the subject token cannot be exchanged"

// exchangeToken is the grant type token-exchange (RFC 8693), for one case: a
// resource server that was sent one of our access tokens calls another
// resource for the same person. Resource.ExchangeTo permits it to the
// Introspectors of the first resource. The new token belongs to the grant of
// the old one, expires with it, and names the actor in act.
func (s *Server) exchangeToken(ctx context.Context, q *tokenRequest) (*oauth.TokenResponse, error) {
	if q.public || !s.isPreregistered(q.client) {
		return nil, refuse(oauth.UnauthorizedClient, "this grant type is for clients that are registered by the operator", nil)
	}
	if err := checkExchange(q.form); err != nil {
		return nil, err
	}
	subject, from, err := s.subjectToken(ctx, q)
	if err != nil {
		return nil, err
	}
	target := q.form["resource"]
	if target == "" {
		target = q.form["audience"]
	}
	res, err := s.resourceFor(ctx, target, q.client)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(from.resource.ExchangeTo, res.URI) {
		return nil, refuse(oauth.InvalidTarget, "tokens are not exchanged for this resource", nil)
	}
	asked, err := q.form.scopes()
	if err != nil {
		return nil, err
	}
	scopes, err := s.exchangedScopes(res, q.client, from.scopes, asked)
	if err != nil {
		return nil, err
	}
	g := &Grant{
		ID: subject.grant.ID, ClientID: q.client.ID, Subject: subject.grant.Subject, Groups: subject.grant.Groups,
		AuthTime: subject.Claims.AuthTime, Expires: subject.Claims.Expiry,
	}
	a := &access{grant: g, client: q.client, resource: res, platform: subject.platform, until: subject.Claims.Expiry}
	if a.scopes, err = s.allowedSome(ctx, a, scopes); err != nil {
		return nil, err
	}
	g.Subject = subject.Claims.Subject // of a client that acts for itself, too
	if a.act, err = actor(ownSubject(q.client), subject.Raw); err != nil {
		return nil, err
	}
	answer, err := s.accessToken(ctx, q, a)
	if err != nil {
		return nil, err
	}
	answer.IssuedTokenType = oauth.TokenTypeAccessToken
	return answer, nil
}

// exchangedScopes are those of a token that another one is exchanged for. Nobody
// asked the person about the second resource, so a token that permits little at
// the first does not become one that permits all at the second: there are the
// default scopes, those of the same name that the first token has, and what the
// configuration lists for the client.
func (s *Server) exchangedScopes(res *Resource, c *Client, had, asked []string) ([]string, error) {
	scopes, err := s.grantableScopes(res, c, asked)
	if err != nil || len(c.Scopes) > 0 {
		return scopes, err
	}
	if !includes(res.impliedScopes(oauth.UnionScopes(res.Default, had)), scopes) {
		return nil, errScope("more scopes than were granted")
	}
	return scopes, nil
}

// checkExchange refuses what this server does not exchange.
func checkExchange(f form) error {
	switch {
	case f["subject_token"] == "" || f["subject_token_type"] == "":
		return refuse(oauth.InvalidRequest, "subject_token and subject_token_type are required", nil)
	case f["subject_token_type"] != oauth.TokenTypeAccessToken && f["subject_token_type"] != oauth.TokenTypeJWT:
		return refuse(oauth.InvalidRequest, "this type of subject token is not supported", nil)
	case f["actor_token"] != "" || f["actor_token_type"] != "":
		return refuse(oauth.InvalidRequest, "actor tokens are not supported", nil)
	case f["requested_token_type"] != "" && f["requested_token_type"] != oauth.TokenTypeAccessToken:
		return refuse(oauth.InvalidRequest, "only access tokens are issued", nil)
	case (f["resource"] == "") == (f["audience"] == ""):
		return refuse(oauth.InvalidTarget, "the request must name one resource", nil)
	}
	return nil
}

// subjectToken verifies the token to exchange and returns what it says now at its resource, of which the
// client must be an introspector.
func (s *Server) subjectToken(ctx context.Context, q *tokenRequest) (*ownToken, *access, error) {
	token, err := s.verifyOwn(ctx, q.form["subject_token"], q.now)
	if err != nil {
		return nil, nil, err
	}
	var from *access
	if token != nil {
		if from, err = s.introspected(ctx, token, q.client); err != nil {
			return nil, nil, err
		}
	}
	// A client that may not introspect the token is not told whether it is good.
	if from == nil {
		return nil, nil, refuse(oauth.InvalidGrant, badSubjectToken, errors.New("not a valid token for a resource of this client"))
	}
	return token, from, nil
}

// actor is the act claim of a token: the actor, and within it the earlier actors
// (RFC 8693, section 4.1).
func actor(subject string, token wire.RawValue) (wire.RawValue, error) {
	name, err := wire.Marshal(subject)
	if err != nil {
		return nil, fmt.Errorf("writing act: %w", err)
	}
	out := append([]byte(`{"sub":`), name...)
	o, err := wire.ParseObject(token, wire.Limits{Bytes: maxTokenBody})
	if err != nil {
		return nil, fmt.Errorf("reading act: %w", err)
	}
	if before, ok := o.Member("act"); ok {
		out = append(append(out, `,"act":`...), before...)
	}
	return append(out, '}'), nil
}
