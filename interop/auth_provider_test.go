package interop_test

import (
	"encoding/json"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/login"
)

// oidcProvider serves oidc-provider for the scene, as a program of its own
// behind a proxy. documents says where metadata documents of clients are.
func oidcProvider(t *testing.T, s *scene, documents map[string]string) {
	t.Helper()
	options, err := json.Marshal(map[string]any{
		"issuer": s.issuer.url, "resource": s.uri(), "elsewhere": elsewhere,
		"redirectURI": redirectURI, "documents": documents,
	})
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
