package interop_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/login"
	loginbrowser "github.com/parley-mcp/parley/oauth/login/browser"
	"github.com/parley-mcp/parley/transport/streamable"
)

// The elements that are looked for.
const (
	allowButton = `button[name="answer"][value="approve"]`
	denyButton  = `button[name="answer"][value="deny"]`
)

// A tab does things in a browser.
type tab func(actions ...chromedp.Action) error

// chromium starts a browser that runs no scripts of pages, which ends with the
// test.
func chromium(t *testing.T) tab {
	t.Helper()
	return chromiumFor(t, patience)
}

// chromiumFor starts a browser that may take so long for all that it does.
func chromiumFor(t *testing.T, longest time.Duration) tab {
	t.Helper()
	program := os.Getenv("PARLEY_TEST_CHROMIUM")
	if program == "" {
		t.Skip("set PARLEY_TEST_CHROMIUM to the program of Chromium to click through the pages with it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1000, 800))
	// The browser is closed, rather than killed with the test's context: its
	// folder is then its own no longer, and goes.
	ctx, end := context.WithTimeout(context.WithoutCancel(t.Context()), longest)
	ctx, endProgram := chromedp.NewExecAllocator(ctx, options...)
	ctx, endTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		endTab()
		endProgram()
		end()
		chromedp.FromContext(ctx).Allocator.Wait()
	})
	run := func(actions ...chromedp.Action) error { return chromedp.Run(ctx, actions...) }
	if err := run(emulation.SetScriptExecutionDisabled(true)); err != nil {
		t.Fatalf("starting %s: %v", program, err)
	}
	return run
}

// A clicker is a person at the browser, who signs in, looks at the page and
// presses a button.
type clicker struct {
	t      *testing.T
	do     tab
	button string
	// said is the text of the consent page; ended is where the way ended.
	said, ended string
}

// open is the Open of a browser.Receiver.
func (c *clicker) open(_ context.Context, u *url.URL) error {
	if err := c.do(chromedp.Navigate(u.String())); err != nil {
		return err
	}
	if c.said == "" {
		// The browser is not signed in yet.
		if err := c.do(chromedp.WaitVisible("#enter", chromedp.ByQuery), c.picture("sign-in"),
			chromedp.Click("#enter", chromedp.ByQuery)); err != nil {
			return err
		}
	}
	return c.do(
		chromedp.WaitVisible(c.button, chromedp.ByQuery),
		chromedp.Text("main", &c.said, chromedp.ByQuery),
		c.picture("consent"),
		chromedp.EmulateViewport(390, 844), c.picture("consent-narrow"), chromedp.EmulateViewport(1000, 800),
		chromedp.Click(c.button, chromedp.ByQuery),
		chromedp.WaitNotPresent(c.button, chromedp.ByQuery),
		chromedp.Location(&c.ended),
		c.picture("answered"),
	)
}

// picture takes a picture of the page, to be looked at.
func (c *clicker) picture(name string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var picture []byte
		if err := chromedp.FullScreenshot(&picture, 100).Do(ctx); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(c.t.ArtifactDir(), name+".png"), picture, 0o600)
	})
}

// A real browser, without JavaScript, goes through sign-in and consent: the
// forms work, and the policy of the pages lets the answer go to the client.
func TestAuthChromium(t *testing.T) {
	t.Parallel()
	do := chromium(t)
	scripts := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title>still</title><script>document.title = "ran"</script>`)
	}))
	var title string
	if err := do(chromedp.Navigate(scripts), chromedp.Title(&title)); err != nil || title != "still" {
		t.Fatalf("scripts run in this browser: %q, %v", title, err)
	}

	s := newScene(t)
	ourIssuer(t, s, nil)
	s.protect(t, guard.JWT(s.issuer.url, nil), guard.Options{})
	who := &clicker{t: t, do: do, button: allowButton}
	l := login.New(&login.Options{ClientName: "Interop <b>", Authorizer: loginbrowser.NewReceiver(&loginbrowser.ReceiverOptions{Open: who.open})})
	t.Cleanup(func() { _ = l.Close() })
	ctx := bounded(t)
	d := streamable.URL(s.uri())
	d.Client = l.HTTPClient(nil)
	c, err := client.Connect(ctx, d, &client.Options{Eras: client.NewEraMemory(), DiscoverProbe: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if got := calling(ctx, t, c, "who"); got.Subject != person {
		t.Errorf("the caller is %+v", got)
	}
	for _, text := range []string{"Interop <b>", "unverified", "127.0.0.1", "Read your files", "Ada Lovelace", "Deny", "Allow"} {
		if !strings.Contains(who.said, text) {
			t.Errorf("the page does not say %q: %s", text, who.said)
		}
	}
	if to, err := url.Parse(who.ended); err != nil || to.Hostname() != "127.0.0.1" || to.Path != "/callback" {
		t.Errorf("the way ended at %q", who.ended)
	}
	if strings.Contains(who.said, "Change your files") {
		t.Errorf("the page says too much: %s", who.said)
	}

	who.button = denyButton
	_, err = c.CallTool(ctx, "write", nil, nil)
	if refused := (*login.AuthorizationError)(nil); !errors.As(err, &refused) || refused.Code != oauth.AccessDenied {
		t.Errorf("after Deny: %v", err)
	}
	if !strings.Contains(who.said, "Change your files") {
		t.Errorf("the second page does not name the scope: %s", who.said)
	}
}
