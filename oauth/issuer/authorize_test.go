package issuer_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Errors after client and redirect URI are known go to the client, with state
// and iss. Proves: S3, S6.
func TestAuthorizeErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		o.Clients = append(o.Clients, issuer.StaticClient{ID: "machine", Secret: "s", Metadata: oauth.ClientMetadata{
			RedirectURIs: []string{webRedirect}, GrantTypes: []string{oauth.GrantClientCredentials},
		}})
	})
	for _, test := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"no response type", []string{"response_type", "-"}, oauth.InvalidRequest},
		{"token", []string{"response_type", "token"}, oauth.UnsupportedResponseType},
		{"hybrid", []string{"response_type", "code id_token"}, oauth.UnsupportedResponseType},
		{"fragment", []string{"response_mode", "fragment"}, oauth.InvalidRequest},
		{"no challenge", []string{"code_challenge", "-"}, oauth.InvalidRequest},
		{"no method", []string{"code_challenge_method", "-"}, oauth.InvalidRequest},
		{"plain", []string{"code_challenge_method", "plain"}, oauth.InvalidRequest},
		{"short challenge", []string{"code_challenge", "abc"}, oauth.InvalidRequest},
		{"other resource", []string{"resource", "https://evil.example"}, oauth.InvalidTarget},
		{"no URL", []string{"resource", "mcp"}, oauth.InvalidTarget},
		{"unknown scope", []string{"scope", "admin"}, oauth.InvalidScope},
		{"broken scope", []string{"scope", "a\"b"}, oauth.InvalidScope},
		{"request", []string{"request", "x"}, "request_not_supported"},
		{"request_uri", []string{"request_uri", "https://evil.example/r"}, "request_uri_not_supported"},
		{"registration", []string{"registration", "{}"}, "registration_not_supported"},
		{"nobody there", []string{"prompt", "none"}, oauth.LoginRequired},
		{"none and more", []string{"prompt", "none login"}, oauth.InvalidRequest},
		{"unknown prompt", []string{"prompt", "create"}, oauth.InvalidRequest},
		{"long nonce", []string{"nonce", strings.Repeat("n", 600)}, oauth.InvalidRequest},
		{"dpop_jkt", []string{"dpop_jkt", "x"}, oauth.InvalidRequest},
		{"grant type", []string{"client_id", "machine"}, oauth.UnauthorizedClient},
	} {
		got := s.person().open(s.request(test.pairs...))
		if got.away == nil || got.status != http.StatusSeeOther {
			t.Errorf("%s: %d %s", test.name, got.status, got.body)
			continue
		}
		q := got.away.Query()
		if q.Get("error") != test.want || q.Get("state") != "st&te=1" || q.Get("iss") != s.url || q.Has("code") {
			t.Errorf("%s: %v", test.name, got.away)
		}
		if !strings.HasPrefix(got.away.String(), webRedirect+"?") {
			t.Errorf("%s: sent to %v", test.name, got.away)
		}
	}
	for name, want := range map[string]string{
		"&state=other": oauth.InvalidRequest, "&scope=notes:write": oauth.InvalidRequest,
		"&unknown=1&unknown=2": oauth.InvalidRequest, "&resource=https://other.example": oauth.InvalidTarget,
	} {
		got := s.person().open(s.request() + name)
		if got.away == nil || got.away.Query().Get("error") != want {
			t.Errorf("%s: %v", name, got.away)
		}
	}
	long := s.person().open(s.request("state", strings.Repeat("s", 5000)))
	if long.away == nil || long.away.Query().Get("error") != oauth.InvalidRequest || long.away.Query().Has("state") {
		t.Errorf("long state: %v", long.away)
	}
}

// A resource need not be named if there is one alone.
func TestOnlyResource(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "", 2: oauth.InvalidTarget} {
		s := newSite(t, "", issuer.AutoApprove("ada"), func(o *issuer.Options) {
			if n == 2 {
				o.Resources = append(o.Resources, issuer.Resource{URI: "https://other.example"})
			}
		})
		got := s.person().open(s.request("resource", "-"))
		if got.away == nil || got.away.Query().Get("error") != want {
			t.Errorf("%d resources: %v", n, got.away)
		}
	}
}

