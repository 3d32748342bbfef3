package guard_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// A far is an authorization server on this machine.
type far struct {
	*httptest.Server
	mux   *http.ServeMux
	fetch *oauth.Fetcher
}

func newFar(t *testing.T) *far {
	t.Helper()
	mux := http.NewServeMux()
	f := &far{webtest.Serve(t, mux), mux, oauth.NewFetcher(nil)}
	t.Cleanup(f.fetch.Close)
	return f
}

// serve answers with a JSON document.
func (f *far) serve(path string, document any) {
	f.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	})
}

// Keys are found by way of the issuer's metadata, in the order of the
// specification, and only in a document of the issuer's own.
func TestJWTDiscovery(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, tenant, place string
		issuer              func(own string) string
		status              int
	}{
		{"RFC 8414", "", "/.well-known/oauth-authorization-server", nil, 200},
		{"OIDC", "", "/.well-known/openid-configuration", nil, 200},
		{"RFC 8414 with path", "/t", "/.well-known/oauth-authorization-server/t", nil, 200},
		{"OIDC with path", "/t", "/.well-known/openid-configuration/t", nil, 200},
		{"OIDC below path", "/t", "/t/.well-known/openid-configuration", nil, 200},
		{"another issuer's", "", "/.well-known/oauth-authorization-server", func(string) string { return "https://evil.example" }, 503},
		{"issuer with slash", "", "/.well-known/oauth-authorization-server", func(own string) string { return own + "/" }, 503},
		{"nowhere", "", "/nowhere", nil, 503},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t)
			own := f.URL + test.tenant
			said := own
			if test.issuer != nil {
				said = test.issuer(own)
			}
			b := &bench{t: t, key: newKey(t, "EdDSA"), clock: clocktest.New(epoch)}
			f.serve(test.place, map[string]any{"issuer": said, "jwks_uri": f.URL + "/keys"})
			f.serve("/keys", json.RawMessage(jwt.SetJSON(b.key)))
			b.with(guard.JWT(own, &guard.JWTOptions{Now: b.clock.Now, Fetch: f.fetch}), nil)
			if w := b.bearer(b.token(claims{"iss": own})); w.Code != test.status {
				t.Errorf("status %d, want %d; log: %s", w.Code, test.status, b.log)
			}
		})
	}
}

// After a change of keys that nobody announced, tokens of the new key are not judged until the keys
// can be fetched again; those of the key that is gone are taken for no longer than is promised.
func TestUnplannedKeyChange(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	published := b.key
	f.mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(jwt.SetJSON(published))
	})
	b.with(guard.JWT(issuerID, &guard.JWTOptions{JWKSURI: f.URL + "/keys", Now: b.clock.Now, Fetch: f.fetch}), nil)
	old := b.token(nil)
	b.passed(b.bearer(old))
	b.clock.Add(4 * time.Second)
	published = newKey(t, "ES256")
	token := sign(t, published, "at+jwt", usual(nil))
	w := b.bearer(token)
	b.refused(w, 503, "")
	if got := w.Header().Get("Retry-After"); got != "6" || strings.Contains(b.log.String(), "level=ERROR") {
		t.Errorf("Retry-After is %q; log: %s", got, b.log)
	}
	b.clock.Add(6 * time.Second)
	b.passed(b.bearer(token))
	b.clock.Add(50 * time.Second) // the guard remembered it for a minute
	b.refused(b.bearer(old), 401, "invalid_token")

	// The same where no new key makes the guard look: 5 minutes of the set, and one of the guard.
	published = newKey(t, "ES256")
	b.clock.Add(5*time.Minute - time.Second)
	b.passed(b.bearer(token))
	b.clock.Add(time.Minute)
	b.refused(b.bearer(token), 401, "invalid_token")
}

