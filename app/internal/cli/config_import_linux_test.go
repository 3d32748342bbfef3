package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// At a terminal the person sees what the copy of a reference server would start, and decides; only a yes
// replaces it. The other client's file stays as it is.
func TestImportAsksAtTerminal(t *testing.T) {
	t.Parallel()
	const theirs = `{"mcpServers": {"clock": {"command": "uvx", "args": ["mcp-server-time", "--local-timezone", "Europe/Paris"]}}}`
	for _, test := range []struct {
		name, typed string
		builtin     bool
	}{
		{"yes", "y\r", true}, {"no", "n\r", false}, {"Enter", "\r", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			cursor := filepath.Join(dir, ".cursor", "mcp.json")
			mkdir(t, filepath.Dir(cursor))
			write(t, cursor, theirs)
			w := newWindow(t, dir, nil, "config", "import", "clock")
			w.start()
			go w.read()
			w.sees("is one that Parley has built in", "- uvx mcp-server-time --local-timezone Europe/Paris",
				"serve time --local-timezone Europe/Paris", "Start the built-in one? [y/N]")
			own := filepath.Join(dir, "parley", "parley.jsonc")
			if text, err := os.ReadFile(own); err == nil && strings.Contains(string(text), "clock") {
				t.Errorf("it is written before the answer: %s", text)
			}
			w.answers(test.typed)
			w.gone()
			w.unchanged()
			if code := w.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit code %d: %q", code, w.out)
			}
			text, err := os.ReadFile(own)
			if err != nil || strings.Contains(string(text), "mcp-server-time") == test.builtin || !strings.Contains(string(text), "clock") {
				t.Errorf("the copy is %s, %v", text, err)
			}
			if text, err := os.ReadFile(cursor); err != nil || string(text) != theirs {
				t.Errorf("the other file is %s, %v", text, err)
			}
		})
	}
}
