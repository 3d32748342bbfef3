package issuer_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Attack: clickjacking. Every page, errors included, is for no frame, no
// script, and nobody's cache. Proves: S12.
func TestAttackClickjacking(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	login := p.open(s.request())
	for name, got := range map[string]*page{
		"login":   login,
		"consent": p.submit(login, "user", "ada", "password", "right"),
		"error":   p.open(s.url + "/authorize"),
		"expired": p.open(s.url + "/consent?visit=x"),
	} {
		policy := got.header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "style-src 'sha256-"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q lacks %q", name, policy, want)
			}
		}
		for header, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Referrer-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8",
		} {
			if v := got.header.Get(header); v != want {
				t.Errorf("%s: %s is %q", name, header, v)
			}
		}
		for _, never := range []string{"<script", "<img", "<link", "<iframe", "http-equiv", "javascript:"} {
			if strings.Contains(got.body, never) {
				t.Errorf("%s: the page has %s", name, never)
			}
		}
	}
}

// Attack: CSRF on consent. Proves: S12.
func TestAttackConsentCSRF(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	question := p.signIn(s.request(), "ada")
	token := tokens.FindStringSubmatch(question.body)[1]
	other := tokens.FindStringSubmatch(p.open(s.request("state", "2")).body)[1]
	stranger := tokens.FindStringSubmatch(s.person().signIn(s.request(), "eve").body)[1]
	approve := func(token string) url.Values { return url.Values{"csrf": {token}, "answer": {"approve"}} }
	twice := url.Values{"csrf": {token, token}, "answer": {"approve"}}
	for _, test := range []struct {
		name string
		form url.Values
		from string
		want int
	}{
		{"no token", url.Values{"answer": {"approve"}}, "same-origin", http.StatusForbidden},
		{"token of another request", approve(other), "same-origin", http.StatusForbidden},
		{"token of another browser", approve(stranger), "same-origin", http.StatusForbidden},
		{"token twice", twice, "same-origin", http.StatusForbidden},
		{"cross-site", approve(token), "cross-site", http.StatusForbidden},
		{"same-site", approve(token), "same-site", http.StatusForbidden},
		{"no answer", url.Values{"csrf": {token}}, "same-origin", http.StatusBadRequest},
		{"unknown answer", url.Values{"csrf": {token}, "answer": {"yes"}}, "same-origin", http.StatusBadRequest},
	} {
		got := p.do(http.MethodPost, question.url, test.form, test.from)
		if got.away != nil || got.status != test.want {
			t.Errorf("%s: %d %v", test.name, got.status, got.away)
		}
	}
	for _, origin := range []string{"null", "https://evil.example", "http://127.0.0.1"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, question.url, strings.NewReader(approve(token).Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", origin)
		resp, err := p.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("origin %s: %d", origin, resp.StatusCode)
		}
	}
	if got := p.open(question.url + "&answer=approve&csrf=" + token); got.away != nil {
		t.Errorf("a GET approved: %v", got.away)
	}
	// After all of this the person's own answer still counts, and counts once.
	p.code(p.submit(question, "answer", "approve"))
	if got := p.submit(question, "answer", "approve"); got.away != nil || !strings.Contains(got.body, "Already answered") {
		t.Errorf("second answer: %d %v", got.status, got.away)
	}
}

// Attack: a login form of another site signs the victim in as the attacker.
func TestAttackLoginCSRF(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	form := p.open(s.request())
	fields := url.Values{"user": {"eve"}, "password": {"right"}}
	if got := p.do(http.MethodPost, form.url, fields, "cross-site"); got.status != http.StatusForbidden || p.login() != "" {
		t.Errorf("login from another site: %d", got.status)
	}
}

