package interop_test

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/login"
	loginbrowser "github.com/parley-mcp/parley/oauth/login/browser"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// The scopes of the protected server: one for every request, one for a tool.
const (
	scopeRead  = "files:read"
	scopeWrite = "files:write"
)

// redirectURI is that of clients that are registered beforehand; the port is
// free (RFC 8252, section 7.3).
const redirectURI = "http://127.0.0.1/callback"

// A scene is our server behind our guard, and an authorization server for it.
type scene struct {
	resource, issuer *site
	// ahead is by how much the client's clock is ahead, in nanoseconds, so that
	// it takes a token for expired that is not; guardAhead is the same for the guard.
	ahead, guardAhead atomic.Int64
	// host is what the client's redirect URI names. Default 127.0.0.1.
	host string
	// dpop binds tokens to a key of the client (RFC 9449).
	dpop bool
	// noRefresh: our authorization server issues no refresh tokens.
	noRefresh bool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return &scene{resource: newSite(t), issuer: newSite(t)}
}

// uri is the identifier of the resource.
func (s *scene) uri() string { return s.resource.url + "/mcp" }

// scheme is that of challenges and of the Authorization header.
func (s *scene) scheme() string {
	if s.dpop {
		return "DPoP"
	}
	return "Bearer"
}

func (s *scene) clientNow() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
func (s *scene) guardNow() time.Time  { return time.Now().Add(time.Duration(s.guardAhead.Load())) }

// A caller is who the protected server sees, as its tools say.
type caller struct {
	Issuer  string   `json:"issuer"`
	Subject string   `json:"subject"`
	Client  string   `json:"client"`
	Scopes  []string `json:"scopes"`
}

// protect puts the demonstration server behind a guard. Two of its tools need
// another scope than the rest, and so does one of two that say who calls.
func (s *scene) protect(t *testing.T, v guard.Verifier, o guard.Options) {
	t.Helper()
	o.Scopes = []string{scopeRead}
	o.CacheAge = -1
	o.Now = s.guardNow
	g, err := guard.New(s.uri(), v, &o)
	if err != nil {
		t.Fatal(err)
	}
	who := func(ctx context.Context, _ mcp.None) (caller, error) {
		p := server.Caller(ctx)
		return caller{p.Issuer, p.Subject, p.Client, slices.Sorted(slices.Values(p.Scopes))}, nil
	}
	srv := everything.New("1.0.0", &everything.Options{WriteScope: scopeWrite})
	srv.Add(
		server.Tool("who", "Says who calls.", who),
		server.Tool("write", "Says who writes.", who).With(server.ToolOptions{Scopes: []string{scopeWrite}}),
	)
	h := streamable.NewHandler(srv, nil)
	s.resource.serve(g.Handler(h))
	t.Cleanup(func() {
		g.Close()
		if err := h.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
}

// signIn makes a login whose person sits at b.
func (s *scene) signIn(t *testing.T, b *browser, o login.Options) *login.Client {
	t.Helper()
	o.Authorizer = loginbrowser.NewReceiver(&loginbrowser.ReceiverOptions{Open: b.open, Host: s.host})
	o.Now = s.clientNow
	o.DPoP = s.dpop
	o.SignInTimeout = patience
	l := login.New(&o)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("closing the login: %v", err)
		}
	})
	return l
}

