package interop_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/login"
)

// oidcProvider serves oidc-provider for the scene, as a program of its own
// behind a proxy. documents says where metadata documents of clients are.
func oidcProvider(t *testing.T, s *scene, documents map[string]string) {
	t.Helper()
	serveProvider(t, s, map[string]any{"documents": documents})
}

// serveProvider does it with more options.
func serveProvider(t *testing.T, s *scene, more map[string]any) {
	t.Helper()
	all := map[string]any{"issuer": s.issuer.url, "resource": s.uri(), "elsewhere": elsewhere, "redirectURI": redirectURI}
	maps.Copy(all, more)
	options, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(startServer(t, nil, "oidc-provider.mjs", string(options)))
	if err != nil {
		t.Fatal(err)
	}
	s.issuer.serve(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Host = r.In.Host
	}})
}

// Opaque tokens of oidc-provider, which our guard asks it about, by secret and by key; one that is
// revoked there is refused, and so is a client that it does not know. Proves: RFC 7662, RFC 7523.
func TestIntrospectionOIDCProvider(t *testing.T) {
	peersDir(t)
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := signer.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	keys := map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "kid": "guard", "alg": "ES256", "use": "sig", "x": part(point[1:33]), "y": part(point[33:]),
	}}}
	for name, o := range map[string]guard.IntrospectionOptions{
		"secret": {ClientID: "guard", ClientSecret: "guard secret"},
		"key":    {ClientID: "key", Signer: signer, KeyID: "guard"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := bounded(t)
			as := authServer{"oidc-provider", func(t *testing.T, s *scene) {
				serveProvider(t, s, map[string]any{"opaque": true, "guardKeys": keys})
			}, "/auth"}
			s := newScene(t)
			as.serve(t, s)
			for id, o := range map[string]guard.IntrospectionOptions{"": o, "nobody": {ClientID: "nobody", ClientSecret: "guard secret"}} {
				g, err := guard.New(s.uri(), guard.Introspection(s.issuer.url, &o), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				if err := g.Check(ctx); (err == nil) != (id == "") || err != nil && !strings.Contains(err.Error(), "refuses the client") {
					t.Errorf("check of %q: %v", id, err)
				}
			}
			s.protect(t, guard.Introspection(s.issuer.url, &o), guard.Options{})
			good, other := s.token(ctx, t, as, s.uri()), s.token(ctx, t, as, elsewhere)
			if strings.Count(good, ".") == 2 {
				t.Fatal("the token is a JWT")
			}
			if status, _ := s.present(ctx, t, good); status != http.StatusOK {
				t.Errorf("a good token: %d", status)
			}
			if status, code := s.present(ctx, t, other); status != http.StatusUnauthorized || code != oauth.InvalidToken {
				t.Errorf("for another resource: %d %s", status, code)
			}
			resp, err := http.PostForm(s.issuer.url+"/token/revocation", url.Values{"client_id": {"desk"}, "token": {good}})
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("revocation: %v, %v", resp, err)
			}
			resp.Body.Close()
			if status, code := s.present(ctx, t, good); status != http.StatusUnauthorized || code != oauth.InvalidToken {
				t.Errorf("revoked: %d %s", status, code)
			}
		})
	}
}

// Our client and our guard with oidc-provider.
func TestAuthOIDCProvider(t *testing.T) {
	peersDir(t)
	t.Run("pre-registered", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		oidcProvider(t, s, nil)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, preRegistered(s.issuer.url),
			caller{Issuer: s.issuer.url, Subject: person, Client: "desk"}, lacks{})
	})
	t.Run("dynamic", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		oidcProvider(t, s, nil)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, login.Options{},
			caller{Issuer: s.issuer.url, Subject: person}, lacks{})
	})
	t.Run("key", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		s.dpop = true
		oidcProvider(t, s, nil)
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{DPoPRequired: true})
		s.flow(t, login.Options{}, caller{Issuer: s.issuer.url, Subject: person}, lacks{rotation: true})
	})
	t.Run("document", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		id, plain, _ := serveDocument(t, redirectURI)
		oidcProvider(t, s, map[string]string{id: plain})
		s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
		s.flow(t, login.Options{DocumentURL: id, DocumentRedirects: []string{redirectURI}},
			caller{Issuer: s.issuer.url, Subject: person, Client: id}, lacks{})
	})
}
