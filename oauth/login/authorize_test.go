package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/transport"
)

// Proves: C18, C19, C20: the table of RFC 9207, also for error responses, whose
// text is not shown on a mismatch. Attack: mix-up: a code of another server
// goes nowhere.
func TestAttackMixUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		advertised any    // authorization_response_iss_parameter_supported
		iss        string // as in authServer
		ok         bool
	}{
		{"advertised, right", true, "", true},
		{"advertised, wrong", true, "https://evil.example", false},
		{"advertised, absent", true, "omit", false},
		{"not advertised, right", nil, "", true},
		{"not advertised, wrong", false, "https://evil.example", false},
		{"not advertised, absent", nil, "omit", true},
		{"normalised", true, "slash", false},
		{"case", true, "upper", false},
	}
	for _, test := range tests {
		for _, denied := range []bool{false, true} {
			t.Run(test.name+map[bool]string{true: ", error"}[denied], func(t *testing.T) {
				t.Parallel()
				as, rs := newServers(t)
				as.override["authorization_response_iss_parameter_supported"] = test.advertised
				switch as.iss = test.iss; test.iss {
				case "slash":
					as.iss = as.issuer() + "/"
				case "upper":
					as.iss = strings.Replace(as.issuer(), "http", "HTTP", 1)
				}
				if denied {
					as.denies = "access_denied"
				}
				c, _ := newClient(t, login.Options{})
				_, _, err := get(t, c.HTTPClient(nil), rs.url())
				_, tokens, _, _ := as.seen()
				if !denied && test.ok {
					if err != nil || len(tokens) != 1 {
						t.Fatalf("%v with %d token requests, want none and 1", err, len(tokens))
					}
					return
				}
				var a *login.AuthorizationError
				if !errors.As(err, &a) || len(tokens) != 0 {
					t.Fatalf("error %v with %d token requests, want an AuthorizationError and none", err, len(tokens))
				}
				shown := strings.Contains(err.Error(), "said the server") || a.Code != "" || a.Description != ""
				if shown != test.ok {
					t.Errorf("what the server said is shown: %v, want %v (%v)", shown, test.ok, err)
				}
			})
		}
	}
}

