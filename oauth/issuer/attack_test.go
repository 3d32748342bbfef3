package issuer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Attack: a page registers a redirect URI whose scheme is in capitals, which
// browsers take for https, so that it passes for one on this device.
func TestAttackRedirectInCapitals(t *testing.T) {
	t.Parallel()
	for _, redirect := range []string{"HTTPS://evil.example/cb", "hTTps://evil.example/cb"} {
		s := newSite(t, "", issuer.AutoApprove("ada"), registering)
		evil := s.registerClient(strings.Replace(evilMetadata, "https://evil.example/cb", redirect, 1))
		got := s.person().open(s.request("client_id", evil, "redirect_uri", redirect))
		if got.away != nil || !strings.Contains(got.body, "evil.example") {
			t.Errorf("%s: sent to %v", redirect, got.away)
		}
	}
}

// Attack: RFC 9700, section 4.11.2: the authorization server as open
// redirector: whoever registers himself has people sent to his page by a link
// to this server, with a request that must fail. Proves: S7 (automatic
// redirects to trusted URIs only).
func TestAttackOpenRedirectByError(t *testing.T) {
	t.Parallel()
	host := publish(t, func(w http.ResponseWriter, r *http.Request) {
		document(w, r, "redirect_uris", []string{"https://evil.example/cb", "http://127.0.0.1/cb"})
	})
	s := newSite(t, "", formLogin{}, registering)
	evil := s.registerClient(evilMetadata)
	for name, pairs := range map[string][]string{
		"response type": {"response_type", "bogus"},
		"scope":         {"scope", "bogus"},
		"prompt none":   {"prompt", "none"},
		"resource":      {"resource", "https://bogus.example"},
	} {
		for _, id := range []string{evil, host.URL + "/client.json"} {
			got := s.person().open(s.request(append(pairs, "client_id", id, "redirect_uri", "https://evil.example/cb")...))
			if got.away != nil || got.status != http.StatusBadRequest {
				t.Errorf("%s: %d, sent to %v", name, got.status, got.away)
			}
			// The person may go there with open eyes, and the client learns why.
			if !strings.Contains(got.body, "<strong>evil.example</strong>") || !strings.Contains(got.body, "https://evil.example/cb?error=") ||
				!strings.Contains(got.body, "iss=") || !strings.Contains(got.body, "state=") {
				t.Errorf("%s: the page lacks where it leads:\n%s", name, got.body)
			}
		}
		local := s.person().open(s.request(append(pairs, "client_id", host.URL+"/client.json", "redirect_uri", localRedirect)...))
		if local.away == nil || local.away.Query().Get("error") == "" {
			t.Errorf("%s: a program on this device was not told: %d", name, local.status)
		}
	}
	// Who said no at our page may be sent back.
	p := s.person()
	got := p.submit(p.signIn(s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"), "ada"), "answer", "deny")
	if got.away == nil || got.away.Query().Get("error") != oauth.AccessDenied {
		t.Errorf("deny: %d %v", got.status, got.away)
	}
	got = p.submit(p.open(s.request("prompt", "login", "client_id", evil, "redirect_uri", "https://evil.example/cb")), "user", "ada")
	if got.away == nil || got.away.Query().Get("error") != oauth.AccessDenied {
		t.Errorf("cancelled login: %d %v", got.status, got.away)
	}
}

// A double click is no error, gives no second code, and tells nobody else
// anything.
func TestDoubleClick(t *testing.T) {
	t.Parallel()
	log := new(events)
	s := newSite(t, "", formLogin{}, audited(log))
	p := s.person()
	form := p.open(s.request())
	question := p.submit(form, "user", "ada", "password", "right")
	again := p.submit(form, "user", "ada", "password", "right")
	if again.status != http.StatusOK || again.away != nil || !strings.Contains(again.body, "Already answered") {
		t.Errorf("second sign-in: %d %v %s", again.status, again.away, again.body)
	}
	stranger := s.person()
	stranger.open(s.request())
	for _, answer := range []string{"approve", "deny"} {
		if answer == "deny" {
			question = p.open(s.request("prompt", "consent"))
		}
		p.submit(question, "answer", answer)
		for range 2 {
			again := p.submit(question, "answer", answer)
			if again.status != http.StatusOK || again.away != nil || !strings.Contains(again.body, "Already answered") {
				t.Errorf("second %s: %d %v %s", answer, again.status, again.away, again.body)
			}
		}
		if got := stranger.open(question.url); got.status != http.StatusBadRequest || strings.Contains(got.body, "Already") {
			t.Errorf("another browser: %d %s", got.status, got.body)
		}
	}
	if n := log.count("code.issued", "ok"); n != 1 {
		t.Errorf("%d codes", n)
	}
}

// Two windows of a browser that was never here open at once: both get a mark,
// and the first loses its own. Nothing has happened in it yet, so it goes on as
// if it had been opened just now.
func TestTwoWindowsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, nil)
	p := s.person()
	first := p.open(s.request("state", "1"))
	base, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	other := s.person()
	second := other.open(s.request("state", "2"))
	p.client.Jar.SetCookies(base, other.client.Jar.Cookies(base)) // the answer that came last
	again := p.submit(first, "user", "ada", "password", "right")
	if again.status != http.StatusOK || !strings.Contains(again.body, "Sign in") || p.login() != "" {
		t.Fatalf("first window: %d %s", again.status, again.body)
	}
	got := p.submit(p.submit(again, "user", "ada", "password", "right"), "answer", "approve")
	p.code(got)
	if got.away.Query().Get("state") != "1" {
		t.Errorf("first window: %v", got.away)
	}
	// The second one is of this browser too. Ada is signed in by now, but this
	// window asked before.
	p.code(p.submit(second, "user", "ada", "password", "right"))

	// What somebody has signed in or agreed to is not handed on.
	question := other.signIn(s.request("prompt", "login"), "bob")
	if got := p.open(question.url); got.status != http.StatusOK || !strings.Contains(got.body, "Dear bob") {
		t.Fatalf("same marks: %d", got.status)
	}
	stranger := s.person()
	stranger.open(s.request())
	if got := stranger.open(question.url); got.status != http.StatusForbidden {
		t.Errorf("another browser at bob's question: %d %s", got.status, got.body)
	}
}

