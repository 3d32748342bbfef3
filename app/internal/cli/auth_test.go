package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/secrets"
)

// Who sits at a terminal is asked, and signs in on the way; a no is an answer.
// Proves: FLOW-AUTH (consent of the person, step-up).
func TestSignInAtTerminal(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct {
		name, input string
		args        []string
		code        int
		out, words  string
	}{
		{"no", "n\n", []string{"call", "add", "a=2", "b=3"}, 3, "", "you chose not to sign in"},
		{"nobody answers", "", []string{"call", "add", "a=2", "b=3"}, 3, "", "you chose not to sign in"},
		{"not understood", "maybe\nn\n", []string{"tools"}, 3, "", "Answer y or n."},
		{"yes", "y\n", []string{"call", "add", "a=2", "b=3"}, 0, "5\n", "A server wants you to sign in.\n  server:               " + p.url},
		{"signed in", "", []string{"call", "add", "a=2", "b=3"}, 0, "5\n", ""},
		{"no to more", "n\n", []string{"call", "toggle-extra-tool"}, 3, "", "you chose not to sign in"},
		{"more scopes", "y\n", []string{"call", "toggle-extra-tool"}, 0, "the tool extra is there\n", "A server requests more scopes"},
		{"that stay", "", []string{"call", "toggle-extra-tool"}, 0, "the tool extra is gone\n", ""},
	} {
		code, out, said := run(t, tt.input, append(tt.args, "--server", p.url)...)
		if code != tt.code || out != tt.out || !strings.Contains(said, tt.words) {
			t.Errorf("%s: exit code %d and %q, want %d and %q\n%s", tt.name, code, out, tt.code, tt.out, said)
		}
		if asked := strings.Contains(said, "[y]es, [n]o"); asked != (tt.words != "") {
			t.Errorf("%s: asked %v\n%s", tt.name, asked, said)
		}
	}
}

// A line that was typed after the browser came back goes to the next question.
func TestQuestionAfterSignIn(t *testing.T) {
	p := newPlace(t)
	in, person := io.Pipe()
	said, out := new(output), new(output)
	go func() {
		_, _ = io.WriteString(person, "y\n") // to signing in
		out.wait("wants to call add", t.Context().Done())
		_, _ = io.WriteString(person, "y\n") // to the call
		_ = person.Close()
	}()
	code := cli.Main(t.Context(), []string{"chat", "add 2 and 3", "--server", p.url}, &kit.Streams{In: in, Out: out, Err: said, InTerminal: true})
	if code != 0 || !strings.Contains(out.String(), "says:\n    5\n") {
		t.Errorf("exit code %d and %q\n%s", code, out.String(), said.String())
	}
}

// endOf is the address that a browser ends at whose machine is not this one.
func endOf(ctx context.Context, address string) (string, error) {
	b := browsertest.New()
	b.Follows = func(u *url.URL) bool { return !u.Query().Has("code") }
	p, err := b.Open(ctx, address)
	if err == nil && p.Away == nil {
		err = errors.New("the authorization server does not answer with a code")
	}
	if err != nil {
		return "", err
	}
	return p.Away.String(), nil
}

// pasting signs in without a browser on this machine, and returns what was
// said and the code that was pasted.
func pasting(t *testing.T, server string, args ...string) (code int, all, grant string) {
	t.Helper()
	in, person := io.Pipe()
	said := new(output)
	pasted := make(chan string, 1)
	go func() {
		said.wait("Paste its address here", t.Context().Done())
		shown := regexp.MustCompile(`(?m)^  (http://\S+/authorize\?\S+)$`).FindStringSubmatch(said.String())
		end := ""
		if shown != nil {
			var err error
			if end, err = endOf(t.Context(), shown[1]); err != nil {
				t.Error(err)
			}
		}
		pasted <- end
		_, _ = io.WriteString(person, "what?\n"+end+"\n")
	}()
	var out bytes.Buffer
	code = cli.Main(t.Context(), append([]string{"login", server, "--no-browser"}, args...), &kit.Streams{In: in, Out: &out, Err: said})
	end, err := url.Parse(<-pasted)
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String() + said.String(), end.Query().Get("code")
}

// stored are the secrets that the person's store holds.
func (p *place) stored() map[string]string {
	p.t.Helper()
	s, err := secrets.Open(&secrets.Options{Kind: secrets.File, Folder: filepath.Join(p.dir, "parley")})
	if err != nil {
		p.t.Fatal(err)
	}
	names, err := s.Names(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	found := make(map[string]string)
	for _, name := range names {
		raw, err := s.Get(p.t.Context(), name)
		if err != nil {
			p.t.Fatal(err)
		}
		var record map[string]any
		if json.Unmarshal(raw, &record) != nil {
			continue
		}
		for _, member := range []string{"access_token", "refresh_token", "client_secret"} {
			if value, ok := record[member].(string); ok && value != "" {
				found[value] = member
			}
		}
	}
	return found
}

// Whatever is done, and however loud: no token, code or secret is shown by the
// client, the MCP server or the authorization server.
// Attack: secrets that leak into logs, shells and screens.
func TestNoSecretsInOutput(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	p := newPlace(t, "-v", "--access-lifetime", "2s")
	known := make(map[string]string)
	learn := func() {
		t.Helper()
		for value, what := range p.stored() {
			known[value] = what
		}
	}
	code, all, grant := pasting(t, p.url, "-v", "--store", "file")
	if code != 0 || grant == "" {
		t.Fatalf("signing in ended with %d\n%s", code, all)
	}
	known[grant] = "code"
	learn()
	for range 5000 { // until the tokens were renewed twice
		if len(known) >= 7 {
			break
		}
		_, out, said := command(t, "login", p.url, "-v")
		all += out + said
		learn()
	}
	for _, args := range [][]string{
		{"tools", "--server", p.url, "-v"},
		{"call", "add", "a=2", "b=3", "--server", p.url, "-v"},
		{"call", "toggle-extra-tool", "--server", p.url, "-v"},
		{"login", p.url, "--scope", "everything:write", "-v"},
		{"call", "toggle-extra-tool", "--server", p.url, "-v"},
		{"auth", "status"},
		{"auth", "status", "--json", "-v"},
		{"auth", "doctor", p.url, "-v"},
		{"logout", "-v"},
	} {
		_, out, said := command(t, args...)
		all += out + said
		learn()
	}
	kinds := make(map[string]int)
	for _, what := range known {
		kinds[what]++
	}
	if kinds["access_token"] < 3 || kinds["refresh_token"] < 3 || kinds["code"] != 1 {
		t.Errorf("the test knows too few secrets to look for: %v", kinds)
	}
	if left := p.stored(); len(left) > 0 {
		t.Errorf("%d secrets are left after signing out", len(left))
	}
	for value, what := range known {
		for _, text := range []struct{ by, said string }{{"the client", all}, {"the servers", p.said.String()}} {
			if strings.Contains(text.said, value) {
				t.Errorf("%s showed the %s", text.by, what)
			}
		}
	}
	if !strings.Contains(p.said.String(), "token.issued ok") || !strings.Contains(all, "asking a person to sign in") {
		t.Errorf("the test did not see the logs:\n%s\n%s", all, p.said)
	}
}
