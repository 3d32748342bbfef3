package issuer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A siteLogin sends browsers to another site, where the issuer is one static
// client, and whose own consent page nobody sees any more: it signs everybody
// in at once.
type siteLogin struct {
	upstream string

	mu   sync.Mutex
	last string // state of the last trip
	left int
	data string // what came back with the last callback
}

func (l *siteLogin) External() bool { return true }

func (l *siteLogin) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	if v.Data == nil {
		state, err := v.Leave(r.Context(), []byte("nonce"))
		if err != nil {
			v.Fail(w, r, err)
			return
		}
		l.mu.Lock()
		l.last, l.left = state, l.left+1
		l.mu.Unlock()
		q := url.Values{"state": {state}, "client_id": {"static"}, "redirect_uri": {v.URL + "/callback"}}
		http.Redirect(w, r, l.upstream+"?"+q.Encode(), http.StatusSeeOther)
		return
	}
	l.mu.Lock()
	l.data = string(v.Data)
	l.mu.Unlock()
	switch r.URL.Query().Get("code") {
	case "":
		v.Cancel(w, r)
	case "broken":
		v.Fail(w, r, errors.New("token secret-detail"))
	default:
		v.Done(w, r, issuer.Person{Subject: r.URL.Query().Get("code")})
	}
}

func (l *siteLogin) trips() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// evilMetadata is what an attacker registers.
const evilMetadata = `{"client_name":"Web Client","redirect_uris":["https://evil.example/cb"],"token_endpoint_auth_method":"none","application_type":"web"}`

// registerClient registers dynamically.
func (s *site) registerClient(metadata string) string {
	s.t.Helper()
	status, body := s.post("/register", "application/json", metadata)
	if status != http.StatusCreated {
		s.t.Fatalf("registration: %d %s", status, body)
	}
	info, err := oauth.ParseClientInformation([]byte(body))
	if err != nil {
		s.t.Fatal(err)
	}
	return info.ClientID
}

// callback is the way back from the other site.
func (s *site) callback(state, code string) string {
	return s.url + "/login/callback?" + url.Values{"state": {state}, "code": {code}}.Encode()
}

