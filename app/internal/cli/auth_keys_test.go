package cli_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

// A robot is a client of an authorization server that acts for itself.
type robot struct {
	t              *testing.T
	secret, server string
}

// token gets an access token.
func (r *robot) token(issuer string) string {
	r.t.Helper()
	var answer struct {
		Access string `json:"access_token"`
	}
	r.answer(http.MethodPost, issuer+"/token", url.Values{"grant_type": {"client_credentials"}, "resource": {r.server}}, &answer)
	if answer.Access == "" {
		r.t.Fatal("the client gets no token")
	}
	return answer.Access
}

// keys are the IDs of the published keys, in order.
func (r *robot) keys(issuer string) []string {
	r.t.Helper()
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	r.answer(http.MethodGet, issuer+"/jwks", nil, &set)
	var ids []string
	for _, k := range set.Keys {
		ids = append(ids, k.ID)
	}
	slices.Sort(ids)
	return ids
}

func (r *robot) answer(method, address string, form url.Values, into any) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.SetBasicAuth("robot", r.secret)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		r.t.Fatal(err)
	}
}

// call calls the MCP server, and returns the status.
func (r *robot) call(token string) int {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.server, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"robot","version":"1"}}}`))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// An operator revokes the key that signs, by the command, while two authorization servers and a guarded
// MCP server run: within five seconds nothing takes a token of it, and new tokens are taken.
func TestKeyRevokedWhileServing(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			p := newEmptyPlace(t)
			db := database(t)
			operate := func(into any, args ...string) {
				t.Helper()
				code, out, said := command(t, append(append([]string{"auth"}, args...), "--database", db, "--json")...)
				if code != 0 || into != nil && json.Unmarshal([]byte(out), into) != nil {
					t.Fatalf("%v ended with %d\n%s%s", args, code, out, said)
				}
			}
			port, err := pickPort()
			if err != nil {
				t.Fatal(err)
			}
			r := &robot{t: t, server: "http://127.0.0.1:" + port + "/mcp"}
			var added struct {
				Secret string `json:"client_secret"`
			}
			operate(&added, "client", "add", "robot", "--confidential")
			r.secret = added.Secret
			first := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", db, "--resource", r.server+"=read")
			second := p.start(`listening on ([^)]+)\)`, "auth", "serve", "--http", "127.0.0.1:0", "--database", db, "--resource", r.server+"=read",
				"--issuer", first)
			second = "http://" + second
			p.start(`callers need a token from (\S+) for`, "serve", "everything", "--http", "127.0.0.1:"+port, "--auth", first, "--keys-max-age", "2s")

			// keys are those of the database, by state, and those that are to be published: in the last days of
			// a period the key of the next one, too.
			keys := func() (ids map[string]string, published []string) {
				t.Helper()
				var listed struct {
					Keys []struct{ ID, State string }
				}
				operate(&listed, "key", "list")
				ids = make(map[string]string)
				for _, key := range listed.Keys {
					if other := ids[key.State]; other != "" || !slices.Contains([]string{"signing", "next", "revoked"}, key.State) {
						t.Fatalf("keys %+v", listed)
					}
					ids[key.State] = key.ID
					if key.State != "revoked" {
						published = append(published, key.ID)
					}
				}
				slices.Sort(published)
				return ids, published
			}
			token := r.token(first)
			if status := r.call(token); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			before, published := keys()
			key := before["signing"]
			if key == "" || before["revoked"] != "" || !slices.Equal(r.keys(first), published) || !slices.Equal(r.keys(second), published) {
				t.Fatalf("keys %q, published %q and %q", before, r.keys(first), r.keys(second))
			}
			audit := filepath.Join(p.dir, "audit")
			operate(nil, "key", "revoke", key, "--audit-file", audit)
			<-time.After(5 * time.Second) // the bound that is promised
			if status := r.call(token); status != http.StatusUnauthorized {
				t.Errorf("status %d for a token of the revoked key", status)
			}
			after, published := keys()
			signing := after["signing"]
			if after["revoked"] != key || signing == "" || after["next"] != before["next"] {
				t.Errorf("keys %q, before %q", after, before)
			}
			for _, issuer := range []string{first, second} {
				if ids := r.keys(issuer); !slices.Equal(ids, published) {
					t.Errorf("published: %q", ids)
				}
				if status := r.call(r.token(issuer)); status != http.StatusOK {
					t.Errorf("status %d for a new token", status)
				}
			}
			operate(nil, "key", "rotate", "--audit-file", audit)
			operate(nil, "key", "retire", signing, "--audit-file", audit)
			lines, err := os.ReadFile(audit)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`key revoke`, `key rotate`, `key retire`, key, signing} {
				if !strings.Contains(string(lines), want) {
					t.Errorf("the audit lacks %q: %s", want, lines)
				}
			}
		})
	}
}
