package cli_test

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// A trace of a sign-in shows each step, discovery, registration and the exchange of the code, and a
// renewal; and no secret of it: not in text, in JSON, in the HAR file or on standard error.
//
// Attack: secrets that leak into what is given away.
func TestTraceSignIn(t *testing.T) {
	p := newPlace(t, "--access-lifetime", "2s")
	known := make(map[string]string)
	trace := func(input string, args ...string) string {
		t.Helper()
		har := filepath.Join(t.TempDir(), "trace.har")
		var out, said bytes.Buffer
		code := cli.Main(t.Context(), append(append([]string{"trace", "--har", har}, args...), p.url), &kit.Streams{In: strings.NewReader(input), Out: &out, Err: &said, InTerminal: input != ""})
		if code != 0 {
			t.Fatalf("exit code %d\n%s\n%s", code, out.String(), said.String())
		}
		archive, err := os.ReadFile(har)
		if err != nil {
			t.Fatal(err)
		}
		for value, what := range p.stored() {
			known[value] = what
		}
		return out.String() + said.String() + string(archive)
	}
	first := trace("y\n", "--json")
	for _, step := range []string{
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/register", "/token",
		`grant_type=authorization_code`, `code=redacted-`, `code_verifier=redacted-`, `\"access_token\":\"«redacted:`,
		`"status":401`, `"method":"tools/list"`,
	} {
		if !strings.Contains(first, step) {
			t.Errorf("no %s in\n%s", step, first)
		}
	}
	all := first
	for range 5000 { // until the tokens were renewed
		if len(known) >= 5 {
			break
		}
		all += trace("")
	}
	if !strings.Contains(all, "grant_type=refresh_token") || !strings.Contains(all, "refresh_token=redacted-") {
		t.Errorf("no renewal is shown")
	}
	kinds := make(map[string]int)
	for value, what := range known {
		kinds[what]++
		for _, form := range []string{value, url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			if strings.Contains(all, form) {
				t.Errorf("the %s is shown", what)
			}
		}
	}
	if kinds["access_token"] < 2 || kinds["refresh_token"] < 2 {
		t.Errorf("the test knows too few secrets to look for: %v", kinds)
	}
}
