package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

// ErrNotFound says that no program was found that opens a browser.
var ErrNotFound = errors.New("no browser was found")

// openGrace is how long an opener may fail. One that is the browser itself runs longer.
const openTimeout = 2 * time.Second

// Open opens the URL in the person's browser. It goes through [oauth.CheckAuthorizationURL] first,
// so that nothing but https, or http on this machine, is opened, and reaches the opener as one
// argument of a program that is started without a shell (spec, security best practices: MUST NOT be
// opened with a shell).
//
// On Linux and other free systems these are tried in order: $BROWSER if it is the name or the path
// of one program, wslview under WSL, xdg-open, wslview, x-www-browser, sensible-browser; without a
// desktop session $BROWSER alone. On macOS it is open, on Windows rundll32. It returns once the
// opener has ended, or has run for two seconds without failing; the end of ctx ends the wait but
// not the browser.
func Open(ctx context.Context, u *url.URL) error {
	o := opener{goos: runtime.GOOS, lookPath: exec.LookPath, env: os.Getenv, start: startProgram}
	return o.open(ctx, u)
}

// An opener is Open with its surroundings.
type opener struct {
	goos     string
	lookPath func(name string) (string, error)
	env      func(name string) string
	start    func(ctx context.Context, path string, args ...string) error
}

func (o *opener) open(ctx context.Context, u *url.URL) error {
	checked, err := checkURL(u)
	if err != nil {
		return err
	}
	last := ErrNotFound
	for _, c := range o.commands() {
		path, err := o.lookPath(c[0])
		if err != nil {
			continue
		}
		if err = o.start(ctx, path, append(c[1:], checked.String())...); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("opening the browser: %w", err)
		}
		last = fmt.Errorf("%s: %w", c[0], err)
	}
	return fmt.Errorf("opening the browser: %w", last)
}

// checkURL is the URL as it may be opened.
func checkURL(u *url.URL) (*url.URL, error) {
	if u == nil {
		return nil, errors.New("opening the browser: there is no URL")
	}
	checked, err := oauth.CheckAuthorizationURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("opening the browser: %w", err)
	}
	return checked, nil
}

// commands are the programs to try, each with the arguments before the URL.
func (o *opener) commands() [][]string {
	switch o.goos {
	case "windows":
		// Not cmd /c start, which reads the URL as a command line. By its full path, if that is
		// known, so that no other is found first.
		run := "rundll32.exe"
		if root := o.env("SystemRoot"); root != "" {
			run = root + `\System32\rundll32.exe`
		}
		return [][]string{{run, "url.dll,FileProtocolHandler"}}
	case "darwin", "ios":
		return [][]string{{"/usr/bin/open"}}
	}
	var out [][]string
	if b := o.env("BROWSER"); isProgram(b) {
		out = append(out, []string{b})
	}
	wsl := o.env("WSL_DISTRO_NAME") != ""
	if wsl {
		out = append(out, []string{"wslview"})
	}
	// Without a desktop, openers start browsers for terminals, which would use this one.
	if wsl || o.goos == "android" || o.env("DISPLAY") != "" || o.env("WAYLAND_DISPLAY") != "" {
		for _, name := range []string{"xdg-open", "wslview", "x-www-browser", "sensible-browser"} {
			out = append(out, []string{name})
		}
	}
	return out
}

// isProgram reports whether $BROWSER is the name or the absolute path of a program. By
// convention it may be a list of command lines with %s for the URL; those would want a shell.
func isProgram(browser string) bool {
	if browser == "" || browser[0] == '-' || len(browser) > 1024 || strings.ContainsAny(browser, " \t\r\n:;%&|$`'\"\\<>(){}*?!#~") {
		return false
	}
	return !strings.Contains(browser, "/") || filepath.IsAbs(browser)
}

// startProgram starts a program without input and output, in a session of its own where there are
// sessions, so that an interrupt at the terminal does not reach it. A goroutine waits for its end.
func startProgram(ctx context.Context, path string, args ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The browser outlives the sign-in.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, args...)
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(openTimeout):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
