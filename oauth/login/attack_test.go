package login_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// Attack: token leak on redirect, there and back: a resource elsewhere sends a
// request to a redirect of ours, which leads to a resource that is signed in to.
func TestAttackTokenLeakOnRedirectThroughUs(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	rs.handlers["/hop"] = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, rs.url(), http.StatusTemporaryRedirect)
	}
	evil := webtest.Serve(t, http.RedirectHandler(rs.URL+"/hop", http.StatusTemporaryRedirect))
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	status, _, err := post(t, h, evil.URL, "do harm")
	if status != 401 || err != nil || b.visits() != 1 {
		t.Errorf("%d %v after %d visits, want 401 after 1", status, err, b.visits())
	}
	// Redirects within the resource's origin are followed with the token.
	change(rs, func() { rs.handlers["/mcp/moved"] = rs.handlers["/hop"] })
	welcome(t, h, rs.url()+"/moved")
}

// Attack: path parameters, which some servers leave out before they look for
// dot segments.
func TestAttackPathParameters(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, _ := newClient(t, login.Options{})
	welcome(t, c.HTTPClient(nil), rs.url())
	for target, want := range map[string]bool{"/..;/other": false, "/..;a=b/other": false, "/%2e%2e;/other": false, "/a;b/c": true} {
		if got := authorizationFor(t, c, rs.url()+target); (got != "") != want {
			t.Errorf("%s: token %v, want %v", target, got != "", want)
		}
	}
}

// authorizationFor is the Authorization header of a request that is not sent.
func authorizationFor(t *testing.T, c *login.Client, target string) (got string) {
	t.Helper()
	h := &http.Client{Transport: c.Transport(webtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Get("Authorization")
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	}))}
	if _, _, err := get(t, h, target); err != nil {
		t.Errorf("%s: %v", target, err)
	}
	return got
}

// Attack: token confusion: a resource that has lost its tokens does not get
// those of the resource above it, which belongs to somebody else.
func TestAttackTokenOfResourceAbove(t *testing.T) {
	t.Parallel()
	above, below := newAuthServer(t, ""), newAuthServer(t, "")
	rs := newResource(t, below)
	rs.handlers["/.well-known/oauth-protected-resource"] = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"resource": rs.URL, "authorization_servers": []string{above.issuer()}})
	}
	c, _ := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	if _, err := c.SignIn(t.Context(), rs.URL, nil); err != nil {
		t.Fatal(err)
	}
	below.expire(true)
	below.Lock()
	below.denies = oauth.AccessDenied
	below.Unlock()
	for range 2 {
		if _, _, err := get(t, h, rs.url()); err == nil {
			t.Fatal("let in")
		}
	}
	for _, sent := range rs.calls() {
		if strings.HasSuffix(sent, above.Listener.Addr().String()) {
			t.Errorf("the resource below got %q", sent)
		}
	}
	if authorizationFor(t, c, rs.URL+"/other") == "" {
		t.Error("the resource above has no token of its own")
	}
}

// A resource that has become part of the one above it is not asked without a
// token each time.
func TestResourceMovesUp(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	as.expire(true)
	change(rs, func() { rs.prmPath, rs.resource = "/.well-known/oauth-protected-resource", rs.URL })
	welcome(t, h, rs.url())
	before := len(rs.calls())
	welcome(t, h, rs.url())
	if calls := rs.calls()[before:]; len(calls) != 1 || calls[0] == "" || b.visits() != 2 {
		t.Errorf("calls %q after %d visits", calls, b.visits())
	}
}

