package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// deviceIssuer serves our authorization server for the scene, with the device flow and an interval
// of one second.
func deviceIssuer(t *testing.T, s *scene) {
	t.Helper()
	types := []string{oauth.GrantDeviceCode, oauth.GrantRefreshToken}
	as, err := issuer.New(s.issuer.url, issuer.NewMemory(), desk{}, &issuer.Options{
		Resources: []issuer.Resource{{URI: s.uri(), Name: "Files", Scopes: []issuer.Scope{
			{Name: scopeRead, Description: "Read your files"},
		}}},
		Clients:      []issuer.StaticClient{{ID: "tv", Metadata: oauth.ClientMetadata{ClientName: "Telly", GrantTypes: types}}},
		Registration: issuer.RegistrationPolicy{On: true},
		Device:       issuer.DevicePolicy{On: true, Interval: time.Second},
		RateLimit:    -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.issuer.serve(as)
}

// openid-client, which knows RFC 8628 by itself, registers for the device flow, waits for the person,
// and gets tokens that our guard takes; or is told that the person said no.
// Proves: RFC 8628, sections 3.1 to 3.5, against a client of others.
func TestDeviceOpenIDClient(t *testing.T) {
	t.Parallel()
	for answer, refused := range map[string]string{"approve": "", "deny": oauth.AccessDenied} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			deviceIssuer(t, s)
			s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
			b := newBrowser(t, map[string]string{"answer": answer})
			person := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
				if err != nil {
					return
				}
				u, err := url.Parse(string(text))
				if err == nil {
					_, err = b.walk(r.Context(), u)
				}
				if err != nil {
					http.Error(w, err.Error(), http.StatusBadGateway)
				}
			}))
			argument, err := json.Marshal(map[string]any{"issuer": s.issuer.url, "resource": s.uri(), "scope": scopeRead, "browser": person})
			if err != nil {
				t.Fatal(err)
			}
			cmd := node(t, "device.mjs", string(argument))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
			}
			var saw struct {
				UserCode, Token, Scope, Refused string
				Interval, Person                int
			}
			if err := json.Unmarshal(out, &saw); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			if saw.Person != http.StatusOK || saw.Interval != 1 || len(saw.UserCode) != 9 || saw.Refused != refused {
				t.Errorf("it saw %+v", saw)
			}
			if answer == "approve" && (saw.Token == "" || saw.Scope != scopeRead) {
				t.Errorf("it got %q with scope %q", saw.Token, saw.Scope)
			}
		})
	}
}

// A real browser, without JavaScript, by keyboard alone and on a narrow screen, light and dark: the
// person types the code, signs in and agrees.
func TestDeviceChromium(t *testing.T) {
	t.Parallel()
	do := chromium(t)
	s := newScene(t)
	deviceIssuer(t, s)
	c := &clicker{t: t, do: do}
	ask := func() (code string) {
		resp, err := http.PostForm(s.issuer.url+"/device_authorization", url.Values{"client_id": {"tv"}, "resource": {s.uri()}, "scope": {scopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`[B-Z]{4}-[B-Z]{4}`).FindString(string(raw))
	}
	dark := func(on string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: on}})
	}
	var wide int64
	var said, end string
	const width = `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`
	if err := do(
		chromedp.EmulateViewport(400, 800), dark("light"),
		chromedp.Navigate(s.issuer.url+"/device"),
		chromedp.WaitVisible("#user_code", chromedp.ByQuery), c.picture("device"),
		chromedp.Evaluate(width, &wide),
		// The field has the focus. A wrong code first, then the right one in small letters.
		chromedp.KeyEvent("BCDFGHJK"+kb.Enter),
		chromedp.WaitVisible("#wrong", chromedp.ByQuery), dark("dark"), c.picture("device-wrong-dark"),
		chromedp.KeyEvent(strings.ToLower(ask())+kb.Enter),
		chromedp.WaitVisible("#enter", chromedp.ByQuery),
		chromedp.KeyEvent(kb.Tab+kb.Enter),
		chromedp.WaitVisible(allowButton, chromedp.ByQuery), c.picture("device-consent-dark"), dark("light"), c.picture("device-consent"),
		chromedp.Text("main", &said, chromedp.ByQuery),
		chromedp.KeyEvent(kb.Tab+kb.Tab+kb.Tab+kb.Enter), // another account, Deny, Allow
		chromedp.WaitNotPresent(allowButton, chromedp.ByQuery), c.picture("device-done"),
		chromedp.Text("main", &end, chromedp.ByQuery),
	); err != nil {
		t.Fatal(err)
	}
	if wide > 400 {
		t.Errorf("the page is %d pixels wide on a screen of 400", wide)
	}
	if !strings.Contains(said, "Telly") || !strings.Contains(said, "the device that shows your code") || !strings.Contains(end, "The device is connected") {
		t.Errorf("the pages say\n%s\n%s", said, end)
	}
	// The address that has the code in it shows the code, and a button.
	code := ask()
	if err := do(
		chromedp.Navigate(s.issuer.url+"/device?user_code="+code),
		chromedp.WaitVisible("#code", chromedp.ByQuery), c.picture("device-complete"), dark("dark"), c.picture("device-complete-dark"),
		chromedp.Text("main", &said, chromedp.ByQuery),
		chromedp.KeyEvent(kb.Tab+kb.Enter),
		chromedp.WaitVisible(allowButton, chromedp.ByQuery),
		chromedp.Click(denyButton, chromedp.ByQuery),
		chromedp.WaitNotPresent(denyButton, chromedp.ByQuery),
		chromedp.Text("main", &end, chromedp.ByQuery),
	); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, code) || !strings.Contains(end, "gets no access") {
		t.Errorf("the pages say\n%s\n%s", said, end)
	}
}
