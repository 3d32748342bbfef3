package interop_test

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-mcp/parley/app/internal/providertest"
	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/transport/streamable"
)

// authorizeURL is the address that the program shows.
var authorizeURL = regexp.MustCompile(`\n  (http://\S+/authorize\?\S+)\n`)

// A personAt runs commands of the program, and goes to the addresses that they show.
type personAt struct {
	t       *testing.T
	program string
	home    string
	open    func(ctx context.Context, u *url.URL) error
}

// run runs a command to its end.
func (w *personAt) run(args ...string) (code int, out, said string) {
	w.t.Helper()
	ctx := bounded(w.t)
	cmd := exec.CommandContext(ctx, w.program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "XDG_CONFIG_HOME=" + w.home}
	shown := &watched{look: func(text string) bool {
		found := authorizeURL.FindStringSubmatch(text)
		return found != nil
	}, found: make(chan struct{})}
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, shown
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the code says it
	}()
	select {
	case <-shown.found:
		u, err := url.Parse(authorizeURL.FindStringSubmatch(shown.String())[1])
		if err == nil {
			err = w.open(ctx, u)
		}
		if err != nil {
			w.t.Errorf("the browser: %v", err)
			_ = cmd.Process.Kill()
		}
		<-ended
	case <-ended:
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), shown.String()
}

// watched is what a program says, until something is in it and on.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	look  func(text string) bool
	found chan struct{}
	done  bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if !w.done && w.look(w.text.String()) {
		w.done = true
		close(w.found)
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// The program signs in to servers with the habits of those that exist in a real browser, which presses the
// button; package cli does the same without one. Proves: rulings 36, 37; C3, C7, C11, C19, C20.
func TestAuthProviders(t *testing.T) {
	do := chromium(t)
	parley, err := buildParley()
	if err != nil {
		t.Fatal(err)
	}
	open := func(_ context.Context, u *url.URL) error {
		return do(chromedp.Navigate(u.String()), chromedp.WaitVisible("#allow", chromedp.ByQuery),
			chromedp.Click("#allow", chromedp.ByQuery), chromedp.WaitNotPresent("#allow", chromedp.ByQuery))
	}
	for _, h := range providertest.Habits(t) {
		t.Run(h.Name, func(t *testing.T) {
			handler := streamable.NewHandler(everything.New("1.0.0", nil), nil)
			t.Cleanup(func() {
				if err := handler.Shutdown(context.Background()); err != nil {
					t.Errorf("shutdown: %v", err)
				}
			})
			w := &personAt{t: t, program: parley, home: t.TempDir(), open: open}
			providertest.New(t, &h, handler).SignIn(t, w.run)
		})
	}
}
