package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/parley-mcp/parley/oauth"
)

// ClientCredentials is the grant of programs that act for themselves (RFC 6749,
// section 4.4; extension io.modelcontextprotocol/oauth-client-credentials). It
// needs credentials that were registered beforehand, with a secret or a key.
func ClientCredentials() Grant { return clientCredentials{} }

type clientCredentials struct{}

func (clientCredentials) name() string { return oauth.GrantClientCredentials }

func (clientCredentials) obtain(ctx context.Context, q *grantRequest) (*oauth.TokenResponse, error) {
	if q.creds == nil || q.creds.ClientID == "" {
		return nil, errors.New("client credentials: there are no credentials for this authorization server; register the client there first")
	}
	method, err := q.creds.method(q.meta)
	if err != nil {
		return nil, fmt.Errorf("client credentials: %w", err)
	}
	// RFC 6749, section 4.4: MUST only be used by confidential clients.
	if method == oauth.AuthNone {
		return nil, errors.New("client credentials: the client has nothing to prove who it is; give a Secret or a Signer")
	}
	return requestToken(ctx, q, q.form(oauth.GrantClientCredentials))
}

// JWTBearer is the grant of workloads that their platform gives a signed
// identity (RFC 7523, section 2.1; extension io.modelcontextprotocol/auth/wif).
// assertion is called for each token request and returns a JWT for the
// audience, which is the issuer identifier of the authorization server; it may
// be called by many goroutines at once. No registration is needed: a client_id
// is sent only if there are credentials with one. A refusal is final: the
// request is not made again, nor another grant tried.
func JWTBearer(assertion func(ctx context.Context, audience string) (string, error)) Grant {
	return jwtBearer{assertion}
}

type jwtBearer struct {
	assertion func(context.Context, string) (string, error)
}

func (jwtBearer) name() string { return oauth.GrantJWTBearer }

func (g jwtBearer) obtain(ctx context.Context, q *grantRequest) (*oauth.TokenResponse, error) {
	if g.assertion == nil {
		return nil, errors.New("workload identity: there is no assertion function")
	}
	assertion, err := g.assertion(ctx, q.meta.Issuer)
	if err != nil {
		return nil, fmt.Errorf("workload identity: %w", err)
	}
	if assertion == "" {
		return nil, errors.New("workload identity: the assertion is empty")
	}
	return requestAssertion(ctx, q, assertion)
}

// requestAssertion redeems an assertion of another issuer for a token.
func requestAssertion(ctx context.Context, q *grantRequest, assertion string) (*oauth.TokenResponse, error) {
	form := q.form(oauth.GrantJWTBearer)
	form.Set("assertion", assertion)
	return requestToken(ctx, q, form)
}

// form begins a token request, with scopes and resource (spec 2026-07-28,
// basic/authorization: the resource MUST be in token requests).
func (q *grantRequest) form(grantType string) url.Values {
	form := url.Values{"grant_type": {grantType}}
	if len(q.scopes) > 0 {
		form.Set("scope", oauth.JoinScope(q.scopes))
	}
	if q.resource != "" {
		form.Set("resource", q.resource)
	}
	return form
}
