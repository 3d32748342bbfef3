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

	"github.com/parley-mcp/parley/app/internal/oidctest"
	"github.com/parley-mcp/parley/app/internal/racetest"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/oauth"
)

// A told is a line of the audit.
type told struct {
	Event, Outcome, Reason, Remote, GrantType    string
	User, UserName, Client, ClientName, Resource string
}

// lines are those that were written to a file since the last time.
func (a *audited) lines(read *int) (list []told) {
	a.t.Helper()
	raw, err := os.ReadFile(a.file)
	if err != nil {
		a.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw[*read:])) {
		var l told
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			a.t.Fatal(err)
		}
		list = append(list, l)
	}
	*read = len(raw)
	return list
}

// Every way in which a sign-in ends has its line, with whose it was, by subject and name, and where
// it came from; so have devices and acts of operators.
func TestAuditEvents(t *testing.T) {
	racetest.SkipSerial(t)
	if ranInOwnProcess(t) {
		return
	}
	const tooMany = "too many attempts"
	for name, database := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			a := newAudited(t, database(t), "--allow-device", "--client", "tv=")
			verifier := oauth.NewVerifier()
			form := func(name, password, answer string) url.Values {
				return url.Values{"name": {name}, "password": {password}, "answer": {answer}}
			}
			sign := func(name, password, answer string) (code string) {
				code, _ = newVisitor(t, a.at).authorize(verifier, form(name, password, answer))
				return code
			}
			device := func(answer string) {
				t.Helper()
				var d struct {
					URL string `json:"verification_uri_complete"`
				}
				asked := url.Values{"client_id": {"tv"}, "resource": {killResource}}
				if err := json.Unmarshal(post(t, a.at+"/device_authorization", "application/x-www-form-urlencoded", asked.Encode(), nil), &d); err != nil {
					t.Fatal(err)
				}
				v := newVisitor(t, a.at)
				p, err := v.FillIn(t.Context(), d.URL, form("ada", "correct-horse", answer))
				if err != nil || p.Status >= http.StatusBadRequest {
					t.Fatal(p, err)
				}
			}
			read := 0
			a.lines(&read)
			for _, step := range []struct {
				name string
				do   func()
				want []told // user stands for any subject
			}{
				{"a wrong password", func() { sign("ada", "wrong-horse", "sign-in") }, []told{
					{Event: "login", Outcome: "access_denied", Reason: "name or password is wrong", User: "user", UserName: "ada"},
				}},
				{"nobody's name", func() { sign("eve", "wrong-horse", "sign-in") }, []told{
					{Event: "login", Outcome: "access_denied", Reason: "name or password is wrong"},
				}},
				{tooMany, func() {
					for range 12 { // a slow machine waits long enough between the first ones
						_, page := newVisitor(t, a.at).authorize(verifier, form("eve", "wrong-horse", "sign-in"))
						if strings.Contains(page, "Too many attempts") {
							return
						}
					}
				}, []told{
					{Event: "login", Outcome: "access_denied", Reason: "name or password is wrong"},
					{Event: "login", Outcome: "access_denied", Reason: tooMany},
				}},
				{"the sign-in was cancelled", func() { sign("ada", "", "cancel") }, []told{
					{Event: "authorize", Outcome: "access_denied", Reason: "login was cancelled"},
				}},
				{"consent was denied", func() { sign("ada", "correct-horse", "deny") }, []told{
					{Event: "login", Outcome: "ok", User: "user", UserName: "ada"},
					{Event: "authorize", Outcome: "access_denied", Reason: "consent was denied", User: "user", UserName: "ada"},
				}},
				{"another person signs in", func() {
					v := newVisitor(t, a.at)
					p, err := v.Open(t.Context(), authorizeURL(a.at, verifier))
					for _, answer := range []string{"sign-in", "switch"} {
						if err == nil {
							p, err = v.Submit(t.Context(), p, form("ada", "correct-horse", answer))
						}
					}
					if err != nil || !strings.Contains(p.Body, "Password") {
						t.Fatal(p, err)
					}
				}, []told{
					{Event: "login", Outcome: "ok", User: "user", UserName: "ada"},
					{Event: "logout", Outcome: "ok", User: "user", UserName: "ada"},
				}},
				{"a token", func() {
					code := sign("ada", "correct-horse", "approve")
					if _, trouble := newVisitor(t, a.at).token(url.Values{
						"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect},
					}); trouble != "" {
						t.Error(trouble)
					}
				}, []told{
					{Event: "login", Outcome: "ok", User: "user", UserName: "ada"},
					{Event: "consent", Outcome: "ok", User: "user", UserName: "ada"},
					{Event: "code.issued", Outcome: "ok", User: "user", UserName: "ada", GrantType: oauth.GrantAuthorizationCode},
					{Event: "token.issued", Outcome: "ok", User: "user", UserName: "ada", GrantType: oauth.GrantAuthorizationCode},
				}},
				{"a device is approved", func() { device("approve") }, []told{
					{Event: "device.requested", Outcome: "ok", Client: "tv", ClientName: "tv", GrantType: oauth.GrantDeviceCode},
					{Event: "login", Outcome: "ok", User: "user", UserName: "ada", Client: "tv", ClientName: "tv"},
					{Event: "consent", Outcome: "ok", User: "user", UserName: "ada", Client: "tv", ClientName: "tv"},
					{Event: "device.approved", Outcome: "ok", User: "user", UserName: "ada", Client: "tv", GrantType: oauth.GrantDeviceCode},
				}},
				{"a device is refused", func() { device("deny") }, []told{
					{Event: "device.requested", Outcome: "ok", Client: "tv", ClientName: "tv", GrantType: oauth.GrantDeviceCode},
					{Event: "login", Outcome: "ok", User: "user", UserName: "ada", Client: "tv", ClientName: "tv"},
					{Event: "authorize", Outcome: "access_denied", Reason: "consent was denied", User: "user", UserName: "ada", Client: "tv", GrantType: oauth.GrantDeviceCode},
				}},
				{"an act, and who was disabled", func() {
					if code, _, said := command(t, "auth", "user", "disable", "ada", "--admin", a.socket); code != 0 {
						t.Error(said)
					}
					sign("ada", "correct-horse", "sign-in")
				}, []told{
					{Event: "admin user disable", Outcome: "ok", User: "user"},
					{Event: "login", Outcome: "access_denied", Reason: "the user is disabled", User: "user", UserName: "ada"},
				}},
				{"an act that was refused", func() {
					if code, _, _ := command(t, "auth", "user", "disable", "eve", "--admin", a.socket); code == 0 {
						t.Error("a user who is not there was disabled")
					}
				}, []told{{Event: "admin user disable", Outcome: "not_found"}}},
			} {
				step.do()
				got := a.lines(&read)
				if step.name == tooMany {
					got = slices.Compact(got)
				}
				if len(got) != len(step.want) {
					t.Errorf("%s: %+v", step.name, got)
					continue
				}
				for i, want := range step.want {
					compare(t, step.name, got[i], want)
				}
			}
			a.stop()
		})
	}
}

