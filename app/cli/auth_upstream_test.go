package cli_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// A provider is an OpenID provider with one client, which knows everybody as
// one person.
type provider struct {
	t      *testing.T
	url    string
	key    *rsa.PrivateKey
	secret string // of the client "parley"

	mu    sync.Mutex
	codes map[string]url.Values
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, secret: oauth.NewSecret(), codes: make(map[string]url.Values)}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.answer(w, map[string]any{
			"issuer": p.url, "authorization_endpoint": p.url + "/authorize", "token_endpoint": p.url + "/token",
			"jwks_uri": p.url + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	case "/authorize":
		q, code := r.URL.Query(), oauth.NewSecret()
		p.codes[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
	case "/token":
		q := p.codes[r.PostFormValue("code")]
		id, secret, _ := r.BasicAuth()
		if q == nil || id != "parley" || secret != p.secret || !oauth.VerifyS256(r.PostForm.Get("code_verifier"), q.Get("code_challenge")) {
			w.WriteHeader(http.StatusBadRequest)
			p.answer(w, map[string]any{"error": "invalid_grant", "error_description": "\x1b[2J" + p.secret})
			return
		}
		now := time.Now()
		p.answer(w, map[string]any{"access_token": "upstream", "token_type": "Bearer", "id_token": p.sign(map[string]any{
			"iss": p.url, "sub": "1234", "aud": "parley", "nonce": q.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		})})
	case "/keys":
		p.answer(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
		}}})
	default:
		http.NotFound(w, r)
	}
}

func (p *provider) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

func (p *provider) sign(claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// kept writes a secret into a file and returns its path.
func kept(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// People may sign in at another provider. Proves: S11 (they are asked before
// they leave), and that the secret of a file gets there and nowhere else.
func TestUpstream(t *testing.T) {
	t.Setenv("FORM", "answer=approve")
	for name, good := range map[string]bool{"right secret": true, "wrong secret": false} {
		t.Run(name, func(t *testing.T) {
			there := newProvider(t)
			secret := there.secret
			if !good {
				secret = "wrong-secret"
			}
			p := newPlaceWith(t, "--upstream", there.url, "--upstream-client", "parley", "--upstream-secret-file", kept(t, secret), "-v")
			code, out, said := command(t, "login", p.url, "--store", "file")
			p.mu.Lock()
			told := p.said.String()
			p.mu.Unlock()
			if !strings.Contains(told, "people sign in at "+there.url+", which must know the redirect URI "+p.issuer+"/login/callback") {
				t.Errorf("the operator is not told what to register:\n%s", told)
			}
			if strings.Contains(told+out+said, secret) || strings.Contains(told+out+said, "\x1b") {
				t.Errorf("a secret or a stranger's control character is shown:\n%s\n%s", told, said)
			}
			if !good {
				if code != 3 {
					t.Errorf("signing in with a wrong secret there: exit code %d\n%s%s", code, out, said)
				}
				return
			}
			if code != 0 || !strings.Contains(out, "signed in to "+p.url) {
				t.Fatalf("signing in: exit code %d\n%s%s", code, out, said)
			}
			if code, out, said := command(t, "call", "add", "a=2", "b=3", "--server", p.url); code != 0 || out != "5\n" {
				t.Errorf("a call: exit code %d, %q\n%s", code, out, said)
			}
		})
	}
}

// A client with a secret is known by it, later as well.
func TestClientSecretFile(t *testing.T) {
	p := newPlace(t, "--access-lifetime", "1s") // so that each command renews the tokens
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(post(t, p.issuer+"/register", "application/json",
		`{"client_name":"desk","redirect_uris":["http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"],"application_type":"native","token_endpoint_auth_method":"client_secret_basic"}`, nil), &made); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, secret string
		code         int
		words        string
	}{
		{"wrong", "wrong-secret", 3, "invalid_client"},
		{"right", made.Secret, 0, "signed in to " + p.url + " as client " + made.ID},
	} {
		code, out, said := command(t, "login", p.url, "--store", "file", "--client-id", made.ID, "--client-secret-file", kept(t, tt.secret))
		if code != tt.code || !strings.Contains(out+said, tt.words) || strings.Contains(out+said, tt.secret) {
			t.Errorf("%s secret: exit code %d\n%s%s", tt.name, code, out, said)
		}
	}
	for range 2 {
		if code, out, said := command(t, "call", "add", "a=2", "b=3", "--server", p.url); code != 0 || out != "5\n" {
			t.Errorf("a call: exit code %d, %q\n%s", code, out, said)
		}
	}
}

// A client may be known by a document of its own.
func TestClientMetadata(t *testing.T) {
	p := newPlace(t)
	var document string
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{
			"client_id": document, "client_name": "desk", "redirect_uris": []string{"http://127.0.0.1/callback"},
			"grant_types": []string{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": "none", "application_type": "native",
		}); err != nil {
			t.Error(err)
		}
	}))
	defer home.Close()
	document = home.URL + "/client.json"
	code, out, said := command(t, "login", p.url, "--store", "file", "--client-metadata", document)
	if code != 0 || !strings.Contains(out, "as client "+document) {
		t.Errorf("exit code %d\n%s%s", code, out, said)
	}
	if code, out, said := command(t, "call", "add", "a=2", "b=3", "--server", p.url); code != 0 || out != "5\n" {
		t.Errorf("a call: exit code %d, %q\n%s", code, out, said)
	}
	for _, bad := range []string{"client.json", "http://example.com/client.json", "https://example.com", "https://ada:secret@example.com/client.json"} {
		code, out, said := command(t, "login", p.url, "--client-metadata", bad)
		if code != 1 || !strings.Contains(said, "the https URL of the document") || strings.Contains(said, "secret") {
			t.Errorf("--client-metadata %s: exit code %d\n%s%s", bad, code, out, said)
		}
	}
}
