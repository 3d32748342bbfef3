package issuer_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Proves: S2, S3, C7, C8: one document at every place where clients look.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"https://as.example", "https://as.example/tenant1", "https://as.example/a/b"} {
		server, err := issuer.New(id, issuer.NewMemory(), formLogin{}, &issuer.Options{
			Resources: []issuer.Resource{
				{URI: "https://MCP.example/a/", Scopes: []issuer.Scope{{Name: "x"}, {Name: "y"}}},
				{URI: "https://mcp.example/b", Scopes: []issuer.Scope{{Name: "y"}, {Name: "z"}}},
			},
			Registration: issuer.RegistrationPolicy{On: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		places, err := oauth.ServerMetadataURLs(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range places {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, place, nil))
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d %s", place, w.Code, w.Header().Get("Content-Type"))
				continue
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Cache-Control") != "public, max-age=300" {
				t.Errorf("%s: %v", place, w.Header())
			}
			m, err := oauth.ParseServerMetadata(w.Body.Bytes(), id)
			if err != nil {
				t.Errorf("%s: %v", place, err)
				continue
			}
			if diff := cmp.Diff(server.Metadata(), m); diff != "" {
				t.Errorf("%s (-want +got):\n%s", place, diff)
			}
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, places[0], nil))
		for _, endpoint := range []string{"token", "revocation", "introspection"} { // RFC 8414, section 2: MUST
			if !strings.Contains(w.Body.String(), `"`+endpoint+`_endpoint_auth_signing_alg_values_supported":["`) {
				t.Errorf("%s: the metadata lacks the algorithms of the %s endpoint", id, endpoint)
			}
		}
		m := server.Metadata()
		if slices.Contains(m.GrantTypesSupported, oauth.GrantTokenExchange) || slices.Contains(m.GrantTypesSupported, oauth.GrantJWTBearer) {
			t.Errorf("%s: grant types that nothing permits: %q", id, m.GrantTypesSupported)
		}
		want := &oauth.ServerMetadata{
			Issuer:                                     id,
			AuthorizationEndpoint:                      id + "/authorize",
			TokenEndpoint:                              id + "/token",
			RegistrationEndpoint:                       id + "/register",
			RevocationEndpoint:                         id + "/revoke",
			IntrospectionEndpoint:                      id + "/introspect",
			JWKSURI:                                    id + "/jwks",
			ScopesSupported:                            []string{"x", "y", "z"},
			ResponseTypesSupported:                     []string{"code"},
			ResponseModesSupported:                     []string{"query"},
			CodeChallengeMethodsSupported:              []string{"S256"},
			ProtectedResources:                         []string{"https://mcp.example/a", "https://mcp.example/b"},
			SubjectTypesSupported:                      []string{"public"},
			IDTokenSigningAlgValuesSupported:           []string{"ES256"},
			ClientIDMetadataDocumentSupported:          true,
			AuthorizationResponseIssParameterSupported: true,
			GrantTypesSupported:                        m.GrantTypesSupported,
			TokenEndpointAuthMethodsSupported:          []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"},
			TokenEndpointAuthSigningAlgValuesSupported: m.TokenEndpointAuthSigningAlgValuesSupported,
			RevocationEndpointAuthMethodsSupported:     m.RevocationEndpointAuthMethodsSupported,
			IntrospectionEndpointAuthMethodsSupported:  m.IntrospectionEndpointAuthMethodsSupported,
			DPoPSigningAlgValuesSupported:              m.DPoPSigningAlgValuesSupported,
		}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

// Pages of other origins may use the endpoints that know no cookies, and no
// others.
func TestOrigins(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) { o.Registration.On = true })
	for path, want := range map[string]string{
		"/token": "*", "/register": "*", "/jwks": "*", "/.well-known/openid-configuration": "*",
		"/authorize": "", "/consent": "", "/login": "",
	} {
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodOptions, s.url+path, nil))
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for path, method := range map[string]string{"/token": "GET", "/jwks": "POST", "/authorize": "HEAD", "/consent": "PUT"} {
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, s.url+path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: %d", method, path, w.Code)
		}
	}
}
