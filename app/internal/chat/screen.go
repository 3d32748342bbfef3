package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/parley-mcp/parley/app/internal/chat/tui"
	"github.com/parley-mcp/parley/app/internal/chat/tui/style"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/ui"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth/login/browser"
)

// chatScreen shows the session on the screen until the person leaves.
func (g *group) chatScreen(ctx context.Context, c *conversation, first string, still bool) error {
	keys, err := style.NewKeys(c.own.Screen.Keys)
	if err != nil {
		return kit.Usagef("%s: screen: %v", host.EscapeLine(c.own.Path), err)
	}
	var theme *style.Theme // chosen by the terminal
	if name := c.own.Screen.Theme; name != "" {
		if theme, err = style.Named(name); err != nil {
			return kit.Usagef("%s: screen: %v", host.EscapeLine(c.own.Path), err)
		}
	}
	g.SignIns.OnScreen = true
	return g.withFace(ctx, c, first, func(f *conversationFace) error {
		screen := tui.New(&tui.Options{
			In: g.Streams.In, Out: g.Streams.Out, Flush: g.Streams.Flush, Interrupts: f.interrupts, Since: f.since,
			Theme: theme, Keys: keys, ReducedMotion: still || c.own.Screen.ReducedMotion, Mouse: c.own.Screen.Mouse, Model: c.models,
			Sessions: f.kept, Logs: g.Output.Of, Image: clipboardImage,
			SetTitle: c.store.SetTitle, Open: openPage, Edit: editorOf(os.Getenv), Resources: ui.ResourcesOf(c.host),
			Greeting: strings.TrimSuffix(fmt.Sprintf("Session %s with the %s.\n%s", c.session.ID(), modelTitle(c.session.Model()), g.welcome), "\n"),
		})
		shared, ok := g.Streams.Err.(*kit.SharedWriter)
		back := func() {}
		if ok {
			back = shared.Divert(screen)
		}
		err := screen.Run(ctx, f.host, f.session)
		back()
		if ok && errors.Is(err, tui.ErrTerminal) {
			shared.Divert(io.Discard) // a terminal that takes nothing would keep the program
		}
		if rest := screen.Rest(); rest != "" {
			_, _ = fmt.Fprintln(g.Streams.Err, host.Escape(rest))
		}
		return closedTerminal(err)
	})
}

// closedTerminal gives the error of a terminal that was closed the exit code of SIGHUP, which may come
// later, or not at all.
func closedTerminal(err error) error {
	if errors.Is(err, tui.ErrTerminal) {
		return &kit.CodeError{Code: kit.ExitSignal + int(syscall.SIGHUP), Err: err}
	}
	return err
}

// openPage opens a page to which the person agreed in their browser.
func openPage(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("the address cannot be read")
	}
	return browser.Open(ctx, u)
}

// editorOf is how a text is edited in the person's editor, by VISUAL or EDITOR; nil where
// neither is set. The editor has the terminal meanwhile.
func editorOf(getenv func(string) string) func(ctx context.Context, text string) (string, error) {
	words := strings.Fields(getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(getenv("EDITOR"))
	}
	if len(words) == 0 {
		return nil
	}
	return func(ctx context.Context, text string) (_ string, err error) {
		dir, err := os.MkdirTemp("", "parley-") // nobody else may look into it
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		name := dir + string(os.PathSeparator) + "message.md"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
		cmd := exec.CommandContext(ctx, words[0], append(words[1:], name)...) // the person's own words
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%s: %w", words[0], err)
		}
		edited, err := os.ReadFile(name)
		return string(edited), err
	}
}
