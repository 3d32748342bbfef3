package tui_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui"
	"github.com/parley-mcp/parley/app/internal/ui"
)

// After each of many editors the screen is drawn again, with what came back, and with what
// the program said meanwhile.
func TestEditors(t *testing.T) {
	t.Parallel()
	h, s := open(t)
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	defer in.Close()
	out := newTerminal()
	var screen *tui.Screen
	n := 0
	screen = tui.New(&tui.Options{
		In: in, Out: out, Environ: []string{"TERM=xterm-256color"}, Greeting: "Welcome.",
		Edit: func(_ context.Context, text string) (string, error) {
			if modes := out.String(); strings.LastIndex(modes, "\x1b[?1049l") < strings.LastIndex(modes, "\x1b[?1049h") {
				t.Error("the editor has no screen of its own")
			}
			n++
			_, _ = fmt.Fprintf(screen, "note-%03d\n", n)
			return fmt.Sprintf("text-%03d", n), nil
		},
	})
	done := make(chan error, 1)
	go func() { done <- screen.Run(t.Context(), ui.OfHost(h), ui.OfSession(s, nil)) }()
	out.wait(t, "Welcome.")
	for i := range 50 {
		if _, err := io.WriteString(keys, "\x05"); err != nil {
			t.Fatal(err)
		}
		out.wait(t, fmt.Sprintf("text-%03d", i+1))
		out.wait(t, fmt.Sprintf("note-%03d", i+1))
	}
	if _, err := io.WriteString(keys, "\x15/quit\r"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
