package userauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/oidctest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// newProvider is an OpenID provider with a clock.
func newProvider(t *testing.T, clock *clock) *oidctest.Provider {
	t.Helper()
	p := oidctest.New(t)
	p.Now = clock.Now
	return p
}

// upstreamSite is an issuer whose people sign in at a provider. change may be nil.
func upstreamSite(t *testing.T, change func(*userauth.UpstreamOptions)) (*site, *oidctest.Provider) {
	t.Helper()
	clock := newClock()
	p := newProvider(t, clock)
	o := userauth.UpstreamOptions{Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: p.Secret, Now: clock.Now}
	if change != nil {
		change(&o)
	}
	login, err := userauth.NewUpstream(o)
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, clock, login), p
}

// Proves: S11: consent before forwarding; the way of a person through another
// provider, with PKCE, nonce and state.
func TestUpstreamFlow(t *testing.T) {
	t.Parallel()
	s, provider := upstreamSite(t, nil)
	p := newPerson(t)
	question := p.open(s.request("login_hint", "ada@example.com"))
	if !strings.Contains(question.Body, "Example Company") || len(provider.Asked()) != 0 {
		t.Fatalf("no consent before leaving: %d requests there, %s", len(provider.Asked()), question.Body)
	}
	code := p.code(p.submit(question, "answer", "approve"))
	if got, want := s.subject(code), provider.URL+"|1234"; got != want {
		t.Errorf("the code is for %q, want %q", got, want)
	}
	q := provider.Asked()[0]
	for name, want := range map[string]string{
		"client_id": "parley", "response_type": "code", "scope": "openid profile email", "code_challenge_method": "S256",
		"redirect_uri": s.url + "/login/callback", "login_hint": "ada@example.com",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(q.Get(name)) < 43 {
			t.Errorf("%s is %q", name, q.Get(name))
		}
	}
	if strings.Contains(s.log.String(), "upstream-access-token") || strings.Contains(s.log.String(), q.Get("state")) {
		t.Errorf("a secret is in the log: %s", s.log)
	}

	// Told to ask again, the provider is told so as well.
	question = p.open(s.request("prompt", "login"))
	p.code(p.submit(question, "answer", "approve"))
	if q := provider.Asked()[1]; q.Get("prompt") != "login" || q.Get("max_age") != "0" {
		t.Errorf("a new login was asked for with %v", q)
	}
}

// Attack: confused deputy. Proves: S11, S12: the attacker agrees to its own client in its
// own browser and sends the link to the provider, with that state, to a victim,
// whom the provider knows: the victim's browser is refused.
func TestAttackConfusedDeputyUpstream(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*site, *person){
		"new browser":               func(*site, *person) {},
		"browser that was here":     func(s *site, p *person) { p.open(s.request()) },
		"browser that is signed in": func(s *site, p *person) { p.code(p.submit(p.open(s.request()), "answer", "approve")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, provider := upstreamSite(t, nil)
			victim := newPerson(t)
			before(s, victim)
			attacker := newPerson(t)
			attacker.Follows = func(u *url.URL) bool { return isLocal(u) && !strings.HasPrefix(u.String(), provider.URL) }
			question := attacker.open(s.request("client_id", "evil", "redirect_uri", evilURI))
			left := attacker.submit(question, "answer", "approve")
			if left.Away == nil || !strings.HasPrefix(left.Away.String(), provider.URL+"/authorize?") {
				t.Fatalf("the attacker is not sent to the provider: %d %v", left.Status, left.Away)
			}
			got := victim.open(left.Away.String())
			if got.Away != nil || got.Status != http.StatusForbidden || !strings.Contains(got.Body, "another browser") {
				t.Errorf("the victim's browser: %d %v %s", got.Status, got.Away, got.Body)
			}
			// The state is used up for the attacker, too.
			state := left.Away.Query().Get("state")
			again := attacker.open(s.url + "/login/callback?" + url.Values{"state": {state}, "code": {"x"}}.Encode())
			if again.Away != nil || again.Status != http.StatusBadRequest {
				t.Errorf("the state works once more: %d %v", again.Status, again.Away)
			}
		})
	}
}

