package guard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
)

func parseChallenge(t *testing.T, text string) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	w.Header().Set("WWW-Authenticate", text)
	return challengeOf(t, w)
}

// The metadata is at both of its places, names at least one authorization
// server and the least scopes, and nothing that is not the resource's.
// Proves: R1, R2, R9, R10.
func TestMetadata(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"mcp"}, Name: "Files", Documentation: "https://docs.example/"})
	want := []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"}
	if d := cmp.Diff(want, b.guard.MetadataPaths()); d != "" {
		t.Fatal(d)
	}
	for _, path := range want {
		w := b.request(http.MethodGet, "https://api.example"+path)
		m, err := oauth.ParseResourceMetadata(w.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		m.DPoPSigningAlgValuesSupported = nil
		if d := cmp.Diff(&oauth.ResourceMetadata{
			Resource: resource, AuthorizationServers: []string{issuerID}, ScopesSupported: []string{"mcp"},
			BearerMethodsSupported: []string{"header"}, ResourceName: "Files", ResourceDocumentation: "https://docs.example/",
		}, m); d != "" {
			t.Error(d)
		}
		if err := m.Check(resource, false); err != nil {
			t.Error(err)
		}
		h := w.Header()
		if h.Get("Content-Type") != "application/json" || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Cache-Control"), "max-age") {
			t.Errorf("headers: %v", h)
		}
		if w := b.request(http.MethodOptions, "https://api.example"+path, "Origin", "https://any.example", "Access-Control-Request-Method", "GET"); w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("preflight: %d %v", w.Code, w.Header())
		}
		if w := b.request(http.MethodHead, "https://api.example"+path); w.Code != 200 {
			t.Errorf("HEAD: %d", w.Code)
		}
		if w := b.request(http.MethodPost, "https://api.example"+path); w.Code != 405 || w.Header().Get("Allow") == "" {
			t.Errorf("POST: %d", w.Code)
		}
	}
	for _, path := range []string{"/", "/mcp/", "/mcp/x", "/MCP", "//mcp", "/.well-known/oauth-protected-resource/mcp/x", "/.well-known/oauth-protected-resource/"} {
		if w := b.request(http.MethodGet, "https://api.example"+path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A resource without a path has one place, and the endpoint at the root.
func TestMetadataOfRoot(t *testing.T) {
	t.Parallel()
	g, err := guard.New("https://api.example", newFixed(), &guard.Options{
		ScopesSupported: []string{"less"}, Scopes: []string{"mcp"}, DPoPRequired: true,
		AuthorizationServers: []string{"https://a.example", "https://b.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/.well-known/oauth-protected-resource"}, g.MetadataPaths()); d != "" {
		t.Error(d)
	}
	w := httptest.NewRecorder()
	g.Metadata().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/anywhere", nil))
	m, err := oauth.ParseResourceMetadata(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !m.DPoPBoundAccessTokensRequired || len(m.DPoPSigningAlgValuesSupported) == 0 || len(m.AuthorizationServers) != 2 || m.ScopesSupported[0] != "less" {
		t.Errorf("metadata: %+v", m)
	}
	for path, status := range map[string]int{"/": 401, "/x": 404} {
		w := httptest.NewRecorder()
		g.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		if w.Code != status {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Several guards share an origin: each challenge leads to its own metadata.
func TestSeveralGuards(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for i, name := range []string{"one", "two"} {
		g, err := guard.New("https://api.example/"+name, newFixed(), nil)
		if err != nil {
			t.Fatal(err)
		}
		paths := g.MetadataPaths()
		if i > 0 {
			paths = paths[:1] // the root is the first one's
		}
		for _, path := range paths {
			mux.Handle(path, g.Metadata())
		}
		mux.Handle("/"+name, g.Protect(http.NotFoundHandler()))
	}
	for _, name := range []string{"one", "two"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+name, nil))
		place := challengeOf(t, w)["resource_metadata"]
		w = httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, place, nil))
		m, err := oauth.ParseResourceMetadata(w.Body.Bytes())
		if err != nil || m.Resource != "https://api.example/"+name {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// Nothing that a request says of its host gets into discovery. Attack: Host
// header. Proves: R2.
func TestAttackHostHeaderDiscovery(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	for _, target := range []string{"/mcp", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://evil.example"+target, nil)
		r.Host = `evil.example"`
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Original-URL", "X-Forwarded-Prefix"} {
			r.Header.Set(name, "evil.example")
		}
		w := httptest.NewRecorder()
		b.h.ServeHTTP(w, r)
		if text := w.Body.String() + w.Header().Get("WWW-Authenticate"); strings.Contains(text, "evil") || !strings.Contains(text, "https://api.example/") {
			t.Errorf("%s: %d %s", target, w.Code, text)
		}
	}
}

// Pages of listed origins can read refusals, and their preflights reach the
// endpoint without a token; everybody else's are refused like any request.
func TestOrigins(t *testing.T) {
	t.Parallel()
	const page = "https://app.example"
	b := setUp(t, &guard.Options{Origins: []string{page}})
	w := b.do("Origin", page)
	b.refused(w, 401, "")
	if h := w.Header(); h.Get("Access-Control-Allow-Origin") != page || h.Get("Vary") != "Origin" || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("headers: %v", h)
	}
	for _, origin := range []string{"https://evil.example", "null", page + ".evil.example", "HTTPS://app.example"} {
		if w := b.do("Origin", origin); w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may read", origin)
		}
		b.refused(b.request(http.MethodOptions, resource, "Origin", origin, "Access-Control-Request-Method", "POST"), 401, "")
	}
	b.refused(b.request(http.MethodOptions, resource, "Origin", page), 401, "")
	b.refused(b.request(http.MethodOptions, resource, "Access-Control-Request-Method", "POST"), 401, "")
	b.refused(b.request(http.MethodPost, resource, "Origin", page, "Access-Control-Request-Method", "POST"), 401, "")
	b.refused(b.request(http.MethodOptions, resource, "Origin", page, "Origin", page, "Access-Control-Request-Method", "POST"), 401, "")

	p := b.passed(b.request(http.MethodOptions, resource, "Origin", page, "Access-Control-Request-Method", "POST", "Authorization", "Bearer "+b.token(nil)))
	if p != nil || b.seen.Header["Authorization"] != nil {
		t.Errorf("a preflight has principal %v, headers %v", p, b.seen.Header)
	}
}
