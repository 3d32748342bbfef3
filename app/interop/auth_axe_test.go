package interop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-mcp/parley/app/internal/authserver/userauth"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// axeJS is the checker of accessibility, axe-core by Deque.
const axeJS = "node_modules/axe-core/axe.min.js"

// An axeReport is what axe-core says of a page.
type axeReport struct {
	Passes     int      `json:"passes"`
	Violations []string `json:"violations"`
	// Wider says that the page is wider than its window.
	Wider bool `json:"wider"`
}

const axeRun = `axe.run(document, {preload: false}).then(r => ({
	passes: r.passes.length,
	violations: r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join("; ")),
	wider: document.documentElement.scrollWidth > document.documentElement.clientWidth,
}))`

// An axe looks at pages with axe-core.
type axe struct {
	clicker
	script string
	seen   int
}

// check has axe-core look at the page that is open: light and dark, wide and narrow. Scripts run for
// that alone, so that the pages show themselves to be without.
func (a *axe) check(name string) {
	a.t.Helper()
	a.seen++
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1000, 400} {
			var found axeReport
			shown := fmt.Sprintf("%02d-%s-%s-%d", a.seen, name, scheme, width)
			picture := chromedp.Action(chromedp.ActionFunc(func(context.Context) error { return nil }))
			if (scheme == "dark") == (width == 400) {
				picture = a.picture(shown)
			}
			if err := a.do(
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 800),
				picture,
				emulation.SetScriptExecutionDisabled(false),
				chromedp.Evaluate(a.script, nil),
				chromedp.Evaluate(axeRun, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
				emulation.SetScriptExecutionDisabled(true),
			); err != nil {
				a.t.Fatalf("%s: %v", shown, err)
			}
			if found.Passes == 0 {
				a.t.Errorf("%s: axe-core has looked at nothing", shown)
			}
			for _, violation := range found.Violations {
				a.t.Errorf("%s: %s", shown, violation)
			}
			if found.Wider {
				a.t.Errorf("%s: the page is wider than the window", shown)
			}
		}
	}
}

// open goes to an address and waits for a text.
func (a *axe) open(address, says string) {
	a.t.Helper()
	a.run(chromedp.Navigate(address))
	a.says(says)
}

// says waits for a page that says something.
func (a *axe) says(text string) {
	a.t.Helper()
	a.run(chromedp.WaitVisible(`//main[contains(., "`+text+`")]`, chromedp.BySearch))
}

func (a *axe) run(actions ...chromedp.Action) {
	a.t.Helper()
	if err := a.do(actions...); err != nil {
		a.t.Fatal(err)
	}
}

// press presses keys, one after the other, and waits for a page that says something.
func (a *axe) press(says string, keys ...string) {
	a.t.Helper()
	for _, key := range keys {
		a.run(chromedp.KeyEvent(key))
	}
	a.says(says)
}

// axeUsers are the users of an authorization server: ada, who is invited.
type axeUsers struct {
	mu             sync.Mutex
	hash           string // of the password; empty before there is one
	invited        string // hash of the secret of the invitation; empty without one
	invitedExpires time.Time
}

func (u *axeUsers) NormalName(name string) string { return strings.ToLower(name) }

func (u *axeUsers) User(_ context.Context, name string) (hash, subject, stamp string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if name != person || u.hash == "" {
		return "", "", "", issuer.ErrNotFound
	}
	return u.hash, person, issuer.Hash(u.hash), nil
}

func (u *axeUsers) PasswordOf(ctx context.Context, subject string) (name, hash string, err error) {
	hash, _, _, err = u.User(ctx, subject)
	return person, hash, err
}

func (u *axeUsers) ChangePassword(_ context.Context, _, old, hash string) (stamp string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.hash != old {
		return "", issuer.ErrNotFound
	}
	u.hash = hash
	return issuer.Hash(hash), nil
}

