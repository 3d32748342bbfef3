package issuer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// The requirements of RFC 8628 for an authorization server, and their tests here.
//
//	3.1  the endpoint takes POST; client authentication as in RFC 6749, 3.2.1     TestDeviceAuthorization
//	3.1  an empty parameter counts as absent, an unknown one is ignored           TestDeviceAuthorization
//	3.1  no parameter more than once                                              TestDeviceAuthorization
//	3.2  device_code, user_code, verification_uri, expires_in; no-store           TestDeviceAuthorization
//	3.3  the person enters or confirms the code, signs in and is asked            TestDeviceFlow
//	3.3.1 the code of verification_uri_complete is shown and must be confirmed    TestDeviceFlow
//	3.4  device_code and client_id are required, of the client that asked         TestDeviceToken
//	3.5  authorization_pending, slow_down, access_denied, expired_token           TestDeviceToken, TestDeviceSlowDown
//	4    device_authorization_endpoint in the metadata                            TestDeviceMetadata
//	5.1  guesses of user codes are limited                                        TestAttackDeviceGuessing
//	5.2  the device code has high entropy                                         TestDeviceAuthorization
//	5.4  phishing: who is sent a code is warned, asked, and not remembered        TestDeviceFlow
//	6.1  user codes: 20 letters without vowels, in any case, with or without dash TestDeviceUserCode
//
// Those for a client are in oauth/login (TestDevice…). TLS (3.1: MUST) is that of every
// issuer that is not on loopback: TestNew.

// devices turns the device flow on, with a client "tv" that has no browser and one,
// "other", that is like it.
func devices(o *issuer.Options) {
	o.Device.On = true
	types := []string{oauth.GrantDeviceCode, oauth.GrantRefreshToken}
	for _, id := range []string{"tv", "other"} {
		o.Clients = append(o.Clients, issuer.StaticClient{ID: id, Metadata: oauth.ClientMetadata{ClientName: "Telly", GrantTypes: types}})
	}
	o.Clients = append(o.Clients, issuer.StaticClient{ID: "box", Secret: "secret of the box", Metadata: oauth.ClientMetadata{GrantTypes: types}})
}

// form posts a form that no browser sends.
func (s *site) form(path string, form url.Values, extras ...extra) *answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, e := range extras {
		e(req)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := &answer{Status: resp.StatusCode, Header: resp.Header, Raw: string(body)}
	_ = json.Unmarshal(body, &a.Body) // what is no JSON has no members
	return a
}

// device starts a device.
func (s *site) device(pairs ...string) *answer {
	s.t.Helper()
	a := s.form("/device_authorization", change(params("client_id", "tv", "resource", mcpServer, "scope", "notes:read"), pairs...))
	if a.Status != http.StatusOK {
		s.t.Fatalf("device authorization: %d %s", a.Status, a.Raw)
	}
	return a
}

// pollForm is the token request of a device.
func pollForm(a *answer) url.Values {
	return params("grant_type", oauth.GrantDeviceCode, "client_id", "tv", "device_code", a.text("device_code"))
}

func (s *site) poll(a *answer, pairs ...string) *answer {
	s.t.Helper()
	return s.form("/token", change(pollForm(a), pairs...))
}

// enter types a user code at the page of the server, and signs in if it is asked to.
func (p *person) enter(code, user string) *page {
	p.t.Helper()
	got := p.submit(p.open(p.site.url+"/device"), "user_code", code)
	if strings.Contains(got.body, "Sign in") {
		return p.submit(got, "user", user, "password", "right")
	}
	return got
}