// compare compares a line; the client is "cli" unless want says, and not known of an act or a device.
func compare(t *testing.T, name string, got, want told) {
	t.Helper()
	act := strings.HasPrefix(want.Event, "admin")
	if (got.Remote == "") != act {
		t.Errorf("%s: %s came from %q", name, got.Event, got.Remote)
	}
	if (got.User == "") != (want.User == "") || got.User == got.UserName && got.User != "" {
		t.Errorf("%s: %s is of the user %q", name, got.Event, got.User)
	}
	if want.Client == "" && !act {
		want.Client = killClient
	}
	if want.ClientName == "" && got.ClientName != "" {
		want.ClientName = want.Client
	}
	want.Remote, want.User, want.Resource = got.Remote, got.User, got.Resource
	if got != want {
		t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
	}
}

// So has every way in which a sign-in at another provider ends. What that says of a person is shown as
// it is, on one line.
func TestAuditEventsUpstream(t *testing.T) {
	there := oidctest.New(t)
	trouble, hostile := "", "Ada \u202e\x1b[2J\n<L>"
	there.Response = func(back url.Values) {
		if trouble != "" {
			back.Del("code")
			back.Set("error", trouble)
		}
	}
	there.Claims = func(claims map[string]any) { claims["name"] = hostile }
	p := newEmptyPlace(t)
	a := &audited{place: p, file: filepath.Join(p.dir, "audit")}
	a.at = p.start(`authorization server is (\S+);`, "auth", "serve", "--http", "127.0.0.1:0", "--database", filepath.Join(p.dir, "issuer.db"),
		"--audit-file", a.file, "--upstream", there.URL, "--upstream-client", oidctest.ClientID, "--upstream-secret-file", kept(t, there.Secret),
		"--client", killClient+"="+killRedirect, "--resource", killResource+"=read")
	read, verifier := 0, oauth.NewVerifier()
	sign := func() string {
		code, _ := newVisitor(t, a.at).authorize(verifier, url.Values{"answer": {"approve"}})
		return code
	}
	const name = `Ada \u{202e}\u{1b}[2J\u{a}<L>`
	consent := told{Event: "consent", Outcome: "ok"}
	for _, step := range []struct {
		name, trouble string
		want          []told
	}{
		{"refused there", oauth.AccessDenied, []told{consent, {Event: "authorize", Outcome: "access_denied", Reason: "login was cancelled"}}},
		{"failed there", oauth.ServerError, []told{consent, {Event: "authorize", Outcome: "temporarily_unavailable", Reason: "login failed"}}},
		{"signed in", "", []told{
			consent,
			{Event: "login", Outcome: "ok", User: "user", UserName: name},
			{Event: "code.issued", Outcome: "ok", User: "user", UserName: name, GrantType: oauth.GrantAuthorizationCode},
			{Event: "token.issued", Outcome: "ok", User: "user", UserName: name, GrantType: oauth.GrantAuthorizationCode},
		}},
	} {
		trouble = step.trouble
		if code := sign(); code != "" {
			if _, trouble := newVisitor(t, a.at).token(url.Values{
				"grant_type": {oauth.GrantAuthorizationCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {killRedirect},
			}); trouble != "" {
				t.Error(trouble)
			}
		}
		got := a.lines(&read)
		if len(got) != len(step.want) {
			t.Errorf("%s: %+v", step.name, got)
			continue
		}
		for i, want := range step.want {
			compare(t, step.name, got[i], want)
		}
	}
	if raw, err := os.ReadFile(a.file); err != nil || strings.ContainsAny(string(raw), "\u202e\x1b") {
		t.Errorf("the file has control characters: %v", err)
	}
}