// Attack: replaying, swapping and mixing the handles of two requests of one
// browser: each answer is for the request of its page.
func TestAttackHandleSwap(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, registering)
	evil := s.registerClient(evilMetadata)
	p := s.person()
	p.signIn(s.request(), "ada")
	mine := p.open(s.request("prompt", "consent"))
	theirs := p.open(s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"))
	form := url.Values{"csrf": {tokens.FindStringSubmatch(mine.body)[1]}, "answer": {"approve"}}
	if got := p.do(http.MethodPost, theirs.url, form, "same-origin"); got.away != nil || got.status != http.StatusForbidden {
		t.Errorf("the answer to one page counted for another: %d %v", got.status, got.away)
	}
	// Parameters beside the handle change nothing.
	got := p.do(http.MethodPost, mine.url+"&client_id="+evil+"&redirect_uri=https://evil.example/cb&scope=notes:write", form, "same-origin")
	p.code(got)
	if got.away.Host != "client.example" {
		t.Errorf("sent to %v", got.away)
	}
	// A handle of one page is none of another.
	visit := strings.Replace(theirs.url, "/consent", "/login", 1)
	if got := p.submit(p.open(visit), "user", "bob", "password", "right"); !strings.Contains(got.body, "Dear bob") || got.away != nil {
		t.Errorf("signing in again led to %d %v", got.status, got.away)
	}
	if got := p.submit(theirs, "answer", "approve"); got.away != nil {
		t.Errorf("the old page still counts: %v", got.away)
	}
}