// Attack: mix-up of servers that share an endpoint: one that sends the browser
// to the authorization endpoint of another does not get that one's code.
func TestAttackMixUpSharedEndpoint(t *testing.T) {
	t.Parallel()
	honest, evil := newAuthServer(t, ""), newAuthServer(t, "")
	evil.override["authorization_endpoint"] = honest.issuer() + "/authorize"
	evil.override["authorization_response_iss_parameter_supported"] = nil
	c, b := newClient(t, login.Options{})
	_, _, err := get(t, c.HTTPClient(nil), newResource(t, evil).url())
	var refused *login.AuthorizationError
	if _, tokens, _, _ := evil.seen(); !errors.As(err, &refused) || len(tokens) != 0 || b.visits() != 1 {
		t.Errorf("error %v, %d token requests", err, len(tokens))
	}
}

// Attack: credential theft at rediscovery: metadata that keeps the issuer and
// moves the token endpoint between the request and the code gets no code there.
func TestAttackCredentialTheftAtRediscovery(t *testing.T) {
	t.Parallel()
	for _, registered := range []bool{false, true} {
		as := newAuthServer(t, "")
		var stolen atomic.Int32
		thief := webtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
		rs := newResource(t, as)
		b := &browser{tamper: func(v url.Values, _ *url.URL) url.Values {
			as.Lock()
			defer as.Unlock()
			as.override["token_endpoint"], as.override["revocation_endpoint"] = thief.URL, thief.URL
			return v
		}}
		o := login.Options{Authorizer: b}
		if registered {
			o.Credentials = []login.Credentials{{Issuer: as.issuer(), ClientID: "me"}}
		}
		c, _ := newClient(t, o)
		h := c.HTTPClient(nil)
		welcome(t, h, rs.url())
		// Nor do the tokens go there later: not to be refreshed, not to be revoked.
		as.expire(false)
		b.Lock()
		b.tamper = func(url.Values, *url.URL) url.Values { return nil }
		b.Unlock()
		if _, _, err := get(t, h, rs.url()); err == nil {
			t.Error("let in")
		}
		if err := c.SignOut(t.Context(), rs.url()); err != nil {
			t.Error(err)
		}
		if stolen.Load() != 0 {
			t.Errorf("registered beforehand %v: the thief had %d requests", registered, stolen.Load())
		}
	}
}

// Attack: consent fatigue: a person who does not sign in is not asked again by
// the next request, but by SignIn, after AskAgain, and after a minute.
func TestAttackConsentFatigue(t *testing.T) {
	t.Parallel()
	errNo := errors.New("not now")
	ways := map[string]func(*login.Options, *browser, *authServer, *atomic.Int32){
		"says no": func(o *login.Options, _ *browser, _ *authServer, asked *atomic.Int32) {
			o.Confirm = func(context.Context, login.Prompt) error { asked.Add(1); return errNo }
		},
		"denies at the server": func(o *login.Options, b *browser, as *authServer, asked *atomic.Int32) {
			as.denies = oauth.AccessDenied
			b.tamper = func(v url.Values, _ *url.URL) url.Values { asked.Add(1); return v }
		},
		"closes the browser": func(o *login.Options, b *browser, _ *authServer, asked *atomic.Int32) {
			b.tamper = func(url.Values, *url.URL) url.Values { asked.Add(1); return nil }
		},
		"gets a code of no use": func(o *login.Options, b *browser, as *authServer, asked *atomic.Int32) {
			as.down = true
			b.tamper = func(v url.Values, _ *url.URL) url.Values { asked.Add(1); return v }
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			now := clocktest.New(time.Now())
			var asked atomic.Int32
			b := &browser{}
			o := login.Options{Authorizer: b, Now: now.Now}
			way(&o, b, as, &asked)
			c, _ := newClient(t, o)
			h := c.HTTPClient(nil)
			expect := func(want int32) {
				t.Helper()
				if asked.Load() != want {
					t.Errorf("asked %d times, want %d", asked.Load(), want)
				}
			}
			var said []string
			for range 3 {
				_, _, err := get(t, h, rs.url())
				if !deniedBy(err) {
					t.Fatalf("error %v, want one that is ErrDenied", err)
				}
				said = append(said, errors.Unwrap(err).Error())
			}
			if expect(1); said[0] != said[2] {
				t.Errorf("errors %q, want the same", said)
			}
			if _, err := c.Source(rs.url()).Token(t.Context()); !deniedBy(err) {
				t.Errorf("error %v, want one that is ErrDenied", err)
			}
			expect(1)
			if _, err := c.SignIn(t.Context(), rs.url(), nil); err == nil {
				t.Error("signed in")
			}
			expect(2)
			now.Add(59 * time.Second)
			_, _, _ = get(t, h, rs.url())
			expect(2)
			now.Add(time.Second)
			_, _, _ = get(t, h, rs.url())
			expect(3)
			now.Add(-time.Hour) // a clock that is set right does not make it an hour
			_, _, _ = get(t, h, rs.url())
			expect(4)
			c.AskAgain()
			_, _, _ = get(t, h, rs.url())
			expect(5)
			_, _, _ = get(t, h, rs.url())
			expect(5)
		})
	}
}

