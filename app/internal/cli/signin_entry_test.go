package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// configure writes the person's parley.jsonc.
func (p *place) configure(text string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, "parley")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "parley.jsonc"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Proves: FLOW-AUTH. The client of an entry is known by its secret, also when tokens are
// renewed. The secret is shown nowhere: not by the list, the log or an error.
func TestEntryClientSecret(t *testing.T) {
	p := newPlace(t, "--access-lifetime", "1s") // so that each command renews the tokens
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(post(t, p.issuer+"/register", "application/json",
		`{"client_name":"desk","redirect_uris":["http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"],"application_type":"native","token_endpoint_auth_method":"client_secret_basic"}`, nil), &made); err != nil {
		t.Fatal(err)
	}
	entry := `{"servers": {"desk": {"url": %q, "oauth": {"clientId": %q, "clientSecret": "${DESK_SECRET}"}}}}`
	p.configure(fmt.Sprintf(entry, p.url, made.ID))
	for _, tt := range []struct {
		name, secret string
		code         int
		words        string
	}{
		{"wrong", "wrong-secret", 3, "invalid_client"},
		{"right", made.Secret, 0, "signed in to " + p.url + " as client " + made.ID},
	} {
		t.Setenv("DESK_SECRET", tt.secret)
		code, out, said := command(t, "login", "desk", "--store", "file", "-v")
		if code != tt.code || !strings.Contains(out+said, tt.words) || strings.Contains(out+said, tt.secret) {
			t.Errorf("%s secret: exit code %d\n%s%s", tt.name, code, out, said)
		}
	}
	for range 2 {
		code, out, said := command(t, "run", "-v", "--allow", "*", "add a=2 b=3")
		if code != 0 || !strings.Contains(out, "5\n") || strings.Contains(out+said, made.Secret) {
			t.Errorf("a run: exit code %d, %q\n%s", code, out, said)
		}
	}
	for _, args := range [][]string{{"config", "list"}, {"config", "list", "--json"}, {"config", "doctor", "--connect"}, {"auth", "status"}, {"auth", "status", "--json"}} {
		if code, out, said := command(t, args...); code != 0 || strings.Contains(out+said, made.Secret) {
			t.Errorf("%v: exit code %d, perhaps with the secret\n%s%s", args, code, out, said)
		}
	}
	for n, args := range [][]string{{"logout", "desk"}, {"logout", "--all"}, {"logout", p.url}, {"logout"}} {
		if n > 0 {
			if code, out, said := command(t, "login", "desk"); code != 0 {
				t.Errorf("signing in again: exit code %d\n%s%s", code, out, said)
			}
		}
		code, out, said := command(t, args...)
		if code != 0 || !strings.Contains(out, "signed out of "+p.url) || strings.Contains(out+said, made.Secret) {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, said)
		}
		if revoked := strings.Count(p.said.String(), "token.revoked ok client="+strconv.Quote(made.ID)); revoked < n+1 {
			t.Errorf("after %v the authorization server has revoked %d times, want %d", args, revoked, n+1)
		}
	}
}

// Attack: a project's file without consent, and an entry for another server, name the same
// client: what they give as its secret is sent nowhere.
func TestSecretsOfOtherEntries(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	p := newPlaceWith(t, "--auto-approve", "ada", "--client", "desk=http://127.0.0.1/callback")
	t.Setenv("PRIVATE", "not-for-them")
	entry := `{"servers": {"desk": {"url": %q, "oauth": {"clientId": "desk"}}, "other": {"url": "http://127.0.0.1:1/mcp", "oauth": {"clientId": "desk", "clientSecret": "${PRIVATE}"}}}}`
	p.configure(fmt.Sprintf(entry, p.url))
	project := t.TempDir()
	theirs := fmt.Sprintf(`{"mcpServers": {"theirs": {"url": %q, "oauth": {"clientId": "desk", "clientSecret": "guess"}}}}`, p.url)
	if err := os.WriteFile(filepath.Join(project, ".mcp.json"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(project)
	if code, out, said := command(t, "login", "desk", "--store", "file"); code != 0 {
		t.Fatalf("signing in: exit code %d\n%s%s", code, out, said)
	}
	// A client without a secret that sends one is refused.
	if code, out, said := command(t, "logout", "--all"); code != 0 || !strings.Contains(p.said.String(), `token.revoked ok client="desk"`) {
		t.Errorf("signing out: exit code %d\n%s%s", code, out, said)
	}
}

// The client of an entry is for the authorization server at which it was used. Attack: a
// server that later names one of its own, to be sent the secret.
func TestEntryClientOfOneIssuer(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	p := newPlaceWith(t, "--auto-approve", "ada", "--client", "desk=http://127.0.0.1/callback")
	p.configure(fmt.Sprintf(`{"servers": {"desk": {"url": %q, "oauth": {"clientId": "desk", "clientSecret": ""}}}}`, p.url))
	if code, out, said := command(t, "login", "desk", "--store", "file"); code != 0 {
		t.Fatalf("signing in: exit code %d\n%s%s", code, out, said)
	}
	p.stop() // the MCP server, which then trusts another one
	other := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--auto-approve", "eve", "--client", "desk=http://127.0.0.1/callback",
		"--allow-registration", "--resource", p.url+"=everything:read")
	address := strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/mcp")
	p.start(`serving "everything" at (\S+);`, "serve", "everything", "--http", address, "--auth", other, "--scope", "everything:read")
	code, out, said := command(t, "login", "desk")
	if code == 0 || strings.Contains(p.said.String(), `token.issued ok client="desk" user="eve"`) || !strings.Contains(said, "another authorization server") {
		t.Errorf("exit code %d\n%s%s", code, out, said)
	}
}
