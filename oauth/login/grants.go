package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-mcp/parley/oauth"
)

// A Grant obtains tokens without a person.
type Grant interface {
	// obtain makes one token request (and what must come before it).
	obtain(ctx context.Context, q *grantRequest) (*oauth.TokenResponse, error)
}

// ClientCredentials is the grant of programs that act for themselves (RFC 6749, section 4.4;
// extension io.modelcontextprotocol/oauth-client-credentials). It needs credentials that were
// registered beforehand, with a secret or a key.
func ClientCredentials() Grant { return clientCredentials{} }

type clientCredentials struct{}

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

// JWTBearer is the grant of workloads that their platform gives a signed identity (RFC 7523,
// section 2.1; extension io.modelcontextprotocol/auth/wif). assertion returns a JWT for the
// audience, which is the authorization server's issuer; it is called for each token request, by
// many goroutines at once. A client_id is sent only if there are credentials with one. A refusal is
// final.
func JWTBearer(assertion func(ctx context.Context, audience string) (string, error)) Grant {
	return jwtBearer{assertion}
}

type jwtBearer struct {
	assertion func(context.Context, string) (string, error)
}

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

// EnterpriseOptions say how the identity provider of an organisation is asked for access. IDToken
// and one of Issuer and TokenEndpoint are required.
type EnterpriseOptions struct {
	// IDToken returns an ID token that is still valid, or what SubjectTokenType says. It is called
	// for each token request, by many goroutines at once.
	IDToken func(ctx context.Context) (string, error)
	// SubjectTokenType is what IDToken returns. Default oauth.TokenTypeIDToken; identity providers
	// may also take urn:ietf:params:oauth:token-type:refresh_token and :saml2.
	SubjectTokenType string
	// Issuer is the identity provider's. Without TokenEndpoint its metadata is fetched each time.
	Issuer string
	// TokenEndpoint is the identity provider's. Default: that of its metadata.
	TokenEndpoint string
	// Credentials are the client's at the identity provider. Default none.
	Credentials *Credentials
	// Fetcher makes the requests to the identity provider. Default: that of the login.
	Fetcher *oauth.Fetcher
}

// EnterpriseManaged is the grant with which an organisation decides centrally which servers its
// people may use (extension io.modelcontextprotocol/enterprise-managed-authorization): the identity
// provider exchanges the person's ID token for an identity assertion meant for one authorization
// server (RFC 8693, ID-JAG), which that server takes for an access token (RFC 7523), with the
// credentials the client has there. The options are copied.
func EnterpriseManaged(o EnterpriseOptions) Grant {
	if o.Credentials != nil {
		o.Credentials = new(*o.Credentials)
	}
	return enterpriseManaged{o}
}

type enterpriseManaged struct{ o EnterpriseOptions }

// Format writes the name for each verb: the credentials are not to be seen.
func (enterpriseManaged) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "enterprise-managed") }

func (g enterpriseManaged) obtain(ctx context.Context, q *grantRequest) (*oauth.TokenResponse, error) {
	assertion, err := g.exchange(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("asking the identity provider for access: %w", err)
	}
	// The scopes are those asked of the identity provider, and must not exceed what it granted
	// (enterprise-managed-authorization, section 7.2.1).
	tokens, err := requestAssertion(ctx, q, assertion)
	if err != nil {
		return nil, fmt.Errorf("presenting the identity provider's assertion: %w", err)
	}
	return tokens, nil
}

// exchange obtains the ID-JAG (enterprise-managed-authorization, section 4).
func (g enterpriseManaged) exchange(ctx context.Context, q *grantRequest) (string, error) {
	if g.o.IDToken == nil {
		return "", errors.New("there is no IDToken function")
	}
	if q.meta.Issuer == "" {
		return "", errors.New("the authorization server has no issuer identifier")
	}
	// No signer: the assertion is no access token.
	at := &grantRequest{
		fetch: cmp.Or(g.o.Fetcher, q.fetch), creds: g.o.Credentials,
		resource: q.resource, scopes: q.scopes, now: q.now,
	}
	var err error
	if at.meta, err = g.provider(ctx, at.fetch); err != nil {
		return "", err
	}
	subject, err := g.o.IDToken(ctx)
	if err != nil {
		return "", fmt.Errorf("ID token: %w", err)
	}
	if subject == "" {
		return "", errors.New("the ID token is empty; sign in at the identity provider first")
	}
	form := at.form(oauth.GrantTokenExchange)
	form.Set("requested_token_type", oauth.TokenTypeIDJAG)
	form.Set("audience", q.meta.Issuer)
	form.Set("subject_token", subject)
	form.Set("subject_token_type", cmp.Or(g.o.SubjectTokenType, oauth.TokenTypeIDToken))
	answer, err := requestToken(ctx, at, form)
	if err != nil {
		return "", err
	}
	// Anything else, such as an access token of the identity provider, must not reach the
	// authorization server. token_type is N_A (RFC 8693, section 2.2.1), and says nothing.
	if answer.IssuedTokenType != oauth.TokenTypeIDJAG {
		return "", fmt.Errorf("it issued a token of type %.80q and not %q", answer.IssuedTokenType, oauth.TokenTypeIDJAG)
	}
	return answer.AccessToken, nil
}

// provider is the metadata of the identity provider: fetched, or of nothing but what was given.
func (g enterpriseManaged) provider(ctx context.Context, f *oauth.Fetcher) (*oauth.ServerMetadata, error) {
	if g.o.TokenEndpoint != "" {
		if _, err := oauth.CheckEndpoint(g.o.TokenEndpoint); err != nil {
			return nil, fmt.Errorf("token endpoint: %w", err)
		}
		return &oauth.ServerMetadata{Issuer: g.o.Issuer, TokenEndpoint: g.o.TokenEndpoint}, nil
	}
	if g.o.Issuer == "" {
		return nil, errors.New("give its Issuer or its TokenEndpoint")
	}
	meta, _, err := serverMetadata(ctx, f, g.o.Issuer, jsonHeader())
	if err == nil && meta == nil {
		err = fmt.Errorf("no metadata was found for %q; give its TokenEndpoint", g.o.Issuer)
	}
	return meta, err
}
