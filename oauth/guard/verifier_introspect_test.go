package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// introspector is a server that answers the same about every token.
type introspector struct {
	*far
	status int
	kind   string // Content-Type
	body   string
	asked  int
	auth   string
	form   map[string][]string
}

func newIntrospector(t *testing.T) *introspector {
	t.Helper()
	s := &introspector{far: newFar(t), status: http.StatusOK, kind: "application/json"}
	s.mux.HandleFunc("POST /introspect", func(w http.ResponseWriter, r *http.Request) {
		s.asked++
		s.auth = r.Header.Get("Authorization")
		_ = r.ParseForm()
		s.form = r.PostForm
		w.Header().Set("Content-Type", s.kind)
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(s.body))
	})
	return s
}

// says makes an answer of the usual members and what differs.
func says(more claims) string {
	c := usual(claims{"iss": nil, "active": true, "token_type": "Bearer"})
	for name, v := range more {
		c[name] = v
		if v == nil {
			delete(c, name)
		}
	}
	data, _ := json.Marshal(c)
	return string(data)
}

// What the introspection endpoint says is checked (RFC 7662, section 2.2).
func TestIntrospection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		body   string
		status int
	}{
		{"active", says(nil), 200},
		{"least", `{"active":true,"aud":"` + resource + `","sub":"ada"}`, 200},
		{"audience in list", says(claims{"aud": []string{"https://other.example", resource}}), 200},
		{"type in lower case", says(claims{"token_type": "bearer"}), 200},
		{"own issuer", says(claims{"iss": "ISSUER"}), 200},
		{"unknown members", says(claims{"x": []int{1}}), 200},
		{"inactive", `{"active":false}`, 401},
		{"inactive with claims", says(claims{"active": false}), 401},
		{"no active", says(claims{"active": nil}), 401},
		{"no audience", says(claims{"aud": nil}), 401},
		{"another audience", says(claims{"aud": "https://other.example"}), 401},
		{"bad audience", says(claims{"aud": 1}), 401},
		{"another issuer", says(claims{"iss": "https://other.example"}), 401},
		{"expired", says(claims{"exp": epoch.Add(-31 * time.Second).Unix()}), 401},
		{"not yet", says(claims{"nbf": epoch.Add(31 * time.Second).Unix()}), 401},
		{"expiry of 0", says(claims{"exp": 0}), 401},
		{"expiry in the year 1", says(claims{"exp": -62135596800}), 401},
		{"expiry of null", `{"active":true,"exp":null,"nbf":null,"aud":"` + resource + `","sub":"ada"}`, 200},
		{"begins in 1970", says(claims{"nbf": 0}), 200},
		{"negative expiry", says(claims{"exp": -1}), 401},
		{"huge expiry", says(claims{"exp": 1e300}), 200},
		{"refresh token", says(claims{"token_type": "refresh_token"}), 401},
		{"ID-JAG", says(claims{"token_type": "N_A"}), 401},
		{"bound, and nobody says to what", says(claims{"token_type": "DPoP"}), 401},
		{"bound", says(claims{"token_type": "DPoP", "cnf": claims{"jkt": "x"}}), 401},
		{"bound to a certificate", says(claims{"cnf": claims{"x5t#S256": "x"}}), 401},
		{"bound twice", says(claims{"cnf": claims{"x5t#S256": "x", "jkt": "x"}}), 401},
		{"nobody", says(claims{"sub": nil, "client_id": nil}), 401},
		{"active is a text", says(claims{"active": "true"}), 503},
		{"twice active", `{"active":false,"active":true,"aud":"` + resource + `","sub":"ada"}`, 503},
		{"no object", `[true]`, 503},
		{"too large", `{"active":true,"aud":"` + resource + `","sub":"ada","x":"` + strings.Repeat("x", 64<<10) + `"}`, 503},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newIntrospector(t)
			s.body = strings.Replace(test.body, "ISSUER", s.URL, 1)
			b := &bench{t: t, clock: clocktest.New(epoch)}
			b.with(guard.Introspection(s.URL, &guard.IntrospectionOptions{
				Endpoint: s.URL + "/introspect", ClientID: "rs:1", ClientSecret: "p/w é", Fetch: s.fetch, Now: b.clock.Now,
			}), nil)
			w := b.bearer("opaque")
			if w.Code != test.status {
				t.Errorf("status %d, want %d; log: %s", w.Code, test.status, b.log)
			}
			if said := b.log.String(); test.status == 401 && (!strings.Contains(said, "check=") || strings.Contains(said, "check=verifier")) {
				t.Errorf("the log does not name the check: %s", said)
			}
			// RFC 6749, section 2.3.1: form-encoded, then Basic.
			if s.auth != "Basic cnMlM0ExOnAlMkZ3KyVDMyVBOQ==" || fmt.Sprint(s.form["token"]) != "[opaque]" {
				t.Errorf("asked as %q about %v", s.auth, s.form)
			}
			if test.status == 200 {
				b.passed(b.bearer("opaque"))
				if s.asked != 1 {
					t.Errorf("asked %d times", s.asked)
				}
			}
		})
	}
}

