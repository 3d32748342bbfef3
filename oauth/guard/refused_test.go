package guard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Each refused token makes one line in the log, which names the check that it failed, with the values on
// both sides, bounded, and without the token. Proves: C13, R13.
func TestRefusedTokensAreTold(t *testing.T) {
	t.Parallel()
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("https://%s.example/%d", strings.Repeat("x", 50), i)
	}
	for name, test := range map[string]struct {
		typ    string
		more   claims
		status int
		check  string
		says   []string
	}{
		"type":          {"JWT", nil, 401, "type", []string{"JWT", "at+jwt"}},
		"issuer":        {"at+jwt", claims{"iss": "https://issuer.example/"}, 401, "issuer", []string{"https://issuer.example/", issuerID}},
		"audience":      {"at+jwt", claims{"aud": "api://files"}, 401, "audience", []string{"api://files", resource, "api://mine"}},
		"many":          {"at+jwt", claims{"aud": many}, 401, "audience", []string{"…"}},
		"line breaks":   {"at+jwt", claims{"aud": "a\nlevel=INFO msg=forged"}, 401, "audience", nil},
		"expired":       {"at+jwt", claims{"exp": 1}, 401, "expiry", []string{"1970-01-01"}},
		"not yet":       {"at+jwt", claims{"nbf": epoch.Unix() + 3600}, 401, "expiry", []string{"2026-11-01T13:00:00Z"}},
		"scope":         {"at+jwt", claims{"scope": "read"}, 403, "scope", []string{"read", "mcp"}},
		"no scope":      {"at+jwt", claims{"scope": nil}, 403, "scope", []string{"nothing", "mcp"}},
		"bad scope":     {"at+jwt", claims{"scope": "a\"b"}, 401, "scope", nil},
		"nobody":        {"at+jwt", claims{"sub": nil, "client_id": nil}, 401, "subject", nil},
		"another key":   {"stranger", nil, 401, "signature", nil},
		"no JWT at all": {"opaque", nil, 401, "form", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setUp(t, &guard.Options{Scopes: []string{"mcp"}, Audiences: []string{"api://mine"}})
			token := "opaque-token-of-somebody"
			switch test.typ {
			case "opaque":
			case "stranger":
				token = sign(t, newKey(t, "ES256"), "at+jwt", usual(test.more))
			default:
				token = sign(t, b.key, test.typ, usual(test.more))
			}
			if w := b.bearer(token); w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
			said := b.log.String()
			if strings.Count(said, "token refused") != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "check="+test.check+" ") {
				t.Errorf("the log is %s\nwant one line about %s", said, test.check)
			}
			for _, text := range test.says {
				if !strings.Contains(said, text) {
					t.Errorf("the log is %s\nwant %q in it", said, text)
				}
			}
			if len(said) > 4096 {
				t.Errorf("the line has %d bytes", len(said))
			}
			for _, part := range strings.Split(token, ".") {
				if strings.Contains(said, part) {
					t.Errorf("the log has %q: %s", part, said)
				}
			}
		})
	}
}

// An issuer must be written as its document spells it, since clients of others compare letter by letter
// what the guard tells them: the error says how. Proves: ruling 36, for what we serve.
func TestIssuerSpeltAnotherWay(t *testing.T) {
	t.Parallel()
	s := newIntrospector(t)
	s.serve("/.well-known/oauth-authorization-server", map[string]any{"issuer": s.URL + "/", "jwks_uri": s.URL + "/keys"})
	s.mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(jwt.SetJSON(newKey(t, "ES256"))) })
	for issuer, good := range map[string]bool{s.URL: false, s.URL + "/": true} {
		b := &bench{t: t, clock: clocktest.New(epoch)}
		b.guards(resource, guard.JWT(issuer, &guard.JWTOptions{Fetch: s.fetch}), nil)
		err := b.guard.Check(t.Context())
		if (err == nil) != good || err != nil && (!strings.Contains(err.Error(), `"`+s.URL+`/"`) || !strings.Contains(err.Error(), "write the issuer as it does")) {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}