// Proves: sections 3.3 and 3.3.1: a person types the code, or compares it, signs in, and is
// asked, each time; then the device has tokens, and a refresh token that works.
func TestDeviceFlow(t *testing.T) {
	t.Parallel()
	log := new(events)
	s := newSite(t, "/tenant1", formLogin{}, func(o *issuer.Options) { devices(o); audited(log)(o) })
	p := s.person()
	for i, complete := range []bool{false, true, false} {
		a := s.device()
		var question *page
		if complete {
			confirm := p.open(a.text("verification_uri_complete"))
			if !strings.Contains(confirm.body, ">"+a.text("user_code")+"<") || strings.Contains(confirm.body, "Telly") {
				t.Fatalf("the page does not ask to compare the code: %s", confirm.body)
			}
			if got := s.poll(a).brief(); got != oauth.AuthorizationPending {
				t.Fatalf("after the link alone: %s", got)
			}
			question = p.submit(confirm, "user_code", a.text("user_code"))
		} else {
			question = p.enter(a.text("user_code"), "ada")
		}
		for _, want := range []string{"Telly", "Read your notes", "Dear ada", "a device of your own?"} {
			if !strings.Contains(question.body, want) {
				t.Fatalf("round %d: the consent page lacks %q: %d %s", i, want, question.status, question.body)
			}
		}
		done := p.submit(question, "answer", "approve")
		if done.status != http.StatusOK || !strings.Contains(done.body, "The device is connected") {
			t.Fatalf("after consent: %d %s", done.status, done.body)
		}
		got := s.poll(a)
		if got.Status != http.StatusOK || got.text("scope") != "notes:read" || got.text("refresh_token") == "" || got.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("the device got %d %s", got.Status, got.Raw)
		}
		again := s.form("/token", params("grant_type", oauth.GrantRefreshToken, "client_id", "tv", "refresh_token", got.text("refresh_token")))
		if again.Status != http.StatusOK {
			t.Errorf("refresh: %d %s", again.Status, again.Raw)
		}
		if got := s.poll(a).brief(); got != oauth.InvalidGrant {
			t.Errorf("the device code once more: %s", got)
		}
	}
	if n := log.count("device.approved", "ok"); n != 3 || log.count("device.requested", "ok") != 3 || log.count("token.refused", oauth.AuthorizationPending) != 0 {
		t.Errorf("audit log is %+v", log.list)
	}
}

// Proves: sections 3.1, 3.2 and 5.2.
func TestDeviceAuthorization(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, devices)
	good := params("client_id", "tv", "resource", mcpServer)
	a := s.form("/device_authorization", good)
	if a.Status != http.StatusOK || a.text("verification_uri") != s.url+"/device" || len(a.text("device_code")) < 43 ||
		a.text("verification_uri_complete") != s.url+"/device?user_code="+a.text("user_code") ||
		a.Body["expires_in"] != 600.0 || a.Body["interval"] != 5.0 ||
		a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the answer is %d %v %s", a.Status, a.Header, a.Raw)
	}
	for name, test := range map[string]struct {
		form   url.Values
		extras []extra
		want   string
	}{
		"empty and unknown parameters": {change(good, "scope", "", "colour", "red"), nil, "ok"},
		"the only resource":            {change(good, "resource", "-"), nil, "ok"},
		"a parameter twice":            {url.Values{"client_id": {"tv", "tv"}}, nil, oauth.InvalidRequest},
		"no client":                    {change(good, "client_id", "-"), nil, oauth.InvalidClient},
		"unknown client":               {change(good, "client_id", "nobody"), nil, oauth.InvalidClient},
		"client for browsers":          {change(good, "client_id", "web"), nil, oauth.UnauthorizedClient},
		"confidential without secret":  {change(good, "client_id", "box"), nil, oauth.InvalidClient},
		"confidential":                 {change(good, "client_id", "-"), []extra{basic("box", "secret of the box")}, "ok"},
		"unknown scope":                {change(good, "scope", "admin"), nil, oauth.InvalidScope},
		"unknown resource":             {change(good, "resource", otherServer), nil, oauth.InvalidTarget},
		"two resources":                {url.Values{"client_id": {"tv"}, "resource": {mcpServer, otherServer}}, nil, oauth.InvalidTarget},
	} {
		if got := s.form("/device_authorization", test.form, test.extras...); got.brief() != test.want {
			t.Errorf("%s: %d %s, want %s", name, got.Status, got.Raw, test.want)
		}
	}
	resp, err := s.client.Get(s.url + "/device_authorization")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}

