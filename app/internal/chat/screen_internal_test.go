package chat

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/parley-mcp/parley/app/internal/chat/tui"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// The editor is VISUAL or EDITOR, with its arguments, and its file is gone afterwards.
func TestEditorOf(t *testing.T) {
	if _, err := exec.LookPath("sed"); err != nil {
		t.Skip("there is no sed")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	edit := editorOf(func(name string) string {
		return map[string]string{"VISUAL": "sed -i.bak s/two/TWO/", "EDITOR": "false"}[name]
	})
	if got, err := edit(t.Context(), "one two\n"); err != nil || got != "one TWO\n" {
		t.Errorf("got %q, %v", got, err)
	}
	var exit *exec.ExitError
	edit = editorOf(func(name string) string { return map[string]string{"EDITOR": "false"}[name] })
	if _, err := edit(t.Context(), "x"); !errors.As(err, &exit) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if editorOf(func(string) string { return "" }) != nil {
		t.Error("there is an editor without VISUAL and EDITOR")
	}
}

// The code of a terminal that was closed is that of SIGHUP, which comes with it.
func TestClosedTerminal(t *testing.T) {
	if code := connect.ExitCode(fmt.Errorf("the screen: %w", closedTerminal(fmt.Errorf("drawing: %w", tui.ErrTerminal)))); code != kit.ExitSignal+1 {
		t.Errorf("exit code %d", code)
	}
	if err := closedTerminal(io.EOF); err != io.EOF { //nolint:errorlint // the same error
		t.Errorf("%v", err)
	}
	if closedTerminal(nil) != nil {
		t.Error("an error without one")
	}
}
