package cli_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newTerminal makes a pseudo-terminal: what is written to keys is typed at it. Its echo is
// thrown away.
func newTerminal(t *testing.T) (keys, terminal *os.File) {
	t.Helper()
	keys, terminal = openTerminal(t)
	go func() { _, _ = io.Copy(io.Discard, keys) }() // ends with the terminal
	return keys, terminal
}

// Proves: FLOW-TOOL-H, SEC-TOOL-4. A paste whose lines come before and after the question is
// shown does not answer it; what a person types later does. Attack: a text to be pasted that
// holds an answer.
func TestPasteAnswersNothing(t *testing.T) {
	if ranInOwnProcess(t) {
		return
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("PARLEY_TEST_TYPED", "1")
	late := filepath.Join(t.TempDir(), "late")
	t.Setenv(clockEnv, late)
	keys, terminal := newTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "parley", "chat", "--plain", "--server", "everything")
	out := new(output)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the test says what it should have written
	}()
	typed := func(text string) {
		t.Helper()
		if _, err := io.WriteString(keys, text); err != nil {
			t.Error(err)
		}
	}
	out.wait(`\n> $`, ended)
	typed("toggle-extra-tool\ny\n1\ny\n")
	out.wait(`Your answer \(.*\): $`, ended)
	typed("y\ny\n\x1b[200~y\n2\n\x1b[201~")
	out.wait("Please answer now", ended) // the terminal has got the paste, which it may be late with
	unread := 1
	for unread > 0 { // by the program, for which no time passes
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the paste is not read:\n%s", out)
		}
		var err error
		if unread, err = unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
	write(t, late, "")
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		out.wait("refused, nothing was done", ended)
	}()
	for { // each line that is too soon moves the time at which one is not
		typed("n by hand\n")
		select {
		case <-refused:
			typed("/quit\n")
			<-ended
			if text := out.String(); strings.Contains(text, "sent now") || strings.Contains(text, "agreed to") || strings.Count(text, "Please answer now") != 1 {
				t.Errorf("the paste has answered:\n%s", text)
			}
			return
		case <-time.After(5 * time.Second / 10):
		case <-ctx.Done():
			t.Fatalf("no answer counts:\n%s", out)
		}
	}
}