// KeysMaxAge bounds all that keeps the tokens of a key alive that the issuer has dropped: the
// max-age of the keys, the memory of the guard, and the use of old keys while the issuer errs.
func TestKeysMaxAge(t *testing.T) {
	t.Parallel()
	const most = 2 * time.Second
	f := newFar(t)
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	var published atomic.Pointer[jwt.Key] // nil: the issuer errs
	published.Store(b.key)
	f.mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		key := published.Load()
		if key == nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(jwt.SetJSON(key))
	})
	b.with(guard.Any(guard.JWT(issuerID, &guard.JWTOptions{
		JWKSURI: f.URL + "/keys", Now: b.clock.Now, Fetch: f.fetch, KeysMaxAge: most,
	})), &guard.Options{CacheAge: time.Hour})

	early, late := b.token(nil), b.token(claims{"jti": "2"})
	b.passed(b.bearer(early))
	published.Store(newKey(t, "ES256"))
	b.clock.Add(most - time.Millisecond)
	b.passed(b.bearer(early))
	b.passed(b.bearer(late)) // whatever is fetched now, this was judged by the keys of before
	b.clock.Add(time.Millisecond)
	// It may be fetched once more before they are called bad, as with every key that is not known.
	bad := func(tokens ...string) {
		t.Helper()
		for _, token := range tokens {
			if w := b.bearer(token); w.Code != 401 && w.Code != 503 {
				t.Errorf("status %d for a token of a key that was dropped", w.Code)
			}
		}
		b.clock.Add(most / 4)
		for _, token := range tokens {
			b.refused(b.bearer(token), 401, "invalid_token")
		}
	}
	bad(early, late)

	published.Store(b.key)
	b.clock.Add(most)
	b.passed(b.bearer(early))
	published.Store(nil)
	b.clock.Add(most - time.Millisecond)
	b.passed(b.bearer(late))
	b.clock.Add(time.Millisecond)
	b.refused(b.bearer(early), 503, "")
	b.refused(b.bearer(late), 503, "")
	published.Store(b.key)
	b.clock.Add(most)
	b.passed(b.bearer(late))
	b.clock.Add(-time.Hour)
	published.Store(newKey(t, "ES256"))
	b.clock.Add(most)
	bad(b.token(claims{"jti": "3"}))
}

// Keys come from JWKSURI if it is given; a token of an unknown key does not
// make the guard fetch again and again.
func TestJWKSURI(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	var fetched atomic.Int32
	f.mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jwt.SetJSON(b.key))
	})
	b.with(guard.JWT(issuerID, &guard.JWTOptions{JWKSURI: f.URL + "/keys", Now: b.clock.Now, Fetch: f.fetch}), nil)
	b.passed(b.bearer(b.token(nil)))
	stranger := newKey(t, "ES256")
	for i := range 20 {
		b.refused(b.bearer(sign(t, stranger, "at+jwt", usual(claims{"jti": fmt.Sprint(i)}))), 401, "invalid_token")
	}
	if n := fetched.Load(); n != 1 {
		t.Errorf("keys were fetched %d times", n)
	}
}

// Keys are never fetched from private networks, nor from this machine for an
// issuer elsewhere, however the URL got into the metadata. Attack: SSRF.
func TestAttackKeysInPrivateNetworks(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	var reached atomic.Bool
	f.mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	port := f.URL[strings.LastIndex(f.URL, ":"):]
	for _, target := range []string{
		"https://10.0.0.1/keys", "https://192.168.1.1/keys", "https://169.254.169.254/keys", "https://[fd00::1]/keys", "https://100.64.0.1/keys",
		"https://127.0.0.1" + port + "/keys", "https://[::ffff:127.0.0.1]" + port + "/keys",
	} {
		o := &guard.JWTOptions{JWKSURI: target, Now: b.clock.Now, Fetch: f.fetch}
		if strings.Contains(target, "127.0.0.1") {
			// By a name that leads here.
			fetch := oauth.NewFetcher(&oauth.FetchOptions{Resolve: func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }})
			t.Cleanup(fetch.Close)
			o.JWKSURI, o.Fetch = "https://keys.example"+port+"/keys", fetch
		}
		b.with(guard.JWT(issuerID, o), nil)
		b.refused(b.bearer(b.token(nil)), 503, "")
		if log := b.log.String(); !strings.Contains(log, "blocked: ") {
			t.Errorf("%s: log: %s", target, log)
		}
	}
	// The metadata of an issuer on this machine leads elsewhere.
	f.serve("/.well-known/oauth-authorization-server", map[string]any{"issuer": f.URL, "jwks_uri": "https://10.0.0.1/keys"})
	b.with(guard.JWT(f.URL, &guard.JWTOptions{Now: b.clock.Now, Fetch: f.fetch}), nil)
	b.refused(b.bearer(b.token(claims{"iss": f.URL})), 503, "")
	if log := b.log.String(); !strings.Contains(log, "blocked: ") {
		t.Errorf("log: %s", log)
	}
	if reached.Load() {
		t.Error("this machine was reached")
	}
}

