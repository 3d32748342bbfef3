package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/oidctest"
)

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
			there := oidctest.New(t)
			there.Refusal["error_description"] = "\x1b[2J" + there.Secret
			secret := there.Secret
			if !good {
				secret = "wrong-secret"
			}
			p := newPlaceWith(t, "--upstream", there.URL, "--upstream-client", "parley", "--upstream-secret-file", kept(t, secret), "-v")
			code, out, said := command(t, "login", p.url, "--store", "file")
			told := p.said.String()
			if !strings.Contains(told, "users sign in at "+there.URL+", which must know the redirect URI "+p.issuer+"/login/callback") {
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

// Where people sign in at another provider nobody is given a password: the server refuses it, and the
// link that is made on its database, where nobody knows, leads to the provider.
func TestUpstreamPasswords(t *testing.T) {
	there := oidctest.New(t)
	for name, test := range map[string]struct {
		flags []string
		words string
	}{
		"upstream":     {[]string{"--upstream", there.URL, "--upstream-client", "parley"}, "with their accounts at " + there.URL + " (--upstream)"},
		"auto-approve": {[]string{"--auto-approve", "ada"}, "signed in as ada (--auto-approve)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newEmptyPlace(t)
			key := kept(t, "0123456789abcdef")
			database := filepath.Join(p.dir, "issuer.db")
			p.issuer = p.start(`authorization server is (\S+);`, append([]string{
				"auth", "serve", "--http", "127.0.0.1:0", "--database", database, "--admin", "127.0.0.1:0", "--admin-key-file", key,
			}, test.flags...)...)
			address := p.said.wait(`administration at ([0-9.:]+);`, nil)
			for _, args := range [][]string{
				{"invite", "bob"},
				{"add", "bob", "--password-file", kept(t, "correct-horse")},
				{"password", "bob", "--password-file", kept(t, "correct-horse")},
			} {
				code, out, said := command(t, append(append([]string{"auth", "user"}, args...), "--admin", address, "--admin-key-file", key)...)
				if code != 1 || out != "" || !strings.Contains(said, test.words) {
					t.Errorf("%v: exit code %d, %s%s", args, code, out, said)
				}
			}
			if name != "upstream" {
				return // there is no account page either
			}
			code, out, said := command(t, "auth", "user", "invite", "bob", "--database", database, "--issuer", p.issuer)
			if code != 0 {
				t.Fatalf("invite: exit code %d, %s", code, said)
			}
			link := strings.Split(out, "\n")[1]
			if status, body := get(t, link, ""); status != http.StatusGone || !strings.Contains(body, "Sign in at "+strings.TrimPrefix(there.URL, "http://")) {
				t.Errorf("%s: %d %s", link, status, body)
			}
		})
	}
}
