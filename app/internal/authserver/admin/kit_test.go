package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

const (
	resource = "https://mcp.example/mcp"
	redirect = "http://127.0.0.1/callback"
	verifier = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	password = "correct-horse"
)

// acts keeps what an Admin tells its audit.
type acts struct {
	mu  sync.Mutex
	all []admin.Act
}

func (a *acts) add(_ context.Context, act admin.Act) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, act)
}

// take returns what was told since it was called last.
func (a *acts) take() []admin.Act {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

// A site is two authorization servers of one issuer, as two processes would be, with one
// database that each of them has opened for itself, and the administration with a third.
type site struct {
	t           *testing.T
	first       string // address of the first server, which is the issuer
	second      string
	db          *records.DB // of the administration
	operator    *admin.Client
	audit       *acts
	clock       func() time.Time
	passed      atomic.Int64 // how far the clocks of the servers are ahead of it, in nanoseconds
	administers string       // address of the administration
	// change changes the options of the servers; may be nil.
	change func(*issuer.Options)
}

// eachDatabase runs a test on each kind of database. With the race detector PostgreSQL has to do.
func eachDatabase(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if racetest.Enabled && name == "sqlite" {
				t.Skip("with the race detector the other database has to do")
			}
			test(t, database(t))
		})
	}
}

func newSite(t *testing.T, dsn string) *site {
	t.Helper()
	s := &site{t: t, db: openDB(t, dsn), audit: new(acts), clock: stopped()}
	front := httptest.NewUnstartedServer(nil)
	s.first = "http://" + front.Listener.Addr().String()
	front.Config.Handler = s.server(dsn)
	front.Start()
	t.Cleanup(front.Close)
	other := httptest.NewServer(s.server(dsn))
	t.Cleanup(other.Close)
	s.second = other.URL

	s.administers = "unix:" + filepath.Join(t.TempDir(), "s")
	s.operator = administer(t, s.administers, admin.New(s.db, &admin.Options{Audit: s.audit.add, Now: s.now}))
	return s
}

// now is the time of the servers, of those who guess passwords, and of the operators.
func (s *site) now() time.Time { return s.clock().Add(time.Duration(s.passed.Load())) }

// stopped is a clock that stands still, however slow the machine is.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

func openDB(t *testing.T, dsn string) *records.DB {
	t.Helper()
	db, err := records.Open(t.Context(), dsn, &records.Options{Connections: 2})
	return databasetest.Opened(t, db, err)
}

// server makes a server with a connection of its own to the database.
func (s *site) server(dsn string) http.Handler {
	s.t.Helper()
	db := openDB(s.t, dsn)
	o := &issuer.Options{
		Resources: []issuer.Resource{{
			URI: resource, Scopes: []issuer.Scope{{Name: "read"}}, Introspectors: []string{"guard"},
		}},
		Clients: []issuer.StaticClient{
			{ID: "app", Metadata: oauth.ClientMetadata{RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: oauth.AuthNone}},
			{ID: "guard", Secret: "secret-of-guard", Metadata: oauth.ClientMetadata{
				TokenEndpointAuthMethod: oauth.AuthSecretBasic, GrantTypes: []string{oauth.GrantClientCredentials},
			}},
		},
		Subjects: db, RateLimit: -1, Device: issuer.DevicePolicy{On: true},
		Groups:        db.GroupsNow,
		MoreResources: db.Resources,
		// Guards have the clock of the machine.
		AccessLifetime: time.Hour,
		Now:            s.now,
	}
	if s.change != nil {
		s.change(o)
	}
	server, err := issuer.New(s.first, db, userauth.NewPasswords(db, &userauth.PasswordOptions{Changes: db, Invitations: db, Now: s.now}), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return server
}

// administer serves an Admin at a unix socket until the test ends, and returns a client.
func administer(t *testing.T, address string, a *admin.Admin) *admin.Client {
	t.Helper()
	ln, err := admin.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- admin.Serve(ctx, ln, admin.NewHandler(a, nil)) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	client, err := admin.NewClient(address, "")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// do does a verb through the API.
func (s *site) do(path, parameters string) admin.Result {
	s.t.Helper()
	result, err := s.try(path, parameters)
	if err != nil {
		s.t.Fatalf("%s %s: %v", path, parameters, err)
	}
	return result
}

func (s *site) try(path, parameters string) (admin.Result, error) {
	s.t.Helper()
	v := admin.Find(path)
	if v == nil {
		s.t.Fatalf("there is no verb %q", path)
	}
	return s.operator.Run(s.t.Context(), v, []byte(parameters))
}

// addUser adds a user with the password of this package.
func (s *site) addUser(name string) {
	s.t.Helper()
	s.do("user add", `{"name":"`+name+`","password":"`+password+`"}`)
}

// browser is a new one, which is not sent away from the servers.
func (s *site) browser() *browsertest.Browser {
	b := browsertest.New()
	b.Follows = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), redirect) }
	return b
}