// connect connects our client to the protected server.
func (s *scene) connect(ctx context.Context, t *testing.T, l *login.Client) *client.Client {
	t.Helper()
	d := streamable.URL(s.uri())
	d.Client = l.HTTPClient(nil)
	c, err := client.Connect(ctx, d, &client.Options{Eras: client.NewEraMemory(), DiscoverProbe: patience})
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// calling calls a tool that says who calls.
func calling(ctx context.Context, t *testing.T, c *client.Client, tool string) caller {
	t.Helper()
	r, err := c.CallTool(ctx, tool, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var who caller
	if err := json.Unmarshal(r.StructuredContent, &who); err != nil {
		t.Fatalf("%s answered %s: %v", tool, r.StructuredContent, err)
	}
	return who
}

// lacks are parts of the way that an authorization server does not have.
type lacks struct {
	rfc8414  bool // metadata at the place of RFC 8414; there is that of OpenID
	iss      bool // its issuer in authorization responses (RFC 9207)
	rotation bool // a new refresh token at each refresh
	offline  bool // a difference between offline_access and the scopes of a token
	// ports: it takes no loopback address whose port was registered, but localhost.
	ports bool
}

// flow goes the whole way of FLOW-AUTH with our client and checks every step:
// 401, discovery, registration, consent, code, token, the request again; then
// 403 and more scopes; then a refresh. The client registers if want names none.
func (s *scene) flow(t *testing.T, o login.Options, want caller, without lacks) {
	t.Helper()
	ctx := bounded(t)
	code := []string{"authorize", "token authorization_code OK"}
	first := code
	if want.Client == "" {
		first = append([]string{"register Created"}, code...)
	}
	var extra []string
	b := newBrowser(t, nil)
	if without.ports {
		s.host = "localhost"
	}
	l := s.signIn(t, b, o)
	c := s.connect(ctx, t, l)
	if without.offline {
		extra = []string{oauth.ScopeOfflineAccess}
	}
	want.Scopes = append([]string{scopeRead}, extra...)
	s.whoIs(t, &want, calling(ctx, t, c, "who"))
	s.checkChallenge(t)
	s.checkMetadata(t, without)
	s.checkCode(t, first, []string{scopeRead}, without)
	if len(b.pages) == 0 {
		t.Error("the person was asked nothing")
	}

	s.issuer.forget()
	s.resource.forget()
	want.Scopes = append([]string{scopeRead, scopeWrite}, extra...)
	if _, err := c.CallTool(ctx, "toggle-extra-tool", nil, nil); err != nil {
		t.Fatalf("a tool that changes something: %v", err)
	}
	s.checkStepUp(t)
	s.whoIs(t, &want, calling(ctx, t, c, "write"))
	s.checkCode(t, code, []string{scopeRead, scopeWrite}, without)

	s.issuer.forget()
	if s.dpop {
		// Proofs tell the time, so the clock stays: the token is refused as if
		// it had been revoked.
		revoked := oauth.Challenge{Scheme: s.scheme(), Params: map[string]string{"error": oauth.InvalidToken}}.String()
		s.resource.next(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", revoked)
			w.WriteHeader(http.StatusUnauthorized)
		}))
	} else {
		s.ahead.Store(int64(2 * time.Hour))
	}
	s.whoIs(t, &want, calling(ctx, t, c, "who"))
	s.checkRefresh(t, without)
}

// whoIs compares who called; a client that registered itself has any id.
func (s *scene) whoIs(t *testing.T, want *caller, got caller) {
	t.Helper()
	if want.Client == "" {
		want.Client = got.Client
	}
	if diff := cmp.Diff(*want, got); diff != "" || got.Client == "" {
		t.Errorf("the caller differs (-want +got):\n%s", diff)
	}
}

// checkChallenge: the first request is answered 401 with where to go on and
// the scopes, then the metadata is fetched, then the request is made again.
func (s *scene) checkChallenge(t *testing.T) {
	t.Helper()
	visits := s.resource.visits()
	var seen []string
	for _, v := range visits[:min(3, len(visits))] {
		seen = append(seen, v.Method+" "+v.Path+" "+http.StatusText(v.Status))
	}
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	want := []string{"POST /mcp Unauthorized", "GET " + metadata + " OK", "POST /mcp OK"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Fatalf("the way of the first request differs (-want +got):\n%s", diff)
	}
	c, ok := oauth.FindChallenge(oauth.ParseChallenges(visits[0].Header.Values("Www-Authenticate")), s.scheme())
	if !ok || c.Params["resource_metadata"] != s.resource.url+metadata || c.Params["scope"] != scopeRead {
		t.Errorf("the challenge is %v", c)
	}
	for _, v := range visits[1:] {
		if (v.Path == "/mcp") != (v.Scheme == s.scheme()) {
			t.Errorf("%s %s: authorization by %q", v.Method, v.Path, v.Scheme)
		}
	}
}

// checkMetadata checks where the metadata of the authorization server was looked
// for, and found.
func (s *scene) checkMetadata(t *testing.T, without lacks) {
	t.Helper()
	want := []string{"metadata /.well-known/oauth-authorization-server OK"}
	if without.rfc8414 {
		want = []string{
			"metadata /.well-known/oauth-authorization-server Not Found",
			"metadata /.well-known/openid-configuration OK",
		}
	}
	if diff := cmp.Diff(want, steps(s.issuer.visits(), true)); diff != "" {
		t.Errorf("the search for metadata differs (-want +got):\n%s", diff)
	}
}