// However often and however many at once say Allow, there is one code.
func TestAttackConsentRace(t *testing.T) {
	t.Parallel()
	log := new(events)
	s := newSiteOn(t, "", slowly(), formLogin{}, audited(log))
	p := s.person()
	question := p.signIn(s.request(), "ada")
	var wg sync.WaitGroup
	codes := make(chan string, 8)
	for range cap(codes) {
		wg.Go(func() {
			if got := p.submit(question, "answer", "approve"); got.away != nil {
				codes <- got.away.Query().Get("code")
			}
		})
	}
	wg.Wait()
	if len(codes) != 1 || log.count("code.issued", "ok") != 1 {
		t.Errorf("%d answers, %d codes", len(codes), log.count("code.issued", "ok"))
	}
}

// A consent that https on this device got is not remembered: any program may
// listen there.
func TestLoopbackIsNotRemembered(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", formLogin{}, registering)
	for _, redirect := range []string{"https://localhost:8443/cb", "https://127.0.0.1/cb"} {
		id := s.registerClient(`{"client_name":"CLI","redirect_uris":["` + redirect + `"],"token_endpoint_auth_method":"none"}`)
		p := s.person()
		request := s.request("client_id", id, "redirect_uri", redirect)
		p.code(p.submit(p.signIn(request, "ada"), "answer", "approve"))
		if got := p.open(request); got.away != nil || !strings.Contains(got.body, "program on this computer") {
			t.Errorf("%s was not asked about again: %v", redirect, got.away)
		}
	}
}

// Attack: a refresh token within its grace, by eight processes at once, bound
// to a key: all get the same successor, and whoever has another key gets
// nothing and harms nobody.
func TestAttackGraceRaceDPoP(t *testing.T) {
	t.Parallel()
	d := newDesk(t, slowly(), func(o *issuer.Options) { o.RefreshGrace = time.Minute })
	key, thief := newKey(t), newKey(t)
	first := d.want(redeem("public", d.code("public", bound(key))), d.proof(key, "")).text("refresh_token")
	next := map[string]int{}
	for _, a := range atOnce(func() *answer { return d.token(refreshWith("public", first), d.proof(key, "")) }) {
		if a.Status != http.StatusOK {
			t.Errorf("answer %d %s", a.Status, a.Raw)
		}
		next[a.text("refresh_token")]++
	}
	if len(next) != 1 {
		t.Errorf("%d successors", len(next))
	}
	for name, extras := range map[string][]extra{"no proof": nil, "another key": {d.proof(thief, "")}} {
		if got := d.token(refreshWith("public", first), extras...).brief(); got != oauth.InvalidDPoPProof {
			t.Errorf("%s: %s", name, got)
		}
	}
	for successor := range next {
		d.want(refreshWith("public", successor), d.proof(key, ""))
	}
	d.clock.Add(61 * time.Second)
	if got := d.token(refreshWith("public", first), d.proof(key, "")).brief(); got != oauth.InvalidGrant {
		t.Errorf("after its grace: %s", got)
	}
}

// A person who is slow with everything holds no handler for ever: the body of
// a request has its time.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, func(o *issuer.Options) { o.Registration.On = true })
	for endpoint, media := range map[string]string{
		"token": "application/x-www-form-urlencoded", "revoke": "application/x-www-form-urlencoded",
		"introspect": "application/x-www-form-urlencoded", "register": "application/json",
		"authorize": "application/x-www-form-urlencoded", "consent": "application/x-www-form-urlencoded",
		"login": "application/x-www-form-urlencoded",
	} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, deskIssuer+"/"+endpoint, &drip{w: w})
		r.Header.Set("Content-Type", media)
		d.server.ServeHTTP(w, r)
		if !w.inTime {
			t.Errorf("%s: the body was read without a deadline", endpoint)
		}
		if w.Code < 400 || w.Code >= 500 || len(w.deadlines) == 0 || w.deadlines[len(w.deadlines)-1].IsZero() {
			t.Errorf("%s: %d; a body that does not come must leave the deadline in place: %v", endpoint, w.Code, w.deadlines)
		}
	}
}

type timed struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
	inTime    bool
}

func (w *timed) SetReadDeadline(t time.Time) error {
	w.deadlines = append(w.deadlines, t)
	return nil
}

