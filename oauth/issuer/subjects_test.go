package issuer_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// people are a Login and its Subjects: everybody's password is "right", and
// everybody has a stamp.
type people struct {
	mu     sync.Mutex
	stamps map[string]string
	err    error
}

func (p *people) set(name, stamp string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stamps[name] = stamp
}

func (p *people) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *people) Current(_ context.Context, subject, stamp string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	got, ok := p.stamps[subject]
	return ok && got == stamp, p.err
}

func (p *people) External() bool { return false }

func (p *people) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	if r.Method == http.MethodPost {
		p.mu.Lock()
		stamp := p.stamps[r.PostForm.Get("user")]
		p.mu.Unlock()
		v.Done(w, r, issuer.Person{Subject: r.PostForm.Get("user"), Stamp: stamp})
		return
	}
	v.Page(w, http.StatusOK, "Sign in", template.HTML(`<form method="post" action="`+html.EscapeString(v.Action(""))+
		`"><input type="hidden" name="csrf" value="`+v.CSRF()+`"></form>`))
}

// exchange asks the token endpoint for the client "web" and returns a refresh
// token or an error code.
func (s *site) exchange(form url.Values) (refresh, trouble string) {
	s.t.Helper()
	form.Set("client_id", "web")
	form.Set("resource", mcpServer)
	_, body := s.post("/token", "application/x-www-form-urlencoded", form.Encode())
	var answer struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || (answer.Access == "") == (answer.Error == "") {
		s.t.Fatalf("the token endpoint said %s, %v", body, err)
	}
	return answer.Refresh, answer.Error
}

func byCode(code string) url.Values {
	return url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "redirect_uri": {webRedirect}, "code_verifier": {verifier},
	}
}

func byRefresh(token string) url.Values {
	return url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {token}}
}

// Attack: a person who was removed, or whose password was stolen and changed,
// goes on: with the browser's cookie, a page that waits for consent, a code, a
// refresh token.
func TestAttackRemovedPerson(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*people){
		"removed":          func(p *people) { p.mu.Lock(); delete(p.stamps, "ada"); p.mu.Unlock() },
		"another password": func(p *people) { p.set("ada", "two") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := &people{stamps: map[string]string{"ada": "one", "eve": "one"}}
			s := newSite(t, "", all, func(o *issuer.Options) { o.Subjects = all })
			browser, other := s.person(), s.person()
			code := browser.code(browser.submit(browser.signIn(s.request(), "ada"), "answer", "approve"))
			refresh, trouble := s.exchange(byCode(code))
			if refresh == "" {
				t.Fatal(trouble)
			}
			waiting := browser.code(browser.open(s.request()))
			question := browser.open(s.request("prompt", "consent"))
			eve := other.code(other.submit(other.signIn(s.request(), "eve"), "answer", "approve"))
			if !strings.Contains(question.body, "Read your notes") {
				t.Fatalf("no consent page: %s", question.body)
			}

			end(all)
			if got := browser.open(s.request()); got.away != nil || !strings.Contains(got.body, "Sign in") {
				t.Errorf("the browser is still signed in: %v %s", got.away, got.body)
			}
			if got := browser.open(s.request("prompt", "none")); got.away == nil || got.away.Query().Get("error") != oauth.LoginRequired {
				t.Errorf("prompt=none: sent to %v", got.away)
			}
			if got := browser.submit(question, "answer", "approve"); got.away != nil || !strings.Contains(got.body, "Sign in") {
				t.Errorf("the page that waited: sent to %v %s", got.away, got.body)
			}
			if _, trouble := s.exchange(byCode(waiting)); trouble != oauth.InvalidGrant {
				t.Errorf("the code: %q", trouble)
			}
			for range 2 {
				if _, trouble := s.exchange(byRefresh(refresh)); trouble != oauth.InvalidGrant {
					t.Errorf("the refresh token: %q", trouble)
				}
			}
			token, trouble := s.exchange(byCode(eve))
			if trouble == "" {
				_, trouble = s.exchange(byRefresh(token))
			}
			if trouble != "" {
				t.Errorf("somebody else is refused: %s", trouble)
			}
		})
	}
}

// A betweenStore does something right after a code was consumed, or a refresh
// token read.
type betweenStore struct {
	issuer.Store

	then func()
}

func (b *betweenStore) Grant(ctx context.Context, id string, now time.Time) (*issuer.Grant, error) {
	g, err := b.Store.Grant(ctx, id, now)
	b.then()
	return g, err
}

