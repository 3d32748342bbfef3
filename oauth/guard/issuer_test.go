package guard_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// An ownIssuer is an authorization server of this module, with its store in memory.
type ownIssuer struct {
	t      *testing.T
	server *issuer.Server
	store  issuer.Store
}

const (
	ownURL      = "http://localhost:9000"
	ownRedirect = "http://127.0.0.1:51234/callback"
)

func newOwnIssuer(t *testing.T) *ownIssuer {
	t.Helper()
	s := &ownIssuer{t: t, store: issuer.NewMemory()}
	server, err := issuer.New(ownURL, s.store, issuer.AutoApprove("ada"), &issuer.Options{
		Resources: []issuer.Resource{{URI: resource, Scopes: []issuer.Scope{{Name: "mcp"}}, Introspectors: []string{"rs"}}},
		Clients: []issuer.StaticClient{
			{ID: "app", Metadata: oauth.ClientMetadata{RedirectURIs: []string{ownRedirect}, TokenEndpointAuthMethod: oauth.AuthNone}},
			{ID: "rs", Secret: "secret-of-rs", Metadata: oauth.ClientMetadata{TokenEndpointAuthMethod: oauth.AuthSecretBasic}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	return s
}

// post sends a form and reads the answer.
func (s *ownIssuer) post(path string, form url.Values) (answer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
},
) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, ownURL+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	_ = json.Unmarshal(w.Body.Bytes(), &answer) // a refusal has none of these members
	return answer
}

// signIn returns tokens of ada, and the request that got them.
func (s *ownIssuer) signIn() (access, refresh string, request url.Values) {
	s.t.Helper()
	verifier := oauth.NewVerifier()
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, ownURL+"/authorize?"+url.Values{
		"response_type": {"code"}, "client_id": {"app"}, "redirect_uri": {ownRedirect}, "resource": {resource}, "scope": {"mcp"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.MethodS256},
	}.Encode(), nil))
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		s.t.Fatal(err)
	}
	request = url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {to.Query().Get("code")}, "code_verifier": {verifier},
		"redirect_uri": {ownRedirect}, "client_id": {"app"}, "resource": {resource},
	}
	answer := s.post("/token", request)
	if answer.Access == "" || answer.Refresh == "" {
		s.t.Fatalf("no tokens: %d %s", w.Code, w.Body)
	}
	return answer.Access, answer.Refresh, request
}

// transport sends requests to the authorization server in this process.
type transport struct{ h http.Handler }

func (x transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	x.h.ServeHTTP(w, r)
	return w.Result(), nil
}

// What ends a token of an issuer whose store is in memory ends it, and what is open, at a guard with a
// bound. Proves: RFC 7009, section 2.1; RFC 9700, section 4.14.2; RFC 6749, section 4.1.2, seen by a
// resource server.
func TestEndsOfMemoryIssuer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		act  func(s *ownIssuer, access, refresh string, request url.Values)
		ends bool
	}{
		"nothing": {func(*ownIssuer, string, string, url.Values) {}, false},
		"refreshed": {func(s *ownIssuer, _, refresh string, _ url.Values) {
			s.post("/token", byRefresh(refresh))
		}, false},
		"access token revoked": {func(s *ownIssuer, access, _ string, _ url.Values) {
			s.post("/revoke", url.Values{"client_id": {"app"}, "token": {access}})
		}, true},
		"refresh token revoked": {func(s *ownIssuer, _, refresh string, _ url.Values) {
			s.post("/revoke", url.Values{"client_id": {"app"}, "token": {refresh}})
		}, true},
		"refresh token used twice": {func(s *ownIssuer, _, refresh string, _ url.Values) {
			next := s.post("/token", byRefresh(refresh))
			s.post("/token", byRefresh(next.Refresh))
			s.post("/token", byRefresh(refresh))
		}, true},
		"grants revoked": {func(s *ownIssuer, _, _ string, _ url.Values) {
			if n, err := s.store.RevokeGrants(s.t.Context(), "ada", "app", time.Now()); err != nil || n != 1 {
				s.t.Errorf("revoked %d grants, %v", n, err)
			}
		}, true},
		"code used twice": {func(s *ownIssuer, _, _ string, request url.Values) { s.post("/token", request) }, true},
		"a made-up token revoked": {func(s *ownIssuer, _, _ string, _ url.Values) {
			s.post("/revoke", url.Values{"client_id": {"app"}, "token": {"made-up"}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newOwnIssuer(t)
				fetch := oauth.NewFetcher(&oauth.FetchOptions{Around: func(http.RoundTripper) http.RoundTripper { return transport{s.server} }})
				defer fetch.Close()
				g, err := guard.New(resource, guard.Introspection(ownURL, &guard.IntrospectionOptions{
					ClientID: "rs", ClientSecret: "secret-of-rs", Fetch: fetch,
				}), &guard.Options{RequireFresh: fresh})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				if err := g.Check(t.Context()); err != nil {
					t.Error(err)
				}
				w := &watchedSite{t: t, h: g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))}
				access, refresh, request := s.signIn()
				ended, leave := w.startWith(access, http.MethodGet, "long")
				defer func() { leave(); <-ended }()
				time.Sleep(3 * fresh)
				if over(ended) {
					t.Fatal("the stream ended, and nothing was revoked")
				}
				test.act(s, access, refresh, request)
				time.Sleep(fresh)
				if over(ended) != test.ends {
					t.Errorf("the stream ended: %v, want %v", !test.ends, test.ends)
				}
			})
		})
	}
}

func byRefresh(token string) url.Values {
	return url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {token}, "client_id": {"app"}, "resource": {resource}}
}
