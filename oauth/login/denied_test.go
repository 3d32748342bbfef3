package login_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	loginbrowser "github.com/parley-mcp/parley/oauth/login/browser"
	"github.com/parley-mcp/parley/transport"
)

func deniedBy(err error) bool { return errors.Is(err, transport.ErrDenied) }

// What ends the way to a token is nothing that was wrong with the connection:
// whoever sent the request must not try again at once. What may pass by itself
// is.
func TestDenied(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options func(*login.Options)
		servers func(*authServer, *resourceServer)
		want    bool
	}{
		"nobody to ask": {func(o *login.Options) { o.NonInteractive = true }, nil, true},
		"access denied": {nil, func(as *authServer, _ *resourceServer) { as.denies = oauth.AccessDenied }, true},
		"no": {func(o *login.Options) {
			o.Confirm = func(context.Context, login.Prompt) error { return errors.New("no") }
		}, nil, true},
		"no metadata":  {nil, func(as *authServer, _ *resourceServer) { as.places = []string{} }, true},
		"other issuer": {nil, func(as *authServer, _ *resourceServer) { as.override["issuer"] = "https://x.example" }, true},
		"no browser":   {func(o *login.Options) { o.Authorizer = noAuthorizer{} }, nil, true},
		"code refused": {nil, func(as *authServer, _ *resourceServer) { as.fail["authorization_code"] = oauth.InvalidGrant }, true},
		"code in vain": {nil, func(as *authServer, _ *resourceServer) { as.down = true }, true},
		"nobody comes": {func(o *login.Options) {
			o.SignInTimeout = time.Millisecond
			o.Authorizer = &browser{hold: make(chan struct{})}
		}, nil, true},
		"grant refused": {grantOption, func(as *authServer, _ *resourceServer) { as.fail[oauth.GrantClientCredentials] = oauth.InvalidClient }, true},
		"grant in vain": {grantOption, func(as *authServer, _ *resourceServer) { as.down = true }, false},
		"metadata in vain": {nil, func(as *authServer, _ *resourceServer) {
			as.handlers["/.well-known/oauth-authorization-server"] = unavailable
		}, false},
		"resource in trouble": {nil, func(_ *authServer, rs *resourceServer) { rs.handlers[rs.prmPath] = unavailable }, false},
		"server unreachable":  {nil, func(as *authServer, _ *resourceServer) { as.Close() }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			o := login.Options{Credentials: []login.Credentials{{Issuer: as.issuer(), ClientID: "me", Secret: "s"}}}
			as.override["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
			if test.options != nil {
				test.options(&o)
			}
			if test.servers != nil {
				test.servers(as, rs)
			}
			if o.Authorizer == nil {
				o.Authorizer = &browser{}
			}
			c := login.New(&o)
			t.Cleanup(func() { _ = c.Close() })
			_, _, err := get(t, c.HTTPClient(nil), rs.url())
			if err == nil || deniedBy(err) != test.want {
				t.Errorf("%v: denied %v, want %v", err, deniedBy(err), test.want)
			}
			var ended *login.Error
			if !errors.As(err, &ended) || ended.Retry == test.want || ended.Resource != rs.url() {
				t.Errorf("%+v, want an Error about %s", ended, rs.url())
			}
		})
	}
}

// What goes wrong on the way to the resource itself is no Error; what SignIn and
// Source return is one.
func TestErrorIsOfTheWayToAToken(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	c, _ := newClient(t, login.Options{NonInteractive: true})
	failed := errors.New("connection reset")
	h := &http.Client{Transport: c.Transport(webtest.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, failed }))}
	_, _, err := get(t, h, rs.url())
	var ended *login.Error
	if !errors.Is(err, failed) || errors.As(err, &ended) || deniedBy(err) {
		t.Errorf("%v is taken for what ended the way to a token", err)
	}
	_, err = c.SignIn(t.Context(), rs.url(), nil)
	if !errors.As(err, &ended) || ended.Retry || !deniedBy(err) || !strings.HasPrefix(err.Error(), "sign in to "+rs.url()+": ") {
		t.Errorf("SignIn: %v, want an Error", err)
	}
	_, err = c.Source(rs.url()).Token(t.Context())
	if !errors.As(err, &ended) || !deniedBy(err) || !errors.As(err, new(*login.SignInRequiredError)) {
		t.Errorf("Source: %v, want an Error", err)
	}
}