// Attack: a race with the removal: between the code, or the refresh token, and
// the tokens for it.
func TestAttackRemovedPersonRace(t *testing.T) {
	t.Parallel()
	all := &people{stamps: map[string]string{"ada": "one"}}
	store := &betweenStore{Store: issuer.NewMemory(), then: func() {}}
	s := newSiteOn(t, "", store, all, func(o *issuer.Options) { o.Subjects = all })
	browser := s.person()
	first := browser.code(browser.submit(browser.signIn(s.request(), "ada"), "answer", "approve"))
	second := browser.code(browser.open(s.request()))
	refresh, trouble := s.exchange(byCode(first))
	if refresh == "" {
		t.Fatal(trouble)
	}
	store.then = func() { all.set("ada", "two") }
	if _, trouble := s.exchange(byCode(second)); trouble != oauth.InvalidGrant {
		t.Errorf("code: %q", trouble)
	}
	all.set("ada", "one")
	if _, trouble := s.exchange(byRefresh(refresh)); trouble != oauth.InvalidGrant {
		t.Errorf("refresh token: %q", trouble)
	}
}

// What cannot be asked is not taken for granted, and costs nobody anything.
func TestSubjectsFail(t *testing.T) {
	t.Parallel()
	all := &people{stamps: map[string]string{"ada": "one"}}
	s := newSite(t, "", all, func(o *issuer.Options) { o.Subjects = all })
	browser := s.person()
	code := browser.code(browser.submit(browser.signIn(s.request(), "ada"), "answer", "approve"))
	refresh, trouble := s.exchange(byCode(code))
	if refresh == "" {
		t.Fatal(trouble)
	}
	all.fail(errors.New("secret-detail"))
	if got := browser.open(s.request()); got.away == nil || got.away.Query().Get("error") != oauth.ServerError {
		t.Errorf("the browser is sent to %v", got.away)
	}
	if _, trouble := s.exchange(byRefresh(refresh)); trouble != oauth.ServerError {
		t.Errorf("the refresh token: %q", trouble)
	}
	all.fail(nil)
	if _, trouble := s.exchange(byRefresh(refresh)); trouble != "" {
		t.Errorf("the refresh token afterwards: %q", trouble)
	}
}

// A stampStore gives each grant the stamp of a login.
type stampStore struct{ issuer.Store }

func (s stampStore) AddGrant(ctx context.Context, g *issuer.Grant) error {
	stamped := *g
	stamped.Stamp = "one"
	return s.Store.AddGrant(ctx, &stamped)
}

// Tokens of a person who is gone are introspected as such, and exchanged for
// no others, also if nobody revoked the grant.
func TestTokenOfRemovedPerson(t *testing.T) {
	t.Parallel()
	all := &people{stamps: map[string]string{"ada": "one"}}
	d := newDesk(t, stampStore{issuer.NewMemory()}, func(o *issuer.Options) { o.Subjects = all })
	token := d.signIn("public").text("access_token")
	exchange := func() string {
		return send(d.server, "token", params("grant_type", oauth.GrantTokenExchange, "subject_token", token,
			"subject_token_type", oauth.TokenTypeAccessToken, "resource", otherServer), basic("rs", secret)).brief()
	}
	if got := exchange(); !d.active(token) || got == oauth.InvalidGrant {
		t.Fatalf("the token is not good: exchanged with %s", got)
	}
	all.set("ada", "two")
	if got := exchange(); d.active(token) || got != oauth.InvalidGrant {
		t.Errorf("the token is good: exchanged with %s", got)
	}
}

// Attack: a page that waits for consent is answered in a browser that the operator has signed
// out meanwhile.
func TestAttackConsentAfterSignOut(t *testing.T) {
	t.Parallel()
	store := issuer.NewMemory()
	s := newSiteOn(t, "", store, formLogin{}, registering)
	p := s.person()
	question := p.signIn(s.request(), "ada")
	if n, err := store.RemoveSessions(t.Context(), "ada", "", s.clock.Now()); n != 1 || err != nil {
		t.Fatalf("RemoveSessions: %d, %v", n, err)
	}
	got := p.submit(question, "answer", "approve")
	if got.away != nil || !strings.Contains(got.body, `name="password"`) {
		t.Fatalf("the answer counts: %v %s", got.away, got.body)
	}
	p.code(p.submit(p.submit(got, "user", "ada", "password", "right"), "answer", "approve"))
}