// drip is a body that does not come.
type drip struct{ w *timed }

func (d *drip) Read([]byte) (int, error) {
	n := len(d.w.deadlines)
	d.w.inTime = n > 0 && !d.w.deadlines[n-1].IsZero() && time.Until(d.w.deadlines[n-1]) < time.Minute
	return 0, io.ErrNoProgress
}

// Paths, methods and headers that proxies and servers read in different ways
// lead nowhere.
func TestAttackPaths(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	for _, test := range []struct {
		method, target string
		want           int
	}{
		{http.MethodHead, "/tenant/jwks", 200},
		{http.MethodHead, "/.well-known/oauth-authorization-server/tenant", 200},
		{http.MethodGet, "/tenant/jwks/", 404},
		{http.MethodGet, "/tenant/%6awks", 404},
		{http.MethodGet, "/tenant//jwks", 404},
		{http.MethodGet, "/tenant%2Fjwks", 404},
		{http.MethodGet, "/other/../tenant/jwks", 404},
		{http.MethodGet, "/TENANT/jwks", 404},
		{http.MethodGet, "/tenant", 404},
		{http.MethodGet, "/", 404},
		{http.MethodHead, "/tenant/authorize", 405},
		{http.MethodOptions, "/tenant/authorize", 405},
		{http.MethodOptions, "/tenant/consent", 405},
		{http.MethodTrace, "/tenant/token", 405},
		{http.MethodOptions, "/tenant/token", 204},
	} {
		r := httptest.NewRequest(test.method, "https://as.example"+test.target, nil)
		r.Header.Set("X-Forwarded-Host", "evil.example")
		r.Header.Set("X-Forwarded-Proto", "http")
		r.Header.Set("X-Forwarded-Prefix", "/evil")
		r.Header.Set("Forwarded", "host=evil.example")
		r.Host = "evil.example"
		w := httptest.NewRecorder()
		d.server.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s %s: %d, want %d", test.method, test.target, w.Code, test.want)
		}
		if text := w.Body.String() + fmt.Sprint(w.Header()); strings.Contains(text, "evil") {
			t.Errorf("%s %s repeats a header: %s", test.method, test.target, text)
		}
		if strings.HasSuffix(test.target, "authorize") && w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s is open to other origins", test.method, test.target)
		}
	}
}

// Nothing that is no signing key is published, or verifies or signs anything,
// though the store keeps it beside the keys.
func TestAttackSecretsAsKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, func(o *issuer.Options) { o.DPoPNonce, o.RefreshGrace = true, time.Minute })
	key := newKey(t)
	a := d.token(redeem("public", d.code("public", bound(key))), d.proof(key, ""))
	a = d.want(redeem("public", d.code("public", bound(key))), d.proof(key, a.Header.Get("DPoP-Nonce")))
	d.want(refreshWith("public", a.text("refresh_token")), d.proof(key, a.Header.Get("DPoP-Nonce")))
	stored, err := d.store.Keys(t.Context(), d.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	var secrets []*issuer.Key
	for _, key := range stored {
		if key.Algorithm == "secret" {
			secrets = append(secrets, key)
		}
	}
	if len(secrets) == 0 {
		t.Fatal("the store has no secret: the test is void")
	}
	// Also a process that starts with the store as it is.
	for _, server := range []*issuer.Server{d.server, d.open(nil)} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, deskIssuer+"/jwks", nil))
		var set struct {
			Keys []map[string]string `json:"keys"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &set); err != nil || len(set.Keys) != len(stored)-len(secrets) {
			t.Errorf("published: %s, %v", w.Body, err)
		}
		for _, key := range set.Keys {
			if key["kty"] == "oct" || key["k"] != "" || key["d"] != "" {
				t.Errorf("published: %v", key)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(w.Body.String(), secret.ID) || strings.Contains(w.Body.String(), string(secret.Private)) {
				t.Errorf("published: %s", w.Body)
			}
			if _, err := jwt.ParseKey(secret.Private); err == nil {
				t.Error("a secret parses as a signing key")
			}
		}
	}
}