// Proves: sections 3.4 and 3.5. What is refused leaves the code as it is.
func TestDeviceToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, devices)
	a := s.device()
	for name, test := range map[string]struct {
		pairs []string
		want  string
	}{
		"another client":  {[]string{"client_id", "other"}, oauth.InvalidGrant},
		"no client":       {[]string{"client_id", "-"}, oauth.InvalidClient},
		"no device code":  {[]string{"device_code", "-"}, oauth.InvalidRequest},
		"a made-up code":  {[]string{"device_code", oauth.NewSecret()}, oauth.InvalidGrant},
		"the user code":   {[]string{"device_code", a.text("user_code")}, oauth.InvalidGrant},
		"as another type": {[]string{"grant_type", oauth.GrantAuthorizationCode}, oauth.UnauthorizedClient},
	} {
		if got := s.poll(a, test.pairs...).brief(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := s.poll(a); got.Status != http.StatusBadRequest || got.brief() != oauth.AuthorizationPending {
		t.Errorf("before the answer: %d %s", got.Status, got.Raw)
	}
	p := s.person()
	p.submit(p.enter(a.text("user_code"), "ada"), "answer", "approve")
	for name, test := range map[string]struct {
		pairs []string
		want  string
	}{
		"another client":   {[]string{"client_id", "other"}, oauth.InvalidGrant},
		"another resource": {[]string{"resource", otherServer}, oauth.InvalidTarget},
	} {
		if got := s.poll(a, test.pairs...).brief(); got != test.want {
			t.Errorf("approved, %s: %s, want %s", name, got, test.want)
		}
	}
	if got := s.poll(a, "resource", mcpServer); got.brief() != "ok" {
		t.Errorf("approved: %s", got.Raw)
	}

	if _, err := s.store.RevokeGrants(t.Context(), "ada", "", s.clock.Now()); err != nil {
		t.Fatal(err)
	}
	// Approved at the last moment: two intervals are left for the tokens, and then nothing is left of it.
	for wait, want := range map[time.Duration]string{9 * time.Second: "ok", 10 * time.Second: oauth.ExpiredToken} {
		last := s.device()
		question := p.enter(last.text("user_code"), "ada")
		s.clock.Add(10*time.Minute - time.Second)
		p.submit(question, "answer", "approve")
		s.clock.Add(time.Second + wait)
		if got := s.poll(last).brief(); got != want {
			t.Errorf("%v after the code has expired: %s, want %s", wait, got, want)
		}
		n, err := s.store.RevokeGrants(t.Context(), "ada", "", s.clock.Now())
		if err != nil || (want == "ok") != (n > 0) {
			t.Errorf("%v after the code has expired: %d grants, %v", wait, n, err)
		}
	}

	denied := s.device()
	if got := p.submit(p.enter(denied.text("user_code"), "ada"), "answer", "deny"); !strings.Contains(got.body, "gets no access") {
		t.Errorf("after denial: %d %s", got.status, got.body)
	}
	late := s.device()
	for range 2 {
		if got := s.poll(denied).brief(); got != oauth.AccessDenied {
			t.Errorf("denied: %s", got)
		}
	}
	s.clock.Add(10 * time.Minute)
	if got := s.poll(late).brief(); got != oauth.ExpiredToken {
		t.Errorf("after the time: %s", got)
	}
	if got := p.submit(p.open(s.url+"/device"), "user_code", late.text("user_code")); got.status != http.StatusBadRequest || !strings.Contains(got.body, "No device waits") {
		t.Errorf("an expired user code: %d %s", got.status, got.body)
	}
	s.clock.Add(10 * time.Minute)
	if got := s.poll(late).brief(); got != oauth.InvalidGrant {
		t.Errorf("long after the time: %s", got)
	}
}

// Proves: section 3.5, slow_down, also with two processes on one store.
func TestDeviceSlowDown(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, devices)
	a := s.device()
	for i, step := range []struct {
		wait time.Duration
		want string
	}{
		{0, oauth.AuthorizationPending},
		{time.Second, oauth.SlowDown},
		{2 * time.Second, oauth.SlowDown},
		{2 * time.Second, oauth.AuthorizationPending},
		{5 * time.Second, oauth.AuthorizationPending},
		{10 * time.Second, oauth.AuthorizationPending},
		{0, oauth.SlowDown},
	} {
		s.clock.Add(step.wait)
		if got := s.poll(a).brief(); got != step.want {
			t.Errorf("request %d: %s, want %s", i, got, step.want)
		}
	}
}

