package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// An access is what an access token is about to say.
type access struct {
	grant    *Grant
	client   *Client
	resource *Resource
	scopes   []string
	act      wire.RawValue // the actor for the subject (RFC 8693); may be nil
	platform string        // that authenticated the workload; empty for clients
	// until is when it expires at the latest; zero is no bound but the grant's.
	until time.Time
}

// ownClaims are what Grant.Claims cannot say.
var ownClaims = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "client_id", "azp", "scope", "scp", "resource",
	"cnf", "gid", "nonce", "auth_time", "act", claimPlatform,
}

// claimPlatform is a claim of the tokens of workloads: the issuer that vouches
// for them, without which they are nobody.
const claimPlatform = "workload_issuer"

// accessToken makes an access token (RFC 9068), bound to the key of the
// request's DPoP proof if there is one, and the answer that carries it.
func (s *Server) accessToken(ctx context.Context, q *tokenRequest, a *access) (*oauth.TokenResponse, error) {
	if err := requireProof(q, a.client, a.resource); err != nil {
		return nil, err
	}
	expires := s.accessExpiry(q.now, a.resource, a.client, a.grant.Expires)
	if !a.until.IsZero() && a.until.Before(expires) {
		expires = a.until
	}
	key, end, err := s.keys.signing(ctx)
	if err != nil {
		return nil, err
	}
	if end.Before(expires) {
		expires = end
	}
	extra, err := furtherClaims(a)
	if err != nil {
		return nil, err
	}
	claims := &jwt.Claims{
		Issuer: s.issuer, Subject: a.grant.Subject, Audience: []string{a.resource.URI},
		Expiry: expires, IssuedAt: q.now, ID: oauth.NewSecret(), ClientID: a.client.ID,
		Scope: oauth.JoinScope(a.scopes), Grant: a.grant.ID, AuthTime: a.grant.AuthTime, Extra: extra,
	}
	if claims.Subject == "" {
		claims.Subject = ownSubject(a.client)
	}
	answer := &oauth.TokenResponse{
		TokenType: "Bearer", Scope: claims.Scope,
		// 0 would be no member at all: a token without an end.
		ExpiresIn: max(1, int64(expires.Sub(q.now)/time.Second)),
	}
	if q.proof != nil {
		claims.JKT, answer.TokenType = q.proof.Thumbprint, "DPoP"
	}
	if answer.AccessToken, err = key.Sign(jwt.TypeAccessToken, claims); err != nil {
		return nil, fmt.Errorf("signing an access token: %w", err)
	}
	q.event.by(a.client)
	q.event.Subject, q.event.Grant, q.event.Resource = claims.Subject, a.grant.ID, a.resource.URI
	return answer, nil
}

// accessExpiry is when an access token of a client for a resource expires, which its grant
// bounds.
func (s *Server) accessExpiry(now time.Time, res *Resource, c *Client, grant time.Time) time.Time {
	lifetime := res.AccessLifetime
	if lifetime <= 0 {
		lifetime = s.opts.AccessLifetime
	}
	lifetime = min(bounded(lifetime, c.AccessLifetime), s.longestAccess())
	expires := now.Add(lifetime).UTC().Truncate(time.Second)
	if grant.Before(expires) {
		return grant
	}
	return expires
}

// longestAccess is the lifetime of the access tokens of the configuration that are good
// longest: keys verify that long after they signed.
func (s *Server) longestAccess() time.Duration {
	longest := s.opts.AccessLifetime
	for _, r := range s.opts.Resources {
		longest = max(longest, r.AccessLifetime)
	}
	return longest
}

// bounded is a lifetime that another one bounds, unless that is zero.
func bounded(lifetime, bound time.Duration) time.Duration {
	if bound > 0 && bound < lifetime {
		return bound
	}
	return lifetime
}

// ownSubject is the subject of a client that acts for itself.
func ownSubject(c *Client) string { return cmp.Or(c.Subject, c.ID) }

// furtherClaims are those of a grant that say nothing which is ours to say,
// act, and the platform of a workload.
func furtherClaims(a *access) (wire.RawValue, error) {
	claims := a.grant.Claims
	if len(claims) == 0 && a.act == nil && a.platform == "" {
		return nil, nil
	}
	out := []byte{'{'}
	add := func(name string, value wire.RawValue) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendString(out, name), ':'), value...)
	}
	if len(claims) > 0 {
		o, err := wire.ParseObject(claims, wire.Limits{Bytes: maxTokenBody})
		if err != nil {
			return nil, fmt.Errorf("reading the claims of a grant: %w", err)
		}
		for name, value := range o.All() {
			if !slices.Contains(ownClaims, name) {
				add(name, value)
			}
		}
	}
	if a.act != nil {
		add("act", a.act)
	}
	if a.platform != "" {
		add(claimPlatform, wire.AppendString(nil, a.platform))
	}
	return append(out, '}'), nil
}

// startGrant stores a grant that has no code and no refresh token, so that its one access token can be
// revoked with others, and makes that token.
func (s *Server) startGrant(ctx context.Context, q *tokenRequest, a *access) (*oauth.TokenResponse, error) {
	g := a.grant
	g.ID, g.Resource, g.Scopes, g.Created = oauth.NewSecret(), a.resource.URI, a.scopes, q.now
	g.ClientStamp = a.client.Stamp
	g.Expires = q.now.Add(max(s.opts.AccessLifetime, a.resource.AccessLifetime))
	if q.proof != nil {
		g.Key = q.proof.Thumbprint
	}
	err := s.store.AddGrant(ctx, g)
	if errors.Is(err, ErrRevoked) {
		return nil, refuse(oauth.InvalidGrant, "the client or the person is not there any more", err)
	}
	if err != nil {
		return nil, fmt.Errorf("storing a grant: %w", err)
	}
	return s.accessToken(ctx, q, a)
}
