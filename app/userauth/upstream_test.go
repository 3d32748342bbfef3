package userauth_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/userauth"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A provider is an OpenID provider that signs everybody in at once, as one does
// that knows the browser. Tests bend it.
type provider struct {
	t     *testing.T
	url   string
	clock *clock
	key   *rsa.PrivateKey

	mu       sync.Mutex
	strays   []string     // what nobody should ask for
	asked    []url.Values // authorization requests
	codes    map[string]url.Values
	metadata map[string]any                 // replaces members
	response func(url.Values)               // changes the response
	claims   func(map[string]any)           // changes the ID token
	signer   *rsa.PrivateKey                // instead of key
	token    func(http.ResponseWriter) bool // answers instead
}

func newProvider(t *testing.T, clock *clock) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, clock: clock, key: key, codes: map[string]url.Values{}}
	p.url = serve(t, func(string) http.Handler { return p })
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		metadata := map[string]any{
			"issuer": p.url, "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token", "jwks_uri": p.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
		for name, value := range p.metadata {
			metadata[name] = value
		}
		p.answer(w, metadata)
	case "/authorize":
		q := r.URL.Query()
		p.asked = append(p.asked, q)
		code := oauth.NewSecret()
		p.codes[code] = q
		back := url.Values{"code": {code}, "state": {q.Get("state")}}
		if p.response != nil {
			p.response(back)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
	case "/token":
		p.exchange(w, r)
	case "/keys":
		n := base64.RawURLEncoding.EncodeToString(p.key.N.Bytes())
		p.answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": n, "e": "AQAB"}}})
	default:
		p.strays = append(p.strays, r.Method+" "+r.URL.Path)
		http.NotFound(w, r)
	}
}

func (p *provider) exchange(w http.ResponseWriter, r *http.Request) {
	if p.token != nil && p.token(w) {
		return
	}
	id, secret, _ := r.BasicAuth()
	code := r.PostFormValue("code")
	q := p.codes[code]
	delete(p.codes, code)
	if id != "parley" || secret != "s3cr3t" || q == nil || q.Get("redirect_uri") != r.PostForm.Get("redirect_uri") ||
		!oauth.VerifyS256(r.PostForm.Get("code_verifier"), q.Get("code_challenge")) || q.Get("code_challenge_method") != "S256" {
		w.WriteHeader(http.StatusBadRequest)
		p.answer(w, map[string]any{"error": "invalid_grant"})
		return
	}
	now := p.clock.Now()
	claims := map[string]any{
		"iss": p.url, "sub": "1234", "aud": "parley", "nonce": q.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"auth_time": now.Unix(), "name": "Ada L.", "email": "ada@example.com",
	}
	if p.claims != nil {
		p.claims(claims)
	}
	answer := map[string]any{"access_token": "upstream-access-token", "token_type": "Bearer", "id_token": p.sign(claims)}
	p.answer(w, answer)
}

func (p *provider) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *provider) sign(claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	key := p.key
	if p.signer != nil {
		key = p.signer
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (p *provider) requests() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]url.Values{}, p.asked...)
}

// upstreamSite is an issuer whose people sign in at a provider. change may be nil.
func upstreamSite(t *testing.T, change func(*userauth.UpstreamOptions)) (*site, *provider) {
	t.Helper()
	clock := newClock()
	p := newProvider(t, clock)
	o := userauth.UpstreamOptions{Issuer: p.url, ClientID: "parley", ClientSecret: "s3cr3t", Now: clock.Now}
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
	if !strings.Contains(question.body, "Example Company") || len(provider.requests()) != 0 {
		t.Fatalf("no consent before leaving: %d requests there, %s", len(provider.requests()), question.body)
	}
	code := p.code(p.submit(question, "answer", "approve"))
	if got, want := s.subject(code), provider.url+"|1234"; got != want {
		t.Errorf("the code is for %q, want %q", got, want)
	}
	q := provider.requests()[0]
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
	if q := provider.requests()[1]; q.Get("prompt") != "login" || q.Get("max_age") != "0" {
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
			attacker.near = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), provider.url) }
			question := attacker.open(s.request("client_id", "evil", "redirect_uri", evilURI))
			left := attacker.submit(question, "answer", "approve")
			if left.away == nil || !strings.HasPrefix(left.away.String(), provider.url+"/authorize?") {
				t.Fatalf("the attacker is not sent to the provider: %d %v", left.status, left.away)
			}
			got := victim.open(left.away.String())
			if got.away != nil || got.status != http.StatusForbidden || !strings.Contains(got.body, "another browser") {
				t.Errorf("the victim's browser: %d %v %s", got.status, got.away, got.body)
			}
			// The state is used up for the attacker, too.
			state := left.away.Query().Get("state")
			again := attacker.open(s.url + "/login/callback?" + url.Values{"state": {state}, "code": {"x"}}.Encode())
			if again.away != nil || again.status != http.StatusBadRequest {
				t.Errorf("the state works once more: %d %v", again.status, again.away)
			}
		})
	}
}