// Attack: the device code is used by many at once, and the person answers in two windows,
// in either order: one wins.
func TestAttackDeviceRaces(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, "", slowly(), formLogin{}, devices)
	p := s.person()
	a := s.device()
	first, second := p.enter(a.text("user_code"), "ada"), p.enter(a.text("user_code"), "ada")
	eve := s.person()
	third := eve.enter(a.text("user_code"), "eve")
	if got := p.submit(first, "answer", "approve"); got.status != http.StatusOK {
		t.Fatalf("the first answer: %d %s", got.status, got.body)
	}
	if got := p.submit(second, "answer", "deny"); got.status != http.StatusConflict {
		t.Errorf("a denial after it: %d %s", got.status, got.body)
	}
	if got := eve.submit(third, "answer", "approve"); got.status != http.StatusConflict || !strings.Contains(got.body, "answered before") {
		t.Errorf("another person after it: %d %s", got.status, got.body)
	}
	good := sortAnswers(t, atOnce(func() *answer { return s.form("/token", pollForm(a)) }))
	if len(good) != 1 {
		t.Fatalf("%d of %d requests got tokens, want 1", len(good), crowd)
	}
	if n, err := s.store.RevokeGrants(t.Context(), "eve", "", s.clock.Now()); err != nil || n != 0 {
		t.Errorf("the second person has %d grants, %v", n, err)
	}

	b := s.device()
	first, second = p.enter(b.text("user_code"), "ada"), p.enter(b.text("user_code"), "ada")
	p.submit(first, "answer", "deny")
	if got := p.submit(second, "answer", "approve"); got.status != http.StatusConflict {
		t.Errorf("approval after denial: %d %s", got.status, got.body)
	}
	if got := s.poll(b).brief(); got != oauth.AccessDenied {
		t.Errorf("denied, then approved: %s", got)
	}
}

// Attack: forms of other sites, of other browsers, and links that answer by themselves.
func TestAttackDeviceForgery(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", issuer.AutoApprove("ada"), devices)
	a := s.device()
	p := s.person()
	p.open(a.text("verification_uri_complete"))
	form := url.Values{"user_code": {a.text("user_code")}}
	if got := p.do(http.MethodPost, s.url+"/device", form, "cross-site"); got.status != http.StatusForbidden {
		t.Errorf("a form of another site: %d", got.status)
	}
	if got := p.do(http.MethodPost, s.url+"/device", form, "same-origin"); got.status != http.StatusForbidden {
		t.Errorf("a form without a token: %d", got.status)
	}
	foreign := s.person().open(s.url + "/device")
	if got := p.submit(foreign, "user_code", a.text("user_code")); got.status != http.StatusForbidden {
		t.Errorf("a form of another browser: %d", got.status)
	}
	if got := s.poll(a).brief(); got != oauth.AuthorizationPending {
		t.Errorf("after all of them: %s", got)
	}
	hostile := p.open(s.url + "/device?user_code=" + url.QueryEscape(`"><script>alert(1)</script>`))
	if strings.Contains(hostile.body, "alert") || !strings.Contains(hostile.body, `name="user_code" maxlength`) {
		t.Errorf("the page repeats what came in: %s", hostile.body)
	}
	if got := p.submit(p.open(s.url+"/device"), "user_code", a.text("user_code")); !strings.Contains(got.body, "connected") {
		t.Errorf("the right form: %d %s", got.status, got.body)
	}
}