// Attack: open redirect. Proves: S7. Whatever is not verified gets a page and
// never a redirect.
func TestAttackOpenRedirect(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", issuer.AutoApprove("ada"), nil)
	for _, test := range []struct{ client, redirect string }{
		{"web", "https://evil.example/cb"},
		{"web", "https://client.example/cb/"},
		{"web", "https://client.example/cb?x=1"},
		{"web", "https://client.example/CB"},
		{"web", "https://client.example/cb/../x"},
		{"web", "https://client.example:443/cb"},
		{"web", "http://client.example/cb"},
		{"web", "https://client.example@evil.example/cb"},
		{"web", "https://client.example\\@evil.example/cb"},
		{"web", "https://client.example/cb#x"},
		{"web", "https://client.example/cb\r\nX: y"},
		{"web", "//client.example/cb"},
		{"web", "javascript:alert(1)"},
		{"web", "data:text/html,x"},
		{"web", ""},
		{"app", "http://127.0.0.1.evil.example/cb"},
		{"app", "http://127.0.0.1:80@evil.example/cb"},
		{"app", "http://127.0.0.1:99999/cb"},
		{"app", "http://127.0.0.1:1/other"},
		{"app", "http://[::1]/cb"},
		{"app", "https://127.0.0.1/cb"},
		{"app", "com.example.app:/other"},
		{"app", "-"}, // it has several
		{"nobody", webRedirect},
		{"", webRedirect},
		{"-", webRedirect},
	} {
		got := s.person().open(s.request("client_id", test.client, "redirect_uri", test.redirect))
		if got.away != nil || got.status != http.StatusBadRequest || got.header.Get("Location") != "" {
			t.Errorf("%q at %q: %d %v", test.client, test.redirect, got.status, got.away)
		}
		if strings.Contains(got.body, "evil") || strings.Contains(got.body, "javascript") {
			t.Errorf("%q: the page repeats what came in:\n%s", test.redirect, got.body)
		}
	}
	for _, twice := range []string{"&redirect_uri=https://evil.example", "&client_id=app", "&redirect_uri=" + webRedirect} {
		if got := s.person().open(s.request() + twice); got.away != nil || got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", twice, got.status, got.away)
		}
	}
	for _, test := range []struct{ client, redirect string }{
		{"web", webRedirect},
		{"web", "-"},
		{"app", "http://127.0.0.1:51234/cb"},
		{"app", "http://127.0.0.1/cb"},
		{"app", "http://localhost:9/cb"},
		{"app", "com.example.app:/cb"},
	} {
		got := s.person().open(s.request("client_id", test.client, "redirect_uri", test.redirect))
		if got.away == nil || got.away.Query().Get("code") == "" {
			t.Errorf("%q at %q: %d %v", test.client, test.redirect, got.status, got.body)
		}
	}
}

// A POST is the same request as a GET, also from another site.
func TestAuthorizePost(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", issuer.AutoApprove("ada"), nil)
	u, err := url.Parse(s.request())
	if err != nil {
		t.Fatal(err)
	}
	p := s.person()
	got := p.do(http.MethodPost, s.url+"/authorize", u.Query(), "cross-site")
	p.code(got)
	huge := p.do(http.MethodPost, s.url+"/authorize", url.Values{"state": {strings.Repeat("x", 20<<10)}}, "cross-site")
	if huge.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge form: %d", huge.status)
	}
	if long := p.open(s.request("state", strings.Repeat("x", 17<<10))); long.status != http.StatusRequestURITooLong {
		t.Errorf("a long query: %d", long.status)
	}
}

// What a redirect URI carries is kept as it is.
func TestRedirectQuery(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://c.example/cb?a=b%20c": "https://c.example/cb?a=b%20c&",
		"https://c.example/cb?":        "https://c.example/cb?",
		"com.example.app:/cb":          "com.example.app:/cb?",
	} {
		s := newSite(t, "", issuer.AutoApprove("ada"), func(o *issuer.Options) {
			o.Clients = []issuer.StaticClient{{ID: "c", Metadata: oauth.ClientMetadata{
				RedirectURIs: []string{uri}, ApplicationType: "native",
			}}}
		})
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.request("client_id", "c", "redirect_uri", uri), nil))
		if got := w.Header().Get("Location"); !strings.HasPrefix(got, want+"code=") {
			t.Errorf("%s: sent to %q", uri, got)
		}
	}
}

// prompt and what is remembered.
func TestPrompt(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	p.code(p.submit(p.signIn(s.request(), "ada"), "answer", "approve"))
	p.code(p.open(s.request("prompt", "none")))
	if got := p.open(s.request("prompt", "none", "scope", "notes:write")); got.away == nil || got.away.Query().Get("error") != oauth.ConsentRequired {
		t.Errorf("prompt=none for more than was granted: %v", got.away)
	}
	if got := p.open(s.request("prompt", "consent")); !strings.Contains(got.body, "Allow") || got.away != nil {
		t.Errorf("prompt=consent: %d %v", got.status, got.away)
	}
	// The same person proves it again, and need not agree again.
	p.code(p.signIn(s.request("prompt", "login"), "ada"))
	// Another person must.
	if got := p.signIn(s.request("prompt", "login"), "bob"); got.away != nil || !strings.Contains(got.body, "Dear bob") {
		t.Errorf("another person was not asked: %v", got.away)
	}
	s.clock.Add(9 * time.Hour)
	if got := p.open(s.request()); !strings.Contains(got.body, "Sign in") {
		t.Errorf("a login of yesterday still holds: %v", got.away)
	}
}

