package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

const badRefresh = "the refresh token is not valid"

// firstRefresh starts the family of refresh tokens of a grant, if the client
// is registered for refresh_token and the resource permits it. offline_access
// makes no difference: it is not advertised (spec 2026-07-28,
// basic/authorization: clients ask for it only if it is).
func (s *Server) firstRefresh(ctx context.Context, q *tokenRequest, a *access) (string, error) {
	if a.resource.NoRefresh || !slices.Contains(grantTypes(q.client), oauth.GrantRefreshToken) {
		return "", nil
	}
	r := &Refresh{Grant: a.grant.ID, ClientID: q.client.ID, Created: q.now, Expires: s.refreshExpiry(q.now, a.grant)}
	if q.public && q.proof != nil {
		// RFC 9449, section 5: MUST be bound to the key. Confidential clients
		// prove who they are and may change theirs.
		r.Key = q.proof.Thumbprint
	}
	token := oauth.NewSecret()
	if err := s.store.AddRefresh(ctx, Hash(token), r); err != nil {
		return "", fmt.Errorf("storing a refresh token: %w", err)
	}
	return token, nil
}

// refreshExpiry is the idle time of a refresh token, within its family's.
func (s *Server) refreshExpiry(now time.Time, g *Grant) time.Time {
	if idle := now.Add(s.opts.RefreshIdle); idle.Before(g.Expires) {
		return idle
	}
	return g.Expires
}

// redeemRefresh is the grant type refresh_token (RFC 6749, section 6). Every
// use rotates the token, of all clients (spec 2026-07-28,
// basic/authorization/security-considerations: of public clients MUST), and
// the use of one that was rotated revokes the family.
func (s *Server) redeemRefresh(ctx context.Context, q *tokenRequest) (*oauth.TokenResponse, error) {
	token := q.form["refresh_token"]
	if token == "" {
		return nil, refuse(oauth.InvalidRequest, "refresh_token is required", nil)
	}
	hash := Hash(token)
	held, err := s.store.Refresh(ctx, hash, q.now)
	if errors.Is(err, ErrNotFound) {
		return nil, refuse(oauth.InvalidGrant, badRefresh, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a refresh token: %w", err)
	}
	if held.ClientID != q.client.ID {
		return nil, refuse(oauth.InvalidGrant, badRefresh, errors.New("refresh token of another client"))
	}
	if err := checkKey(q, held.Key); err != nil {
		return nil, err
	}
	q.event.Grant = held.Grant
	g, err := s.store.Grant(ctx, held.Grant, q.now)
	if errors.Is(err, ErrNotFound) {
		return nil, refuse(oauth.InvalidGrant, badRefresh, err)
	}
	if err != nil && !errors.Is(err, ErrRevoked) {
		return nil, fmt.Errorf("reading the grant of a refresh token: %w", err)
	}
	// That the grant is revoked is for the rotation to find: it also sees reuse.
	answer, err := s.refreshAccess(ctx, q, g)
	if err != nil {
		return nil, err
	}
	answer.RefreshToken, err = s.rotate(ctx, q, g, held, token)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// refreshAccess makes the new access token. It is made before the rotation, so
// that what fails here costs the client nothing.
func (s *Server) refreshAccess(ctx context.Context, q *tokenRequest, g *Grant) (*oauth.TokenResponse, error) {
	asked, err := q.form.scopes()
	if err != nil {
		return nil, err
	}
	a, err := s.redeemable(ctx, q, g, asked, badRefresh)
	if err != nil {
		return nil, err
	}
	if a.resource.NoRefresh {
		return nil, refuse(oauth.InvalidGrant, badRefresh, errors.New("resource permits no refresh tokens any more"))
	}
	return s.accessToken(ctx, q, a)
}

// rotate replaces a refresh token.
func (s *Server) rotate(ctx context.Context, q *tokenRequest, g *Grant, held *Refresh, token string) (string, error) {
	next, grace, err := s.successor(ctx, held, token)
	if err != nil {
		return "", err
	}
	err = s.store.RotateRefresh(ctx, Hash(token), Hash(next), &Refresh{
		Grant: held.Grant, ClientID: held.ClientID, Key: held.Key, Created: q.now, Expires: s.refreshExpiry(q.now, g),
	}, grace, q.now)
	switch {
	case errors.Is(err, ErrReused):
		q.event.Name = "refresh.reused"
		return "", refuse(oauth.InvalidGrant, badRefresh, err)
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrNotFound):
		return "", refuse(oauth.InvalidGrant, badRefresh, err)
	case err != nil:
		return "", fmt.Errorf("rotating a refresh token: %w", err)
	}
	return next, nil
}

// successor is the token that comes after token. Where there is a grace it is
// the same for every request: made of the token with a secret, so that it
// cannot be forged, and it need not be stored to be given out twice.
func (s *Server) successor(ctx context.Context, held *Refresh, token string) (string, time.Duration, error) {
	if s.opts.RefreshGrace <= 0 {
		return oauth.NewSecret(), 0, nil
	}
	next, err := s.keys.derive(ctx, held.Created, "refresh", token)
	return next, s.opts.RefreshGrace, err
}