// Attack: guessing user codes (section 5.1), from one browser, from one address with many,
// from everywhere; people who are signed in are not kept out by it.
func TestAttackDeviceGuessing(t *testing.T) {
	t.Parallel()
	address := "192.0.2.1"
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		devices(o)
		o.Remote = func(*http.Request) string { return address }
	})
	known := s.person()
	known.enter(s.device().text("user_code"), "ada")
	s.clock.Add(time.Minute)
	guess := func(p *person) int {
		return p.submit(p.open(s.url+"/device"), "user_code", "BCDF-GHJK").status
	}
	try := func(name string, p func(int) *person, tries, want int) {
		t.Helper()
		answered := 0
		for i := range tries {
			if guess(p(i)) == http.StatusBadRequest {
				answered++
			}
		}
		if answered != want {
			t.Errorf("%s: %d of %d guesses were answered, want %d", name, answered, tries, want)
		}
	}
	one := s.person()
	try("one browser", func(int) *person { return one }, 8, 5)
	if got := one.submit(one.open(s.url+"/device"), "user_code", s.device().text("user_code")); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("the right code after too many: %d", got.status)
	}
	try("one address", func(int) *person { return s.person() }, 20, 15)
	try("all addresses", func(i int) *person {
		address = "198.51.100." + strings.Repeat("1", 1+i%3) + ":" + string(rune('a'+i/20))
		return s.person()
	}, 200, 180)
	address = "203.0.113.1"
	stranger := s.person()
	signIn := stranger.submit(stranger.open(s.url+"/device"), "user_code", s.device().text("user_code"))
	if !strings.Contains(signIn.body, "Sign in") {
		t.Errorf("a person who is not signed in, meanwhile: %d %s", signIn.status, signIn.body)
	}
	blank := stranger.submit(signIn, "user", "bea", "password", "right")
	if got := stranger.submit(blank, "user_code", s.device().text("user_code")); !strings.Contains(got.body, "Allow") || !strings.Contains(got.body, "Dear bea") {
		t.Errorf("the same person, signed in: %d %s", got.status, got.body)
	}
	if got := known.enter(s.device().text("user_code"), "ada"); !strings.Contains(got.body, "Allow") {
		t.Errorf("a known person, meanwhile: %d %s", got.status, got.body)
	}
	s.clock.Add(time.Minute)
	if got := one.enter(s.device().text("user_code"), "ada"); !strings.Contains(got.body, "Allow") {
		t.Errorf("a minute later: %d %s", got.status, got.body)
	}
}

// Attack: whoever started a device passes the page of the code, and sends the address behind it to
// somebody else, who would approve without having compared anything (section 5.4).
func TestAttackDevicePhishing(t *testing.T) {
	t.Parallel()
	for name, login := range map[string]issuer.Login{
		"login here": formLogin{}, "login elsewhere": &siteLogin{upstream: "https://upstream.example/authorize"},
	} {
		s := newSite(t, "", login, devices)
		a := s.device()
		eve, ada := s.person(), s.person()
		behind := eve.submit(eve.open(s.url+"/device"), "user_code", a.text("user_code"))
		ada.open(s.url + "/device") // so that the browser has a mark
		got := ada.open(behind.url)
		if !strings.Contains(got.body, `name="user_code" maxlength`) || strings.Contains(got.body, "Telly") {
			t.Errorf("%s: another browser got %d %s", name, got.status, got.body)
		}
		if got := eve.open(behind.url); got.status != http.StatusOK || strings.Contains(got.body, `name="user_code"`) {
			t.Errorf("%s: afterwards the first browser got %d %s", name, got.status, got.body)
		}
	}
}

// Attack: a device code is used once more, by whoever has found it: what was granted for it ends.
// Another client that has the code ends nothing.
func TestAttackDeviceReuse(t *testing.T) {
	t.Parallel()
	log := new(events)
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) { devices(o); audited(log)(o) })
	p := s.person()
	a := s.device()
	p.submit(p.enter(a.text("user_code"), "ada"), "answer", "approve")
	refresh := func(token *answer) *answer {
		return s.form("/token", params("grant_type", oauth.GrantRefreshToken, "client_id", "tv", "refresh_token", token.text("refresh_token")))
	}
	first := s.poll(a)
	if got := s.poll(a, "client_id", "other").brief(); got != oauth.InvalidGrant {
		t.Errorf("another client: %s", got)
	}
	second := refresh(first)
	if second.Status != http.StatusOK {
		t.Fatalf("refresh after another client: %d %s", second.Status, second.Raw)
	}
	if got := s.poll(a).brief(); got != oauth.InvalidGrant {
		t.Errorf("the code once more: %s", got)
	}
	if got := refresh(second).brief(); got != oauth.InvalidGrant {
		t.Errorf("refresh after it: %s", got)
	}
	if n := log.count("device.reused", oauth.InvalidGrant); n != 1 {
		t.Errorf("audit log is %+v", log.list)
	}
}

