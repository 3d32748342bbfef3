package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/audit"
	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// An audited is an authorization server with an audit file.
type audited struct {
	*place
	at, file, socket string
}

// newAudited starts one with the user ada.
func newAudited(t *testing.T, database string, flags ...string) *audited {
	t.Helper()
	p := newEmptyPlace(t)
	secret := filepath.Join(p.dir, "password")
	if err := os.WriteFile(secret, []byte("correct-horse"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, said := command(t, "auth", "user", "--database", database, "add", "ada", "--password-file", secret); code != 0 {
		t.Fatalf("adding a user: %d\n%s%s", code, out, said)
	}
	dir := shortDir(t)
	a := &audited{place: p, file: filepath.Join(p.dir, "audit"), socket: "unix:" + filepath.Join(dir, "s")}
	a.at = p.start(`authorization server is (\S+);`, append([]string{
		"auth", "serve", "--http", "127.0.0.1:0", "--database", database, "--audit-file", a.file, "--admin", a.socket,
		"--client", killClient + "=" + killRedirect, "--resource", killResource + "=read",
	}, flags...)...)
	return a
}

// spoil has no line written: where the file was there is a folder. mend undoes it.
func (a *audited) spoil() (mend func()) {
	a.t.Helper()
	if err := os.Rename(a.file, a.file+".aside"); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Mkdir(a.file, 0o700); err != nil {
		a.t.Fatal(err)
	}
	return func() {
		a.t.Helper()
		if err := os.Remove(a.file); err != nil {
			a.t.Fatal(err)
		}
		if err := os.Rename(a.file+".aside", a.file); err != nil {
			a.t.Fatal(err)
		}
	}
}

// events are those of the file, verified.
func (a *audited) events() (names []string) {
	a.t.Helper()
	if _, err := audit.Verify(a.t.Context(), a.file, nil); err != nil {
		a.t.Error(err)
	}
	_, err := audit.Query(a.t.Context(), a.file, &audit.Filter{}, func(_ []byte, l *audit.Line) error {
		names = append(names, l.Event+" "+l.Outcome)
		return nil
	})
	if err != nil {
		a.t.Error(err)
	}
	return names
}

// refuses checks that nobody is signed in and nothing is changed, and that what was issued is good.
func (a *audited) refuses(refresh string) {
	a.t.Helper()
	if _, trouble := newVisitor(a.t, a.at).token(url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {refresh}}); trouble != oauth.TemporarilyUnavailable {
		a.t.Errorf("a refresh: %q", trouble)
	}
	if status, _ := get(a.t, authorizeURL(a.at, "v"), ""); status != http.StatusServiceUnavailable {
		a.t.Errorf("a sign-in: %d", status)
	}
	if code, _, said := command(a.t, "auth", "user", "disable", "ada", "--admin", a.socket); code == 0 || !strings.Contains(said, "the server cannot write its audit") {
		a.t.Errorf("an act: %d %s", code, said)
	}
	if code, _, said := command(a.t, "auth", "user", "show", "ada", "--admin", a.socket); code != 0 {
		a.t.Errorf("looking is no act, but: %s", said)
	}
	for _, path := range []string{"/jwks", "/.well-known/oauth-authorization-server", "/livez"} {
		if status, _ := get(a.t, a.at+path, ""); status != http.StatusOK {
			a.t.Errorf("%s: %d", path, status)
		}
	}
	if status, body := get(a.t, a.at+"/readyz", ""); status == http.StatusOK || !strings.Contains(body, `"audit":"failed"`) {
		a.t.Errorf("ready: %d %s", status, body)
	}
}

// While its audit cannot be written a server signs nobody in and changes nothing; then it goes on by
// itself, and no line is missing.
func TestAuditCannotBeWritten(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			a := newAudited(t, database(t))
			verifier := oauth.NewVerifier()
			v := newVisitor(t, a.at)
			code, page := v.authorize(verifier, url.Values{"name": {"ada"}, "password": {"correct-horse"}, "answer": {"approve"}})
			if code == "" {
				t.Fatal(page)
			}
			before := len(a.events())
			mend := a.spoil()
			// Nobody knows yet: this one is answered, and its line waits.
			refresh, trouble := v.token(url.Values{
				"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect},
			})
			if trouble != "" {
				t.Fatal(trouble)
			}
			if !a.saw("cannot write the audit file; the server refuses sign-ins") {
				t.Errorf("the operator is not told:\n%s", a.said)
			}
			a.refuses(refresh)
			mend()
			a.eventually(a.at+"/readyz", http.StatusOK, "")
			if _, trouble := v.token(url.Values{"grant_type": {oauth.GrantRefreshToken}, "refresh_token": {refresh}}); trouble != "" {
				t.Errorf("a refresh after it: %q", trouble)
			}
			if !a.saw("can write the audit file again: wrote 1 waiting lines, lost 0") {
				t.Errorf("the operator is not told:\n%s", a.said)
			}
			got := a.events()[before:]
			if want := []string{"token.issued ok", "token.issued ok"}; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("lines %q, want %q", got, want)
			}
			a.stop()
		})
	}
}

// A server that ends before its audit can be written says on standard error what is not in it, and
// ends with an error.
func TestAuditNeverWritten(t *testing.T) {
	p := newEmptyPlace(t)
	file := filepath.Join(p.dir, "audit")
	interrupts := make(chan os.Signal, 1)
	var said output
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(context.WithoutCancel(t.Context()), []string{
			"auth", "serve", "--http", "127.0.0.1:0", "--database", filepath.Join(p.dir, "issuer.db"), "--audit-file", file,
		}, &kit.Streams{In: strings.NewReader(""), Out: &output{}, Err: &said, Interrupts: interrupts})
	}()
	over := make(chan struct{})
	at := said.wait(`authorization server is (\S+);`, over)
	a := &audited{place: p, file: file}
	a.spoil()
	if _, trouble := newVisitor(t, at).token(url.Values{"grant_type": {"made up"}}); trouble != oauth.UnsupportedGrantType {
		t.Errorf("%q", trouble)
	}
	interrupts <- os.Interrupt
	if code := <-ended; code == 0 {
		t.Errorf("it ended with %d", code)
	}
	for _, want := range []string{
		`parley: not in the audit file: {"time":`, `"event":"token.refused","outcome":"unsupported_grant_type"`,
		"parley: 1 lines are not in the audit file: ",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it did not say %q:\n%s", want, &said)
		}
	}
}