// Who signs and how is the configuration's to say, never the token's. Attack:
// algorithm confusion, key in the header.
func TestAttackAlgorithmConfusion(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	rsa := newKey(t, "RS256")
	set := jwt.SetJSON(rsa)
	b.with(guard.JWT(issuerID, &guard.JWTOptions{JWKS: set, Algorithms: []string{"RS256"}, Now: b.clock.Now}), nil)
	payload, err := json.Marshal(usual(nil))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	forge := func(header map[string]any, sign func(input string) []byte) string {
		head, err := json.Marshal(header)
		if err != nil {
			t.Fatal(err)
		}
		input := encode(head) + "." + encode(payload)
		return input + "." + encode(sign(input))
	}
	hs := func(key []byte) func(string) []byte {
		return func(input string) []byte {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(input))
			return mac.Sum(nil)
		}
	}
	own := newKey(t, "ES256")
	good := sign(t, rsa, "at+jwt", usual(nil))
	parts := strings.Split(good, ".")
	tests := map[string]string{
		"none":                forge(map[string]any{"alg": "none", "typ": "at+jwt"}, func(string) []byte { return nil }),
		"none with signature": forge(map[string]any{"alg": "none", "typ": "at+jwt"}, hs(nil)),
		"None":                forge(map[string]any{"alg": "None", "typ": "at+jwt", "kid": rsa.ID()}, hs(nil)),
		"HMAC of public key":  forge(map[string]any{"alg": "HS256", "typ": "at+jwt", "kid": rsa.ID()}, hs(rsa.Public())),
		"HMAC of key set":     forge(map[string]any{"alg": "HS256", "typ": "at+jwt"}, hs(set)),
		"own algorithm":       sign(t, own, "at+jwt", usual(nil)),
		"jwk in header":       forge(map[string]any{"alg": "RS256", "typ": "at+jwt", "jwk": json.RawMessage(own.Public())}, hs(nil)),
		"jku in header":       forge(map[string]any{"alg": "RS256", "typ": "at+jwt", "jku": "https://evil.example/keys"}, hs(nil)),
		"kid as path":         forge(map[string]any{"alg": "RS256", "typ": "at+jwt", "kid": "../../dev/null"}, hs(nil)),
		"crit":                forge(map[string]any{"alg": "RS256", "typ": "at+jwt", "crit": []string{"b64"}, "b64": false}, hs(nil)),
		"no signature":        parts[0] + "." + parts[1] + ".",
		"another payload":     parts[0] + "." + encode([]byte(strings.Replace(string(payload), "ada", "bob", 1))) + "." + parts[2],
		"DPoP type":           sign(t, rsa, "dpop+jwt", usual(nil)),
		"ID token":            sign(t, rsa, "JWT", usual(nil)),
		"ID-JAG":              sign(t, rsa, "oauth-id-jag+jwt", usual(nil)),
	}
	for name, token := range tests {
		t.Run(name, func(t *testing.T) {
			b.t = t
			w := b.bearer(token)
			b.refused(w, 401, "invalid_token")
		})
	}
	b.t = t
	b.passed(b.bearer(good))
}

// What servers say in their own way is read, and what cannot be checked is not
// taken for less than it is.
func TestJWTDialects(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	extend := func(payload []byte, t *guard.Token) error {
		var c struct {
			Roles  []string `json:"roles"`
			Banned bool     `json:"banned"`
		}
		if err := json.Unmarshal(payload, &c); err != nil {
			return err
		}
		if c.Banned {
			return errors.New("banned")
		}
		t.Scopes = append(t.Scopes, c.Roles...)
		return nil
	}
	b.with(guard.JWT(issuerID, &guard.JWTOptions{
		JWKS: jwt.SetJSON(b.key), Types: []string{"at+jwt", "JWT", ""}, Now: b.clock.Now, Extend: extend,
	}), nil)
	tests := []struct {
		name   string
		typ    string
		claims claims
		scopes []string // nil: refused
		client string
	}{
		{"usual", "at+jwt", nil, []string{"mcp"}, "app"},
		{"long type", "application/AT+JWT", nil, []string{"mcp"}, "app"},
		{"JWT", "JWT", nil, []string{"mcp"}, "app"},
		{"no type", "", nil, []string{"mcp"}, "app"},
		{"scp text", "JWT", claims{"scope": nil, "scp": "a b"}, []string{"a", "b"}, "app"},
		{"scp list", "JWT", claims{"scope": nil, "scp": []string{"a", "b"}}, []string{"a", "b"}, "app"},
		{"scope before scp", "JWT", claims{"scp": "a"}, []string{"mcp"}, "app"},
		{"azp", "JWT", claims{"client_id": nil, "azp": "other"}, []string{"mcp"}, "other"},
		{"client_id before azp", "JWT", claims{"azp": "other"}, []string{"mcp"}, "app"},
		{"roles", "JWT", claims{"roles": []string{"r"}}, []string{"mcp", "r"}, "app"},
		{"refused by extension", "JWT", claims{"banned": true}, nil, ""},
		{"bad scp", "JWT", claims{"scope": nil, "scp": 1}, nil, ""},
		{"bound to a certificate", "at+jwt", claims{"cnf": map[string]string{"x5t#S256": "x"}}, nil, ""},
		{"another type", "logout+jwt", nil, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			w := b.bearer(sign(t, b.key, test.typ, usual(test.claims)))
			if test.scopes == nil {
				b.refused(w, 401, "invalid_token")
				return
			}
			p := b.passed(w)
			if d := cmp.Diff(test.scopes, p.Scopes); d != "" || p.Client != test.client {
				t.Errorf("scopes: %s; client %s", d, p.Client)
			}
		})
	}
}