// Proves: what a provider, or whoever stands between, may send back.
func TestUpstreamResponses(t *testing.T) {
	t.Parallel()
	other := oidctest.NewKey()
	claim := func(name string, value any) func(*oidctest.Provider) {
		return func(p *oidctest.Provider) { p.Claims = func(c map[string]any) { c[name] = value } }
	}
	response := func(name string, values ...string) func(*oidctest.Provider) {
		return func(p *oidctest.Provider) { p.Response = func(q url.Values) { q[name] = values } }
	}
	answer := func(status int, body string) func(*oidctest.Provider) {
		return func(p *oidctest.Provider) {
			p.Token = func(w http.ResponseWriter) bool {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Location", p.URL+"/elsewhere")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
				return true
			}
		}
	}
	const unavailable = oauth.TemporarilyUnavailable
	for name, test := range map[string]struct {
		bend func(*oidctest.Provider)
		want string // error at the client; "" for a code
	}{
		"nothing bent": {func(*oidctest.Provider) {}, ""},
		"denied":       {response("error", "access_denied"), oauth.AccessDenied},
		"error":        {response("error", "server_error"), unavailable},
		"no code":      {response("code"), unavailable},
		"two codes":    {response("code", "a", "b"), unavailable},
		"foreign code": {response("code", "stolen"), unavailable},
		"right iss":    {func(p *oidctest.Provider) { response("iss", p.URL)(p) }, ""},
		"mix-up":       {response("iss", "https://other.example"), unavailable},
		"missing iss": {func(p *oidctest.Provider) {
			p.Metadata = map[string]any{"authorization_response_iss_parameter_supported": true}
		}, unavailable},
		"replayed ID token":    {claim("nonce", "another"), unavailable},
		"no nonce":             {claim("nonce", ""), unavailable},
		"another audience":     {claim("aud", "another"), unavailable},
		"several audiences":    {claim("aud", []string{"parley", "another"}), unavailable},
		"another party":        {claim("azp", "another"), unavailable},
		"another issuer":       {claim("iss", "https://other.example"), unavailable},
		"expired":              {claim("exp", 1_600_000_000), unavailable},
		"no subject":           {claim("sub", ""), unavailable},
		"foreign key":          {func(p *oidctest.Provider) { p.Signer = other }, unavailable},
		"no ID token":          {answer(http.StatusOK, `{"access_token":"secret-detail","token_type":"Bearer"}`), unavailable},
		"no JSON":              {answer(http.StatusOK, `secret-detail`), unavailable},
		"refusal":              {answer(http.StatusBadRequest, `{"error":"invalid_grant","error_description":"secret-detail"}`), unavailable},
		"redirect of the POST": {answer(http.StatusTemporaryRedirect, `secret-detail`), unavailable},
		"another discovery":    {func(p *oidctest.Provider) { p.Metadata = map[string]any{"issuer": "https://other.example"} }, unavailable},
		"script as endpoint": {func(p *oidctest.Provider) {
			p.Metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"}
		}, unavailable},
		"token endpoint in clear":      {func(p *oidctest.Provider) { p.Metadata = map[string]any{"token_endpoint": "http://192.0.2.1/token"} }, unavailable},
		"keys from the cloud's inside": {func(p *oidctest.Provider) { p.Metadata = map[string]any{"jwks_uri": "https://169.254.169.254/keys"} }, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, provider := upstreamSite(t, nil)
			test.bend(provider)
			p := newPerson(t)
			got := p.submit(p.open(s.request()), "answer", "approve")
			if got.Away == nil || got.Away.Query().Get("error") != test.want || (test.want == "") != got.Away.Query().Has("code") {
				t.Errorf("got %d %v %s, want error %q", got.Status, got.Away, got.Body, test.want)
			}
			if strays := provider.Strays(); len(strays) > 0 {
				t.Errorf("the code, or a token, went to %q", strays)
			}
			if log := s.log.String(); strings.Contains(log, "secret-detail") || strings.Contains(log, "eyJ") || strings.Contains(log, "stolen") {
				t.Errorf("the log shows what it must not: %s", log)
			}
		})
	}
}