// checkCode checks what came in at the authorization server for one code.
func (s *scene) checkCode(t *testing.T, want, scopes []string, without lacks) {
	t.Helper()
	visits := s.issuer.visits()
	if diff := cmp.Diff(want, steps(visits, false)); diff != "" {
		t.Fatalf("the steps at the authorization server differ (-want +got):\n%s", diff)
	}
	asked := find(visits, "authorize")[0].Form
	token := find(visits, "token authorization_code")[0].Form
	for name, good := range map[string]bool{
		"PKCE S256":              asked.Get("code_challenge_method") == oauth.MethodS256 && oauth.VerifyS256(token.Get("code_verifier"), asked.Get("code_challenge")),
		"resource":               asked.Get("resource") == s.uri() && token.Get("resource") == s.uri(),
		"state":                  asked.Get("state") != "",
		"the same redirect URI":  asked.Get("redirect_uri") == token.Get("redirect_uri"),
		"a loopback redirect":    strings.HasPrefix(asked.Get("redirect_uri"), "http://"+stdcmp.Or(s.host, "127.0.0.1")+":"),
		"the same client":        asked.Get("client_id") == token.Get("client_id"),
		"the code, not a secret": token.Get("code") != "" && token.Get("client_secret") == "",
	} {
		if !good {
			t.Errorf("authorization: not %s: %v", name, asked)
		}
	}
	got, err := oauth.ParseScope(asked.Get("scope"))
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(s string) bool { return s == oauth.ScopeOfflineAccess })
	if diff := cmp.Diff(scopes, got); diff != "" {
		t.Errorf("the scopes differ (-want +got):\n%s", diff)
	}
	if sent := s.answeredIssuer(visits); sent == without.iss {
		t.Errorf("iss in the authorization response: %t", sent)
	}
}

// answeredIssuer says whether the server put its issuer into its response.
func (s *scene) answeredIssuer(visits []*visit) bool {
	for _, v := range visits {
		if to, err := url.Parse(v.Header.Get("Location")); err == nil && to.Query().Has("code") {
			return to.Query().Get("iss") == s.issuer.url || to.Query().Get("iss") == s.issuer.url+"/"
		}
	}
	return false
}

// checkStepUp: the call was answered 403 with the scopes of the operation, and
// made again.
func (s *scene) checkStepUp(t *testing.T) {
	t.Helper()
	var seen []int
	for _, v := range s.resource.visits() {
		if v.Path != "/mcp" {
			continue
		}
		seen = append(seen, v.Status)
		if v.Status != http.StatusForbidden {
			continue
		}
		c, ok := oauth.FindChallenge(oauth.ParseChallenges(v.Header.Values("Www-Authenticate")), s.scheme())
		if !ok || c.Params["error"] != oauth.InsufficientScope || !strings.Contains(c.Params["scope"], scopeWrite) {
			t.Errorf("the challenge of the 403 is %v", c)
		}
	}
	if diff := cmp.Diff([]int{http.StatusForbidden, http.StatusOK}, seen); diff != "" {
		t.Errorf("the way of the call differs (-want +got):\n%s", diff)
	}
}

// checkRefresh: one refresh, for this resource, and no person.
func (s *scene) checkRefresh(t *testing.T, without lacks) {
	t.Helper()
	visits := s.issuer.visits()
	if diff := cmp.Diff([]string{"token refresh_token OK"}, steps(visits, false)); diff != "" {
		t.Fatalf("the steps of the refresh differ (-want +got):\n%s", diff)
	}
	v := find(visits, "token refresh_token")[0]
	if v.Form.Get("resource") != s.uri() {
		t.Errorf("the refresh was for resource %q", v.Form.Get("resource"))
	}
	next, _ := v.member("refresh_token").(string)
	if rotated := next != "" && next != v.Form.Get("refresh_token"); rotated == without.rotation {
		t.Errorf("the refresh token was rotated: %t", rotated)
	}
}

// serveDocument serves the metadata document of a client, at an https URL that
// is its id, whose name is example.com and leads to this machine. plain is the
// same document over http.
func serveDocument(t *testing.T, redirects ...string) (id, plain string, fetch *oauth.Fetcher) {
	t.Helper()
	var document atomic.Pointer[[]byte]
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(*document.Load())
	})
	secure := httptest.NewTLSServer(h)
	t.Cleanup(secure.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(secure.URL, "https://"), ":")
	id = "https://example.com:" + port + "/client.json"
	data, err := json.Marshal(&oauth.ClientMetadata{
		ClientID: id, ClientName: "Interop", RedirectURIs: redirects, ApplicationType: "native",
		GrantTypes:              []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
		ResponseTypes:           []string{"code"},
		TokenEndpointAuthMethod: oauth.AuthNone,
	})
	if err != nil {
		t.Fatal(err)
	}
	document.Store(&data)
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig
	fetch = oauth.NewFetcher(&oauth.FetchOptions{
		AllowHosts: []string{"example.com"},
		TLS:        roots,
		Resolve:    func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil },
	})
	return id, listen(t, h) + "/client.json", fetch
}