// A JWT is shown to the verifiers of its issuer alone, and what is none to all
// in order.
func TestAny(t *testing.T) {
	t.Parallel()
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	var asked []string
	named := func(name, issuer string, err error) guard.Verifier {
		return guard.Func(issuer, func(_ context.Context, token string) (*guard.Token, error) {
			asked = append(asked, name)
			switch {
			case err != nil:
				return nil, err
			case token == "bad":
				return nil, errors.New("bad")
			}
			return &guard.Token{Subject: name, Audience: []string{resource}}, nil
		})
	}
	lying := guard.Func("https://liar.example", func(context.Context, string) (*guard.Token, error) {
		asked = append(asked, "liar")
		return &guard.Token{Issuer: issuerID, Subject: "liar", Audience: []string{resource}}, nil
	})
	no := errors.New("not mine")
	b.with(guard.Any(
		named("first", "https://first.example", no), lying, named("second", issuerID, no),
		named("third", issuerID, nil), named("fourth", "https://fourth.example", nil),
	), &guard.Options{CacheAge: -1})
	tests := []struct {
		token, subject, asked string
	}{
		{b.token(nil), "third", "[second third]"},
		{b.token(claims{"iss": "https://first.example"}), "", "[first]"},
		{b.token(claims{"iss": "https://fourth.example"}), "fourth", "[fourth]"},
		{b.token(claims{"iss": "https://nobody.example"}), "", "[]"},
		{b.token(claims{"iss": "https://liar.example"}), "", "[liar]"},
		{"opaque", "third", "[first liar second third]"},
		{"bad", "", "[first liar second third fourth]"},
	}
	for _, test := range tests {
		asked = nil
		w := b.bearer(test.token)
		if got := fmt.Sprint(asked); got != test.asked {
			t.Errorf("asked %s, want %s", got, test.asked)
		}
		if test.subject == "" {
			b.refused(w, 401, "invalid_token")
		} else if p := b.passed(w); p.Subject != test.subject {
			t.Errorf("subject %q, want %q", p.Subject, test.subject)
		}
	}
	if d := cmp.Diff(3+1, len(guard.Any(named("a", "https://a.example", nil), named("b", "https://b.example", nil), named("a", "https://a.example", nil), lying).Issuers())+1); d != "" {
		t.Errorf("issuers: %s", d)
	}

	down := fmt.Errorf("%w: down", guard.ErrUnavailable)
	b.with(guard.Any(named("up", issuerID, no), named("down", issuerID, down)), nil)
	b.refused(b.bearer("opaque"), 503, "")
}

// Closing a guard ends what its verifiers fetch.
func TestClose(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	entered := make(chan struct{})
	f.mux.HandleFunc("/keys", func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	b := &bench{t: t, key: newKey(t, "ES256"), clock: clocktest.New(epoch)}
	b.with(guard.JWT(issuerID, &guard.JWTOptions{JWKSURI: f.URL + "/keys", Now: b.clock.Now}), &guard.Options{VerifyTimeout: time.Hour})
	done := make(chan int)
	token := b.token(nil)
	go func() { done <- b.bearer(token).Code }()
	<-entered
	b.guard.Close()
	if code := <-done; code != 503 {
		t.Errorf("status %d", code)
	}
}
