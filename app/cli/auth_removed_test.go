package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// A visitor is a browser with cookies that signs in at an authorization server
// of the program, for the client "cli".
type visitor struct {
	t      *testing.T
	issuer string
	client *http.Client
}

func newVisitor(t *testing.T, issuer string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, issuer: issuer, client: &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), killRedirect) {
			return http.ErrUseLastResponse
		}
		return nil
	}}}
}

// authorize opens an authorization request and fills in the forms it meets
// with form, none if that is nil. It returns the code, or the page it ended at.
func (v *visitor) authorize(verifier string, form url.Values) (code, page string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.issuer+"/authorize?"+url.Values{
		"response_type": {"code"}, "client_id": {killClient}, "redirect_uri": {killRedirect}, "state": {"state"}, "scope": {"read"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {"S256"}, "resource": {killResource},
	}.Encode(), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for range 5 {
		resp, err := v.client.Do(r)
		if err != nil {
			v.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			v.t.Fatal(err)
		}
		if to, err := resp.Location(); err == nil {
			return to.Query().Get("code"), to.String()
		}
		action := formAction.FindSubmatch(body)
		if action == nil || form == nil || resp.StatusCode >= http.StatusBadRequest {
			return "", string(body)
		}
		values := url.Values{}
		for name, list := range form {
			values[name] = list
		}
		for _, hidden := range formHidden.FindAllSubmatch(body, -1) {
			values.Set(string(hidden[1]), string(hidden[2]))
		}
		target, err := resp.Request.URL.Parse(strings.ReplaceAll(string(action[1]), "&amp;", "&"))
		if err != nil {
			v.t.Fatal(err)
		}
		if r, err = http.NewRequestWithContext(v.t.Context(), http.MethodPost, target.String(), strings.NewReader(values.Encode())); err != nil {
			v.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	v.t.Fatal("forms without end")
	return "", ""
}

// token asks the token endpoint and returns a refresh token or an error code.
func (v *visitor) token(form url.Values) (refresh, trouble string) {
	v.t.Helper()
	form.Set("client_id", killClient)
	form.Set("resource", killResource)
	var answer struct {
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	raw := post(v.t, v.issuer+"/token", "application/x-www-form-urlencoded", form.Encode(), nil)
	if err := json.Unmarshal(raw, &answer); err != nil {
		v.t.Fatal(err)
	}
	return answer.Refresh, answer.Error
}

// A user who was removed, or got another password, by another process, is
// signed out everywhere at once.
func TestUserRemovedWhileServing(t *testing.T) {
	for name, database := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "issuer.db") },
		"postgres": ownSchema,
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{t: t, dir: t.TempDir(), said: &bytes.Buffer{}}
			t.Setenv("XDG_CONFIG_HOME", p.dir)
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
				{"first", []string{"add", "ada", "--password-file", filepath.Join(p.dir, "second")}},
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