// Attack: registrations fill the store while a person is asked for a client: that client stays.
func TestAttackDeviceEviction(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) {
		devices(o)
		registering(o)
		o.Registration.MaxClients = 3
	})
	const body = `{"client_name":"NAME","token_endpoint_auth_method":"none","grant_types":["urn:ietf:params:oauth:grant-type:device_code"]}`
	id := s.registerClient(body)
	a := s.device("client_id", id)
	p := s.person()
	question := p.enter(a.text("user_code"), "ada")
	for i := range 10 {
		s.registerClient(strings.Replace(body, "NAME", "N"+string(rune('a'+i)), 1))
	}
	p.submit(question, "answer", "approve")
	if got := s.poll(a, "client_id", id).brief(); got != "ok" {
		t.Errorf("the client that waited: %s", got)
	}
	stored, err := s.store.Client(t.Context(), id, s.clock.Now().Add(30*24*time.Hour))
	if err != nil || stored.ID != id {
		t.Errorf("the client a month after it was used: %v", err)
	}
}

// Proves: section 6.1.
func TestDeviceUserCode(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, devices)
	shape := regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`)
	seen := map[string]bool{}
	for range 50 {
		code := s.device().text("user_code")
		if !shape.MatchString(code) || seen[code] {
			t.Fatalf("the user code is %q", code)
		}
		seen[code] = true
	}
	for name, spell := range map[string]func(string) string{
		"small":        strings.ToLower,
		"without dash": func(c string) string { return strings.ReplaceAll(c, "-", "") },
		"blanks":       func(c string) string { return " " + strings.ReplaceAll(c, "-", " ") + "\t" },
		"another dash": func(c string) string { return strings.ReplaceAll(c, "-", "–") },
	} {
		if got := s.person().enter(spell(s.device().text("user_code")), "ada"); !strings.Contains(got.body, "Telly") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, wrong := range []string{"", "BCDF-GHJ", "BCDF-GHJKL", "AEIO-UUUU", "BCDF/GHJK", strings.Repeat("B", 5000)} {
		if got := s.person().enter(wrong, "ada"); got.status != http.StatusBadRequest {
			t.Errorf("%.20q: %d", wrong, got.status)
		}
	}
}

// Proves: section 4; and that without Options.Device there is nothing of it, nor for a client
// that is not registered for it. Clients that register may ask for it, without a redirect URI.
func TestDeviceMetadata(t *testing.T) {
	t.Parallel()
	on := newSite(t, "", formLogin{}, func(o *issuer.Options) { devices(o); registering(o) })
	if m := on.server.Metadata(); m.DeviceAuthorizationEndpoint != on.url+"/device_authorization" || !slices.Contains(m.GrantTypesSupported, oauth.GrantDeviceCode) {
		t.Errorf("metadata is %+v", m)
	}
	const body = `{"client_name":"TV","token_endpoint_auth_method":"none","grant_types":["urn:ietf:params:oauth:grant-type:device_code","refresh_token"]}`
	id := on.registerClient(body)
	a := on.device("client_id", id)
	p := on.person()
	if got := p.enter(a.text("user_code"), "ada"); !strings.Contains(got.body, "unverified") {
		t.Errorf("consent for a client that registered: %d %s", got.status, got.body)
	} else {
		p.submit(got, "answer", "approve")
	}
	if got := on.poll(a, "client_id", id).brief(); got != "ok" {
		t.Errorf("a client that registered: %s", got)
	}
	if got := p.open(on.request("client_id", id)); got.away != nil || got.status != http.StatusBadRequest {
		t.Errorf("a client without redirect URI at the authorization endpoint: %d %v", got.status, got.away)
	}

	off := newSite(t, "", formLogin{}, func(o *issuer.Options) { devices(o); registering(o); o.Device.On = false })
	if m := off.server.Metadata(); m.DeviceAuthorizationEndpoint != "" || slices.Contains(m.GrantTypesSupported, oauth.GrantDeviceCode) {
		t.Errorf("metadata without it is %+v", m)
	}
	for path, want := range map[string]int{"/device_authorization": http.StatusNotFound, "/device": http.StatusNotFound} {
		if got := off.form(path, params("client_id", "tv")); got.Status != want {
			t.Errorf("%s without it: %d", path, got.Status)
		}
	}
	if got := off.form("/token", params("grant_type", oauth.GrantDeviceCode, "client_id", "tv", "device_code", "x")).brief(); got != oauth.UnsupportedGrantType {
		t.Errorf("the grant type without it: %s", got)
	}
	if status, answer := off.post("/register", "application/json", body); status != http.StatusBadRequest {
		t.Errorf("registration without it: %d %s", status, answer)
	}
}

// Proves: tokens are bound to the key of the proof that a device sends (RFC 9449, section 5),
// and a resource that wants bound tokens gives a device no others, at no loss of the code.
func TestDeviceDPoP(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, func(o *issuer.Options) { devices(o); o.Resources[0].DPoP = true })
	a := s.device()
	p := s.person()
	p.submit(p.enter(a.text("user_code"), "ada"), "answer", "approve")
	if got := s.poll(a).brief(); got != oauth.InvalidDPoPProof {
		t.Errorf("without a proof: %s", got)
	}
	key := newKey(t)
	proof, err := key.NewProof(http.MethodPost, s.url+"/token", "", "", s.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.form("/token", pollForm(a), header("DPoP", proof)); got.text("token_type") != "DPoP" {
		t.Errorf("with a proof: %d %s", got.Status, got.Raw)
	}
}

// Proves: a person who is gone, or signed out of the browser, gives a device nothing.
func TestDevicePersonGone(t *testing.T) {
	t.Parallel()
	login := &people{stamps: map[string]string{"ada": "1"}}
	s := newSite(t, "", login, func(o *issuer.Options) { devices(o); o.Subjects = login })
	p := s.person()
	approved, asked := s.device(), s.device()
	p.submit(p.enter(approved.text("user_code"), "ada"), "answer", "approve")
	question := p.enter(asked.text("user_code"), "ada")
	login.set("ada", "2")
	if got := p.submit(question, "answer", "approve"); !strings.Contains(got.body, "Sign in") {
		t.Errorf("an answer of a person with another password: %d %s", got.status, got.body)
	}
	if got := s.poll(approved).brief(); got != oauth.InvalidGrant {
		t.Errorf("approved by a person with another password: %s", got)
	}
	if got := s.poll(asked).brief(); got != oauth.AuthorizationPending {
		t.Errorf("not approved: %s", got)
	}
}

// Proves: with a login at another site the person is asked before the browser leaves, and the
// device has its tokens afterwards.
func TestDeviceExternal(t *testing.T) {
	t.Parallel()
	login := &siteLogin{upstream: "https://upstream.example/authorize"}
	s := newSite(t, "", login, devices)
	p := s.person()
	a := s.device()
	question := p.submit(p.open(s.url+"/device"), "user_code", a.text("user_code"))
	if !strings.Contains(question.body, "Telly") || login.trips() != 0 {
		t.Fatalf("no question before the browser leaves: %d %s", question.status, question.body)
	}
	away := p.submit(question, "answer", "approve")
	if away.away == nil || away.away.Host != "upstream.example" {
		t.Fatalf("after consent: %d %v", away.status, away.away)
	}
	if got := p.open(s.callback(away.away.Query().Get("state"), "ada")); !strings.Contains(got.body, "connected") {
		t.Errorf("back from the other site: %d %s", got.status, got.body)
	}
	if got := s.poll(a).brief(); got != "ok" {
		t.Errorf("the device: %s", got)
	}
}
