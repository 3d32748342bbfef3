package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/principal"
)

// Who has a valid token passes, and the endpoint sees who it is. Proves: R4, R11.
func TestPass(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"mcp"}})
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER   "} {
		got := b.passed(b.do("Authorization", scheme+b.token(nil), "X-Other", "1"))
		want := &principal.Principal{Issuer: issuerID, Subject: "ada", Client: "app", Scopes: []string{"mcp"}}
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(principal.Principal{}, "Challenge")); d != "" {
			t.Errorf("principal: %s", d)
		}
		if b.seen.Header.Get("X-Other") != "1" {
			t.Error("other headers are gone")
		}
	}
}

// Proves: R6 (401, 400, 403), R3, R7, R2, C3.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Scopes: []string{"mcp", "files:read"}})
	full := b.token(claims{"scope": "mcp files:read"})
	other := newKey(t, "ES256")
	tests := []struct {
		name    string
		headers []string
		status  int
		code    string
	}{
		{"no token", nil, 401, ""},
		{"another scheme", []string{"Authorization", "Basic YTpi"}, 401, ""},
		{"query only", nil, 401, ""},
		{"no token after scheme", []string{"Authorization", "Bearer"}, 400, "invalid_request"},
		{"two headers", []string{"Authorization", "Bearer " + full, "Authorization", "Bearer " + full}, 400, "invalid_request"},
		{"two in one", []string{"Authorization", "Bearer " + full + ", Bearer " + full}, 400, "invalid_request"},
		{"too long", []string{"Authorization", "Bearer " + strings.Repeat("a", 17<<10)}, 400, "invalid_request"},
		{"empty header", []string{"Authorization", ""}, 400, "invalid_request"},
		{"garbage", []string{"Authorization", "Bearer abc"}, 401, "invalid_token"},
		{"expired", []string{"Authorization", "Bearer " + b.token(claims{"exp": epoch.Add(-31 * time.Second).Unix()})}, 401, "invalid_token"},
		{"no expiry", []string{"Authorization", "Bearer " + b.token(claims{"exp": nil})}, 401, "invalid_token"},
		{"not yet", []string{"Authorization", "Bearer " + b.token(claims{"nbf": epoch.Add(31 * time.Second).Unix()})}, 401, "invalid_token"},
		{"another issuer", []string{"Authorization", "Bearer " + b.token(claims{"iss": issuerID + "/"})}, 401, "invalid_token"},
		{"another type", []string{"Authorization", "Bearer " + sign(t, b.key, "JWT", usual(nil))}, 401, "invalid_token"},
		{"another key", []string{"Authorization", "Bearer " + sign(t, other, "at+jwt", usual(nil))}, 401, "invalid_token"},
		{"nobody", []string{"Authorization", "Bearer " + b.token(claims{"sub": nil, "client_id": nil})}, 401, "invalid_token"},
		{"one scope", []string{"Authorization", "Bearer " + b.token(nil)}, 403, "insufficient_scope"},
		{"no scope", []string{"Authorization", "Bearer " + b.token(claims{"scope": nil})}, 403, "insufficient_scope"},
		{"bad scope", []string{"Authorization", "Bearer " + b.token(claims{"scope": `a"b`})}, 401, "invalid_token"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			target := resource
			if test.name == "query only" {
				target += "?access_token=" + full
			}
			w := b.request(http.MethodPost, target, test.headers...)
			got := b.refused(w, test.status, test.code)
			if got["scope"] != "mcp files:read" || got["resource_metadata"] != metadata || got["scheme"] != "Bearer" {
				t.Errorf("challenge: %v", got)
			}
			if (got["error_description"] != "") != (test.code != "") {
				t.Errorf("description: %v", got)
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("headers: %v", w.Header())
			}
		})
	}
	b.t = t
	b.passed(b.bearer(full))
}

// Clocks may differ by the tolerance, on both ends.
func TestSkew(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	b.passed(b.bearer(b.token(claims{"exp": epoch.Add(-29 * time.Second).Unix()})))
	b.passed(b.bearer(b.token(claims{"nbf": epoch.Add(29 * time.Second).Unix()})))
}

