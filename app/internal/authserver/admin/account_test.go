package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const newPassword = "battery-staple"

// A record keeps what the servers told their audit and their log.
type record struct {
	mu     sync.Mutex
	text   bytes.Buffer
	events []issuer.Event
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) add(_ context.Context, e issuer.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	fmt.Fprintf(&r.text, "%+v\n", e)
}

func (r *record) count(name, outcome string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Name == name && e.Outcome == outcome {
			n++
		}
	}
	return n
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// newBalanced is a site whose two servers stand behind one address, and answer in turn.
func newBalanced(t *testing.T, dsn string) (*site, *record) {
	t.Helper()
	told := new(record)
	s := &site{t: t, db: openDB(t, dsn), audit: new(acts), clock: stopped(), change: func(o *issuer.Options) {
		o.Audit, o.Logger = told.add, slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}
	front := httptest.NewUnstartedServer(nil)
	s.first = "http://" + front.Listener.Addr().String()
	s.second = s.first
	servers, turn := []http.Handler{s.server(dsn), s.server(dsn)}, new(atomic.Uint64)
	front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		servers[turn.Add(1)%2].ServeHTTP(w, r)
	})
	front.Start()
	t.Cleanup(front.Close)
	s.operator = administer(t, "unix:"+filepath.Join(t.TempDir(), "s"), admin.New(s.db, &admin.Options{
		Audit: s.audit.add, Issuer: func() string { return s.first }, Now: s.now,
	}))
	return s, told
}

// balanced runs a test on two servers with each kind of database.
func balanced(t *testing.T, test func(t *testing.T, s *site, told *record)) {
	t.Helper()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s, told := newBalanced(t, dsn)
		test(t, s, told)
	})
}

func (s *site) person() *person { return &person{Browser: s.browser(), s: s} }

func (p *person) open(address string) *browsertest.Page {
	p.s.t.Helper()
	return p.page(p.Open(p.s.t.Context(), address))
}

func (p *person) submit(from *browsertest.Page, fields url.Values) *browsertest.Page {
	p.s.t.Helper()
	return p.page(p.Submit(p.s.t.Context(), from, fields))
}

func (p *person) page(got *browsertest.Page, err error) *browsertest.Page {
	p.s.t.Helper()
	if err != nil {
		p.s.t.Fatal(err)
	}
	return got
}

// account signs a user in at the account page, and returns what that shows.
func (p *person) account(name, word string) *browsertest.Page {
	p.s.t.Helper()
	return p.submit(p.open(p.s.first+"/account"), url.Values{"name": {name}, "password": {word}, "answer": {"sign-in"}})
}

// says checks the status and a text of a page.
func (s *site) says(what string, p *browsertest.Page, status int, text string) {
	s.t.Helper()
	if p.Status != status || !strings.Contains(html.UnescapeString(p.Body), text) {
		s.t.Errorf("%s: %d %s, want %d and %q", what, p.Status, p.Body, status, text)
	}
}

