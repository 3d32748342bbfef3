package admin_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/authserver/admin"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// A client that an operator adds is there in each server at once, and may have what was said, and no more.
func TestClientAdd(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := newSite(t, dsn)
		s.addUser("ada")
		s.checkPublicClient()
		s.checkSecretClient()
		s.checkKeyClient()
		s.checkTwoOperators()
	})
}

func (s *site) checkPublicClient() {
	t := s.t
	added := s.do("client add", `{"id":"web","name":"Notes","redirect_uri":["`+redirect+`"],"scope":["read"],"access_lifetime":"1m"}`).(*admin.ClientAdded)
	if added.Secret != "" || added.Key != "" || added.Client.AuthMethod != oauth.AuthNone || added.Client.Registered {
		t.Errorf("the client is %+v", added)
	}
	p := s.signIn("web", "ada")
	if !s.active(s.second, p.access) {
		t.Error("its token is not active at the other server")
	}
	renewed := s.token(s.second, "web", byRefresh(p.refresh))
	if renewed.ExpiresIn > 60 || renewed.Refresh == "" {
		t.Errorf("a new token is %+v, and should be good for a minute", renewed)
	}
	s.do("client add", `{"id":"narrow","redirect_uri":["`+redirect+`"],"resource":["https://elsewhere.example/mcp"]}`)
	if code := (&person{Browser: s.browser(), s: s}).authorize(s.first, "narrow", nil); code != "" {
		t.Error("a client that is bound to another resource gets a code")
	}
	s.do("client remove", `{"id":"web"}`)
	if s.active(s.first, renewed.Access) {
		t.Error("the token of a removed client is active")
	}
}

func (s *site) checkSecretClient() {
	t := s.t
	added := s.do("client add", `{"id":"robot","confidential":true,"scope":["read"],"subject":"the robot"}`).(*admin.ClientAdded)
	if len(added.Secret) < 32 || !strings.Contains(added.Text(), added.Secret) {
		t.Fatalf("the client is %+v", added)
	}
	ask := func(secret string) *answer {
		a := new(answer)
		s.postAs("robot", secret, s.second+"/token", url.Values{"grant_type": {oauth.GrantClientCredentials}, "resource": {resource}}, a)
		return a
	}
	if got := ask("wrong-secret-of-robot"); got.Error != oauth.InvalidClient {
		t.Errorf("a wrong secret gives %+v", got)
	}
	got := ask(added.Secret)
	var claims struct {
		Active  bool
		Subject string `json:"sub"`
		Scope   string
	}
	s.post(s.first+"/introspect", url.Values{"token": {got.Access}}, true, &claims)
	if !claims.Active || claims.Subject != "the robot" {
		t.Errorf("its token is %+v", claims)
	}
	for _, verb := range []string{"client show", "client list"} {
		parameters := `{"id":"robot"}`
		if verb == "client list" {
			parameters = `{}`
		}
		raw, err := json.Marshal(s.do(verb, parameters))
		if err != nil || strings.Contains(string(raw), added.Secret) || strings.Contains(s.do(verb, parameters).Text(), added.Secret) {
			t.Errorf("%s shows the secret, or %v", verb, err)
		}
	}
	next := s.do("client secret", `{"id":"robot"}`).(*admin.ClientSecret)
	if old, now := ask(added.Secret), ask(next.Secret); old.Error != oauth.InvalidClient || now.Access == "" || !s.active(s.first, got.Access) {
		t.Errorf("with another secret: the old one gives %+v, the new one %+v", old, now)
	}
	posted := s.do("client add", `{"id":"form","confidential":true,"secret_in_form":true}`).(*admin.ClientAdded)
	inForm := new(answer)
	s.postAs("", "", s.second+"/token", url.Values{
		"grant_type": {oauth.GrantClientCredentials}, "resource": {resource}, "client_id": {"form"}, "client_secret": {posted.Secret},
	}, inForm)
	if inForm.Access == "" {
		t.Errorf("a secret in the form gives %+v", inForm)
	}
	s.do("client add", `{"id":"own","secret":"a secret of their own","grant":["client_credentials"]}`)
	for _, act := range s.audit.take() {
		if raw, err := json.Marshal(act); err != nil || strings.Contains(string(raw), added.Secret) || strings.Contains(string(raw), "of their own") {
			t.Errorf("the audit has a secret, or %v: %s", err, raw)
		}
	}
}

// checkKeyClient authenticates with the key that was made (RFC 7523, section 2.2).
func (s *site) checkKeyClient() {
	t := s.t
	added := s.do("client add", `{"id":"keyed","make_key":true}`).(*admin.ClientAdded)
	signer, err := login.ParsePrivateKey([]byte(added.Key))
	if err != nil {
		t.Fatal(err)
	}
	got := new(answer)
	s.postAs("", "", s.second+"/token", url.Values{
		"grant_type": {oauth.GrantClientCredentials}, "resource": {resource}, "client_assertion": {assertion(t, signer, "keyed", s.first)},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}, got)
	if !s.active(s.first, got.Access) {
		t.Errorf("with its key it gets %+v", got)
	}
}

