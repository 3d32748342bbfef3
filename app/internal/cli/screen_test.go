package cli_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/cli"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// On a terminal the conversation has the screen: a question waits behind a banner, keys of
// the message do not answer it, Tab and y do, and the interrupt of another process counts.
// What is said after the screen goes to standard error again.
func TestScreen(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("TERM", "xterm-256color")
	in, person := io.Pipe()
	interrupts := make(chan os.Signal, 1)
	out, said := new(output), new(output)
	go func() {
		ended := t.Context().Done()
		out.wait("lists the keys", ended)
		_, _ = io.WriteString(person, "post text=hello\r")
		out.wait("a question waits", ended)
		_, _ = io.WriteString(person, "y")
		out.wait(`y\x1b\[K`, ended)
		interrupts <- os.Interrupt
		out.wait("Cancelling", ended)
		out.wait("Cancelled:", ended)
		_, _ = io.WriteString(person, "\x15/quit\r")
	}()
	code := cli.Main(t.Context(), []string{"chat", "--server", "jots=jotter calls"}, &kit.Streams{
		In: in, Out: out, Err: said, InTerminal: true, OutTerminal: true, Screen: true, Interrupts: interrupts,
	})
	if code != 0 {
		t.Errorf("exit code %d\n%q\n%s", code, out.String(), said.String())
	}
	if text := said.String(); !strings.Contains(text, "Saved the session") || strings.Contains(text, "Session ") {
		t.Errorf("standard error has %q", text)
	}
	if text := out.String(); strings.LastIndex(text, "\x1b[?1049l") < strings.LastIndex(text, "\x1b[?1049h") {
		t.Error("the screen was not left")
	}
	_, history, _ := command(t, "history")
	if !strings.Contains(history, "post text=hello") || strings.Contains(history, "agreed to") {
		t.Errorf("the history is\n%s", history)
	}
}

// Plain lines are there on a terminal too, if they are asked for.
func TestScreenPlain(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	out, said := new(output), new(output)
	code := cli.Main(t.Context(), []string{"chat", "--plain", "--server", "jots=jotter calls"}, &kit.Streams{
		In: strings.NewReader("/quit\n"), Out: out, Err: said, InTerminal: true, OutTerminal: true, Screen: true,
	})
	if code != 0 || strings.Contains(out.String(), "\x1b") || !strings.Contains(said.String(), "/help lists") {
		t.Errorf("exit code %d\n%q\n%q", code, out.String(), said.String())
	}
}

// scribe is an editor that is left by Enter.
func scribe() {
	fmt.Println("SCRIBE")
	_, _ = os.Stdin.Read(make([]byte, 100)) // until then
	name := os.Args[len(os.Args)-1]
	if err := os.WriteFile(name, []byte("from the editor"), 0o600); err != nil {
		os.Exit(1)
	}
}