// Proves: what a provider, or whoever stands between, may send back.
func TestUpstreamResponses(t *testing.T) {
	t.Parallel()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, value any) func(*provider) {
		return func(p *provider) { p.claims = func(c map[string]any) { c[name] = value } }
	}
	response := func(name string, values ...string) func(*provider) {
		return func(p *provider) { p.response = func(q url.Values) { q[name] = values } }
	}
	answer := func(status int, body string) func(*provider) {
		return func(p *provider) {
			p.token = func(w http.ResponseWriter) bool {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Location", p.url+"/elsewhere")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
				return true
			}
		}
	}
	const unavailable = oauth.TemporarilyUnavailable
	for name, test := range map[string]struct {
		bend func(*provider)
		want string // error at the client; "" for a code
	}{
		"nothing bent":                 {func(*provider) {}, ""},
		"denied":                       {response("error", "access_denied"), oauth.AccessDenied},
		"error":                        {response("error", "server_error"), unavailable},
		"no code":                      {response("code"), unavailable},
		"two codes":                    {response("code", "a", "b"), unavailable},
		"foreign code":                 {response("code", "stolen"), unavailable},
		"right iss":                    {func(p *provider) { response("iss", p.url)(p) }, ""},
		"mix-up":                       {response("iss", "https://other.example"), unavailable},
		"missing iss":                  {func(p *provider) { p.metadata = map[string]any{"authorization_response_iss_parameter_supported": true} }, unavailable},
		"replayed ID token":            {claim("nonce", "another"), unavailable},
		"no nonce":                     {claim("nonce", ""), unavailable},
		"another audience":             {claim("aud", "another"), unavailable},
		"several audiences":            {claim("aud", []string{"parley", "another"}), unavailable},
		"another party":                {claim("azp", "another"), unavailable},
		"another issuer":               {claim("iss", "https://other.example"), unavailable},
		"expired":                      {claim("exp", 1_600_000_000), unavailable},
		"no subject":                   {claim("sub", ""), unavailable},
		"foreign key":                  {func(p *provider) { p.signer = other }, unavailable},
		"no ID token":                  {answer(http.StatusOK, `{"access_token":"secret-detail","token_type":"Bearer"}`), unavailable},
		"no JSON":                      {answer(http.StatusOK, `secret-detail`), unavailable},
		"refusal":                      {answer(http.StatusBadRequest, `{"error":"invalid_grant","error_description":"secret-detail"}`), unavailable},
		"redirect of the POST":         {answer(http.StatusTemporaryRedirect, `secret-detail`), unavailable},
		"another discovery":            {func(p *provider) { p.metadata = map[string]any{"issuer": "https://other.example"} }, unavailable},
		"script as endpoint":           {func(p *provider) { p.metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"} }, unavailable},
		"token endpoint in clear":      {func(p *provider) { p.metadata = map[string]any{"token_endpoint": "http://192.0.2.1/token"} }, unavailable},
		"keys from the cloud's inside": {func(p *provider) { p.metadata = map[string]any{"jwks_uri": "https://169.254.169.254/keys"} }, unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, provider := upstreamSite(t, nil)
			test.bend(provider)
			p := newPerson(t)
			got := p.submit(p.open(s.request()), "answer", "approve")
			if got.away == nil || got.away.Query().Get("error") != test.want || (test.want == "") != got.away.Query().Has("code") {
				t.Errorf("got %d %v %s, want error %q", got.status, got.away, got.body, test.want)
			}
			provider.mu.Lock()
			defer provider.mu.Unlock()
			if len(provider.strays) > 0 {
				t.Errorf("the code, or a token, went to %q", provider.strays)
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
	provider.claims = func(c map[string]any) { c["auth_time"] = s.clock.Now().Add(-time.Hour).Unix() }
	p := newPerson(t)
	p.code(p.submit(p.open(s.request()), "answer", "approve"))
	got := p.submit(p.open(s.request("prompt", "login")), "answer", "approve")
	if got.away == nil || got.away.Query().Get("error") != oauth.TemporarilyUnavailable {
		t.Errorf("an old login for a new one: %d %v", got.status, got.away)
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
	provider.claims = func(c map[string]any) { c["email"] = "eve@evil.example" }
	stranger := newPerson(t)
	got := stranger.submit(stranger.open(s.request()), "answer", "approve")
	if got.away == nil || got.away.Query().Get("error") != oauth.AccessDenied {
		t.Errorf("a stranger: %d %v", got.status, got.away)
	}
}

// Two people never become one, however long their names are.
func TestUpstreamLongSubject(t *testing.T) {
	t.Parallel()
	s, provider := upstreamSite(t, nil)
	seen := map[string]bool{}
	for _, last := range []string{"a", "b"} {
		provider.claims = func(c map[string]any) { c["sub"] = strings.Repeat("x", 254) + last }
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
	if got.away == nil || got.away.Query().Get("error") != oauth.TemporarilyUnavailable || len(inside.requests()) != 0 {
		t.Errorf("got %d %v", got.status, got.away)
	}
	if !strings.Contains(s.log.String(), "is not public") {
		t.Errorf("the log does not say why: %s", s.log)
	}
}
