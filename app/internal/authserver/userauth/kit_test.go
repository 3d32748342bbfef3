package userauth_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/browsertest"
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
	front := httptest.NewUnstartedServer(nil)
	t.Cleanup(front.Close)
	s.url = "http://" + front.Listener.Addr().String()
	server, err := issuer.New(s.url, s.store, login, &issuer.Options{
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
	front.Config.Handler = server
	front.Start()
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

// A person sits at a browser, which stops at redirects that leave this machine.
type person struct {
	*browsertest.Browser
	t *testing.T
}

type page = browsertest.Page

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{browsertest.New(), t}
	p.Follows = isLocal
	t.Cleanup(p.Client.CloseIdleConnections)
	return p
}

func isLocal(u *url.URL) bool { return u.Hostname() == "127.0.0.1" }

func (p *person) open(target string) *page {
	p.t.Helper()
	return p.shown(p.Open(p.t.Context(), target))
}

// submit sends the form of a page with further fields: names and values.
func (p *person) submit(from *page, pairs ...string) *page {
	p.t.Helper()
	fields := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		fields.Set(pairs[i], pairs[i+1])
	}
	return p.shown(p.Submit(p.t.Context(), from, fields))
}

func (p *person) shown(got *page, err error) *page {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// code expects to be sent to the client with a code.
func (p *person) code(got *page) string {
	p.t.Helper()
	if got.Away == nil || got.Away.Query().Get("code") == "" {
		p.t.Fatalf("no code: %d %v %s", got.Status, got.Away, got.Body)
	}
	return got.Away.Query().Get("code")
}