// Proves: C21: responses that are not to this request are dropped. One that is, and breaks a rule,
// ends the sign-in with what is wrong with it.
func TestResponseRefused(t *testing.T) {
	t.Parallel()
	const dropped = "was not accepted"
	tests := map[string]struct {
		tamper func(url.Values)
		want   string
	}{
		"no state":          {func(v url.Values) { v.Del("state") }, dropped},
		"wrong state":       {func(v url.Values) { v.Set("state", oauth.NewSecret()) }, dropped},
		"two states":        {func(v url.Values) { v.Add("state", oauth.NewSecret()) }, dropped},
		"state twice":       {func(v url.Values) { v.Add("state", v.Get("state")) }, "more than once: state"},
		"two issuers":       {func(v url.Values) { v.Add("iss", v.Get("iss")) }, "names several issuers"},
		"two codes":         {func(v url.Values) { v.Add("code", "x") }, "more than once: code"},
		"two errors":        {func(v url.Values) { v["error"] = []string{"access_denied", "access_denied"} }, "more than once: error"},
		"another twice":     {func(v url.Values) { v["session"] = []string{"a", "b"} }, "more than once: session"},
		"no code":           {func(v url.Values) { v.Del("code") }, "neither a code nor an error"},
		"empty code":        {func(v url.Values) { v.Set("code", "") }, "neither a code nor an error"},
		"empty issuer":      {func(v url.Values) { v.Set("iss", "") }, "from another authorization server"},
		"nothing but state": {func(v url.Values) { v.Del("code"); v.Del("iss") }, "does not say which authorization server"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			b := &browser{tamper: func(v url.Values, _ *url.URL) url.Values { test.tamper(v); return v }}
			c, _ := newClient(t, login.Options{Authorizer: b})
			_, _, err := get(t, c.HTTPClient(nil), rs.url())
			if _, tokens, _, _ := as.seen(); err == nil || len(tokens) != 0 {
				t.Fatalf("error %v, %d token requests", err, len(tokens))
			}
			_, refused := errors.AsType[*login.AuthorizationError](err)
			if !strings.Contains(err.Error(), test.want) || refused == (test.want == dropped) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// acceptor is an Authorizer that hands the accept function out.
type acceptor struct {
	browser
	accepted []bool
}

func (b *acceptor) Begin(ctx context.Context, registered []string) (login.Visit, error) {
	v, err := b.browser.Begin(ctx, registered)
	return &acceptorVisit{v, b}, err
}

type acceptorVisit struct {
	login.Visit
	b *acceptor
}

func (v *acceptorVisit) Wait(ctx context.Context, u *url.URL, accept func(url.Values) bool) (url.Values, error) {
	answer, err := v.Visit.Wait(ctx, u, func(url.Values) bool { return true })
	if err != nil {
		return nil, err
	}
	foreign := url.Values{"state": {"foreign"}, "code": {"x"}}
	v.b.accepted = append(v.b.accepted, accept(foreign), accept(answer), accept(answer))
	return answer, nil
}

// Proves: C21: a state is accepted once.
func TestStateOnce(t *testing.T) {
	t.Parallel()
	b := &acceptor{}
	c := login.New(&login.Options{Authorizer: b})
	t.Cleanup(func() { _ = c.Close() })
	welcome(t, c.HTTPClient(nil), newResource(t, newAuthServer(t, "")).url())
	if diff := cmp.Diff([]bool{false, true, false}, b.accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
}

// Proves: C12, C18, C21, C25, C27: what goes to the authorization endpoint.
func TestAuthorizationRequest(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "/tenant")
	as.override["authorization_endpoint"] = as.issuer() + "/authorize?audience=api"
	rs := newResource(t, as)
	c, b := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	as.expire(true)
	welcome(t, h, rs.url())
	states, challenges := map[string]bool{}, map[string]bool{}
	for _, u := range b.urls {
		q := u.Query()
		states[q.Get("state")], challenges[q.Get("code_challenge")] = true, true
		if len(q.Get("state")) < 43 || !oauth.ValidChallenge(q.Get("code_challenge")) {
			t.Errorf("state %q, challenge %q", q.Get("state"), q.Get("code_challenge"))
		}
		for _, name := range []string{"state", "code_challenge", "client_id"} {
			q.Del(name)
		}
		want := url.Values{
			"audience": {"api"}, "response_type": {"code"}, "code_challenge_method": {"S256"},
			"redirect_uri": {"http://127.0.0.1:5555/callback"}, "resource": {rs.url()},
		}
		if diff := cmp.Diff(want, q); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
	if len(b.urls) != 2 || len(states) != 2 || len(challenges) != 2 {
		t.Error("state or verifier was used twice")
	}
}

// Proves: C22, C25: which scopes are asked for.
func TestScopes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		challenge string
		resource  any // scopes_supported of the resource
		server    any // scopes_supported of the server
		own       []string
		want      string
		absent    bool
	}{
		{name: "challenge", challenge: "a b", resource: []string{"c"}, want: "a b"},
		{name: "metadata", resource: []string{"c", "d"}, want: "c d"},
		{name: "none", absent: true},
		{name: "own", challenge: "a", own: []string{"x", "a"}, want: "a x"},
		{name: "offline", challenge: "a", server: []string{"a", "offline_access"}, want: "a offline_access"},
		{name: "offline not offered", challenge: "a", server: []string{"a"}, want: "a"},
		{name: "offline alone", server: []string{"offline_access"}, absent: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			as, rs := newServers(t)
			rs.scope = test.challenge
			if test.resource != nil {
				rs.prm["scopes_supported"] = test.resource
			}
			if test.server != nil {
				as.override["scopes_supported"] = test.server
			}
			c, _ := newClient(t, login.Options{Scopes: test.own})
			welcome(t, c.HTTPClient(nil), rs.url())
			authorize, _, _, _ := as.seen()
			if got := authorize[0].Get("scope"); got != test.want || authorize[0].Has("scope") == test.absent {
				t.Errorf("scope %q, want %q", got, test.want)
			}
		})
	}
}

// A refusal of the person reaches the caller, who may look for it.
func TestConfirmRefuses(t *testing.T) {
	t.Parallel()
	errNo := errors.New("not today")
	as, rs := newServers(t)
	c, b := newClient(t, login.Options{Confirm: func(context.Context, login.Prompt) error { return errNo }})
	_, _, err := get(t, c.HTTPClient(nil), rs.url())
	if !errors.Is(err, errNo) || b.visits() != 0 {
		t.Errorf("error %v, want %v", err, errNo)
	}
	if _, _, registered, _ := as.seen(); len(registered) != 0 {
		t.Error("registered before the person agreed")
	}
}

// Without a person there is an error that says what is needed.
func TestNonInteractive(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.scope = "a"
	store := login.NewMemory()
	c, b := newClient(t, login.Options{NonInteractive: true, Store: store})
	_, _, err := get(t, c.HTTPClient(nil), rs.url())
	var got *login.SignInRequiredError
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want a SignInRequiredError", err)
	}
	want := &login.SignInRequiredError{Resource: rs.url(), Issuer: as.issuer(), Scopes: []string{"a"}, Why: login.ReasonSignIn}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if b.begun != 0 || len(as.registered) != 0 {
		t.Error("something was begun")
	}
	// What another Client with a person got is used, and refreshed.
	other, _ := newClient(t, login.Options{Store: store})
	welcome(t, other.HTTPClient(nil), rs.url())
	welcome(t, c.HTTPClient(nil), rs.url())
	as.expire(false)
	welcome(t, c.HTTPClient(nil), rs.url())
}