// A provider that did not ask again, though told to.
func TestUpstreamStale(t *testing.T) {
	t.Parallel()
	s, provider := upstreamSite(t, nil)
	provider.Claims = func(c map[string]any) { c["auth_time"] = s.clock.Now().Add(-time.Hour).Unix() }
	p := newPerson(t)
	p.code(p.submit(p.open(s.request()), "answer", "approve"))
	got := p.submit(p.open(s.request("prompt", "login")), "answer", "approve")
	if got.Away == nil || got.Away.Query().Get("error") != oauth.TemporarilyUnavailable {
		t.Errorf("an old login for a new one: %d %v", got.Status, got.Away)
	}
}

func TestUpstreamAccept(t *testing.T) {
	t.Parallel()
	s, provider := upstreamSite(t, func(o *userauth.UpstreamOptions) {
		o.Accept = func(_ context.Context, claims []byte, p *issuer.Person) error {
			var c struct{ Email string }
			if err := json.Unmarshal(claims, &c); err != nil {
				return err
			}
			if !strings.HasSuffix(c.Email, "@example.com") {
				return errors.New("not one of us")
			}
			p.Subject, p.Claims = "employee-"+p.Name, []byte(`{"team":"a"}`)
			return nil
		}
	})
	p := newPerson(t)
	if got := s.subject(p.code(p.submit(p.open(s.request()), "answer", "approve"))); got != "employee-Ada L." {
		t.Errorf("subject is %q", got)
	}
	provider.Claims = func(c map[string]any) { c["email"] = "eve@evil.example" }
	stranger := newPerson(t)
	got := stranger.submit(stranger.open(s.request()), "answer", "approve")
	if got.Away == nil || got.Away.Query().Get("error") != oauth.AccessDenied {
		t.Errorf("a stranger: %d %v", got.Status, got.Away)
	}
}

// Two people never become one, however long their names are.
func TestUpstreamLongSubject(t *testing.T) {
	t.Parallel()
	s, provider := upstreamSite(t, nil)
	seen := map[string]bool{}
	for _, last := range []string{"a", "b"} {
		provider.Claims = func(c map[string]any) { c["sub"] = strings.Repeat("x", 254) + last }
		p := newPerson(t)
		seen[s.subject(p.code(p.submit(p.open(s.request()), "answer", "approve")))] = true
	}
	if len(seen) != 2 {
		t.Errorf("subjects %v", seen)
	}
}