// Attack: confused deputy. Proves: S11, S12: consent per client before the
// browser leaves; a state that exists only after consent, works once, for ten
// minutes, and in the browser that was asked.
func TestAttackConfusedDeputy(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*site, *siteLogin) {
		login := &siteLogin{upstream: "https://upstream.example/authorize"}
		s := newSite(t, "", login, func(o *issuer.Options) {
			o.Registration.On = true
			o.Upstream = issuer.Upstream{Name: "Upstream", Scopes: []string{"repo"}}
		})
		return s, login
	}
	// leave goes as far as the other site.
	leave := func(t *testing.T, s *site, p *person, request string) string {
		t.Helper()
		question := p.open(request)
		got := p.submit(question, "answer", "approve")
		if got.away == nil || got.away.Host != "upstream.example" {
			t.Fatalf("not sent to the other site: %d %v %s", got.status, got.away, got.body)
		}
		if got.away.Query().Get("redirect_uri") != s.url+"/login/callback" {
			t.Errorf("redirect URI at the other site is %v", got.away)
		}
		return got.away.Query().Get("state")
	}

	t.Run("consent comes first", func(t *testing.T) {
		t.Parallel()
		s, login := start(t)
		p := s.person()
		question := p.open(s.request())
		for _, want := range []string{"Web Client", "client.example", "Upstream", "repo"} {
			if !strings.Contains(question.body, want) {
				t.Errorf("consent page lacks %q", want)
			}
		}
		// Going around the page leads back to it.
		around := p.open(strings.Replace(question.url, "/consent", "/login", 1))
		if around.away != nil || login.trips() != 0 || !strings.Contains(around.body, "Upstream") {
			t.Errorf("left without consent: %v", around.away)
		}
		denied := p.submit(around, "answer", "deny")
		if denied.away.Query().Get("error") != oauth.AccessDenied || login.trips() != 0 {
			t.Errorf("deny: %v after %d trips", denied.away, login.trips())
		}
	})
	t.Run("consent is per client", func(t *testing.T) {
		t.Parallel()
		s, login := start(t)
		p := s.person()
		got := p.open(s.callback(leave(t, s, p, s.request()), "ada"))
		p.code(got)
		if got.away.Host != "client.example" || login.data != "nonce" {
			t.Errorf("sent to %v with data %q", got.away, login.data)
		}
		// The attacker's client comes with a link, to the same browser.
		evil := s.registerClient(evilMetadata)
		question := p.open(s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"))
		if question.away != nil || !strings.Contains(question.body, "evil.example") || !strings.Contains(question.body, "unverified") {
			t.Errorf("another client was not asked about: %v", question.away)
		}
		if login.trips() != 1 {
			t.Errorf("%d trips", login.trips())
		}
	})
	t.Run("state works once", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t)
		p := s.person()
		state := leave(t, s, p, s.request())
		p.code(p.open(s.callback(state, "ada")))
		if again := p.open(s.callback(state, "ada")); again.away != nil || again.status != http.StatusBadRequest {
			t.Errorf("second callback: %d %v", again.status, again.away)
		}
	})
	t.Run("another browser", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t)
		// The attacker agrees in a browser of its own, and sends the link to
		// the other site, with that state, to somebody who is known there.
		attacker, victim := s.person(), s.person()
		evil := s.registerClient(evilMetadata)
		state := leave(t, s, attacker, s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"))
		victim.open(s.request()) // has been here before
		if got := victim.open(s.callback(state, "victim")); got.away != nil || got.status != http.StatusForbidden {
			t.Errorf("callback in another browser: %d %v", got.status, got.away)
		}
		state = leave(t, s, attacker, s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"))
		if got := s.person().open(s.callback(state, "victim")); got.away != nil || got.status != http.StatusForbidden {
			t.Errorf("callback in a new browser: %d %v", got.status, got.away)
		}
		// The page before it is worth no more elsewhere than the link that it
		// began with: the victim is asked, and the attacker has lost it.
		question := attacker.open(s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"))
		got := victim.open(question.url)
		if got.away != nil || got.url == question.url || !strings.Contains(got.body, "evil.example") {
			t.Errorf("consent page in another browser: %d %s", got.status, got.url)
		}
		if got := attacker.submit(question, "answer", "approve"); got.away != nil {
			t.Errorf("the attacker agreed for the victim: %v", got.away)
		}
		if got := attacker.open(got.url); got.status != http.StatusOK || got.away != nil || !strings.Contains(got.body, "evil.example") {
			t.Errorf("consent page back in the first browser: %d", got.status)
		}
		fresh := attacker.open(s.request())
		if got := s.person().open(fresh.url); got.status != http.StatusForbidden {
			t.Errorf("consent page in a browser without cookies: %d", got.status)
		}
	})
	t.Run("ten minutes", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t)
		p := s.person()
		state := leave(t, s, p, s.request())
		s.clock.Add(10*time.Minute + time.Second)
		if late := p.open(s.callback(state, "ada")); late.away != nil || late.status != http.StatusBadRequest {
			t.Errorf("late callback: %d %v", late.status, late.away)
		}
	})
	t.Run("unknown state", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t)
		for _, query := range []string{"", "?state=x", "?state=x&state=y", "?code=ada", "?visit=x"} {
			if got := s.person().open(s.url + "/login/callback" + query); got.away != nil || got.status != http.StatusBadRequest {
				t.Errorf("%q: %d %v", query, got.status, got.away)
			}
		}
	})
	t.Run("no, and not now", func(t *testing.T) {
		t.Parallel()
		s, _ := start(t)
		p := s.person()
		for code, want := range map[string]string{"": oauth.AccessDenied, "broken": oauth.TemporarilyUnavailable} {
			got := p.open(s.callback(leave(t, s, p, s.request("prompt", "login")), code))
			if got.away == nil || got.away.Query().Get("error") != want || strings.Contains(got.away.String(), "secret-detail") {
				t.Errorf("%q: %v", code, got.away)
			}
		}
	})
}

// A Login that says it stays cannot leave.
func TestLeaveNeedsExternal(t *testing.T) {
	t.Parallel()
	login := &leaver{}
	s := newSite(t, "", login, nil)
	got := s.person().open(s.request())
	if got.away == nil || got.away.Query().Get("error") != oauth.TemporarilyUnavailable {
		t.Errorf("a Login that is not external left: %v", got.away)
	}
}