func (u *axeUsers) Invitation(_ context.Context, hash string) (name string, expires time.Time, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if hash != u.invited {
		return "", time.Time{}, issuer.ErrNotFound
	}
	return person, u.invitedExpires, nil
}

func (u *axeUsers) AcceptInvitation(_ context.Context, hash, password string, _ time.Time) (subject string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if hash != u.invited {
		return "", issuer.ErrNotFound
	}
	u.hash, u.invited = password, ""
	return person, nil
}

// invite makes an invitation of ada and returns the link.
func (u *axeUsers) invite(base string, lasts time.Duration) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	secret := oauth.NewSecret()
	u.invited, u.invitedExpires = issuer.Hash(secret), time.Now().Add(lasts)
	return userauth.InvitationLink(base, secret)
}

// passwordIssuer serves our authorization server with users of its own.
func passwordIssuer(t *testing.T, s *site) (*axeUsers, issuer.Store) {
	t.Helper()
	users, store := new(axeUsers), issuer.NewMemory()
	as, err := issuer.New(s.url, store, userauth.NewPasswords(users, &userauth.PasswordOptions{Changes: users, Invitations: users}), &issuer.Options{
		Resources: []issuer.Resource{{URI: elsewhere, Name: "Files", Scopes: []issuer.Scope{
			{Name: scopeRead, Description: "Read your files"}, {Name: scopeWrite, Description: "Change your files"},
		}}},
		Clients: []issuer.StaticClient{
			{ID: "desk", Metadata: oauth.ClientMetadata{ClientName: "Desk", RedirectURIs: []string{"https://desk.example/cb"}}},
			{ID: "tv", Metadata: oauth.ClientMetadata{ClientName: "Telly", GrantTypes: []string{oauth.GrantDeviceCode}}},
		},
		Device: issuer.DevicePolicy{On: true}, RateLimit: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(as)
	return users, store
}

// axeRecords stores what an account page can show.
func axeRecords(t *testing.T, db issuer.Store, base string) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	for i := range 25 {
		id := fmt.Sprintf("client-%02d", i)
		if _, err := db.AddClient(ctx, &issuer.Client{
			ID: id, Dynamic: true, Digest: id, Created: now, Expires: now.Add(time.Hour), Metadata: oauth.ClientMetadata{
				ClientName: "Notebook " + strings.Repeat("x", i), RedirectURIs: []string{"http://127.0.0.1/callback", "https://some.client.example/cb"},
			},
		}, 0); err != nil {
			t.Fatal(err)
		}
		if err := db.AddGrant(ctx, &issuer.Grant{
			ID: oauth.NewSecret(), ClientID: id, Subject: person, Resource: elsewhere, Scopes: []string{scopeRead, scopeWrite},
			Created: now, Expires: now.Add(time.Hour),
		}); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if err := db.SetConsent(ctx, &issuer.Consent{Subject: person, ClientID: id, Resource: elsewhere, Created: now, Expires: now.Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, agent := range []string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/604.1",
		"", strings.Repeat("Agent", 50),
	} {
		if err := db.AddSession(ctx, &issuer.Session{
			ID: oauth.NewSecret(), Issuer: base, Person: issuer.Person{Subject: person, Name: person}, Remote: "2001:db8:1111:2222:3333:4444:5555:6666",
			Agent: agent, Created: now, Used: now, Expires: now.Add(time.Hour),
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// Every page of our authorization server passes the rules of axe-core, light and dark, wide and
// narrow, and can be used with the keyboard alone and without scripts.
func TestAuthAxe(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(peersDir(t), axeJS))
	if err != nil {
		t.Fatal(err)
	}
	do := chromiumFor(t, 5*time.Minute)
	at := newSite(t)
	users, store := passwordIssuer(t, at)
	a := &axe{clicker: clicker{t: t, do: do}, script: string(script)}
	const first, second, third = "correct-horse", "battery-staple", "staple-battery"

	// An invitation.
	link := users.invite(at.url, time.Hour)
	a.open(link, "Your name here is ada")
	a.check("invitation")
	a.press("not the same", first, kb.Tab, second, kb.Enter)
	a.check("invitation-wrong")
	a.press("Sign in with the name ada", first, kb.Tab, first, kb.Enter)
	a.check("invitation-done")
	a.open(link, "It was used before")
	a.check("invitation-used")
	a.open(users.invite(at.url, -time.Hour), "Ask the one who sent it")
	a.check("invitation-expired")

	// The sign-in, the account and another password.
	a.open(at.url+"/account", "Password")
	a.check("sign-in")
	a.press("Name or password is wrong", "ada", kb.Tab, second, kb.Enter)
	a.check("sign-in-wrong")
	a.press("Signed in as ada", first, kb.Enter)
	a.check("account-empty")
	axeRecords(t, store, at.url)
	a.open(at.url+"/account", "More applications")
	a.check("account")
	a.run(chromedp.Click(`button[name="consent"]`, chromedp.ByQuery))
	a.says("You will be asked again.")
	a.check("account-changed")
	a.run(chromedp.Click(`//a[contains(., "More applications")]`, chromedp.BySearch))
	a.says("Back to your account")
	a.check("account-more")
	a.open(at.url+"/account", "Signed in as ada")
	a.press("Old password", kb.Tab, kb.Enter) // the first link
	a.check("password")
	a.press("This is not your password.", second, kb.Tab, third, kb.Tab, third, kb.Enter)
	a.check("password-wrong")
	a.press("Your password is changed.", first, kb.Tab, third, kb.Tab, third, kb.Enter)
	a.check("password-changed")

	// Consent, and what keeps a person from it.
	authorize := func(pairs ...string) string {
		q := url.Values{
			"response_type": {"code"}, "client_id": {"desk"}, "code_challenge_method": {"S256"}, "resource": {elsewhere},
			"code_challenge": {oauth.ChallengeS256(strings.Repeat("a", 43))}, "scope": {scopeRead + " " + scopeWrite},
		}
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return at.url + "/authorize?" + q.Encode()
	}
	a.open(authorize(), "It will be able to")
	a.check("consent")
	for _, to := range []string{"http://127.0.0.1/callback", "https://some.client.example/cb"} {
		a.open(authorize("client_id", "client-01", "redirect_uri", to), "It will be able to")
		a.check("consent-unverified")
	}
	a.open(authorize("client_id", "client-01", "redirect_uri", "https://some.client.example/cb", "scope", "unknown"), "You can go back to it")
	a.check("leave")
	a.open(authorize("client_id", "nobody"), "is not known to this server")
	a.check("refused")

	// A device.
	a.open(at.url+"/device", "Code that your device shows")
	a.check("device")
	a.press("No device waits", "BCDFGHJK", kb.Enter)
	a.check("device-wrong")
	a.open(at.url+"/device?user_code=BCDF-GHJK", "Your device must show this code")
	a.check("device-code")
	a.open(at.url+"/device?user_code="+axeDevice(t, at.url), "Your device must show this code")
	a.run(chromedp.Click("button", chromedp.ByQuery))
	a.says("Is it a device of your own?")
	a.check("device-consent")
	a.run(chromedp.Click(allowButton, chromedp.ByQuery))
	a.says("Go back to your device")
	a.check("device-done")

	a.open(at.url+"/account", "Signed in as ada")
	a.run(chromedp.Click(`button[value="sign-out"]`, chromedp.ByQuery))
	a.says("signed in no more")
	a.check("signed-out")
}

// axeDevice starts the device flow and returns the user code.
func axeDevice(t *testing.T, base string) string {
	t.Helper()
	form := url.Values{"client_id": {"tv"}, "resource": {elsewhere}, "scope": {scopeRead}}
	resp, err := http.PostForm(base+"/device_authorization", form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Code string `json:"user_code"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Code == "" {
		t.Fatalf("no user code: %d %v", resp.StatusCode, err)
	}
	return answer.Code
}