// A person is a browser that signed in, with what its client got.
type person struct {
	*browsertest.Browser
	s               *site
	access, refresh string
}

// signIn signs a user in at the first server.
func (s *site) signIn(client, name string) *person {
	s.t.Helper()
	p := &person{Browser: s.browser(), s: s}
	code := p.authorize(s.first, client, url.Values{"name": {name}, "password": {password}, "answer": {"approve"}})
	if code == "" {
		s.t.Fatalf("%s cannot sign in", name)
	}
	answer := s.token(s.first, client, byCode(code))
	if p.access, p.refresh = answer.Access, answer.Refresh; p.refresh == "" {
		s.t.Fatalf("%s gets no refresh token: %+v", name, answer)
	}
	return p
}

// authorize opens an authorization request at a server, sends the forms, none if they are nil,
// and returns the code, or "".
func (p *person) authorize(server, client string, form url.Values) string {
	p.s.t.Helper()
	return p.authorizeFor(server, client, resource, "read", form)
}

// authorizeFor is authorize for another resource and scopes.
func (p *person) authorizeFor(server, client, resource, scopes string, form url.Values) string {
	p.s.t.Helper()
	end, err := p.FillIn(p.s.t.Context(), server+"/authorize?"+url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "scope": {scopes},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"}, "resource": {resource},
	}.Encode(), form)
	if err != nil {
		p.s.t.Fatal(err)
	}
	if end.Away == nil {
		return ""
	}
	return end.Away.Query().Get("code")
}

func byCode(code string) url.Values {
	return url.Values{
		"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {redirect},
	}
}

// An answer is what the token endpoint says.
type answer struct {
	Access    string `json:"access_token"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
	ExpiresIn int    `json:"expires_in"`
	Error     string `json:"error"`
}

func (s *site) token(server, client string, form url.Values) *answer {
	s.t.Helper()
	form.Set("client_id", client)
	if !form.Has("resource") {
		form.Set("resource", resource)
	}
	a := new(answer)
	s.post(server+"/token", form, false, a)
	return a
}

// active says whether a server calls an access token active.
func (s *site) active(server, token string) bool {
	s.t.Helper()
	var a struct {
		Active *bool `json:"active"`
	}
	s.post(server+"/introspect", url.Values{"token": {token}}, true, &a)
	if a.Active == nil {
		s.t.Fatal("introspection does not say whether a token is active")
	}
	return *a.Active
}

func (s *site) post(address string, form url.Values, guard bool, into any) {
	s.t.Helper()
	client, secret := "", ""
	if guard {
		client, secret = "guard", "secret-of-guard"
	}
	s.postAs(client, secret, address, form, into)
}

// postAs posts a form as a client that has a secret, or without authentication if it is empty.
func (s *site) postAs(client, secret, address string, form url.Values, into any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" {
		r.SetBasicAuth(client, secret)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		s.t.Fatal(err)
	}
}