// The audience is the resource in any of its spellings, alone or in a list, or
// one that was allowed by name. Proves: R4. Attack: token passthrough.
func TestAttackTokenPassthrough(t *testing.T) {
	t.Parallel()
	b := setUp(t, &guard.Options{Audiences: []string{"urn:legacy"}})
	tests := []struct {
		name string
		aud  any
		pass bool
	}{
		{"ours", resource, true},
		{"list with ours", []string{"https://other.example", resource}, true},
		{"same URL", "HTTPS://API.example:443/mcp/", true},
		{"by name", "urn:legacy", true},
		{"none", nil, false},
		{"empty", "", false},
		{"empty list", []string{}, false},
		{"other", "https://other.example/mcp", false},
		{"list of others", []string{"https://other.example", "https://api.example"}, false},
		{"parent", "https://api.example", false},
		{"child", resource + "/x", false},
		{"prefix", resource + "x", false},
		{"other path", "https://api.example/MCP", false},
		{"plain http", "http://api.example/mcp", false},
		{"with query", resource + "?a", false},
		{"with fragment", resource + "#a", false},
		{"userinfo", "https://x@api.example/mcp", false},
		{"suffix of name", "https://api.example.evil.example/mcp", false},
		{"name in another case", "URN:legacy", false},
		{"issuer", issuerID, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			w := b.bearer(b.token(claims{"aud": test.aud}))
			if test.pass {
				b.passed(w)
				return
			}
			b.refused(w, 401, "invalid_token")
		})
	}
}

// A handler cannot reach the token, unless it was asked for by name; the
// request that others hold is not changed. Proves: R5.
func TestTokenOutOfReach(t *testing.T) {
	t.Parallel()
	for _, expose := range []bool{false, true} {
		b := setUp(t, &guard.Options{ExposeToken: expose})
		token := b.token(nil)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resource, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("DPoP", "stray")
		b.h.ServeHTTP(httptest.NewRecorder(), r)
		if b.seen == nil {
			t.Fatal("refused")
		}
		if h := b.seen.Header; h["Authorization"] != nil || h["Dpop"] != nil {
			t.Errorf("headers that go on: %v", h)
		}
		if strings.Contains(fmt.Sprintf("%+v", principal.FromContext(b.seen.Context())), token) {
			t.Error("the principal holds the token")
		}
		got := guard.TokenFromContext(b.seen.Context())
		if expose != (got == token) || !expose && got != "" {
			t.Errorf("expose %v: token is %q", expose, got)
		}
		if r.Header.Get("Authorization") != "Bearer "+token || principal.FromContext(r.Context()) != nil {
			t.Error("the original request was changed")
		}
	}
}

// A token counts from the cache until the end of the cache's time or its own,
// whichever comes first; bad ones are never remembered.
func TestCache(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		age      time.Duration
		expiry   time.Duration
		waits    []time.Duration // between requests
		verified int
		last     int
	}{
		{"remembered", 0, time.Hour, []time.Duration{59 * time.Second}, 1, 200},
		{"forgotten", 0, time.Hour, []time.Duration{60 * time.Second}, 2, 200},
		{"longer", 5 * time.Minute, time.Hour, []time.Duration{4 * time.Minute}, 1, 200},
		{"off", -1, time.Hour, []time.Duration{0, 0}, 3, 200},
		{"expires before", 0, 20 * time.Second, []time.Duration{19 * time.Second}, 1, 200},
		{"expired", 0, 20 * time.Second, []time.Duration{20 * time.Second}, 2, 401},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			v := newFixed()
			v.token.Expiry = epoch.Add(test.expiry)
			b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, &guard.Options{CacheAge: test.age})
			w := b.bearer("x")
			for _, wait := range test.waits {
				b.clock.Add(wait)
				w = b.bearer("x")
			}
			if w.Code != test.last || v.count() != test.verified {
				t.Errorf("status %d, verified %d times; want %d, %d", w.Code, v.count(), test.last, test.verified)
			}
			// A token that differs by a character is another one.
			n := v.count()
			b.bearer("y")
			b.bearer("X")
			if v.count() != n+2 {
				t.Error("one token was taken for another")
			}
		})
	}
	t.Run("bad ones", func(t *testing.T) {
		t.Parallel()
		v := newFixed()
		v.err = errors.New("no")
		b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, nil)
		b.refused(b.bearer("x"), 401, "invalid_token")
		v.mu.Lock()
		v.err = nil
		v.mu.Unlock()
		b.passed(b.bearer("x"))
	})
}