// Names come from strangers: they are escaped, cut, and cannot turn the page
// around.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		`<script>alert(1)</script>`:    "&lt;script&gt;alert(1)&lt;/script&gt;",
		"a\u202eb\u0000c\nd":           "abc d",
		"  many    blanks\t":           "“many blanks”",
		strings.Repeat("long", 100):    "longlong…”",
		"":                             "An application without a name",
		`” to read nothing. “Nice App`: "” to read nothing. “Nice App",
	} {
		s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
			o.Clients = []issuer.StaticClient{{ID: "web", Metadata: oauth.ClientMetadata{RedirectURIs: []string{webRedirect}}}}
			o.Registration.On = true
		})
		if _, err := s.store.AddClient(t.Context(), &issuer.Client{
			ID: "c", Dynamic: true, Digest: "d", Created: s.clock.Now(), Expires: s.clock.Now().Add(time.Hour),
			Metadata: oauth.ClientMetadata{ClientName: name, RedirectURIs: []string{webRedirect}, LogoURI: "https://evil.example/logo.png"},
		}, 0); err != nil {
			t.Fatal(err)
		}
		got := s.person().signIn(s.request("client_id", "c"), "ada")
		if want == "longlong…”" {
			want = strings.Repeat("long", 14) + "lon…”"
		}
		if !strings.Contains(got.body, want) || strings.Contains(got.body, "<script") || strings.Contains(got.body, "evil.example") {
			t.Errorf("%q:\n%s", name, got.body)
		}
	}
}

// What is remembered: the same person, client, resource, redirect URI, and no
// more scopes; never of programs on this device that nobody registered.
func TestRememberedConsent(t *testing.T) {
	t.Parallel()
	asked := func(got *page) bool { return got.away == nil && strings.Contains(got.body, "Allow") }
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		o.Registration.On = true
		o.Resources = append(o.Resources, issuer.Resource{URI: "https://other.example"})
	})
	p := s.person()
	app := []string{"client_id", "app", "redirect_uri", "http://127.0.0.1:5000/cb"}
	p.code(p.submit(p.signIn(s.request(app...), "ada"), "answer", "approve"))
	p.code(p.open(s.request("client_id", "app", "redirect_uri", "http://127.0.0.1:5001/cb")))
	for name, pairs := range map[string][]string{
		"other redirect": {"client_id", "app", "redirect_uri", "com.example.app:/cb"},
		"other resource": append([]string{"resource", "https://other.example", "scope", "-"}, app...),
		"more scopes":    append([]string{"scope", "notes:read notes:write"}, app...),
		"other client":   {},
	} {
		if got := p.open(s.request(pairs...)); !asked(got) {
			t.Errorf("%s was not asked about: %v", name, got.away)
		}
	}
	s.clock.Add(7 * time.Hour)
	p.code(p.open(s.request(app...)))

	local := s.registerClient(`{"client_name":"CLI","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}`)
	request := s.request("client_id", local, "redirect_uri", "http://127.0.0.1:6000/cb")
	question := p.open(request)
	if !strings.Contains(question.body, "program on this computer") {
		t.Errorf("no warning about loopback:\n%s", question.body)
	}
	p.code(p.submit(question, "answer", "approve"))
	if got := p.open(request); !asked(got) {
		t.Errorf("a program on this device was not asked about again: %v", got.away)
	}

	never := newSite(t, "", formLogin{}, func(o *issuer.Options) { o.ConsentLifetime = -1 })
	p = never.person()
	p.code(p.submit(p.signIn(never.request(), "ada"), "answer", "approve"))
	if got := p.open(never.request()); !asked(got) {
		t.Errorf("ConsentLifetime -1 remembered: %v", got.away)
	}
}

// Somebody else may take over at the consent page.
func TestSwitchAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	form := p.submit(p.signIn(s.request(), "ada"), "answer", "switch")
	if !strings.Contains(form.body, "Sign in") || p.login() != "" {
		t.Fatalf("no login page: %d %s", form.status, form.body)
	}
	question := p.submit(form, "user", "bob", "password", "right")
	if !strings.Contains(question.body, "Dear bob") {
		t.Errorf("consent page is not bob's:\n%s", question.body)
	}
	p.code(p.submit(question, "answer", "approve"))
}

// A program on this device, one behind a private scheme: the page says so.
// Proves: S10.
func TestConsentWarnings(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	p.signIn(s.request(), "ada")
	for uri, want := range map[string][]string{
		"http://127.0.0.1:5000/cb": {"127.0.0.1:5000", "program on this computer"},
		"http://localhost:7000/cb": {"localhost:7000", "program on this computer"},
		"com.example.app:/cb":      {"com.example.app:", "app on this device"},
	} {
		got := p.open(s.request("client_id", "app", "redirect_uri", uri))
		for _, text := range want {
			if !strings.Contains(got.body, text) {
				t.Errorf("%s: page lacks %q", uri, text)
			}
		}
	}
}
