// Package oidctest is an OpenID provider for tests.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// ClientID is the one client of a provider.
const ClientID = "parley"

// A Provider is an OpenID provider that signs everybody in at once, as one does that knows the
// browser. Its functions bend it; they are set before requests come.
type Provider struct {
	URL    string
	Secret string           // of the client
	Now    func() time.Time // nil: time.Now

	Metadata map[string]any                 // replaces members
	Response func(url.Values)               // changes the response of the authorization endpoint
	Claims   func(map[string]any)           // changes the ID token
	Signer   *rsa.PrivateKey                // instead of the key that is published
	Token    func(http.ResponseWriter) bool // answers at the token endpoint, if it returns true
	Refusal  map[string]any                 // what is answered there to a wrong request

	tb  testing.TB
	key *rsa.PrivateKey

	mu     sync.Mutex
	asked  []url.Values // authorization requests
	codes  map[string]url.Values
	strays []string
}

// New serves a provider until the test ends.
func New(tb testing.TB) *Provider {
	tb.Helper()
	p := &Provider{
		tb: tb, Secret: oauth.NewSecret(), Now: time.Now, key: ownKey(), codes: map[string]url.Values{},
		Refusal: map[string]any{"error": oauth.InvalidGrant},
	}
	s := httptest.NewServer(p)
	tb.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// ownKey is the key of every provider: to make one takes long.
var ownKey = sync.OnceValue(NewKey)

// NewKey makes a key that can be a Signer.
func NewKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // it has no reason to
	}
	return key
}

// Asked returns the authorization requests.
func (p *Provider) Asked() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Strays returns the requests that nobody should send, as method and path.
func (p *Provider) Strays() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.strays)
}

// ServeHTTP serves the metadata, the two endpoints and the keys.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		metadata := map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
		maps.Copy(metadata, p.Metadata)
		p.answer(w, http.StatusOK, metadata)
	case "/authorize":
		q, code := r.URL.Query(), oauth.NewSecret()
		p.asked = append(p.asked, q)
		p.codes[code] = q
		back := url.Values{"code": {code}, "state": {q.Get("state")}}
		if p.Response != nil {
			p.Response(back)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
	case "/token":
		p.exchange(w, r)
	case "/keys":
		n := base64.RawURLEncoding.EncodeToString(p.key.N.Bytes())
		p.answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": n, "e": "AQAB"}}})
	default:
		p.strays = append(p.strays, r.Method+" "+r.URL.Path)
		http.NotFound(w, r)
	}
}

func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	if p.Token != nil && p.Token(w) {
		return
	}
	id, secret, _ := r.BasicAuth()
	code := r.PostFormValue("code")
	q := p.codes[code]
	delete(p.codes, code)
	if id != ClientID || secret != p.Secret || q == nil || q.Get("redirect_uri") != r.PostForm.Get("redirect_uri") ||
		!oauth.VerifyS256(r.PostForm.Get("code_verifier"), q.Get("code_challenge")) || q.Get("code_challenge_method") != "S256" {
		p.answer(w, http.StatusBadRequest, p.Refusal)
		return
	}
	now := p.Now()
	claims := map[string]any{
		"iss": p.URL, "sub": "1234", "aud": ClientID, "nonce": q.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"auth_time": now.Unix(), "name": "Ada L.", "email": "ada@example.com",
	}
	if p.Claims != nil {
		p.Claims(claims)
	}
	p.answer(w, http.StatusOK, map[string]any{"access_token": "upstream-access-token", "token_type": "Bearer", "id_token": p.sign("", claims)})
}

func (p *Provider) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.tb.Error(err)
	}
}

// AccessToken is a token of the provider of this type (typ), which may be empty.
func (p *Provider) AccessToken(typ string, claims map[string]any) string {
	all := map[string]any{"iss": p.URL, "sub": "1234", "iat": p.Now().Unix(), "exp": p.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	return p.sign(typ, all)
}

func (p *Provider) sign(typ string, claims map[string]any) string {
	header := map[string]any{"alg": "RS256", "kid": "k"}
	if typ != "" {
		header["typ"] = typ
	}
	var parts []string
	for _, part := range []any{header, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			p.tb.Error(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	text := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(text))
	key := p.key
	if p.Signer != nil {
		key = p.Signer
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		p.tb.Error(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