// Any status of success with an answer is an answer.
func TestIntrospectionUnusualSuccess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		body   string
		want   int
	}{
		{200, says(nil), 200},
		{201, says(nil), 200},
		{202, says(nil), 200},
		{203, `{"active":false}`, 401},
		{202, "", 503},
		{404, says(nil), 503},
	} {
		s := newIntrospector(t)
		s.status, s.body = test.status, test.body
		b := &bench{t: t, clock: clocktest.New(epoch)}
		b.with(guard.Introspection(s.URL, &guard.IntrospectionOptions{
			Endpoint: s.URL + "/introspect", ClientID: "rs", ClientSecret: "s", Fetch: s.fetch, Now: b.clock.Now,
		}), nil)
		if w := b.bearer("opaque"); w.Code != test.want {
			t.Errorf("%d with %.20q: status %d, want %d; log: %s", test.status, test.body, w.Code, test.want, b.log)
		}
	}
}

// The endpoint comes out of the metadata; troubles with it are not the token's.
func TestIntrospectionTroubles(t *testing.T) {
	t.Parallel()
	s := newIntrospector(t)
	s.serve("/.well-known/oauth-authorization-server", map[string]any{"issuer": s.URL, "introspection_endpoint": s.URL + "/introspect"})
	s.body = says(nil)
	b := &bench{t: t, clock: clocktest.New(epoch)}
	var own string
	var trouble error
	b.with(guard.Introspection(s.URL, &guard.IntrospectionOptions{
		Authorize: func(context.Context) (string, error) { return own, trouble }, Fetch: s.fetch, Now: b.clock.Now,
	}), &guard.Options{CacheAge: -1})
	own = "my-token"
	b.passed(b.bearer("opaque"))
	if s.auth != "Bearer my-token" {
		t.Errorf("asked as %q", s.auth)
	}
	for _, break1 := range []func(){
		func() { s.status = http.StatusUnauthorized },
		func() { s.status, s.kind = 200, "text/html" },
		func() { s.kind, trouble = "application/json", errors.New("no token for us") },
		func() { trouble = nil; s.Close() },
	} {
		break1()
		b.refused(b.bearer("opaque"), 503, "")
	}
	if log := b.log.String(); strings.Contains(log, "my-token") || strings.Contains(log, "opaque") {
		t.Errorf("secrets in the log: %s", log)
	}
}

// A token that is bound by introspection needs its proof.
func TestIntrospectionDPoP(t *testing.T) {
	t.Parallel()
	s := newIntrospector(t)
	client := newKey(t, "ES256")
	s.body = says(claims{"token_type": "DPoP", "cnf": claims{"jkt": client.Thumbprint()}})
	b := &bench{t: t, clock: clocktest.New(epoch)}
	b.with(guard.Introspection(s.URL, &guard.IntrospectionOptions{
		Endpoint: s.URL + "/introspect", ClientID: "rs", Fetch: s.fetch, Now: b.clock.Now,
	}), nil)
	b.refused(b.bearer("opaque"), 401, "invalid_token")
	b.passed(b.do("Authorization", "DPoP opaque", "DPoP", b.proof(client, "", "opaque")))

	// One that is bound to a certificate too, which nobody here can check.
	s.body = says(claims{"cnf": claims{"jkt": client.Thumbprint(), "x5t#S256": "x"}})
	b.refused(b.do("Authorization", "DPoP opaque-too", "DPoP", b.proof(client, "", "opaque-too")), 401, "invalid_token")
}

// JWTs of one server and opaque tokens of another, side by side.
func TestJWTAndIntrospection(t *testing.T) {
	t.Parallel()
	s := newIntrospector(t)
	s.body = says(claims{"sub": "bob"})
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	b.with(guard.Any(
		guard.JWT(issuerID, &guard.JWTOptions{JWKS: jwt.SetJSON(b.key), Now: b.clock.Now}),
		guard.Introspection(s.URL, &guard.IntrospectionOptions{Endpoint: s.URL + "/introspect", ClientID: "rs", Fetch: s.fetch, Now: b.clock.Now}),
	), nil)
	if p := b.passed(b.bearer(b.token(nil))); p.Subject != "ada" || s.asked != 0 {
		t.Errorf("%v; the other server was asked %d times about a token that is not its own", p, s.asked)
	}
	if p := b.passed(b.bearer("opaque")); p.Subject != "bob" || p.Issuer != s.URL {
		t.Errorf("%v", p)
	}
}