// The time for a sign-in ends.
func TestSignInTimeout(t *testing.T) {
	t.Parallel()
	b := &browser{hold: make(chan struct{})}
	c, _ := newClient(t, login.Options{Authorizer: b, SignInTimeout: 50 * time.Millisecond})
	_, _, err := get(t, c.HTTPClient(nil), newResource(t, newAuthServer(t, "")).url())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no sign-in within") {
		t.Errorf("error %v, want that the time is over", err)
	}
}

// Proves: DPoP (RFC 9449): tokens are bound to a key, whose thumbprint goes into
// the authorization request; each request has a proof; nonces of both servers
// are taken up; refreshing keeps the key; the next process can go on.
func TestDPoP(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.override["dpop_signing_alg_values_supported"] = []string{"ES256"}
	as.nonce = "as-nonce"
	rs := newResource(t, as)
	rs.nonce = "rs-nonce"
	store := login.NewMemory()
	c, b := newClient(t, login.Options{DPoP: true, Store: store})
	h := c.HTTPClient(nil)
	welcome(t, h, rs.url())
	welcome(t, h, rs.url())
	if calls := rs.calls(); len(calls) != 4 || !strings.HasPrefix(calls[3], "DPoP ") {
		t.Errorf("calls %q, want one without, one for the nonce, two more", calls)
	}
	authorize, _, _, _ := as.seen()
	if authorize[0].Get("dpop_jkt") == "" {
		t.Error("no dpop_jkt")
	}
	as.expire(false)
	welcome(t, h, rs.url())
	other, _ := newClient(t, login.Options{Store: store, NonInteractive: true})
	welcome(t, other.HTTPClient(nil), rs.url())
	all, err := c.Status(t.Context())
	if err != nil || len(all) != 1 || !all[0].Bound || b.visits() != 1 {
		t.Errorf("status %+v %v after %d visits", all, err, b.visits())
	}
}