// Attack: consent fatigue: a resource that refuses whatever tokens it gets
// opens a browser ever more seldom.
func TestAttackTokensNeverWork(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	rs.handlers["/mcp"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+rs.URL+rs.prmPath+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	now := clocktest.New(time.Now())
	c, b := newClient(t, login.Options{Now: now.Now})
	base := &http.Transport{} // the common one is disturbed by other tests' ends
	t.Cleanup(base.CloseIdleConnections)
	h := c.HTTPClient(&http.Client{Transport: base})
	for range 60 * 6 { // one a minute, for six hours
		if status, _, err := get(t, h, rs.url()); status != 401 || err != nil {
			t.Fatalf("%d %v, want 401", status, err)
		}
		now.Add(time.Minute)
	}
	if b.visits() < 8 || b.visits() > 12 {
		t.Errorf("%d visits, want about one for each of 0, 1, 3, 7, 15, 31, 63, 123, 183, ... minutes", b.visits())
	}
}

// Attack: scopes that are none, or too many: they reach neither a person nor
// the server, and do not stop the sign-in.
func TestAttackHostileScopes(t *testing.T) {
	t.Parallel()
	many := make([]string, 100_000)
	for i := range many {
		many[i] = fmt.Sprint("s", i)
	}
	tests := map[string]struct {
		challenge string
		supported []string
		want      string
	}{
		"too many":           {strings.Join(many, " "), []string{"fine"}, "fine"},
		"too long":           {strings.Repeat("x", 100_000), nil, ""},
		"quote":              {`a\"b`, []string{"fine"}, "fine"},
		"beyond ASCII":       {"a\u202eb", nil, ""},
		"control characters": {"", []string{"\x1b[2Jx", "a\nb", "fine", "", "a b", "\u202e", "also:fine"}, "fine also:fine"},
		"long ones":          {"", []string{strings.Repeat("x", 2000), strings.Repeat("y", 2000), strings.Repeat("z", 2000), strings.Repeat("q", 2000), strings.Repeat("r", 2000)}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, rs := newServers(t)
			rs.scope, rs.prm["scopes_supported"] = test.challenge, test.supported
			var shown []string
			c, b := newClient(t, login.Options{Confirm: func(_ context.Context, p login.Prompt) error {
				shown = p.Scopes
				return nil
			}})
			welcome(t, c.HTTPClient(nil), rs.url())
			if got := b.urls[0].Query().Get("scope"); got != test.want || oauth.JoinScope(shown) != test.want {
				t.Errorf("scope %.80q, shown %.80q, want %q", got, shown, test.want)
			}
		})
	}
}

