package issuer_test

import (
	"fmt"
	"html"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// buttons returns the values of the buttons of a name on a page.
func buttons(p *page, name string) []string {
	var values []string
	for _, found := range regexp.MustCompile(`<button name="`+name+`" value="([^"]*)"`).FindAllStringSubmatch(p.body, -1) {
		values = append(values, html.UnescapeString(found[1]))
	}
	return values
}

// account signs a person in at the account page.
func (s *site) account(user string) (*person, *page) {
	s.t.Helper()
	p := s.person()
	shown := p.signIn(s.url+"/account", user)
	if shown.status != http.StatusOK || !strings.Contains(shown.body, "Your account") || !strings.Contains(shown.body, "Dear "+user) {
		s.t.Fatalf("the account page of %s is %d %s", user, shown.status, shown.body)
	}
	return p, shown
}

// A person sees her sessions, applications and consents, and ends them one by one; she never sees
// or ends those of another.
func TestAccount(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/tenant1"} {
		log := new(events)
		s := newSite(t, path, formLogin{}, audited(log))
		ada, _ := s.account("ada")
		s.redeem(ada.code(ada.submit(ada.open(s.request()), "answer", "approve")))
		other, _ := s.account("ada")
		bob, _ := s.account("bob")
		s.redeem(bob.code(bob.submit(bob.open(s.request()), "answer", "approve")))

		shown := ada.open(s.url + "/account")
		if n := len(buttons(shown, "session")); n != 2 || strings.Count(shown.body, "this browser") != 1 {
			t.Fatalf("%d sessions: %s", n, shown.body)
		}
		for _, want := range []string{"Web Client", "Notes", "Read your notes", "2026-11-20", "127.0.0.1", "2026-12-20"} {
			if !strings.Contains(shown.body, want) {
				t.Errorf("the page lacks %q: %s", want, shown.body)
			}
		}
		if got := buttons(shown, "client"); !slices.Equal(got, []string{"web"}) {
			t.Errorf("applications are %v", got)
		}
		if got := buttons(shown, "consent"); !slices.Equal(got, []string{mcpServer + " web"}) {
			t.Errorf("answers are %v", got)
		}

		// Of another person, and what no store can look for, is unknown.
		bobs := buttons(bob.open(s.url+"/account"), "session")
		for _, pair := range [][2]string{
			{"session", bobs[0]},
			{"session", "nothing"},
			{"session", "\x00"},
			{"session", "\xff"},
			{"client", "app"},
			{"client", ""},
			{"consent", mcpServer + " app"},
			{"consent", "web"},
		} {
			if got := ada.submit(shown, pair[0], pair[1]); got.status != http.StatusNotFound {
				t.Errorf("%q: %d %s", pair, got.status, got.body)
			}
		}
		if got := bob.open(s.url + "/account"); len(buttons(got, "session")) != 1 || len(buttons(got, "client")) != 1 {
			t.Errorf("another person lost something: %s", got.body)
		}

		// A consent is forgotten: the person is asked, and the grant stays.
		got := ada.submit(shown, "consent", mcpServer+" web")
		if got.status != http.StatusOK || !strings.Contains(got.body, "You will be asked again.") || len(buttons(got, "consent")) != 0 ||
			len(buttons(got, "client")) != 1 {
			t.Errorf("after a consent is forgotten: %d %s", got.status, got.body)
		}
		question := ada.open(s.request())
		if !strings.Contains(question.body, "Read your notes") {
			t.Fatalf("nobody is asked: %d %v", question.status, question.away)
		}
		s.redeem(ada.code(ada.submit(question, "answer", "approve")))

		// A client is cut off: all grants end, and the consents to it.
		got = ada.submit(shown, "client", "web")
		if !strings.Contains(got.body, "no access any more") || len(buttons(got, "client")) != 0 || len(buttons(got, "consent")) != 0 {
			t.Errorf("after a client is cut off: %d %s", got.status, got.body)
		}
		if n, err := s.store.RevokeGrants(t.Context(), "ada", "", s.clock.Now()); err != nil || n != 0 {
			t.Errorf("%d grants are left, %v", n, err)
		}
		if got := ada.submit(shown, "client", "web"); got.status != http.StatusNotFound {
			t.Errorf("the second time: %d", got.status)
		}

		// All other browsers are signed out, and this one stays.
		if got = ada.submit(shown, "do", "others"); !strings.Contains(got.body, "All other browsers are signed out.") || len(buttons(got, "session")) != 1 {
			t.Errorf("after the others are signed out: %d %s", got.status, got.body)
		}
		if got := other.open(s.url + "/account"); !strings.Contains(got.body, "Sign in") {
			t.Errorf("the other browser still is signed in: %s", got.body)
		}
		other.signIn(s.url+"/account", "ada")
		shown = ada.open(s.url + "/account")
		if got = ada.submit(shown, "session", buttons(shown, "session")[1]); !strings.Contains(got.body, "That browser is signed out.") {
			t.Errorf("after a browser is signed out: %d %s", got.status, got.body)
		}
		if got := other.open(s.url + "/account"); !strings.Contains(got.body, "Sign in") {
			t.Errorf("the other browser still is signed in: %s", got.body)
		}

		// This browser is signed out, by either button.
		if got = ada.submit(shown, "do", "sign-out"); !strings.Contains(got.body, "You are signed out") {
			t.Errorf("after signing out: %d %s", got.status, got.body)
		}
		shown = ada.signIn(s.url+"/account", "ada")
		if got = ada.submit(shown, "session", buttons(shown, "session")[0]); !strings.Contains(got.body, "You are signed out") {
			t.Errorf("after signing this browser out: %d %s", got.status, got.body)
		}
		if n := log.count("session.revoked", "ok"); n != 4 {
			t.Errorf("%d sessions in the audit: %+v", n, log.list)
		}
		if log.count("grant.revoked", "ok") != 1 || log.count("consent.revoked", "ok") != 1 {
			t.Errorf("the audit is %+v", log.list)
		}
	}
}