type leaver struct{}

func (leaver) External() bool { return false }

func (leaver) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	state, err := v.Leave(r.Context(), []byte("x"))
	if err != nil {
		v.Fail(w, r, err)
		return
	}
	http.Redirect(w, r, "https://upstream.example/?state="+state, http.StatusSeeOther)
}

// A Login's mistakes do not become somebody's identity.
func TestPersonIsChecked(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]issuer.Person{
		"nobody":      {},
		"long":        {Subject: strings.Repeat("x", 256)},
		"no object":   {Subject: "ada", Claims: []byte("[]")},
		"broken JSON": {Subject: "ada", Claims: []byte(`{"a":1,"a":2}`)},
	} {
		s := newSite(t, "", fixedLogin{who}, nil)
		got := s.person().open(s.request())
		if got.away == nil || got.away.Query().Get("error") != oauth.TemporarilyUnavailable {
			t.Errorf("%s: %d %v", name, got.status, got.away)
		}
	}
}

type fixedLogin struct{ who issuer.Person }

func (fixedLogin) External() bool { return false }

func (l fixedLogin) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	v.Done(w, r, l.who)
}

// One visit ends once, however many requests run for it.
func TestVisitEndsOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	form := p.open(s.request())
	var wg sync.WaitGroup
	done := make(chan int, 16)
	for range cap(done) {
		wg.Go(func() {
			if got := p.submit(form, "user", "ada", "password", "right"); strings.Contains(got.body, "Allow") {
				done <- 1
			}
		})
	}
	wg.Wait()
	if len(done) != 1 {
		t.Errorf("%d requests went on to consent, want 1", len(done))
	}
}

// The cookies of an https issuer: Proves: S12.
func TestCookies(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]struct {
		prefix string
		secure bool
	}{
		"https://as.example":         {"__Host-parley-", true},
		"https://as.example/tenant1": {"__Host-parley-", true},
		"http://127.0.0.1:8080":      {"parley-", false},
	} {
		server, err := issuer.New(id, issuer.NewMemory(), fixedLogin{issuer.Person{Subject: "ada"}}, &issuer.Options{
			Resources: []issuer.Resource{{URI: mcpServer}},
			Clients:   []issuer.StaticClient{{ID: "web", Metadata: oauth.ClientMetadata{RedirectURIs: []string{webRedirect}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		first := serve(t, server, (&site{url: id}).request("scope", "-"))
		cookies := setCookies(t, first)
		origin := strings.TrimSuffix(id, "/tenant1")
		cookies = append(cookies, setCookies(t, serve(t, server, origin+first.Header().Get("Location"), cookies...))...)
		if len(cookies) != 2 {
			t.Fatalf("%s: %d cookies", id, len(cookies))
		}
		for _, c := range cookies {
			if !strings.HasPrefix(c.Name, want.prefix) || c.Secure != want.secure || !c.HttpOnly ||
				c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
				t.Errorf("%s: cookie %s", id, c.Raw)
			}
		}
	}
}

func serve(t *testing.T, h http.Handler, target string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func setCookies(t *testing.T, w *httptest.ResponseRecorder) []*http.Cookie {
	t.Helper()
	var cookies []*http.Cookie
	for _, line := range w.Header().Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	return cookies
}

// Attack: session fixation: a login that somebody planted is not taken over,
// and each sign-in has a secret of its own.
func TestAttackSessionFixation(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	p.signIn(s.request(), "ada")
	before := p.login()
	p.signIn(s.request("prompt", "login"), "bob")
	after := p.login()
	if before == "" || after == "" || before == after {
		t.Errorf("login was %q and is %q", before, after)
	}
	if _, err := s.store.Record(context.Background(), "login", issuer.Hash(before), s.clock.Now()); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("the old login is still there: %v", err)
	}
}

// login is the value of the login cookie.
func (p *person) login() string {
	u, err := url.Parse(p.site.url)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, c := range p.client.Jar.Cookies(u) {
		if strings.Contains(c.Name, "login") {
			return c.Value
		}
	}
	return ""
}