// What a verifier returns is checked, whoever wrote the verifier.
func TestVerifierMistakes(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *guard.Token){
		"no issuer":      func(t *guard.Token) { t.Issuer = "" },
		"another issuer": func(t *guard.Token) { t.Issuer = "https://other.example" },
		"no audience":    func(t *guard.Token) { t.Audience = nil },
		"expired":        func(t *guard.Token) { t.Expiry = epoch },
		"not yet":        func(t *guard.Token) { t.NotBefore = epoch.Add(time.Second) },
		"nobody":         func(t *guard.Token) { t.Subject = "" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newFixed()
			change(&v.token)
			b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, nil)
			b.refused(b.bearer("x"), 401, "invalid_token")
		})
	}
	t.Run("nil", func(t *testing.T) {
		t.Parallel()
		v := guard.Func(issuerID, func(context.Context, string) (*guard.Token, error) { return nil, nil })
		b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, nil)
		b.refused(b.bearer("x"), 401, "invalid_token")
	})
}

// Tokens that cannot be judged are not called bad: a client would throw a good
// one away.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	v := newFixed()
	v.err = fmt.Errorf("%w: down", guard.ErrUnavailable)
	b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, nil)
	w := b.bearer("x")
	b.refused(w, 503, "")
	if w.Header().Get("Retry-After") == "" || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("headers: %v", w.Header())
	}
}

