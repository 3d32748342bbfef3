package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/oidctest"
)

// Tokens of issuers that write another type or audience get in if the flags say so, and nothing else
// does; which check refused a token is told in one line, without the token. Proves: C13.
func TestServeTokensOfOthers(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	provider, stranger := oidctest.New(t), oidctest.New(t)
	stranger.Signer = oidctest.NewKey()
	const api, wrong = "api://files", "https://graph.example"
	for _, test := range []struct {
		name  string
		flags []string
		typ   string
		aud   any // nil: the endpoint
		more  map[string]any
		want  string // the check that fails; empty: none does
		says  []string
	}{
		{"RFC 9068", nil, "at+jwt", nil, nil, "", nil},
		{"Entra ID", []string{"--token-type", "JWT", "--audience", api}, "JWT", api, map[string]any{"scp": "files.read", "azp": "app"}, "", nil},
		{"Auth0", []string{"--token-type", "JWT", "--scope", "read"}, "JWT", nil, map[string]any{"scope": "openid read"}, "", nil},
		{"Okta", []string{"--token-type", "none", "--audience", "api://default", "--scope", "read"}, "", "api://default", map[string]any{"scp": []string{"read"}, "cid": "app"}, "", nil},
		{"Keycloak", []string{"--token-type", "JWT", "--token-type", "at+jwt", "--audience", "account", "--audience", "files"}, "jwt", []string{"account", "x"}, nil, "", nil},
		{"a type as a media type", []string{"--token-type", "application/JWT", "--audience", api}, "JWT", api, nil, "", nil},
		{"a type that is not taken", nil, "JWT", nil, nil, "type", []string{"JWT", "at+jwt"}},
		{"no type", []string{"--token-type", "JWT"}, "", nil, nil, "type", []string{"JWT"}},
		{"at+jwt where JWT is taken", []string{"--token-type", "JWT"}, "at+jwt", nil, nil, "type", []string{"at+jwt"}},
		{"another audience", []string{"--audience", api}, "at+jwt", wrong, nil, "audience", []string{wrong, api, "/mcp"}},
		{"no audience", []string{"--audience", api}, "at+jwt", []string{}, nil, "audience", []string{"nothing", api}},
		{"nearly the audience", []string{"--audience", api}, "at+jwt", api + "/", nil, "audience", []string{api + "/"}},
		{"expired", nil, "at+jwt", nil, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, "expiry", []string{"expired"}},
		{"to come", nil, "at+jwt", nil, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, "expiry", []string{"not valid yet"}},
		{"another issuer", nil, "at+jwt", nil, map[string]any{"iss": "https://sts.example/\n"}, "issuer", []string{`https://sts.example/`}},
		{"no scope", []string{"--scope", "read"}, "at+jwt", nil, map[string]any{"scope": "write"}, "scope", []string{"write", "read"}},
		{"another key", nil, "at+jwt", nil, map[string]any{"iss": "stranger"}, "signature", nil},
		{"nobody", nil, "at+jwt", nil, map[string]any{"sub": nil}, "subject", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newEmptyPlace(t)
			address := p.start(`serving "everything" at (\S+);`, append([]string{"serve", "everything", "--http", "127.0.0.1:0", "--auth", provider.URL}, test.flags...)...)
			claims := map[string]any{"aud": address}
			if test.aud != nil {
				claims["aud"] = test.aud
			}
			for name, value := range test.more {
				claims[name] = value
			}
			from := provider
			if claims["iss"] == "stranger" {
				from, claims["iss"] = stranger, provider.URL
			}
			token := from.AccessToken(test.typ, claims)
			want := map[string]int{"": 200, "scope": 403}[test.want]
			if want == 0 {
				want = 401
			}
			if got := present(t, address, token); got.StatusCode != want {
				t.Errorf("%s, want %d\n%s", got.Status, want, p.said)
			}
			p.stop()
			said := p.said.String()
			var lines []string
			for line := range strings.Lines(said) {
				if strings.Contains(line, "token refused") {
					lines = append(lines, line)
				}
			}
			if test.want == "" && len(lines) > 0 || test.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], "check="+test.want+" ")) {
				t.Errorf("the log has %q, want one line about %q", lines, test.want)
			}
			for _, text := range test.says {
				if !strings.Contains(strings.Join(lines, ""), text) {
					t.Errorf("the log has %q, want %q in it", lines, text)
				}
			}
			for _, part := range strings.Split(token, ".") {
				if strings.Contains(said, part) {
					t.Errorf("part of the token was shown:\n%s", said)
				}
			}
			if plain := strings.Contains(said, "ID tokens"); plain != (len(test.flags) > 0 && test.flags[0] == "--token-type" && !strings.Contains(strings.Join(test.flags, " "), "--scope")) {
				t.Errorf("a word about ID tokens: %v\n%s", plain, said)
			}
		})
	}
	for want, flags := range map[string][]string{
		"require --auth":                 {"--audience", api},
		"--token-type require --auth":    {"--token-type", "JWT"},
		"--audience must not be empty":   {"--auth", provider.URL, "--audience", ""},
		"--token-type must not be empty": {"--auth", provider.URL, "--token-type", ""},
		"--token-type cannot be used":    {"--auth", provider.URL, "--token-type", "JWT", "--introspect", clientFile(t, "")},
		"write the issuer as it does":    {"--auth", provider.URL + "/"},
	} {
		code, _, said := command(t, append([]string{"serve", "everything", "--http", "127.0.0.1:0"}, flags...)...)
		if code != 1 || !strings.Contains(said, want) {
			t.Errorf("%q: exit code %d, want 1 and %q\n%s", flags, code, want, said)
		}
	}
}
