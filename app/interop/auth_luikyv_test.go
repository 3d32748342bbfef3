package interop_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"

	"github.com/luikyv/go-oidc/pkg/goidc"
	"github.com/luikyv/go-oidc/pkg/provider"

	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/login"
)

// goOIDC serves an authorization server of luikyv/go-oidc for the scene.
func goOIDC(t *testing.T, s *scene) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := goidc.JSONWebKeySet{Keys: []goidc.JSONWebKey{{Key: key, KeyID: "one", Algorithm: "ES256", Use: "sig"}}}
	p, err := provider.New(s.issuer.url, nil,
		func(context.Context) (goidc.JSONWebKeySet, error) { return keys, nil },
		provider.WithScopes(goidc.NewScope(scopeRead), goidc.NewScope(scopeWrite)),
		provider.WithIDTokenSignatureAlgs(goidc.ES256),
		provider.WithAuthCodeGrant(nil, goidc.ResponseTypeCode),
		provider.WithRefreshTokenGrant(nil),
		provider.WithRefreshTokenRotation(),
		provider.WithRefreshTokenShouldIssue(func(context.Context, *goidc.Client, *goidc.Grant) bool { return true }),
		provider.WithDPoP(goidc.ES256),
		provider.WithPKCERequired(goidc.CodeChallengeMethodSHA256),
		provider.WithIssuerResponseParameter(),
		provider.WithNoneAuthn(),
		provider.WithLocalhostRedirectURIs(),
		provider.WithResourceIndicators(s.uri()),
		provider.WithTokenOptions(func(context.Context, *goidc.Grant, *goidc.Client) goidc.TokenOptions {
			return goidc.NewJWTTokenOptions(goidc.ES256, 600)
		}),
		// Without one it warns.
		provider.WithJTIConsumer(func(context.Context, string) error { return nil }),
		provider.WithDCR(nil),
		// A client that registers without scopes may have none otherwise.
		provider.WithDCRClientHandler(func(_ context.Context, _ string, c *goidc.ClientMeta) error {
			c.ScopeIDs = scopeRead + " " + scopeWrite
			return nil
		}),
		provider.WithStaticClients(&goidc.Client{ID: "desk", ClientMeta: goidc.ClientMeta{
			ApplicationType: goidc.ApplicationTypeNative, RedirectURIs: []string{redirectURI},
			GrantTypes:       []goidc.GrantType{goidc.GrantAuthorizationCode, goidc.GrantRefreshToken},
			ResponseTypes:    []goidc.ResponseType{goidc.ResponseTypeCode},
			ScopeIDs:         scopeRead + " " + scopeWrite,
			TokenAuthnMethod: goidc.AuthnMethodNone,
		}}),
		provider.WithPolicies(goidc.NewPolicy("page", func(*http.Request, *goidc.AuthnSession, *goidc.Client) bool { return true }, agree)),
	)
	if err != nil {
		t.Fatal(err)
	}
	s.issuer.serve(p.Handler())
}

// agree is a page with one button, which agrees to everything.
func agree(w http.ResponseWriter, r *http.Request, as *goidc.AuthnSession, _ *goidc.Client) (goidc.Status, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "text/html")
		_, err := fmt.Fprintf(w, `<form method="post" action="/authorize/%s"><button>Agree</button></form>`, as.ID)
		return goidc.StatusPending, err
	}
	as.Subject, as.GrantedScopes, as.GrantedResources = person, as.Scopes, as.Resources
	return goidc.StatusSuccess, nil
}

// Our client and our guard with luikyv/go-oidc.
func TestAuthGoOIDC(t *testing.T) {
	t.Run("pre-registered", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		goOIDC(t, s)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, preRegistered(s.issuer.url),
			caller{Issuer: s.issuer.url, Subject: person, Client: "desk"}, lacks{rfc8414: true})
	})
	t.Run("key", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.dpop = true
		goOIDC(t, s)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{DPoPRequired: true})
		s.flow(t, preRegistered(s.issuer.url),
			caller{Issuer: s.issuer.url, Subject: person, Client: "desk"}, lacks{rfc8414: true})
	})
	t.Run("dynamic", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		goOIDC(t, s)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, login.Options{},
			caller{Issuer: s.issuer.url, Subject: person}, lacks{rfc8414: true, ports: true})
	})
}