// A flood of tokens that nobody knows is verified a few at a time, waits no
// longer than it may, and does not hold up tokens that are known.
func TestBoundedVerifications(t *testing.T) {
	t.Parallel()
	const most = 3
	var mu sync.Mutex
	running, peak := 0, 0
	entered, hold := make(chan struct{}, 100), make(chan struct{})
	v := guard.Func(issuerID, func(ctx context.Context, token string) (*guard.Token, error) {
		if token == "good" {
			return &guard.Token{Subject: "ada", Audience: []string{resource}}, nil
		}
		mu.Lock()
		running++
		peak = max(peak, running)
		mu.Unlock()
		entered <- struct{}{}
		defer func() {
			mu.Lock()
			running--
			mu.Unlock()
		}()
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return nil, errors.New("bad")
	})
	g, err := guard.New(resource, v, &guard.Options{MaxVerifications: most, VerifyTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	send := func(ctx context.Context, token string) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, resource, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if code := send(t.Context(), "good"); code != 200 {
		t.Fatalf("status %d", code)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if code := send(t.Context(), fmt.Sprint("bad", i)); code != 401 {
				t.Errorf("status %d", code)
			}
		})
	}
	for range most {
		<-entered
	}
	if code := send(t.Context(), "good"); code != 200 {
		t.Errorf("a known token waits behind unknown ones: %d", code)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if code := send(gone, "one-more"); code != 503 {
		t.Errorf("who has gone is served: %d", code)
	}
	close(hold)
	wg.Wait()
	if peak != most {
		t.Errorf("%d verifications at once, want %d", peak, most)
	}
}

// What is wrong with the configuration is said at once.
func TestNew(t *testing.T) {
	t.Parallel()
	ok := newFixed()
	tests := []struct {
		name     string
		resource string
		v        guard.Verifier
		o        *guard.Options
		want     string
	}{
		{"relative", "/mcp", ok, nil, "resource"},
		{"empty", "", ok, nil, "resource"},
		{"http", "http://api.example/mcp", ok, nil, "https"},
		{"slash", "https://api.example/mcp/", ok, nil, `write "https://api.example/mcp"`},
		{"case", "https://API.example/mcp", ok, nil, `write "https://api.example/mcp"`},
		{"fragment", "https://api.example/mcp#a", ok, nil, "resource"},
		{"query", "https://api.example/mcp?a=b", ok, nil, "query"},
		{"no verifier", resource, nil, nil, "verifier"},
		{"offline_access", resource, ok, &guard.Options{Scopes: []string{"offline_access"}}, "offline_access"},
		{"offline_access supported", resource, ok, &guard.Options{ScopesSupported: []string{"offline_access"}}, "offline_access"},
		{"two scopes in one", resource, ok, &guard.Options{Scopes: []string{"a b"}}, "not a scope"},
		{"bad scope in hierarchy", resource, ok, &guard.Options{Implies: map[string][]string{"a": {`"`}}}, "not a scope"},
		{"pattern of origins", resource, ok, &guard.Options{Origins: []string{"*"}}, "origin"},
		{"origin with path", resource, ok, &guard.Options{Origins: []string{"https://a.example/"}}, "origin"},
		{"bad server", resource, ok, &guard.Options{AuthorizationServers: []string{"ftp://x"}}, "authorization server"},
		{"no server", resource, ok, &guard.Options{AuthorizationServers: []string{}}, "authorization server"},
		{"documentation that runs", resource, ok, &guard.Options{Documentation: "javascript:alert(1)//https://api.example"}, "documentation"},
		{"empty audience", resource, ok, &guard.Options{Audiences: []string{""}}, "audience"},
		{"issuer without name", resource, guard.Func("", ok.Verify), &guard.Options{AuthorizationServers: []string{issuerID}}, "issuer"},
		{"short nonce key", resource, ok, &guard.Options{DPoPNonce: true, DPoPNonceKey: []byte("short")}, "32 bytes"},
		{"bad issuer", resource, guard.JWT("issuer", nil), nil, "issuer"},
		{"HMAC", resource, guard.JWT(issuerID, &guard.JWTOptions{Algorithms: []string{"HS256"}}), nil, "HS256"},
		{"none", resource, guard.JWT(issuerID, &guard.JWTOptions{Algorithms: []string{"none"}}), nil, "none"},
		{"bad keys", resource, guard.JWT(issuerID, &guard.JWTOptions{JWKS: []byte("x")}), nil, "keys"},
		{"keys over http", resource, guard.JWT(issuerID, &guard.JWTOptions{JWKSURI: "http://issuer.example/jwks"}), nil, "keys"},
		{"negative age of keys", resource, guard.JWT(issuerID, &guard.JWTOptions{KeysMaxAge: -1}), nil, "KeysMaxAge"},
		{"age of keys under a second", resource, guard.JWT(issuerID, &guard.JWTOptions{KeysMaxAge: time.Millisecond}), nil, "a second at least"},
		{"age of keys that are given", resource, guard.JWT(issuerID, &guard.JWTOptions{JWKS: []byte(`{"keys":[]}`), KeysMaxAge: time.Hour}), nil, "KeysMaxAge"},
		{"no credentials", resource, guard.Introspection(issuerID, nil), nil, "ClientID"},
		{"in a list", resource, guard.Any(ok, guard.JWT("issuer", nil)), nil, "issuer"},
		{"empty list", resource, guard.Any(), nil, "issuer"},
		{"nil in a list", resource, guard.Any(nil), nil, "nil"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := guard.New(test.resource, test.v, test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one about %s", err, test.want)
			}
		})
	}
	for _, fine := range []string{"https://api.example", "http://localhost:8080/mcp", "http://127.0.0.1/mcp", "https://api.example:8443/a/b"} {
		if _, err := guard.New(fine, ok, nil); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

// A stream that a token opened ends with the token; a call that it let in is
// carried out. Proves: R4.
func TestStreamEndsWithToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := &guard.Token{Issuer: issuerID, Subject: "ada", Audience: []string{resource}, Expiry: time.Now().Add(time.Hour)}
		g, err := guard.New(resource, guard.Func(issuerID, func(context.Context, string) (*guard.Token, error) { return token, nil }), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ends := make(map[string]time.Duration)
		h := g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			start := time.Now()
			select {
			case <-r.Context().Done():
			case <-time.After(24 * time.Hour):
			}
			ends[r.Method] = time.Since(start)
		}))
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequestWithContext(t.Context(), method, resource, http.NoBody)
			r.Header.Set("Authorization", "Bearer token")
			if h.ServeHTTP(httptest.NewRecorder(), r); method == http.MethodGet {
				token.Expiry = time.Now().Add(time.Hour)
			}
		}
		want := map[string]time.Duration{http.MethodGet: time.Hour, http.MethodPost: 24 * time.Hour}
		if diff := cmp.Diff(want, ends); diff != "" {
			t.Errorf("how long handlers ran (-want +got):\n%s", diff)
		}
	})
}