// A resource that demands bound tokens gets none that are not.
func TestDPoPDemanded(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.prm["dpop_bound_access_tokens_required"] = true
	c, b := newClient(t, login.Options{})
	stops(t, c, rs, b, login.StepServer)

	as.override["dpop_signing_alg_values_supported"] = []string{"ES256"}
	c, _ = newClient(t, login.Options{})
	welcome(t, c.HTTPClient(nil), rs.url())

	change(as, func() { as.bearer = true })
	c, _ = newClient(t, login.Options{})
	_, _, err := get(t, c.HTTPClient(nil), rs.url())
	var d *login.DiscoveryError
	if !errors.As(err, &d) || d.Step != login.StepToken {
		t.Errorf("error %v, want a DiscoveryError about the token", err)
	}
}

// A server that answers a proof with a bearer token is taken at its word.
func TestDPoPIgnored(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.bearer = true
	as.override["dpop_signing_alg_values_supported"] = []string{"ES256"}
	rs := newResource(t, as)
	c, _ := newClient(t, login.Options{DPoP: true})
	welcome(t, c.HTTPClient(nil), rs.url())
}

// Proves: C28: only http(s) is opened.
func TestAuthorizationEndpointScheme(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"file:///etc/passwd", "data:text/html,x", "vbscript:x", "-flag", "http://elsewhere.example/a"} {
		as := newAuthServer(t, "")
		as.override["authorization_endpoint"] = endpoint
		c, b := newClient(t, login.Options{})
		stops(t, c, newResource(t, as), b, login.StepServer)
	}
}

// Codes, tokens and verifiers are in no error.
func TestErrorsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	as := newAuthServer(t, "")
	as.handlers["/token"] = func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		as.tokens = append(as.tokens, r.PostForm)
		reply(w, 400, map[string]any{"error": "invalid_grant", "error_description": "no"})
	}
	c, _ := newClient(t, login.Options{})
	_, _, err := get(t, c.HTTPClient(nil), newResource(t, as).url())
	if err == nil || !errors.Is(err, &oauth.Error{Code: oauth.InvalidGrant}) {
		t.Fatalf("error %v, want invalid_grant", err)
	}
	for _, name := range []string{"code", "code_verifier"} {
		if secret := as.tokens[0].Get(name); secret == "" || strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows the %s: %v", name, err)
		}
	}
}

// A joining is a Pauser that tells when its caller waits for a person.
type joining struct {
	waits chan struct{}
	once  sync.Once
}

func (j *joining) Pause()  { j.once.Do(func() { close(j.waits) }) }
func (j *joining) Resume() {}

// Where Confirm could ask nobody, nobody has refused: one that waited for the same sign-in asks
// by itself, and so does the next request.
func TestConfirmAsksNobody(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	begun, leave := make(chan struct{}), make(chan struct{})
	asked := 0
	c, b := newClient(t, login.Options{Confirm: func(_ context.Context, p login.Prompt) error {
		asked++
		switch asked {
		case 1:
			close(begun)
			<-leave
		case 3:
			return nil
		}
		return fmt.Errorf("the window is closed: %w", &login.SignInRequiredError{Resource: p.Resource, Issuer: p.Issuer})
	}})
	h := c.HTTPClient(nil)
	second := &joining{waits: make(chan struct{})}
	ends := make(chan error, 2)
	go func() {
		_, _, err := get(t, h, rs.url())
		ends <- err
	}()
	<-begun
	go func() {
		req, err := http.NewRequestWithContext(context.WithValue(t.Context(), transport.PauserKey{}, second), http.MethodGet, rs.url(), http.NoBody)
		if err == nil {
			_, err = h.Do(req) //nolint:bodyclose // there is none
		}
		ends <- err
	}()
	<-second.waits
	close(leave)
	for range 2 {
		if err := <-ends; !errors.As(err, new(*login.SignInRequiredError)) {
			t.Errorf("a request ended with %v", err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want once for each request", asked)
	}
	welcome(t, h, rs.url())
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
}