// Forms of others, of another browser, of another session and of nobody change nothing.
func TestAccountCSRF(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	ada, shown := s.account("ada")
	_, other := s.account("ada")
	token := tokens.FindStringSubmatch(shown.body)[1]
	for _, tt := range []struct {
		name, token, from string
	}{
		{"no token", "", "same-origin"},
		{"another browser's token", tokens.FindStringSubmatch(other.body)[1], "same-origin"},
		{"another site", token, "cross-site"},
		{"another host of the site", token, "same-site"},
	} {
		got := ada.do(http.MethodPost, s.url+"/account", map[string][]string{"csrf": {tt.token}, "do": {"others"}}, tt.from)
		if got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", tt.name, got.status, got.body)
		}
	}
	if got := ada.open(s.url + "/account"); len(buttons(got, "session")) != 2 {
		t.Errorf("sessions ended: %s", got.body)
	}
	if got := ada.submit(shown, "do", "what"); got.status != http.StatusBadRequest {
		t.Errorf("a form that cannot be read: %d", got.status)
	}

	// Another person at the same browser: the old page is void.
	ada.submit(shown, "do", "sign-out")
	if got := ada.submit(shown, "do", "others"); !strings.Contains(got.body, "Sign in") {
		t.Errorf("a form of nobody: %d %s", got.status, got.body)
	}
	ada.signIn(s.url+"/account", "bob")
	if got := ada.submit(shown, "do", "others"); got.status != http.StatusForbidden {
		t.Errorf("a form of the person before: %d %s", got.status, got.body)
	}

	// Nobody can have the page say what was not done.
	if got := ada.open(s.url + "/account?done=client&proof=" + token); strings.Contains(got.body, "no access any more") {
		t.Error("the page says what was not done")
	}
}