// The grant holds what was asked and who agreed; the code what the token
// endpoint compares.
func TestCodeIsBound(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	key := oauth.ChallengeS256("key")
	code := p.code(p.submit(p.signIn(s.request("dpop_jkt", key, "nonce", "n1"), "ada"), "answer", "approve"))
	got, err := s.store.ConsumeCode(t.Context(), issuer.Hash(code), s.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	grant, err := s.store.Grant(t.Context(), got.Grant, s.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got.ClientID != "web" || got.RedirectURI != webRedirect || got.Challenge != oauth.ChallengeS256(verifier) ||
		got.Resource != mcpServer || got.Key != key || got.Nonce != "n1" || !got.Expires.Equal(s.clock.Now().Add(time.Minute)) {
		t.Errorf("code is %+v", got)
	}
	if grant.ClientID != "web" || grant.Subject != "ada" || !slices.Equal(grant.Scopes, []string{"notes:read"}) ||
		grant.Resource != mcpServer || string(grant.Claims) != `{"team":"a"}` || !grant.AuthTime.Equal(s.clock.Now()) {
		t.Errorf("grant is %+v", grant)
	}
}

// A code remembers where it was sent, also if the request left the only redirect URI out.
func TestCodeRemembersRedirect(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	code := p.code(p.submit(p.signIn(s.request("redirect_uri", "-"), "ada"), "answer", "approve"))
	got, err := s.store.ConsumeCode(t.Context(), issuer.Hash(code), s.clock.Now())
	if err != nil || got.RedirectURI != webRedirect {
		t.Errorf("code is %+v, %v", got, err)
	}
}

// Whatever the query, nobody is sent to an address that the client did not
// register. Attack: open redirect.
func FuzzAuthorize(f *testing.F) {
	server, err := issuer.New("http://127.0.0.1:1", issuer.NewMemory(), issuer.AutoApprove("ada"), &issuer.Options{
		Resources: []issuer.Resource{{URI: mcpServer}},
		Clients: []issuer.StaticClient{
			{ID: "web", Metadata: oauth.ClientMetadata{RedirectURIs: []string{webRedirect}}},
			{ID: "app", Metadata: oauth.ClientMetadata{RedirectURIs: []string{"http://127.0.0.1/cb", "com.example.app:/cb"}}},
		},
		Documents: issuer.DocumentPolicy{Off: true},
		RateLimit: -1,
	})
	if err != nil {
		f.Fatal(err)
	}
	good := (&site{url: ""}).request()[len("/authorize?"):]
	f.Add(good)
	f.Add(strings.Replace(good, "client_id=web", "client_id=app", 1))
	f.Add("client_id=app&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcb&state=x")
	f.Add("client_id=app&redirect_uri=com.example.app%3A%2Fcb&prompt=none")
	f.Add("client_id=web&redirect_uri=https%3A%2F%2Fclient.example%2Fcb%40evil.example")
	f.Add("client_id=web&redirect_uri=javascript%3Aalert%281%29;client_id=app")
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/authorize", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		location := w.Header().Get("Location")
		if location == "" {
			if w.Code < 400 {
				t.Fatalf("status %d without Location", w.Code)
			}
			return
		}
		u, err := url.Parse(location)
		if err != nil || strings.ContainsAny(location, "\r\n\\ ") {
			t.Fatalf("sent to %q, %v", location, err)
		}
		web := u.Scheme == "https" && u.Host == "client.example" && u.Path == "/cb"
		app := u.Scheme == "http" && u.Hostname() == "127.0.0.1" && u.Path == "/cb" || u.Scheme == "com.example.app" && u.Path == "/cb"
		if !web && !app || u.User != nil || u.Fragment != "" || w.Code != http.StatusSeeOther {
			t.Fatalf("%d, sent to %q", w.Code, location)
		}
		q := u.Query()
		if len(q["iss"]) != 1 || q.Get("iss") != "http://127.0.0.1:1" || len(q["code"])+len(q["error"]) != 1 {
			t.Fatalf("answer is %q", location)
		}
	})
}