// assertion is that of a client for an issuer, signed with ES256.
func assertion(t *testing.T, signer crypto.Signer, client, issuer string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": client, "sub": client, "aud": issuer, "jti": rand.Text(), "exp": time.Now().Add(time.Minute).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, sv, err := ecdsa.Sign(rand.Reader, signer.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	sv.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// checkTwoOperators adds one client many times at once: one operator is told that it was added.
func (s *site) checkTwoOperators() {
	t := s.t
	var added, refused atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := s.try("client add", `{"id":"twice","confidential":true}`)
			e, ok := errors.AsType[*admin.Error](err)
			switch {
			case err == nil:
				added.Add(1)
			case ok && e.Code == admin.Conflict:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if added.Load() != 1 || refused.Load() != 7 {
		t.Errorf("%d were added and %d refused", added.Load(), refused.Load())
	}
	var removed atomic.Int32
	for range 8 {
		all.Go(func() {
			_, err := s.try("client remove", `{"id":"twice"}`)
			if e, ok := errors.AsType[*admin.Error](err); err == nil {
				removed.Add(1)
			} else if !ok || e.Code != admin.NotFound {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if removed.Load() != 1 {
		t.Errorf("%d operators were told that they removed it", removed.Load())
	}
	s.do("client add", `{"id":"public","redirect_uri":["`+redirect+`"]}`)
	for id, code := range map[string]admin.Code{"public": admin.Conflict, "nobody": admin.NotFound} {
		_, err := s.try("client secret", `{"id":"`+id+`"}`)
		if e, ok := errors.AsType[*admin.Error](err); !ok || e.Code != code {
			t.Errorf("another secret for %s: %v", id, err)
		}
	}
	for _, act := range []string{"session revoke", "grant revoke", "consent revoke"} {
		_, err := s.try(act, `{"user":"adda"}`)
		if e, ok := errors.AsType[*admin.Error](err); !ok || e.Code != admin.NotFound {
			t.Errorf("%s of a name that nobody has: %v", act, err)
		}
	}
}

// Bad input: what no client can be is refused with what is wrong, and nothing is stored.
func TestClientAddRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, databasetest.All["sqlite"](t))
	for parameters, want := range map[string]string{
		`{}`:                               `requires the parameter "id"`,
		`{"id":"a b","confidential":true}`: "without spaces",
		`{"id":"ü","confidential":true}`:   "ASCII characters",
		`{"id":"` + strings.Repeat("a", 256) + `","confidential":true}`: "1 to 255",
		`{"id":"HTTPS://a.example/c","confidential":true}`:              "metadata document",
		`{"id":"a"}`: "missing redirect_uri",
		`{"id":"a","name":"x\ny","confidential":true}`:                                                        "name of a client",
		`{"id":"a","name":"x\u202ey","confidential":true}`:                                                    "name of a client",
		`{"id":"a","grant":["client_credentials"]}`:                                                           "must authenticate",
		`{"id":"a","grant":["password"],"confidential":true}`:                                                 `unknown grant "password"`,
		`{"id":"a","grant":["authorization_code"]}`:                                                           "requires a redirect_uri",
		`{"id":"a","grant":["device_code"],"redirect_uri":["http://127.0.0.1/cb"]}`:                           "redirect_uri requires",
		`{"id":"a","grant":["refresh_token"],"confidential":true}`:                                            "requires",
		`{"id":"a","redirect_uri":["http://a.example/cb"]}`:                                                   "http://a.example/cb",
		`{"id":"a","redirect_uri":["javascript:alert(1)"]}`:                                                   "javascript",
		`{"id":"a","redirect_uri":["https://a.example/cb#x"]}`:                                                "fragment",
		`{"id":"a","confidential":true,"make_key":true}`:                                                      "use only one of",
		`{"id":"a","secret":"short"}`:                                                                         "at least 16 bytes",
		`{"id":"a","redirect_uri":["http://127.0.0.1/cb"],"secret_in_form":true}`:                             "requires",
		`{"id":"a","jwks":"{}"}`:                                                                              "jwks",
		`{"id":"a","jwks":"{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}]}"}`:                               "no public key",
		`{"id":"a","jwks_uri":"http://a.example/keys"}`:                                                       "jwks_uri",
		`{"id":"a","confidential":true,"resource":["x"]}`:                                                     `resource "x"`,
		`{"id":"a","confidential":true,"scope":["a b"]}`:                                                      `invalid scope "a b"`,
		`{"id":"a","confidential":true,"subject":"a\u0000"}`:                                                  "subject",
		`{"id":"a","confidential":true,"access_lifetime":"5"}`:                                                "access_lifetime",
		`{"id":"a","confidential":true,"refresh_lifetime":"-1h"}`:                                             "refresh_lifetime",
		`{"id":"a","redirect_uri":[` + strings.Repeat(`"http://127.0.0.1/cb",`, 20) + `"http://127.0.0.1/"]}`: "at most 20",
		`{"id":"a","colour":"red"}`:                                                                           "colour",
	} {
		_, err := s.try("client add", parameters)
		e, ok := errors.AsType[*admin.Error](err)
		if !ok || e.Code != admin.Invalid || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v, want one that says %q", parameters, err, want)
		}
	}
	if all := s.do("client list", `{}`).(*admin.ClientList); len(all.Clients) != 0 {
		t.Errorf("%d clients were stored", len(all.Clients))
	}
}
