package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/parley-mcp/parley/oauth"
)

// EnterpriseOptions say how the identity provider of an organisation is asked
// for access. IDToken and one of Issuer and TokenEndpoint are required.
type EnterpriseOptions struct {
	// IDToken returns what the person's sign-in at the identity provider left:
	// an ID token that is still valid, or what SubjectTokenType says. It is
	// called for each token request, by many goroutines at once.
	IDToken func(ctx context.Context) (string, error)
	// SubjectTokenType is what IDToken returns. Default
	// oauth.TokenTypeIDToken; identity providers may also take
	// urn:ietf:params:oauth:token-type:refresh_token and :saml2.
	SubjectTokenType string
	// Issuer is the identity provider's issuer identifier. Its metadata is
	// fetched for each token request, unless TokenEndpoint is given.
	Issuer string
	// TokenEndpoint is the identity provider's. Default: that of its metadata.
	TokenEndpoint string
	// Credentials are the client's at the identity provider, which are not
	// those at the authorization server. Default none.
	Credentials *Credentials
	// Fetcher makes the requests to the identity provider, for one inside the
	// organisation's network. Default: that of the login.
	Fetcher *oauth.Fetcher
}

// EnterpriseManaged is the grant with which an organisation decides centrally
// which servers its people may use (extension
// io.modelcontextprotocol/enterprise-managed-authorization): the identity
// provider exchanges the person's ID token for an identity assertion meant for
// one authorization server (RFC 8693, ID-JAG), which that server takes for an
// access token (RFC 7523), with the credentials the client has there. The
// options are copied.
func EnterpriseManaged(o EnterpriseOptions) Grant {
	if o.Credentials != nil {
		o.Credentials = new(*o.Credentials)
	}
	return enterpriseManaged{o}
}

type enterpriseManaged struct{ o EnterpriseOptions }

// Format writes the name for each verb: the credentials are not to be seen.
func (g enterpriseManaged) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, g.name()) }

func (enterpriseManaged) name() string { return "enterprise-managed" }

func (g enterpriseManaged) obtain(ctx context.Context, q *grantRequest) (*oauth.TokenResponse, error) {
	assertion, err := g.exchange(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("asking the identity provider for access: %w", err)
	}
	// The scopes are those asked of the identity provider: what it granted of
	// them stands in the assertion, and must not exceed what is requested here
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
	// No prover: the assertion is no access token, and what its key is bound
	// to is settled at the authorization server.
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
	// Anything else, such as an access token of the identity provider, must not
	// reach the authorization server. token_type is N_A (RFC 8693, section
	// 2.2.1), and says nothing.
	if answer.IssuedTokenType != oauth.TokenTypeIDJAG {
		return "", fmt.Errorf("it issued a token of type %.80q and not %q", answer.IssuedTokenType, oauth.TokenTypeIDJAG)
	}
	return answer.AccessToken, nil
}

// provider is the metadata of the identity provider: fetched, or of nothing but
// what was given.
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
	places, err := oauth.ServerMetadataURLs(g.o.Issuer)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		res, err := f.Get(ctx, place, http.Header{"Accept": {"application/json"}})
		if err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		if res.Status != http.StatusOK {
			continue
		}
		meta, err := oauth.ParseServerMetadata(res.Body, g.o.Issuer)
		if err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		return meta, nil
	}
	return nil, fmt.Errorf("no metadata was found for %q; give its TokenEndpoint", g.o.Issuer)
}