// Attack: token types that were not asked for.
func TestAttackTokenTypes(t *testing.T) {
	t.Parallel()
	for kind, ok := range map[string]bool{"bearer": true, "BEARER": true, "mac": false, "N_A": false, "DPoP": false, "Bearer Bearer": false} {
		as := newAuthServer(t, "")
		as.handlers["/token"] = func(w http.ResponseWriter, _ *http.Request) {
			as.access["tok"] = &grant{}
			reply(w, 200, map[string]any{"access_token": "tok", "token_type": kind, "expires_in": -5})
		}
		c, _ := newClient(t, login.Options{})
		status, _, err := get(t, c.HTTPClient(nil), newResource(t, as).url())
		if (err == nil && status == 200) != ok {
			t.Errorf("%s: %d %v, want taken: %v", kind, status, err, ok)
		}
	}
}

// Attack: ever other URLs make a Client forget what it knows of them, but not
// tokens that nobody else has.
func TestAttackMemoryFlood(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, _ := newClient(t, login.Options{Store: fullStore{login.NewMemory()}})
	welcome(t, c.HTTPClient(nil), rs.url())
	for i := range 1500 {
		if authorizationFor(t, c, fmt.Sprintf("%s?flood=%d", rs.url(), i)) == "" {
			t.Fatalf("after %d URLs the token is lost", i)
		}
	}
}

// A token with a life shorter than the margin is used for half of it.
func TestShortLifeIsUsed(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.expires = 20
	rs := newResource(t, as)
	now := clocktest.New(time.Now())
	c, _ := newClient(t, login.Options{Now: now.Now})
	h := c.HTTPClient(nil)
	for range 3 {
		welcome(t, h, rs.url())
	}
	if n := len(refreshes(as)); n != 0 {
		t.Errorf("%d refreshes, want none", n)
	}
	now.Add(11 * time.Second)
	welcome(t, h, rs.url())
	if n := len(refreshes(as)); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

// Attack: a flood of refusals leaves no connections behind.
func TestAttackConnectionLeak(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	rs := &resourceServer{as: []*authServer{as}, prmPath: "/.well-known/oauth-protected-resource/mcp"}
	rs.prepare()
	var opened atomic.Int32
	rs.Server = httptest.NewUnstartedServer(rs)
	rs.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	rs.Start()
	t.Cleanup(rs.Close)
	c, _ := newClient(t, login.Options{})
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	h := c.HTTPClient(&http.Client{Transport: base})
	for range 20 {
		welcome(t, h, rs.url())
		as.expire(false)
	}
	if opened.Load() > 3 { // one of ours, one of discovery
		t.Errorf("%d connections for 20 refused requests", opened.Load())
	}
}

// Proves: C15: a document that says private_key_jwt is signed for, when the
// code is redeemed and when tokens are refreshed.
func TestDocumentSigner(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	as := newAuthServer(t, "")
	as.override["client_id_metadata_document_supported"] = true
	as.override["token_endpoint_auth_methods_supported"] = []string{"none", "private_key_jwt"}
	rs := newResource(t, as)
	c, _ := newClient(t, login.Options{DocumentURL: "https://app.example/client.json", DocumentSigner: key})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	as.expire(false)
	welcome(t, h, rs.url())
	_, tokens, registered, _ := as.seen()
	if len(tokens) != 2 || len(registered) != 0 {
		t.Fatalf("%d token requests, %d registrations; want 2, 0", len(tokens), len(registered))
	}
	for _, form := range tokens {
		if form.Get("client_assertion_type") != oauth.ClientAssertionJWT || strings.Count(form.Get("client_assertion"), ".") != 2 {
			t.Errorf("%s without an assertion", form.Get("grant_type"))
		}
	}
}

// A resource whose identifier has a query is found by it, also to be forgotten.
func TestResourceWithQuery(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	rs.resource = rs.url() + "?tenant=1"
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.resource)
	if _, err := c.SignIn(t.Context(), rs.resource, nil); err != nil || b.visits() != 1 {
		t.Errorf("%v after %d visits", err, b.visits())
	}
	if authorizationFor(t, c, rs.url()+"?tenant=2") != "" {
		t.Error("another tenant has the token")
	}
	if err := c.Forget(t.Context(), rs.resource); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Status(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left: %+v %v", all, err)
	}
}
