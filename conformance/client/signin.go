package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// documentURL is the client id that the suite looks for where client ID
// metadata documents are supported. There is no such document: no server of
// the suite fetches it.
const documentURL = "https://conformance-test.local/client-metadata.json"

// A signIn is a scenario of authorization.
type signIn struct {
	// give puts into the options what the suite tells: credentials for the
	// authorization server, which it does not name. Default: nothing.
	give func(o *login.Options, told *suiteContext, issuer string) error
	// dpop binds the tokens to a key.
	dpop bool
	// refused says whether an error is the one that must end the scenario; nil
	// means that there must be none.
	refused func(error) bool
}

// signIns are the scenarios of authorization. Those without anything special
// leave it all to the library: discovery, registration, scopes.
var signIns = map[string]signIn{
	"auth/metadata-default": {},
	"auth/metadata-var1":    {},
	"auth/metadata-var2":    {},
	"auth/metadata-var3":    {},
	"auth/basic-cimd":       {},

	"auth/2025-03-26-oauth-metadata-backcompat": {},
	"auth/2025-03-26-oauth-endpoint-fallback":   {},

	"auth/scope-from-www-authenticate":    {},
	"auth/scope-from-scopes-supported":    {},
	"auth/scope-omitted-when-undefined":   {},
	"auth/scope-step-up":                  {},
	"auth/scope-retry-limit":              {refused: isForbidden},
	"auth/offline-access-scope":           {},
	"auth/offline-access-not-supported":   {},
	"auth/token-endpoint-auth-basic":      {},
	"auth/token-endpoint-auth-post":       {},
	"auth/token-endpoint-auth-none":       {},
	"auth/authorization-server-migration": {},

	"auth/iss-supported":            {},
	"auth/iss-not-advertised":       {},
	"auth/iss-supported-missing":    {refused: isForeignResponse},
	"auth/iss-wrong-issuer":         {refused: isForeignResponse},
	"auth/iss-unexpected":           {refused: isForeignResponse},
	"auth/iss-normalized":           {refused: isForeignResponse},
	"auth/metadata-issuer-mismatch": {refused: isForeignServer},
	"auth/resource-mismatch":        {refused: isForeignResource},

	"auth/pre-registration":                 {give: registered},
	"auth/client-credentials-basic":         {give: clientCredentials},
	"auth/client-credentials-jwt":           {give: clientCredentials},
	"auth/enterprise-managed-authorization": {give: enterprise},
	"auth/wif-jwt-bearer":                   {give: workload},
	"auth/dpop":                             {dpop: true},
	"auth/dpop-nonce":                       {dpop: true},
}

// run signs in to the server and uses it.
func (s signIn) run(ctx context.Context, url string) error {
	err := s.use(ctx, url)
	switch {
	case s.refused == nil:
		return err
	case err == nil:
		return errors.New("nothing was refused")
	case !s.refused(err):
		return fmt.Errorf("ended by another error than it must: %w", err)
	}
	return nil
}

func (s signIn) use(ctx context.Context, url string) (err error) {
	o := loginOptions()
	o.DPoP = s.dpop
	if s.give != nil {
		told, err := readContext()
		if err != nil {
			return err
		}
		issuer, err := findIssuer(ctx, url)
		if err != nil {
			return err
		}
		if err := s.give(o, told, issuer); err != nil {
			return err
		}
	}
	l := login.New(o)
	defer func() { err = errors.Join(err, l.Close()) }()
	dialer := streamable.URL(url)
	dialer.Client = l.HTTPClient(nil)
	return connect(ctx, dialer, callOne("test-tool"))
}

func loginOptions() *login.Options {
	return &login.Options{
		Authorizer:        newBrowser(),
		ClientName:        "Parley conformance",
		DocumentURL:       documentURL,
		DocumentRedirects: []string{redirectURI},
	}
}

// findIssuer finds the authorization server of a resource, for which there are
// credentials that the suite gives without saying so.
func findIssuer(ctx context.Context, url string) (issuer string, err error) {
	l := login.New(loginOptions())
	defer func() { err = errors.Join(err, l.Close()) }()
	issuers, err := l.Issuers(ctx, url)
	if err != nil {
		return "", err
	}
	if len(issuers) != 1 {
		return "", fmt.Errorf("%s names %d authorization servers, want 1", url, len(issuers))
	}
	return issuers[0], nil
}

// registered gives the credentials of a client that was registered beforehand.
func registered(o *login.Options, told *suiteContext, issuer string) error {
	creds := login.Credentials{Issuer: issuer, ClientID: told.ClientID, Secret: told.ClientSecret}
	if told.PrivateKey != "" {
		key, err := login.ParsePrivateKey([]byte(told.PrivateKey))
		if err != nil {
			return err
		}
		creds.Signer, creds.Algorithm = key, told.Algorithm
	}
	o.Credentials = []login.Credentials{creds}
	return nil
}

func clientCredentials(o *login.Options, told *suiteContext, issuer string) error {
	o.Grant = login.ClientCredentials()
	return registered(o, told, issuer)
}

func enterprise(o *login.Options, told *suiteContext, issuer string) error {
	o.Grant = login.EnterpriseManaged(login.EnterpriseOptions{
		IDToken:       func(context.Context) (string, error) { return told.IDToken, nil },
		Issuer:        told.IdentityProvider,
		TokenEndpoint: told.IdentityProviderToken,
		Credentials:   &login.Credentials{Issuer: told.IdentityProvider, ClientID: told.IdentityProviderClientID},
	})
	return registered(o, told, issuer)
}

func workload(o *login.Options, told *suiteContext, issuer string) error {
	o.Grant = login.JWTBearer(func(_ context.Context, audience string) (string, error) {
		if audience != issuer {
			return "", fmt.Errorf("the audience is %q, want the issuer %q", audience, issuer)
		}
		return told.WorkloadToken, nil
	})
	return registered(o, told, issuer)
}

// isForeignResponse says that the authorization response broke a rule of the
// parameter iss (RFC 9207): what the server said is not trusted, nor told.
func isForeignResponse(err error) bool {
	var refused *login.AuthorizationError
	return errors.As(err, &refused) && refused.Reason != "" && refused.Code == ""
}

// isForeignServer says that the metadata were those of another issuer.
func isForeignServer(err error) bool {
	var refused *oauth.IssuerError
	return errors.As(err, &refused)
}

// isForeignResource says that the metadata broke a rule, which is that they are
// about the resource that was asked for (RFC 9728, section 3.3).
func isForeignResource(err error) bool {
	var refused *login.DiscoveryError
	return errors.As(err, &refused) && refused.Step == login.StepMetadata && refused.Rule != ""
}

// isForbidden says that the server wants scopes that are not to be had.
func isForbidden(err error) bool {
	var refused *web.StatusError
	return errors.As(err, &refused) && refused.Status == http.StatusForbidden
}