func sessions(p *browsertest.Page) []string {
	var ids []string
	for _, found := range regexp.MustCompile(`name="session" value="([^"]*)"`).FindAllStringSubmatch(p.Body, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// A person sees and ends what she has, at either server; not what another has.
func TestAccountEnds(t *testing.T) {
	t.Parallel()
	balanced(t, func(t *testing.T, s *site, told *record) {
		s.addUser("ada")
		s.addUser("bob")
		ada, other, bob := s.signIn("app", "ada"), s.signIn("app", "ada"), s.signIn("app", "bob")
		shown := ada.open(s.first + "/account")
		s.says("the account", shown, http.StatusOK, "Change your password")
		bobs := sessions(bob.open(s.first + "/account"))
		if len(sessions(shown)) != 2 || len(bobs) != 1 {
			t.Fatalf("sessions %v and %v", sessions(shown), bobs)
		}
		s.says("another person's session", ada.submit(shown, url.Values{"session": bobs}), http.StatusNotFound, "Nothing was changed")
		s.says("a session", ada.submit(shown, url.Values{"session": sessions(shown)[1:]}), http.StatusOK, "That browser is signed out.")
		if other.authorize(s.first, "app", nil) != "" || ada.authorize(s.first, "app", nil) == "" || bob.authorize(s.first, "app", nil) == "" {
			t.Error("another browser than the chosen one was signed out")
		}
		if !s.active(s.first, other.access) {
			t.Error("signing a browser out ended an application")
		}

		s.says("an application", ada.submit(shown, url.Values{"client": {"app"}}), http.StatusOK, "has no access any more")
		for range 2 {
			if s.active(s.first, ada.access) || s.active(s.first, other.access) || !s.active(s.first, bob.access) {
				t.Error("another application than the chosen one lost its access")
			}
		}
		if got := s.token(s.first, "app", byRefresh(ada.refresh)); got.Error != oauth.InvalidGrant {
			t.Errorf("a refresh token after it: %+v", got)
		}
		if ada.authorize(s.first, "app", nil) != "" || bob.authorize(s.first, "app", nil) == "" {
			t.Error("the consent stayed, or that of another person went")
		}
		s.says("twice", ada.submit(shown, url.Values{"client": {"app"}}), http.StatusNotFound, "not there any more")
		s.says("a foreign form", ada.page(ada.Submit(t.Context(), bob.open(s.first+"/account"), url.Values{"do": {"others"}})), http.StatusForbidden, "did not come from")
		if told.count("session.revoked", "ok") != 1 || told.count("grant.revoked", "ok") != 1 {
			t.Errorf("the audit is %s", told)
		}
	})
}

// A person who knows the old password gives herself another: everything else ends, and this
// browser stays signed in. Wrong ones are slowed down as at the sign-in.
func TestChangePassword(t *testing.T) {
	t.Parallel()
	balanced(t, func(t *testing.T, s *site, told *record) {
		s.addUser("ada")
		s.addUser("bob")
		ada, other, bob := s.signIn("app", "ada"), s.signIn("app", "ada"), s.signIn("app", "bob")
		page := s.first + "/account/password"
		s.says("nobody", s.person().open(page), http.StatusOK, "Sign in")
		form := ada.open(page)
		s.says("the form", form, http.StatusOK, "Old password")
		fields := func(old, first, again string) url.Values {
			return url.Values{"old": {old}, "new": {first}, "again": {again}}
		}
		for _, tt := range []struct {
			name   string
			fields url.Values
			status int
			text   string
		}{
			{"too short", fields(password, "short", "short"), http.StatusBadRequest, "at least 8"},
			{"not the same", fields(password, newPassword, newPassword+"!"), http.StatusBadRequest, "not the same"},
			{"the old one", fields(password, password, password), http.StatusBadRequest, "is the old one"},
			{"wrong", fields("wrong-password", newPassword, newPassword), http.StatusForbidden, "not your password"},
			{"nothing", fields("", newPassword, newPassword), http.StatusForbidden, "not your password"},
		} {
			s.says(tt.name, ada.submit(form, tt.fields), tt.status, tt.text)
		}
		if got := ada.submit(bob.open(page), fields(password, newPassword, newPassword)); got.Status != http.StatusForbidden {
			t.Errorf("the form of another person: %d", got.Status)
		}
		if !s.active(s.first, ada.access) {
			t.Fatal("what was refused ended something")
		}

		got := ada.submit(form, fields(password, newPassword, newPassword))
		s.says("the change", got, http.StatusOK, "Your password is changed.")
		if len(sessions(got)) != 1 {
			t.Errorf("sessions after it: %v", sessions(got))
		}
		for range 2 { // at both servers
			s.says("this browser", ada.open(s.first+"/account"), http.StatusOK, "Your account")
			s.says("another browser", other.open(s.first+"/account"), http.StatusOK, "Sign in")
			if s.active(s.first, ada.access) || s.active(s.first, other.access) || !s.active(s.first, bob.access) {
				t.Error("applications keep their access, or those of another person lose it")
			}
		}
		if got := s.token(s.first, "app", byRefresh(other.refresh)); got.Error != oauth.InvalidGrant {
			t.Errorf("a refresh token after it: %+v", got)
		}
		s.says("the old password", s.person().account("ada", password), http.StatusForbidden, "Name or password is wrong")
		s.says("the new password", s.person().account("ada", newPassword), http.StatusOK, "Your account")
		s.says("the old form", ada.submit(form, fields(newPassword, password, password)), http.StatusForbidden, "did not come from")
		if n := told.count("account.password", "ok"); n != 1 {
			t.Errorf("%d changes in the audit", n)
		}

		form = ada.open(page)
		slow := false
		for range 12 { // each server counts for itself
			got := ada.submit(form, fields("wrong-password", password, password))
			if slow = got.Status == http.StatusTooManyRequests; slow {
				if got.Header.Get("Retry-After") == "" {
					t.Error("nobody is told how long to wait")
				}
				break
			}
		}
		if !slow {
			t.Error("passwords can be guessed without end")
		}
		slow = false
		for range 12 {
			out := &person{Browser: ada.Browser, s: s}
			out.submit(out.open(s.first+"/account"), url.Values{"do": {"sign-out"}})
			if slow = out.account("ada", "wrong-password").Status == http.StatusTooManyRequests; slow {
				break
			}
		}
		if !slow {
			t.Error("the sign-in knows nothing of it")
		}
		for _, secret := range []string{password, newPassword, "wrong-password"} {
			if strings.Contains(told.String(), secret) {
				t.Errorf("%q is in the log", secret)
			}
		}
	})
}

// Two browsers of a person who change the password at once: one of them wins.
func TestChangePasswordRace(t *testing.T) {
	t.Parallel()
	balanced(t, func(t *testing.T, s *site, _ *record) {
		s.addUser("ada")
		statuses, words := make([]int, 2), []string{"password-first", "password-second"}
		people, forms := make([]*person, 2), make([]*browsertest.Page, 2)
		for i := range people {
			people[i] = s.signIn("app", "ada")
			forms[i] = people[i].open(s.first + "/account/password")
		}
		var wg sync.WaitGroup
		for i := range people {
			wg.Go(func() {
				got, err := people[i].Submit(context.WithoutCancel(t.Context()), forms[i], url.Values{"old": {password}, "new": words[i : i+1], "again": words[i : i+1]})
				if err != nil {
					t.Error(err)
					return
				}
				statuses[i] = got.Status
				if strings.Contains(got.Body, "Sign in") {
					statuses[i] = http.StatusUnauthorized // was signed out before
				}
			})
		}
		wg.Wait()
		won := 0
		for i, status := range statuses {
			signsIn := s.person().account("ada", words[i]).Status == http.StatusOK
			if signsIn != (status == http.StatusOK) {
				t.Errorf("the answer was %d, and the password is good: %v", status, signsIn)
			}
			if signsIn {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d changes won: %v", won, statuses)
		}
	})
}

// invite makes a link through the API.
func (s *site) invite(parameters string) *admin.Invitation {
	s.t.Helper()
	return s.do("user invite", parameters).(*admin.Invitation)
}

func chosen(word string) url.Values { return url.Values{"new": {word}, "again": {word}} }

// One who was invited chooses a password, once; until then there is a user who cannot sign in.
func TestInvitation(t *testing.T) {
	t.Parallel()
	balanced(t, func(t *testing.T, s *site, told *record) {
		in := s.invite(`{"name":"Ada"}`)
		if !strings.HasPrefix(in.Link, s.first+"/account/invitation?code=") || in.Name != "ada" ||
			time.Until(in.Expires) < 71*time.Hour || time.Until(in.Expires) > 72*time.Hour {
			t.Fatalf("the invitation is %+v", in)
		}
		_, secret, _ := strings.Cut(in.Link, "code=")
		if len(secret) != 43 {
			t.Errorf("the secret is %q", secret)
		}
		users := s.do("user list", `{}`).(*admin.UserList)
		if len(users.Users) != 1 || !users.Users[0].Pending || !strings.Contains(users.Text(), "invited until") {
			t.Errorf("the users are %+v", users)
		}
		for _, word := range []string{password, newPassword} {
			s.says("a pending user", s.person().account("ada", word), http.StatusForbidden, "Name or password is wrong")
		}

		// A program that opens links uses nothing up.
		var form *browsertest.Page
		ada := s.person()
		for range 3 {
			s.person().open(in.Link)
			form = ada.open(in.Link)
		}
		s.says("the link", form, http.StatusOK, "Your name here is <strong>ada</strong>")
		for name, want := range map[string]string{"Referrer-Policy": "same-origin", "Cache-Control": "no-store"} {
			if got := form.Header.Get(name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		if strings.Contains(form.Body, "http:") || strings.Contains(form.Body, "https:") {
			t.Errorf("the page leads elsewhere: %s", form.Body)
		}
		s.says("too short", ada.submit(form, chosen("short")), http.StatusBadRequest, "at least 8")
		s.says("not the same", ada.submit(form, url.Values{"new": {password}, "again": {newPassword}}), http.StatusBadRequest, "not the same")
		bare, err := ada.Client.PostForm(s.first+"/account/invitation", url.Values{"code": {secret}, "new": {password}, "again": {password}})
		if err != nil {
			t.Fatal(err)
		}
		_ = bare.Body.Close()
		if bare.StatusCode != http.StatusForbidden {
			t.Errorf("a form without a token: %d", bare.StatusCode)
		}

		// Two at once: one wins, and the other is told.
		people, forms, pages := []*person{ada, s.person()}, make([]*browsertest.Page, 2), make([]*browsertest.Page, 2)
		words := []string{"password-first", "password-second"}
		for i, p := range people {
			forms[i] = p.open(in.Link)
		}
		var wg sync.WaitGroup
		for i, p := range people {
			wg.Go(func() {
				var err error
				if pages[i], err = p.Submit(context.WithoutCancel(t.Context()), forms[i], chosen(words[i])); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		won := 0
		for i, page := range pages {
			signsIn := s.person().account("ada", words[i]).Status == http.StatusOK
			if signsIn {
				won++
				s.says("the winner", page, http.StatusOK, "Your password is set")
			} else {
				s.says("the other", page, http.StatusNotFound, "used before")
			}
		}
		if won != 1 {
			t.Fatalf("%d won", won)
		}
		s.says("the link afterwards", s.person().open(in.Link), http.StatusNotFound, "used before")
		if told.count("account.invitation", "ok") != 1 || told.count("account.invitation", oauth.AccessDenied) < 2 {
			t.Errorf("the audit is %s", told)
		}
		kept, err := json.Marshal(s.audit.take())
		if err != nil {
			t.Fatal(err)
		}
		for _, hidden := range append(words, secret) {
			if strings.Contains(told.String()+string(kept), hidden) {
				t.Errorf("%q was told to a log or an audit", hidden)
			}
		}
	})
}

// Links that were replaced, taken back or have expired are told apart from good ones, and a reset
// leaves the old password good until it is done.
func TestInvitationEnds(t *testing.T) {
	t.Parallel()
	balanced(t, func(t *testing.T, s *site, _ *record) {
		first := s.invite(`{"name":"ada"}`)
		second := s.invite(`{"name":"ADA","lifetime":"1m"}`)
		if first.Subject != second.Subject {
			t.Error("the second invitation is for another user")
		}
		s.says("a replaced link", s.person().open(first.Link), http.StatusNotFound, "replaced")
		s.says("a good link", s.person().open(second.Link), http.StatusOK, "Choose a password")
		for _, stray := range []string{"", "?code=", "?code=x", "?code=%00", "?code=%ff", "?code=" + strings.Repeat("a", 5000)} {
			s.says("a stray link", s.person().open(s.first+"/account/invitation"+stray), http.StatusNotFound, "not complete")
		}
		// An hour ago it was good.
		old, err := s.db.Invite(t.Context(), "ada", issuer.Hash("old"), false, time.Now().Add(-time.Hour), time.Now())
		if err != nil || !old.Pending {
			t.Fatal(old, err)
		}
		s.says("an expired link", s.person().open(s.first+"/account/invitation?code=old"), http.StatusGone, "has expired")
		if text := s.do("user list", `{}`).Text(); !strings.Contains(text, "no valid invitation") {
			t.Errorf("the list says %q", text)
		}
		third := s.invite(`{"name":"ada"}`)
		p := s.person()
		form := p.open(third.Link)
		s.do("user remove", `{"name":"ada"}`)
		s.says("a link that was taken back", p.submit(form, chosen(password)), http.StatusNotFound, "taken back")
		if s.canSignIn("ada") {
			t.Error("one whose invitation was taken back is in")
		}

		s.addUser("bob")
		bob := s.signIn("app", "bob")
		reset := s.invite(`{"name":"bob","reset":true}`)
		s.says("before the reset", s.person().account("bob", password), http.StatusOK, "Your account")
		p = s.person()
		s.says("the reset", p.submit(p.open(reset.Link), chosen(newPassword)), http.StatusOK, "Your password is set")
		s.says("the old password", s.person().account("bob", password), http.StatusForbidden, "wrong")
		s.says("the new password", s.person().account("bob", newPassword), http.StatusOK, "Your account")
		s.says("a browser from before", bob.open(s.first+"/account"), http.StatusOK, "Sign in")
		for range 2 { // at both servers
			if s.active(s.first, bob.access) {
				t.Error("an application from before keeps its access")
			}
		}
	})
}

// Parameters of an invitation that cannot be are told in words of what to do.
func TestInviteRefused(t *testing.T) {
	t.Parallel()
	s, _ := newBalanced(t, databasetest.SQLite(t))
	s.addUser("ada")
	s.addUser("gone")
	s.do("user disable", `{"name":"gone"}`)
	for parameters, want := range map[string]struct {
		code admin.Code
		text string
	}{
		`{"name":"ada"}`:                                           {admin.Conflict, "--reset"},
		`{"name":"nobody","reset":true}`:                           {admin.NotFound, "auth user list"},
		`{"name":"gone","reset":true}`:                             {admin.Conflict, "auth user enable"},
		`{"name":"gone"}`:                                          {admin.Conflict, "auth user enable"},
		`{"name":"a\u0430b"}`:                                      {admin.Invalid, "several scripts"},
		`{"name":"\u0430\u0501\u0430"}`:                            {admin.Conflict, "looks like it"},
		`{"name":"x","lifetime":"1s"}`:                             {admin.Invalid, "1m to 720h"},
		`{"name":"x","lifetime":"721h"}`:                           {admin.Invalid, "1m to 720h"},
		`{"name":"x","lifetime":"soon"}`:                           {admin.Invalid, "1m to 720h"},
		`{"name":"x","issuer":"https://elsewhere.example"}`:        {admin.Invalid, "this server is"},
		`{"name":"x","lifetime":"1h","issuer":"` + s.first + `x"}`: {admin.Invalid, "this server is"},
	} {
		_, err := s.try("user invite", parameters)
		refused := new(admin.Error)
		if !errors.As(err, &refused) || refused.Code != want.code || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v, want %s and %q", parameters, err, want.code, want.text)
		}
	}
	alone := admin.New(s.db, nil)
	for parameters, want := range map[string]string{
		`{"name":"x"}`: "--issuer", `{"name":"x","issuer":"http://login.example"}`: "issuer", `{"name":"x","issuer":"nowhere"}`: "issuer",
	} {
		if _, err := alone.Run(t.Context(), "test", admin.Find("user invite"), []byte(parameters)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", parameters, err)
		}
	}
	made, err := alone.Run(t.Context(), "test", admin.Find("user invite"), []byte(`{"name":"x","issuer":"https://login.example/tenant/"}`))
	if err != nil || !strings.Contains(made.Text(), "\nhttps://login.example/tenant/account/invitation?code=") {
		t.Errorf("%v, %v", made, err)
	}
}
