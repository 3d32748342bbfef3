package cli_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/browsertest"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// A visitor is a browser with cookies that signs in at an authorization server
// of the program, for the client "cli".
type visitor struct {
	*browsertest.Browser
	*tokenEndpoint
}

func newVisitor(t *testing.T, issuer string) *visitor {
	t.Helper()
	v := &visitor{browsertest.New(), &tokenEndpoint{t, issuer}}
	v.Follows = func(u *url.URL) bool { return !strings.HasPrefix(u.String(), killRedirect) }
	return v
}

// authorize opens an authorization request and fills in the forms it meets
// with form, none if that is nil. It returns the code, or the page it ended at.
func (v *visitor) authorize(verifier string, form url.Values) (code, page string) {
	v.t.Helper()
	p, err := v.FillIn(v.t.Context(), authorizeURL(v.url, verifier), form)
	switch {
	case err != nil:
		v.t.Fatal(err)
	case p.Away != nil:
		return p.Away.Query().Get("code"), p.Away.String()
	}
	return "", p.Body
}

// A user who was removed, or got another password, by another process, is
// signed out everywhere at once.
func TestUserRemovedWhileServing(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			p := newEmptyPlace(t)
			db := database(t)
			passwords := map[string]string{"first": "correct-horse", "second": "battery-staple"}
			for file, password := range passwords {
				if err := os.WriteFile(filepath.Join(p.dir, file), []byte(password), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			user := func(args ...string) {
				t.Helper()
				if code, out, said := command(t, append([]string{"auth", "user", "--database", db}, args...)...); code != 0 {
					t.Fatalf("%v ended with %d\n%s%s", args, code, out, said)
				}
			}
			user("add", "ada", "--password-file", filepath.Join(p.dir, "first"))
			at := p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", db,
				"--client", killClient+"="+killRedirect, "--resource", killResource+"=read")
			v := newVisitor(t, at)
			for _, step := range []struct {
				password string
				end      []string
			}{
				{"first", []string{"password", "ada", "--password-file", filepath.Join(p.dir, "second")}},
				{"second", []string{"remove", "ada"}},
			} {
				verifier := oauth.NewVerifier()
				byCode := func(code string) url.Values {
					return url.Values{
						"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect},
					}
				}
				code, page := v.authorize(verifier, url.Values{"name": {"ada"}, "password": {passwords[step.password]}, "answer": {"approve"}})
				refresh, trouble := v.token(byCode(code))
				if refresh == "" {
					t.Fatalf("signing in: %s %s", trouble, page)
				}
				waiting, page := v.authorize(verifier, nil)
				if waiting == "" {
					t.Fatalf("the browser is not signed in: %s", page)
				}
				user(step.end...)
				if code, page := v.authorize(verifier, nil); code != "" || !strings.Contains(page, `name="password"`) {
					t.Errorf("%v: the browser is still signed in: %s", step.end, page)
				}
				if _, trouble := v.token(byCode(waiting)); trouble != oauth.InvalidGrant {
					t.Errorf("%v: the code: %q", step.end, trouble)
				}
				form := url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {refresh}}
				if _, trouble := v.token(form); trouble != oauth.InvalidGrant {
					t.Errorf("%v: the refresh token: %q", step.end, trouble)
				}
			}
		})
	}
}
