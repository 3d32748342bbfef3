package issuer_test

import (
	"context"
	"html"
	"html/template"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const (
	mcpServer   = "https://mcp.example/mcp"
	webRedirect = "https://client.example/cb"
	verifier    = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// A site is an issuer under test on a loopback listener of its own.
type site struct {
	t      *testing.T
	url    string
	server *issuer.Server
	store  issuer.Store
	client *http.Client // of whoever is no browser
	clock  *clocktest.Clock
	events *events
}

// events is an audit log, and a log, that tests can read.
type events struct {
	logtest.Log

	mu   sync.Mutex
	list []issuer.Event
}

func (e *events) add(event issuer.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

func (e *events) count(name, outcome string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, event := range e.list {
		if event.Name == name && event.Outcome == outcome {
			n++
		}
	}
	return n
}

// newSite serves an issuer with one web client, "web", one native one, "app",
// and one resource. change may be nil.
func newSite(t *testing.T, path string, login issuer.Login, change func(*issuer.Options)) *site {
	t.Helper()
	return newSiteOn(t, path, issuer.NewMemory(), login, change)
}

func newSiteOn(t *testing.T, path string, store issuer.Store, login issuer.Login, change func(*issuer.Options)) *site {
	t.Helper()
	s := &site{
		t: t, store: store, client: &http.Client{Transport: ownTransport()},
		clock: clocktest.New(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), events: new(events),
	}
	o := &issuer.Options{
		Resources: []issuer.Resource{{
			URI: mcpServer, Name: "Notes",
			Scopes: []issuer.Scope{
				{Name: "notes:read", Description: "Read your notes"},
				{Name: "notes:write", Description: "Change your notes"},
			},
			Default: []string{"notes:read"},
		}},
		Clients: []issuer.StaticClient{
			{ID: "web", Metadata: oauth.ClientMetadata{
				ClientName: "Web Client", RedirectURIs: []string{webRedirect},
				GrantTypes: []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
			}},
			{ID: "app", Metadata: oauth.ClientMetadata{
				ClientName: "App", RedirectURIs: []string{"http://127.0.0.1/cb", "http://localhost:7000/cb", "com.example.app:/cb"},
			}},
		},
		RateLimit: -1,
		Now:       s.clock.Now,
		Logger:    s.events.Logger(),
	}
	if change != nil {
		change(o)
	}
	s.url = webtest.ServeOwn(t, path, func(url string) (h http.Handler) {
		var err error
		if s.server, err = issuer.New(url, s.store, login, o); err != nil {
			t.Fatal(err)
		}
		return s.server
	})
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// audited makes the audit log of a site readable.
func audited(e *events) func(*issuer.Options) {
	return func(o *issuer.Options) {
		o.Audit = func(_ context.Context, event issuer.Event) { e.add(event) }
	}
}

// request is a good authorization request, changed by pairs of names and
// values; the value "-" leaves a parameter out.
func (s *site) request(pairs ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {"web"}, "redirect_uri": {webRedirect}, "state": {"st&te=1"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"}, "resource": {mcpServer},
		"scope": {"notes:read"},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "-" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return s.url + "/authorize?" + q.Encode()
}

// A person sits at a browser, which follows redirects within the site and
// stops at those that leave it.
type person struct {
	t      *testing.T
	site   *site
	client *http.Client
}

// ownTransport is a transport whose connections no other test closes: closing an httptest.Server
// closes those of http.DefaultTransport.
func ownTransport() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() }

func (s *site) person() *person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &person{t: s.t, site: s}
	p.client = &http.Client{Jar: jar, Transport: ownTransport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// A page is what a browser shows, or where it is sent away to.
type page struct {
	status int
	header http.Header
	body   string
	url    string // of the page
	away   *url.URL
}

// open follows a link, and redirects until one leaves the site, or all if far.
func (p *person) open(target string) *page {
	p.t.Helper()
	return p.do(http.MethodGet, target, nil, "none")
}

func (p *person) do(method, target string, form url.Values, from string) *page {
	p.t.Helper()
	for range 10 {
		req, err := http.NewRequestWithContext(p.t.Context(), method, target, strings.NewReader(form.Encode()))
		if err != nil {
			p.t.Fatal(err)
		}
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if from != "" {
			req.Header.Set("Sec-Fetch-Site", from)
		}
		resp, err := p.client.Do(req)
		if err != nil {
			p.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		out := &page{status: resp.StatusCode, header: resp.Header, body: string(body), url: target}
		if resp.Header.Get("Location") == "" {
			return out
		}
		location, err := resp.Location()
		if err != nil {
			p.t.Fatal(err)
		}
		if !strings.HasPrefix(location.String(), p.site.url+"/") {
			out.away = location
			return out
		}
		method, target, form = http.MethodGet, location.String(), nil
	}
	p.t.Fatal("redirects without end")
	return nil
}

var (
	actions = regexp.MustCompile(`action="([^"]*)"`)
	tokens  = regexp.MustCompile(`name="csrf" value="([^"]*)"`)
)

// submit sends the form of a page with further fields, as the browser does.
func (p *person) submit(from *page, pairs ...string) *page {
	p.t.Helper()
	action, token := actions.FindStringSubmatch(from.body), tokens.FindStringSubmatch(from.body)
	if action == nil || token == nil {
		p.t.Fatalf("no form in %d %s", from.status, from.body)
	}
	form := url.Values{"csrf": {token[1]}}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	base, err := url.Parse(from.url)
	if err != nil {
		p.t.Fatal(err)
	}
	target, err := base.Parse(html.UnescapeString(action[1]))
	if err != nil {
		p.t.Fatal(err)
	}
	return p.do(http.MethodPost, target.String(), form, "same-origin")
}

// code expects to be sent to the client with a code.
func (p *person) code(got *page) string {
	p.t.Helper()
	if got.away == nil || got.away.Query().Get("code") == "" {
		p.t.Fatalf("no code: %d %v %s", got.status, got.away, got.body)
	}
	return got.away.Query().Get("code")
}

// A formLogin asks for a password, which is "right".
type formLogin struct{}

func (formLogin) External() bool { return false }

func (formLogin) ServeLogin(w http.ResponseWriter, r *http.Request, v *issuer.Visit) {
	switch {
	case r.Method == http.MethodPost && r.PostForm.Get("password") == "right":
		v.Done(w, r, issuer.Person{Subject: r.PostForm.Get("user"), Name: "Dear " + r.PostForm.Get("user"), Claims: []byte(`{"team":"a"}`)})
	case r.Method == http.MethodPost && r.PostForm.Get("password") == "":
		v.Cancel(w, r)
	default:
		v.Page(w, http.StatusOK, "Sign in", template.HTML(`<form method="post" action="`+html.EscapeString(v.Action(""))+
			`"><input type="hidden" name="csrf" value="`+v.CSRF()+`"><input name="user"><input name="password" type="password"></form>`))
	}
}

// signIn opens a request and signs in.
func (p *person) signIn(target, user string) *page {
	p.t.Helper()
	form := p.open(target)
	if !strings.Contains(form.body, "Sign in") {
		p.t.Fatalf("no login page: %d %s", form.status, form.body)
	}
	return p.submit(form, "user", user, "password", "right")
}

// Proves: S7, S6, S10 along the way of a person through a browser: login,
// consent, code; signed in and remembered the second time.
func TestBrowserFlow(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/tenant1"} {
		log := new(events)
		s := newSite(t, path, formLogin{}, audited(log))
		p := s.person()
		again := p.submit(p.open(s.request()), "user", "ada", "password", "wrong")
		if !strings.Contains(again.body, "Sign in") {
			t.Fatalf("a wrong password did not show the form again: %d %s", again.status, again.body)
		}
		question := p.signIn(s.request(), "ada")
		for _, want := range []string{"Web Client", "client.example", "Read your notes", "Dear ada", "Notes", webRedirect} {
			if !strings.Contains(question.body, want) {
				t.Errorf("consent page lacks %q:\n%s", want, question.body)
			}
		}
		if strings.Contains(question.body, "unverified") || strings.Contains(question.body, "Change your notes") {
			t.Errorf("consent page says too much:\n%s", question.body)
		}
		answer := p.submit(question, "answer", "approve")
		code := p.code(answer)
		q := answer.away.Query()
		if q.Get("state") != "st&te=1" || q.Get("iss") != s.url || answer.status != http.StatusSeeOther {
			t.Errorf("answer is %d %v", answer.status, answer.away)
		}
		if got := answer.header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("Referrer-Policy is %q", got)
		}
		if got := answer.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		s.redeem(code)

		p.code(p.open(s.request())) // nobody is asked twice
		wider := p.open(s.request("scope", "notes:read notes:write"))
		if !strings.Contains(wider.body, "Change your notes") {
			t.Errorf("a wider scope was not asked about: %d %s", wider.status, wider.body)
		}
		denied := p.submit(wider, "answer", "deny")
		if denied.away == nil || denied.away.Query().Get("error") != oauth.AccessDenied || denied.away.Query().Get("iss") != s.url {
			t.Errorf("deny gave %v", denied.away)
		}
		if log.count("code.issued", "ok") != 2 || log.count("login", "ok") != 1 || log.count("consent", "ok") != 1 {
			t.Errorf("audit log is %+v", log.list)
		}
	}
}

// redeem exchanges a code for tokens.
func (s *site) redeem(code string) {
	s.t.Helper()
	form := url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "client_id": {"web"},
		"redirect_uri": {webRedirect}, "code_verifier": {verifier}, "resource": {mcpServer},
	}
	status, body := s.post("/token", "application/x-www-form-urlencoded", form.Encode())
	if status != http.StatusOK {
		s.t.Fatalf("token endpoint: %d %s", status, body)
	}
	tokens, err := oauth.ParseTokenResponse([]byte(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if tokens.Scope != "" && tokens.Scope != "notes:read" {
		s.t.Errorf("scope is %q", tokens.Scope)
	}
}

// post sends something that no browser sends.
func (s *site) post(path, media, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestNew(t *testing.T) {
	t.Parallel()
	web := oauth.ClientMetadata{RedirectURIs: []string{webRedirect}}
	for _, test := range []struct {
		name, issuer string
		login        issuer.Login
		options      *issuer.Options
		ok           bool
	}{
		{"https", "https://as.example", formLogin{}, nil, true},
		{"https with path", "https://as.example/tenant1", formLogin{}, nil, true},
		{"loopback", "http://localhost:1", formLogin{}, nil, true},
		{"AutoApprove on loopback", "http://127.0.0.1:1", issuer.AutoApprove("ada"), nil, true},
		{"AutoApprove on the internet", "https://as.example", issuer.AutoApprove("ada"), nil, false},
		{"AutoApprove in spite of Loopback", "https://as.example", issuer.AutoApprove("ada"), &issuer.Options{Loopback: true}, false},
		{"http", "http://as.example", formLogin{}, nil, false},
		{"query", "https://as.example?a=b", formLogin{}, nil, false},
		{"no login", "https://as.example", nil, nil, false},
		{"client twice", "https://as.example", formLogin{}, &issuer.Options{Clients: []issuer.StaticClient{
			{ID: "a", Metadata: web}, {ID: "a", Metadata: web},
		}}, false},
		{"client with bad redirect", "https://as.example", formLogin{}, &issuer.Options{Clients: []issuer.StaticClient{
			{ID: "a", Metadata: oauth.ClientMetadata{RedirectURIs: []string{"javascript:alert(1)"}}},
		}}, false},
		{"method without secret", "https://as.example", formLogin{}, &issuer.Options{Clients: []issuer.StaticClient{
			{ID: "a", Metadata: oauth.ClientMetadata{TokenEndpointAuthMethod: oauth.AuthSecretBasic}},
		}}, false},
		{"client of an unknown resource", "https://as.example", formLogin{}, &issuer.Options{Clients: []issuer.StaticClient{
			{ID: "a", Metadata: web, Resources: []string{mcpServer}},
		}}, false},
		{"client with broken keys", "https://as.example", formLogin{}, &issuer.Options{Clients: []issuer.StaticClient{
			{ID: "a", Metadata: oauth.ClientMetadata{JWKS: []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`)}},
		}}, false},
		{"unknown algorithm", "https://as.example", formLogin{}, &issuer.Options{SigningAlgorithm: "HS256"}, false},
		{"negative time", "https://as.example", formLogin{}, &issuer.Options{CodeLifetime: -1}, false},
		{"devices that poll too late", "https://as.example", formLogin{}, &issuer.Options{Device: issuer.DevicePolicy{Lifetime: time.Minute, Interval: time.Minute}}, false},
		{"scheme", "https://as.example", formLogin{}, schemes("cursor"), true},
		{"scheme that runs code", "https://as.example", formLogin{}, schemes("javascript"), false},
		{"scheme with a colon", "https://as.example", formLogin{}, schemes("cursor:"), false},
		{"scheme in capitals", "https://as.example", formLogin{}, schemes("Cursor"), false},
		{"no scheme", "https://as.example", formLogin{}, schemes(""), false},
	} {
		_, err := issuer.New(test.issuer, issuer.NewMemory(), test.login, test.options)
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	s := newSite(t, "/tenant1", formLogin{}, nil)
	mux := http.NewServeMux()
	for _, path := range s.server.Paths() {
		mux.Handle(path, s.server)
	}
	for path, want := range map[string]int{
		"/.well-known/oauth-authorization-server/tenant1": http.StatusOK,
		"/tenant1/login/anything":                         http.StatusBadRequest, // a page: no visit
		"/tenant1/register":                               http.StatusNotFound,   // off by default
		"/login/":                                         http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	for _, path := range []string{"/tenant1//authorize", "/tenant1/authorize/", "/tenant1/x/../authorize"} {
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Attack: DNS rebinding: an issuer on loopback answers to names of loopback
// alone; one on the internet leaves names to whoever is in front of it.
func TestAttackDNSRebinding(t *testing.T) {
	t.Parallel()
	local := newSite(t, "", issuer.AutoApprove("ada"), nil)
	remote, err := issuer.New("https://as.example", issuer.NewMemory(), formLogin{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		server *issuer.Server
		host   string
		want   int
	}{
		{local.server, "127.0.0.1:1", http.StatusOK},
		{local.server, "localhost", http.StatusOK},
		{local.server, "[::1]:8080", http.StatusOK},
		{local.server, "evil.example:8080", http.StatusMisdirectedRequest},
		{local.server, "127.0.0.1.evil.example", http.StatusMisdirectedRequest},
		{local.server, "localhost@evil.example", http.StatusMisdirectedRequest},
		{local.server, "", http.StatusMisdirectedRequest},
		{remote, "10.0.0.5:8080", http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/.well-known/oauth-authorization-server", nil)
		r.Host = test.host
		w := httptest.NewRecorder()
		test.server.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%q: %d, want %d", test.host, w.Code, test.want)
		}
	}
}

// Attack: a page that the developer looks at fetches itself a token of an
// issuer that agrees to everything.
func TestAttackAutoApproveFromAfar(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", issuer.AutoApprove("ada"), registering)
	evil := s.registerClient(evilMetadata)
	p := s.person()
	got := p.open(s.request("client_id", evil, "redirect_uri", "https://evil.example/cb"))
	if got.away != nil || !strings.Contains(got.body, "evil.example") {
		t.Errorf("sent to %v", got.away)
	}
	p.code(p.submit(got, "answer", "approve"))
	local := s.registerClient(`{"redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}`)
	p.code(p.open(s.request("client_id", local, "redirect_uri", "http://127.0.0.1:1/cb")))
}

// Run sweeps what has expired, makes keys, and ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := issuer.NewMemory()
		server, err := issuer.New("http://127.0.0.1:1", store, issuer.AutoApprove("ada"), nil)
		if err != nil {
			t.Fatal(err)
		}
		stop, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := server.Run(stop); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		if err := store.SetRecord(t.Context(), "request", "hash", []byte("x"), time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second) // of the bubble's clock
		synctest.Wait()
		if n, err := store.Sweep(t.Context(), time.Now()); err != nil || n != 0 {
			t.Errorf("%d records were left, %v", n, err)
		}
		if keys, err := store.Keys(t.Context(), time.Now()); err != nil || len(keys) == 0 {
			t.Errorf("there are no keys, %v", err)
		}
		cancel()
		wg.Wait()
	})
}
