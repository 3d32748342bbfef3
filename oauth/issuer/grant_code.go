package issuer

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/oauth"
)

// redeemCode is the grant type authorization_code (RFC 6749, section 4.1.3,
// with PKCE, RFC 7636). The store takes the code away before anything about it
// is checked: of any number of requests one goes on from there, and a code that
// was tried once, with the wrong verifier too, is worth nothing.
func (s *Server) redeemCode(ctx context.Context, q *tokenRequest) (*oauth.TokenResponse, error) {
	code, verifier := q.form["code"], q.form["code_verifier"]
	if code == "" || verifier == "" {
		return nil, refuse(oauth.InvalidRequest, "code and code_verifier are required", nil)
	}
	c, err := s.store.ConsumeCode(ctx, Hash(code), q.now)
	switch {
	case errors.Is(err, ErrConsumed):
		// The store has revoked what the first one got.
		q.event.Name, q.event.Grant = "code.reused", c.Grant
		return nil, refuse(oauth.InvalidGrant, badCode, err)
	case errors.Is(err, ErrNotFound):
		return nil, refuse(oauth.InvalidGrant, badCode, err)
	case err != nil:
		return nil, fmt.Errorf("taking a code: %w", err)
	}
	q.event.Grant = c.Grant
	answer, err := s.answerCode(ctx, q, c, verifier)
	if err != nil {
		// Nothing will come of this grant any more.
		if dropped := s.store.RevokeGrant(ctx, c.Grant, q.now); dropped != nil {
			return nil, errors.Join(err, dropped)
		}
		return nil, err
	}
	return answer, nil
}

const badCode = "the authorization code is not valid"

func (s *Server) answerCode(ctx context.Context, q *tokenRequest, c *Code, verifier string) (*oauth.TokenResponse, error) {
	if err := s.checkCode(q, c, verifier); err != nil {
		return nil, err
	}
	g, err := s.store.Grant(ctx, c.Grant, q.now)
	// A grant that is revoked here was whole a moment ago, when the code was:
	// the code was used once more meanwhile. This is the one request that
	// is answered, and its tokens are as revoked as if it had been faster.
	if err != nil && !errors.Is(err, ErrRevoked) {
		return nil, fmt.Errorf("reading the grant of a code: %w", err)
	}
	if g.ClientID != q.client.ID {
		return nil, refuse(oauth.InvalidGrant, badCode, errors.New("grant is of another client"))
	}
	a, err := s.redeemable(ctx, q, g, nil, badCode)
	if err != nil {
		return nil, err
	}
	answer, err := s.accessToken(ctx, q, a)
	if err != nil {
		return nil, err
	}
	answer.RefreshToken, err = s.firstRefresh(ctx, q, a)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// checkCode compares a request with what the code was issued for.
func (s *Server) checkCode(q *tokenRequest, c *Code, verifier string) error {
	switch {
	case c.ClientID != q.client.ID:
		return refuse(oauth.InvalidGrant, badCode, errors.New("code of another client"))
	// OAuth 2.1, section 4.1.3, has no redirect_uri here: the challenge binds the code to its
	// client. One that is there, as in RFC 6749, must be where the code was sent.
	case q.form["redirect_uri"] != "" && c.RedirectURI != "" && q.form["redirect_uri"] != c.RedirectURI:
		return refuse(oauth.InvalidGrant, badCode, errors.New("another redirect_uri"))
	case !oauth.VerifyS256(verifier, c.Challenge):
		return refuse(oauth.InvalidGrant, badCode, errors.New("verifier does not fit the challenge"))
	}
	return checkKey(q, c.Key)
}

// grantedResource is the resource of a grant; a request may name it, but no
// other (RFC 8707, section 2.2).
func (s *Server) grantedResource(q *tokenRequest, g *Grant) (*Resource, error) {
	res, err := s.resourceFor(q.Context(), g.Resource, q.client)
	if err != nil {
		return nil, err
	}
	if named := q.form["resource"]; named != "" {
		if canonical, err := oauth.CanonicalResource(named); err != nil || canonical != res.URI {
			return nil, refuse(oauth.InvalidTarget, "the grant is for another resource", err)
		}
	}
	return res, nil
}
