package guard_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/logtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/principal"
)

const (
	resource = "https://api.example/mcp"
	issuerID = "https://issuer.example"
	metadata = "https://api.example/.well-known/oauth-protected-resource/mcp"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// claims are the members of a token, or what differs from the usual ones; nil
// takes one away.
type claims map[string]any

// usual are the claims of a token that passes.
func usual(more claims) claims {
	c := claims{
		"iss": issuerID, "aud": resource, "sub": "ada", "client_id": "app",
		"iat": epoch.Unix(), "exp": epoch.Add(time.Hour).Unix(), "jti": "1", "scope": "mcp",
	}
	maps.Copy(c, more)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func newKey(t testing.TB, algorithm string) *jwt.Key {
	t.Helper()
	k, err := jwt.NewKey(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, k *jwt.Key, typ string, c claims) string {
	t.Helper()
	token, err := k.Sign(typ, map[string]any(c))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A bench is a guard of resource with a key, a clock and a log.
type bench struct {
	t     testing.TB
	key   *jwt.Key
	clock *clocktest.Clock
	guard *guard.Guard
	log   *logtest.Log
	h     http.Handler
	seen  *http.Request // what reached the endpoint last
}

// setUp makes a bench; the options' clock and log are set.
func setUp(t testing.TB, o *guard.Options) *bench {
	t.Helper()
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	return b.with(guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(b.key), Now: b.clock.Now}), o)
}

// with gives the bench a verifier.
func (b *bench) with(v guard.Verifier, o *guard.Options) *bench {
	b.t.Helper()
	b.guards(resource, v, o)
	b.h = b.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.seen = r
		_, _ = io.WriteString(w, principal.FromContext(r.Context()).Identity())
	}))
	return b
}

// guards makes the guard of a resource, and the log.
func (b *bench) guards(resource string, v guard.Verifier, o *guard.Options) {
	b.t.Helper()
	var opts guard.Options
	if o != nil {
		opts = *o
	}
	b.log = new(logtest.Log)
	opts.Now, opts.Logger = b.clock.Now, b.log.Logger()
	g, err := guard.New(resource, v, &opts)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(g.Close)
	b.guard = g
}

// token is a token that passes, but for what more changes.
func (b *bench) token(more claims) string { return sign(b.t, b.key, "at+jwt", usual(more)) }

// do sends a POST to the endpoint with these headers: name, value, name, value.
func (b *bench) do(headers ...string) *httptest.ResponseRecorder {
	return b.request(http.MethodPost, resource, headers...)
}

func (b *bench) request(method, target string, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	b.seen = nil
	r := httptest.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader("{}"))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, r)
	return w
}

// bearer sends a token as a bearer token.
func (b *bench) bearer(token string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.do("Authorization", "Bearer "+token)
}

// refused checks that a request was refused with this status and error code.
func (b *bench) refused(w *httptest.ResponseRecorder, status int, code string) map[string]string {
	b.t.Helper()
	if b.seen != nil {
		b.t.Errorf("the request reached the endpoint")
	}
	if w.Code != status {
		b.t.Errorf("status is %d, want %d; log: %s", w.Code, status, b.log)
	}
	params := challengeOf(b.t, w)
	if params["error"] != code {
		b.t.Errorf("error is %q, want %q", params["error"], code)
	}
	return params
}

// passed checks that a request reached the endpoint.
func (b *bench) passed(w *httptest.ResponseRecorder) *principal.Principal {
	b.t.Helper()
	if w.Code != http.StatusOK || b.seen == nil {
		b.t.Fatalf("status is %d, body %s; log: %s", w.Code, w.Body, b.log)
	}
	return principal.FromContext(b.seen.Context())
}

// challengeOf reads the one challenge of a response, if there is one.
func challengeOf(t testing.TB, w *httptest.ResponseRecorder) map[string]string {
	t.Helper()
	values := w.Header()["Www-Authenticate"]
	if len(values) == 0 {
		return nil
	}
	list := oauth.ParseChallenges(values)
	if len(list) != 1 {
		t.Fatalf("challenges: %q", values)
	}
	params := maps.Clone(list[0].Params)
	params["scheme"] = list[0].Scheme
	return params
}

// fixed is a verifier that finds the same in every token, and counts.
type fixed struct {
	mu    sync.Mutex
	calls int
	token guard.Token
	err   error
}

func (f *fixed) Issuers() []string { return []string{issuerID} }

func (f *fixed) Verify(context.Context, string) (*guard.Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	t := f.token
	return &t, nil
}

func (f *fixed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func newFixed() *fixed {
	return &fixed{token: guard.Token{Issuer: issuerID, Subject: "ada", Audience: []string{resource}, Scopes: []string{"mcp"}}}
}