// Lists are shown in pages, which have all entries; what clients and browsers call themselves is
// escaped.
func TestAccountPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	ada, _ := s.account("ada")
	ctx, now := t.Context(), s.clock.Now()
	const clients, grants = 45, 2000
	for i := range grants {
		if err := s.store.AddGrant(ctx, &issuer.Grant{
			ID: fmt.Sprint("g", i), ClientID: fmt.Sprintf("client<%02d>", i%clients), Subject: "ada", Resource: "https://gone.example/<mcp>",
			Scopes: []string{"s<" + fmt.Sprint(i%3)}, Created: now, Expires: now.Add(time.Hour),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.store.AddClient(ctx, &issuer.Client{
		ID: "client<07>", Dynamic: true, Digest: "d", Created: now, Expires: now.Add(time.Hour),
		Metadata: oauth.ClientMetadata{ClientName: "<b>Bank</b>", RedirectURIs: []string{"https://evil.example/<cb>"}},
	}, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := s.store.AddSession(ctx, &issuer.Session{
			ID: fmt.Sprint("s", i), Issuer: s.url, Person: issuer.Person{Subject: "ada"}, Remote: "192.0.2.1",
			Agent: "<script>Mozilla/5.0", Created: now, Used: now, Expires: now.Add(time.Hour),
		}); err != nil {
			t.Fatal(err)
		}
	}
	more := regexp.MustCompile(`<a href="(/account\?[^"]*)">More (\w+)</a>`)
	for _, tt := range []struct {
		list, button string
		want         int
	}{{"applications", "client", clients}, {"browsers", "session", 31}} {
		seen := map[string]bool{}
		shown := ada.open(s.url + "/account")
		for pages := 1; pages < 10; pages++ {
			found := buttons(shown, tt.button)
			if len(found) == 0 || len(found) > 21 {
				t.Errorf("%s: %d on page %d", tt.list, len(found), pages)
			}
			for _, value := range found {
				seen[value] = true
			}
			if strings.Contains(shown.body, "<script") || strings.Contains(shown.body, "<b>") || strings.Contains(shown.body, "<mcp>") {
				t.Fatalf("markup of a stranger: %s", shown.body)
			}
			next := ""
			for _, link := range more.FindAllStringSubmatch(shown.body, -1) {
				if link[2] == tt.list {
					next = strings.ReplaceAll(link[1], "&amp;", "&")
				}
			}
			if next == "" {
				break
			}
			shown = ada.open(s.url + next)
		}
		if len(seen) != tt.want {
			t.Errorf("%s: %d of %d were shown", tt.list, len(seen), tt.want)
		}
	}
	first := ada.open(s.url + "/account")
	if !strings.Contains(first.body, "evil.example") || !strings.Contains(first.body, "unverified") {
		t.Errorf("what a client says of itself is not marked: %s", first.body)
	}
	for _, query := range []string{"?list=what&after=x", "?list=browsers&after=%00", "?list=applications&after=%ff", "?list=answers&after=~~~~"} {
		if got := ada.open(s.url + "/account" + query); got.status != http.StatusOK {
			t.Errorf("%s: %d", query, got.status)
		}
	}
}

// A person who is gone, or has another password, is not signed in at the account page, in spite of
// the session; where everybody is let in there is no account.
func TestAccountGone(t *testing.T) {
	t.Parallel()
	everybody := &people{stamps: map[string]string{"ada": "1"}}
	s := newSite(t, "", everybody, func(o *issuer.Options) { o.Subjects = everybody })
	p := s.person()
	shown := p.submit(p.open(s.url+"/account"), "user", "ada")
	if !strings.Contains(shown.body, "Your account") {
		t.Fatalf("not signed in: %d %s", shown.status, shown.body)
	}
	everybody.set("ada", "2")
	if got := p.submit(shown, "do", "others"); !strings.Contains(got.body, "Sign in") {
		t.Errorf("a form after the password changed: %d %s", got.status, got.body)
	}
	everybody.fail(http.ErrServerClosed)
	if got := p.open(s.url + "/account"); got.status != http.StatusInternalServerError {
		t.Errorf("nobody knows whether the person is there: %d", got.status)
	}

	auto := newSite(t, "", issuer.AutoApprove("ada"), nil)
	if got := auto.person().open(auto.url + "/account"); got.status != http.StatusNotFound {
		t.Errorf("the account of everybody: %d", got.status)
	}
	if slices.Contains(auto.server.Paths(), "/account") {
		t.Error("the path of an account that is not there")
	}
}

// An accountLogin has pages of its own.
type accountLogin struct {
	formLogin
	pages []issuer.AccountPage
}

func (l *accountLogin) AccountPages() []issuer.AccountPage { return l.pages }

// The pages of a Login are below the account page; those that are not open have the person sign in
// first, and POSTs reach them from their own forms alone.
func TestAccountLogin(t *testing.T) {
	t.Parallel()
	log := new(events)
	serve := func(w http.ResponseWriter, r *http.Request, v *issuer.AccountVisit) {
		who := "nobody"
		if v.Person != nil {
			who = v.Person.Subject
		}
		if r.Method == http.MethodPost {
			v.Refused(r, who, "first")
			v.Done(r, who)
			if err := v.SignIn(w, r, issuer.Person{Subject: who + "2", Name: "Dear " + who + "2"}); err != nil {
				v.Fail(w, r, err)
				return
			}
			v.Back(w)
			return
		}
		v.Page(w, http.StatusOK, "Page of "+who, template.HTML(`<form method="post" action="`+v.Path+`">`+
			`<input type="hidden" name="csrf" value="`+v.CSRF()+`"></form>`))
	}
	login := &accountLogin{pages: []issuer.AccountPage{
		{Name: "secret", Link: "Change <it>", Done: "It is <changed>.", Serve: serve}, {Name: "public", Open: true, Serve: serve},
	}}
	s := newSite(t, "", login, audited(log))
	p := s.person()
	if got := p.open(s.url + "/account/public"); !strings.Contains(got.body, "Page of nobody") {
		t.Errorf("the open page: %d %s", got.status, got.body)
	}
	shown := p.signIn(s.url+"/account/secret", "ada")
	if !strings.Contains(shown.body, "Page of ada") {
		t.Fatalf("after signing in: %d %s", shown.status, shown.body)
	}
	if got := p.open(s.url + "/account"); !strings.Contains(got.body, `<a href="/account/secret">Change &lt;it&gt;</a>`) ||
		strings.Contains(got.body, "/account/public") {
		t.Errorf("links: %s", got.body)
	}
	if got := p.do(http.MethodPost, s.url+"/account/secret", nil, "same-origin"); got.status != http.StatusForbidden {
		t.Errorf("without a token: %d", got.status)
	}
	got := p.submit(shown)
	if !strings.Contains(got.body, "Dear ada2") || !strings.Contains(got.body, "It is &lt;changed&gt;.") {
		t.Errorf("after the form: %d %s", got.status, got.body)
	}
	if got := p.submit(shown); got.status != http.StatusForbidden {
		t.Errorf("the form of a session that was replaced: %d", got.status)
	}
	if log.count("account.secret", oauth.AccessDenied) != 1 || log.count("account.secret", "ok") != 1 {
		t.Errorf("the audit is %+v", log.list)
	}
	for _, pages := range [][]issuer.AccountPage{
		{{Name: "", Serve: serve}},
		{{Name: "a/b", Serve: serve}},
		{{Name: "a"}},
		{{Name: "a", Serve: serve}, {Name: "a", Serve: serve}},
	} {
		if _, err := issuer.New("https://as.example", issuer.NewMemory(), &accountLogin{pages: pages}, nil); err == nil {
			t.Errorf("%+v are good pages", pages)
		}
	}
}