func TestNewUpstream(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]userauth.UpstreamOptions{
		"no issuer":       {ClientID: "c"},
		"issuer in clear": {Issuer: "http://idp.example", ClientID: "c"},
		"no client":       {Issuer: "https://idp.example"},
	} {
		if _, err := userauth.NewUpstream(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Attack: SSRF: a provider that is not on loopback cannot name endpoints that
// are, nor a name that leads there.
func TestAttackUpstreamSSRF(t *testing.T) {
	t.Parallel()
	clock := newClock()
	inside := newProvider(t, clock)
	login, err := userauth.NewUpstream(userauth.UpstreamOptions{
		Issuer: "https://idp.example", ClientID: "parley", Now: clock.Now,
		Fetch: oauth.NewFetcher(&oauth.FetchOptions{Resolve: func(context.Context, string) ([]string, error) {
			return []string{"127.0.0.1"}, nil
		}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, clock, login)
	p := newPerson(t)
	got := p.submit(p.open(s.request()), "answer", "approve")
	if got.Away == nil || got.Away.Query().Get("error") != oauth.TemporarilyUnavailable || len(inside.Asked()) != 0 {
		t.Errorf("got %d %v", got.Status, got.Away)
	}
	if !strings.Contains(s.log.String(), "is not public") {
		t.Errorf("the log does not say why: %s", s.log)
	}
}

// Bad input: groups of a provider are those of an array or of one text, as they are; what no group can be
// is left out.
func TestUpstreamGroups(t *testing.T) {
	t.Parallel()
	var seen []string
	s, provider := upstreamSite(t, func(o *userauth.UpstreamOptions) {
		o.GroupsClaim = "teams"
		o.OnGroups = func(_ context.Context, subject string, groups []string) error {
			if !strings.HasPrefix(subject, o.Issuer+"|") {
				return errors.New("not a subject of the provider: " + subject)
			}
			seen = groups
			return nil
		}
	})
	many := make([]any, 300)
	for i := range many {
		many[i] = "g" + strings.Repeat("x", i%250)
	}
	for _, test := range []struct {
		name  string
		claim any
		want  []string
	}{
		{"none", nil, nil},
		{"an array", []any{"CN=a,OU=b", "c", "c"}, []string{"CN=a,OU=b", "c"}},
		{"a text", "a,b", []string{"a,b"}},
		{"what no group can be", []any{"", "a\nb", "a\u202eb", strings.Repeat("x", 256), 7, nil, []any{"d"}, "e"}, []string{"e"}},
		{"an object", map[string]any{"a": true}, nil},
		{"a look-alike", []any{"\u0430dmins"}, []string{"\u0430dmins"}},
	} {
		provider.Claims = func(c map[string]any) {
			if test.claim != nil {
				c["teams"] = test.claim
			}
		}
		p := newPerson(t)
		s.subject(p.code(p.submit(p.open(s.request()), "answer", "approve")))
		if !slices.Equal(seen, test.want) {
			t.Errorf("%s: %q, want %q", test.name, seen, test.want)
		}
	}
	provider.Claims = func(c map[string]any) { c["teams"] = many }
	p := newPerson(t)
	s.subject(p.code(p.submit(p.open(s.request()), "answer", "approve")))
	if len(seen) != 200 {
		t.Errorf("%d groups of 300", len(seen))
	}
}

// Bad input: a provider that gives a person another mail address or name changes nothing of who it is here;
// one that gives the same address to another subject has made another person.
func TestUpstreamChangedPerson(t *testing.T) {
	t.Parallel()
	s, provider := upstreamSite(t, nil)
	subject := func(sub, name, email string) string {
		provider.Claims = func(c map[string]any) { c["sub"], c["name"], c["email"] = sub, name, email }
		p := newPerson(t)
		return s.subject(p.code(p.submit(p.open(s.request()), "answer", "approve")))
	}
	first := subject("7", "Ada", "ada@example.com")
	if got := subject("7", "Ada Lovelace", "a.lovelace@example.com"); got != first {
		t.Errorf("with another address %q became %q", first, got)
	}
	if got := subject("8", "Ada", "ada@example.com"); got == first {
		t.Errorf("another subject with the same address is %q, too", got)
	}
}

// People of a provider have an account page too, without a password; signing in for it asks them
// about no client.
func TestUpstreamAccount(t *testing.T) {
	t.Parallel()
	s, _ := upstreamSite(t, nil)
	p := newPerson(t)
	shown := p.open(s.url + "/account")
	if shown.Status != http.StatusOK || !strings.Contains(shown.Body, "Browsers where you are signed in") || strings.Contains(shown.Body, "/account/password") {
		t.Fatalf("the account page: %d %v %s", shown.Status, shown.Away, shown.Body)
	}
	if got := p.submit(shown, "do", "sign-out"); !strings.Contains(got.Body, "You are signed out") {
		t.Errorf("after signing out: %d %s", got.Status, got.Body)
	}
}

// A link of an invitation, which an operator can make on the database of any server, says that people
// sign in elsewhere, and leads there.
func TestUpstreamInvitation(t *testing.T) {
	t.Parallel()
	s, there := upstreamSite(t, nil)
	p := newPerson(t)
	host := strings.TrimPrefix(there.URL, "http://")
	for _, address := range []string{userauth.InvitationLink(s.url, "secret"), s.url + "/account/password"} {
		got := p.open(address)
		if got.Status != http.StatusGone || !strings.Contains(got.Body, "with their accounts at "+host) ||
			!strings.Contains(got.Body, `<a href="/account">Sign in at `+host+`</a>`) || strings.Contains(got.Body, "<form") {
			t.Errorf("%s: %d %s", address, got.Status, got.Body)
		}
	}
	if got := p.open(s.url + "/account"); !strings.Contains(got.Body, "Browsers where you are signed in") || len(there.Asked()) != 1 {
		t.Errorf("the link leads to %d %s", got.Status, got.Body)
	}
}
