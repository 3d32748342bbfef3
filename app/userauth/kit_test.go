package userauth_test

import (
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const (
	mcpServer = "https://mcp.example/mcp"
	evilURI   = "https://evil.example/cb"
	verifier  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// A clock stands still until it is told to move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A log keeps what was written.
type log struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve serves a handler that is made for its own URL on loopback.
func serve(t *testing.T, make func(url string) http.Handler) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + listener.Addr().String()
	front := httptest.NewUnstartedServer(make(at))
	_ = front.Listener.Close()
	front.Listener = listener
	front.Start()
	t.Cleanup(front.Close)
	return at
}

// A site is an issuer with one client of its own and one of an attacker.
type site struct {
	t     *testing.T
	url   string
	clock *clock
	log   *log
	store issuer.Store
}

func newSite(t *testing.T, clock *clock, login issuer.Login) *site {
	t.Helper()
	s := &site{t: t, clock: clock, log: new(log), store: issuer.NewMemory()}
	s.url = serve(t, func(url string) http.Handler {
		server, err := issuer.New(url, s.store, login, &issuer.Options{
			Resources: []issuer.Resource{{URI: mcpServer, Scopes: []issuer.Scope{{Name: "notes:read"}}}},
			Clients: []issuer.StaticClient{
				{ID: "web", Metadata: oauth.ClientMetadata{ClientName: "Web Client", RedirectURIs: []string{"https://client.example/cb"}}},
				{ID: "evil", Metadata: oauth.ClientMetadata{ClientName: "Web Client", RedirectURIs: []string{evilURI}}},
			},
			Upstream:  issuer.Upstream{Name: "Example Company", Scopes: []string{"profile", "email"}},
			RateLimit: -1, Now: clock.Now,
			Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		if err != nil {
			t.Fatal(err)
		}
		return server
	})
	return s
}

// request is a good authorization request, changed by pairs of names and values.
func (s *site) request(pairs ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {"web"}, "redirect_uri": {"https://client.example/cb"}, "state": {"xyz"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"}, "resource": {mcpServer},
		"scope": {"notes:read"},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return s.url + "/authorize?" + q.Encode()
}

// redeem exchanges a code and returns the answer of the token endpoint.
func (s *site) redeem(code string) (int, string) {
	s.t.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"web"}, "code": {code}, "code_verifier": {verifier},
		"redirect_uri": {"https://client.example/cb"}, "resource": {mcpServer},
	}
	resp, err := http.PostForm(s.url+"/token", form)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// subject is who a code is for.
func (s *site) subject(code string) string {
	s.t.Helper()
	c, err := s.store.ConsumeCode(s.t.Context(), issuer.Hash(code), s.clock.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := s.store.Grant(s.t.Context(), c.Grant, s.clock.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return g.Subject
}

// A person sits at a browser, which follows redirects on this machine and stops
// at those that leave it, or that lead to where near says no.
type person struct {
	t      *testing.T
	client *http.Client
	near   func(*url.URL) bool
}

func newPerson(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, near: func(*url.URL) bool { return true }}
	p.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// A page is what a browser shows, or where it is sent away to.
type page struct {
	status int
	header http.Header
	body   string
	url    string
	away   *url.URL
}

func (p *person) open(target string) *page {
	p.t.Helper()
	return p.do(http.MethodGet, target, nil)
}

func (p *person) do(method, target string, form url.Values) *page {
	p.t.Helper()
	for range 10 {
		req, err := http.NewRequestWithContext(p.t.Context(), method, target, strings.NewReader(form.Encode()))
		if err != nil {
			p.t.Fatal(err)
		}
		if method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Sec-Fetch-Site", "same-origin")
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
		if location.Hostname() != "127.0.0.1" || !p.near(location) {
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
		p.t.Fatalf("no form in %d %v %s", from.status, from.away, from.body)
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
	return p.do(http.MethodPost, target.String(), form)
}

// code expects to be sent to the client with a code.
func (p *person) code(got *page) string {
	p.t.Helper()
	if got.away == nil || got.away.Query().Get("code") == "" {
		p.t.Fatalf("no code: %d %v %s", got.status, got.away, got.body)
	}
	return got.away.Query().Get("code")
}
