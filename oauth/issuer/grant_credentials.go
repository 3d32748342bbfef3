package issuer

import (
	"context"

	"github.com/parley-mcp/parley/oauth"
)

// serveCredentials is the grant type client_credentials (RFC 6749, section
// 4.4): for clients that the operator registered and that authenticate, and
// without refresh token.
func (s *Server) serveCredentials(ctx context.Context, q *tokenRequest) (*oauth.TokenResponse, error) {
	if q.public || !s.isPreregistered(q.client) {
		return nil, refuse(oauth.UnauthorizedClient, "this grant type is for clients that are registered by the operator", nil)
	}
	res, err := s.resourceFor(q.Context(), q.form["resource"], q.client)
	if err != nil {
		return nil, err
	}
	asked, err := q.form.scopes()
	if err != nil {
		return nil, err
	}
	scopes, err := s.grantableScopes(res, q.client, asked)
	if err != nil {
		return nil, err
	}
	a := &access{grant: &Grant{ClientID: q.client.ID}, client: q.client, resource: res}
	if a.scopes, err = s.allowed(ctx, a, scopes); err != nil {
		return nil, err
	}
	if len(asked) > 0 && len(a.scopes) < len(scopes) {
		return nil, errScope("a scope is for the people of some groups, and not for this client")
	}
	return s.startGrant(ctx, q, a)
}