func grantOption(o *login.Options) { o.Grant = login.ClientCredentials() }

func unavailable(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

type noAuthorizer struct{}

func (noAuthorizer) Begin(context.Context, []string) (login.Visit, error) {
	return nil, loginbrowser.ErrNotFound
}

// The end of a request's own context is no refusal.
func TestLeavingIsNotDenied(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	b := &browser{hold: make(chan struct{}), inWait: make(chan struct{})}
	c, _ := newClient(t, login.Options{Authorizer: b})
	h := c.HTTPClient(nil)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-b.inWait
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rs.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) || deniedBy(err) {
		t.Errorf("error %v, want that of the context", err)
	}
	// Who left did not say no: the next request asks.
	go func() { <-b.inWait; close(b.hold) }()
	welcome(t, h, rs.url())
}

// A person who signs in in another process takes time as one in this does.
func TestWaitingForAnotherProcess(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	store := login.NewMemory()
	b := &browser{hold: make(chan struct{}), inWait: make(chan struct{}, 1)}
	first, _ := newClient(t, login.Options{Store: store, Authorizer: b})
	second, b2 := newClient(t, login.Options{Store: store})
	done := make(chan error, 1)
	go func() {
		_, _, err := get(t, first.HTTPClient(nil), rs.url())
		done <- err
	}()
	<-b.inWait
	var resumed atomic.Bool
	ctx := limited(t.Context(), func() { close(b.hold) }, func() { resumed.Store(true) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rs.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := second.HTTPClient(nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := <-done; err != nil || !resumed.Load() || b2.visits() != 0 {
		t.Errorf("%v, resumed %v, %d visits of the second", err, resumed.Load(), b2.visits())
	}
}

// A server that refuses to refresh for another reason than invalid_grant leads
// to a sign-in, not to the same refusal for ever.
func TestRefreshRefusedForGood(t *testing.T) {
	t.Parallel()
	for _, code := range []string{oauth.InvalidTarget, oauth.UnsupportedGrantType, oauth.InvalidRequest} {
		as, rs := newServers(t)
		now := clocktest.New(time.Now())
		c, b := newClient(t, login.Options{Now: now.Now})
		h := c.HTTPClient(nil)
		welcome(t, h, rs.url())
		as.Lock()
		as.handlers["/token"] = func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("grant_type") == oauth.GrantRefreshToken {
				reply(w, 400, map[string]any{"error": code})
				return
			}
			as.serveToken(w, r)
		}
		as.Unlock()
		as.expire(false)
		welcome(t, h, rs.url())
		now.Add(2 * time.Hour) // ended, and known to be
		welcome(t, h, rs.url())
		if b.visits() != 3 {
			t.Errorf("%s: %d visits, want 3", code, b.visits())
		}
	}
}

// brokenValues spoils what is read of tokens.
type brokenValues struct {
	login.Store
	spoil func(string) string
}

func (s brokenValues) Get(ctx context.Context, name string) ([]byte, error) {
	value, err := s.Store.Get(ctx, name)
	if strings.HasPrefix(name, "tokens.") {
		value = []byte(s.spoil(string(value)))
	}
	return value, err
}

// Tokens in the store that are of no use are as good as none: a key that is
// none, an access token that no header can carry.
func TestStoreCorrupt(t *testing.T) {
	t.Parallel()
	for _, spoil := range []func(string) string{
		func(s string) string { return strings.Replace(s, `"kty":"EC"`, `"kty":"XX"`, 1) },
		func(s string) string { return strings.Replace(s, `"access-`, `"access\r\nX: `, 1) },
		func(s string) string { return strings.Replace(s, `"access-`, `"\u0000`, 1) },
		func(s string) string { return s[:len(s)/2] },
		func(string) string { return "" },
		func(string) string { return `{"access_token":1}` },
	} {
		as := newAuthServer(t, "")
		as.override["dpop_signing_alg_values_supported"] = []string{"ES256"}
		rs := newResource(t, as)
		store := login.NewMemory()
		c, _ := newClient(t, login.Options{Store: store, DPoP: true})
		welcome(t, c.HTTPClient(nil), rs.url())
		c, b := newClient(t, login.Options{Store: brokenValues{store, spoil}, DPoP: true})
		welcome(t, c.HTTPClient(nil), rs.url())
		if b.visits() != 1 {
			t.Errorf("%d visits, want 1", b.visits())
		}
	}
}
