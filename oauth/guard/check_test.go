package guard_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// What is wrong is found at the start, and what may pass is told from what does not.
func TestCheck(t *testing.T) {
	t.Parallel()
	const place = "/.well-known/oauth-authorization-server"
	introspecting := func(s *introspector) guard.Verifier {
		return guard.Introspection(s.URL, &guard.IntrospectionOptions{ClientID: "rs", ClientSecret: "hush", Fetch: s.fetch})
	}
	jwts := func(s *introspector) guard.Verifier { return guard.JWT(s.URL, &guard.JWTOptions{Fetch: s.fetch}) }
	good := func(s *introspector) {
		s.serve(place, map[string]any{"issuer": s.URL, "introspection_endpoint": s.URL + "/introspect", "jwks_uri": s.URL + "/keys"})
		s.mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(jwt.SetJSON(newKey(t, "ES256"))) })
		s.body = `{"active":false}`
	}
	fails := func(status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, test := range map[string]struct {
		set    func(s *introspector)
		with   func(s *introspector) guard.Verifier
		want   string // in the error; "" for none
		passes bool   // it may
	}{
		"introspection":           {good, introspecting, "", false},
		"JWT":                     {good, jwts, "", false},
		"several":                 {good, func(s *introspector) guard.Verifier { return guard.ByIssuer(introspecting(s)) }, "", false},
		"client refused":          {func(s *introspector) { good(s); s.status = 401 }, introspecting, `refuses the client "rs"`, false},
		"client refused with 400": {func(s *introspector) { good(s); s.status, s.body = 400, `{"error":"invalid_client"}` }, introspecting, `refuses the client "rs"`, false},
		"client may not":          {func(s *introspector) { good(s); s.status = 403 }, introspecting, "that it may introspect", false},
		"everything is active":    {func(s *introspector) { good(s); s.body = `{"active":true}` }, introspecting, "made-up token", false},
		"no active":               {func(s *introspector) { good(s); s.body = `{}` }, introspecting, "made-up token", false},
		"nonsense":                {func(s *introspector) { good(s); s.body = `<html>` }, introspecting, "answer of the introspection endpoint", true},
		"no JSON":                 {func(s *introspector) { good(s); s.kind = "text/html" }, introspecting, "status 200 and no JSON answer", true},
		"endpoint fails":          {func(s *introspector) { good(s); s.status = 500 }, introspecting, "status 500", true},
		"no endpoint":             {func(s *introspector) { s.serve(place, map[string]any{"issuer": s.URL}) }, introspecting, "names no introspection endpoint", false},
		"another issuer":          {func(s *introspector) { s.serve(place, map[string]any{"issuer": s.URL + "/"}) }, introspecting, "issuer", false},
		"another issuer of JWTs":  {func(s *introspector) { s.serve(place, map[string]any{"issuer": s.URL + "/"}) }, jwts, "issuer", false},
		"no metadata":             {func(*introspector) {}, jwts, "status 404", false},
		"metadata fails":          {func(s *introspector) { s.mux.HandleFunc(place, fails(502)) }, jwts, "status 502", true},
		"nobody there":            {func(s *introspector) { s.Close() }, introspecting, "refused", true},
		"endpoint elsewhere": {func(s *introspector) {
			s.serve(place, map[string]any{"issuer": s.URL, "introspection_endpoint": "https://10.1.2.3/introspect"})
		}, introspecting, "10.1.2.3", false},
		"endpoint is forbidden": {func(s *introspector) {
			s.serve(place, map[string]any{"issuer": s.URL, "introspection_endpoint": "https://169.254.169.254/"})
		}, introspecting, "169.254.169.254", false},
		"endpoint on another host": {func(s *introspector) {
			s.serve(place, map[string]any{"issuer": s.URL, "introspection_endpoint": "http://x.example/"})
		}, introspecting, "introspection_endpoint", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newIntrospector(t)
			test.set(s)
			g, err := guard.New(resource, test.with(s), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			err = g.Check(t.Context())
			switch {
			case (err == nil) != (test.want == ""), err != nil && !strings.Contains(err.Error(), test.want):
				t.Errorf("error %v, want %q", err, test.want)
			case err != nil && errors.Is(err, guard.ErrUnavailable) != test.passes:
				t.Errorf("may pass: %v; %v", !test.passes, err)
			case err != nil && strings.Contains(err.Error(), "hush"):
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}

// A lasting error is told first, and one that may pass does not hide it.
func TestCheckSeveral(t *testing.T) {
	t.Parallel()
	away, wrong := newIntrospector(t), newIntrospector(t)
	away.Close()
	of := func(s *introspector) guard.Verifier { return guard.JWT(s.URL, &guard.JWTOptions{Fetch: s.fetch}) }
	g, err := guard.New(resource, guard.ByIssuer(of(away), of(wrong)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.Check(t.Context()); err == nil || errors.Is(err, guard.ErrUnavailable) || !strings.Contains(err.Error(), wrong.URL) {
		t.Errorf("error %v", err)
	}
}

// A guard is ready for an issuer that answered within CacheAge, or answers now; no more questions are
// asked than that takes.
func TestReady(t *testing.T) {
	t.Parallel()
	s, keys := newIntrospector(t), newIntrospector(t)
	s.body = `{"active":false}`
	keys.serve("/keys", map[string]any{"keys": []any{}})
	clock := clocktest.New(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	const function = "https://issuer.example"
	g, err := guard.New(resource, guard.ByIssuer(
		guard.Introspection(s.URL, &guard.IntrospectionOptions{
			ClientID: "rs", ClientSecret: "hush", Endpoint: s.URL + "/introspect", Fetch: s.fetch, Now: clock.Now,
		}),
		guard.JWT(keys.URL, &guard.JWTOptions{JWKSURI: keys.URL + "/keys", Fetch: keys.fetch}),
		guard.Func(function, nil),
	), &guard.Options{CacheAge: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	expect := func(when, issuer, want string, asked int) {
		t.Helper()
		err := g.Ready(t.Context(), issuer)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
		if s.asked != asked {
			t.Errorf("%s: %d questions, want %d", when, s.asked, asked)
		}
	}
	expect("at first", s.URL, "", 1)
	clock.Add(19 * time.Second)
	expect("within the time", s.URL, "", 1)
	clock.Add(2 * time.Second)
	s.status = http.StatusBadGateway
	expect("when it fails", s.URL, "status 502", 2)
	expect("when it still fails", s.URL, "status 502", 3)
	s.status = http.StatusUnauthorized
	expect("when it refuses the client", s.URL, "refuses the client", 4)
	s.status = http.StatusOK
	expect("when it answers again", s.URL, "", 5)
	expect("of another verifier", function, "", 5)
	expect("of nobody", "https://other.example", "none of the issuers", 5)
	expect("without keys", keys.URL, "no keys", 5)
}

// The client proves who it is by its key (RFC 7523, section 3), for the issuer alone and each time
// anew, or by its secret in the form where the issuer takes it there alone.
func TestIntrospectionCredentials(t *testing.T) {
	t.Parallel()
	var signer crypto.Signer
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := jwt.KeyOf(signer, "", "")
	if err != nil {
		t.Fatal(err)
	}
	s := newIntrospector(t)
	s.body = says(nil)
	s.serve("/.well-known/oauth-authorization-server", map[string]any{
		"issuer": s.URL, "introspection_endpoint": s.URL + "/introspect",
		"introspection_endpoint_auth_methods_supported": []string{oauth.AuthSecretPost, oauth.AuthPrivateKeyJWT},
	})
	b := &bench{t: t, clock: clocktest.New(epoch)}
	b.with(guard.Introspection(s.URL, &guard.IntrospectionOptions{ClientID: "rs", Signer: signer, Fetch: s.fetch, Now: b.clock.Now}), &guard.Options{CacheAge: -1})
	set, err := jwt.ParseSet(jwt.SetJSON(key))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 2 {
		b.passed(b.bearer("opaque"))
		got, err := jwt.Verify(t.Context(), s.form["client_assertion"][0], set, &jwt.Check{
			Algorithms: []string{"ES256"}, Types: []string{jwt.TypeJWT}, Issuer: "rs", Audience: []string{s.URL}, Now: b.clock.Now(), NeedExpiry: true,
		})
		if err != nil || got.Claims.Subject != "rs" || len(got.Claims.Audience) != 1 || got.Claims.Expiry.Sub(epoch) > time.Minute || got.Claims.ID == "" || seen[got.Claims.ID] {
			t.Fatalf("assertion %+v, %v", got, err)
		}
		seen[got.Claims.ID] = true
		if s.form["client_assertion_type"][0] != oauth.ClientAssertionJWT || s.auth != "" || s.form["client_id"] != nil {
			t.Errorf("asked as %q with %v", s.auth, s.form)
		}
	}

	b.with(guard.Introspection(s.URL, &guard.IntrospectionOptions{ClientID: "rs", ClientSecret: "hush", Fetch: s.fetch, Now: b.clock.Now}), nil)
	b.passed(b.bearer("opaque"))
	if s.auth != "" || s.form["client_id"][0] != "rs" || s.form["client_secret"][0] != "hush" {
		t.Errorf("asked as %q with %v", s.auth, s.form)
	}

	for want, o := range map[string]guard.IntrospectionOptions{
		"goes with a ClientID":   {Signer: signer, Authorize: func(context.Context) (string, error) { return "", nil }},
		"without a ClientSecret": {Signer: signer, ClientID: "rs", ClientSecret: "hush"},
		"key of the client":      {Signer: signer, ClientID: "rs", Algorithm: "RS256"},
	} {
		if _, err := guard.New(resource, guard.Introspection(s.URL, &o), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
