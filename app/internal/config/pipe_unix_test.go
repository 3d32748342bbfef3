//go:build unix

package config_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A folder, a pipe and a link to nothing are told of, and never waited for.
func TestNotRegular(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"home/.cursor/mcp.json/x", "home/.copilot/y", "home/.agents/z"} {
		d.write(name, "")
	}
	if err := syscall.Mkfifo(d.path("home/.copilot/mcp-config.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.link("nowhere", "home/.agents/mcp.json")
	d.link("mcp.json", "home/.mcp-inspector/mcp.json")
	c := d.load()
	want := map[string]string{
		"home/.cursor/mcp.json":         "this is no regular file",
		"home/.copilot/mcp-config.json": "this is no regular file",
		"home/.agents/mcp.json":         "the link points to nothing",
		"home/.mcp-inspector/mcp.json":  "too many levels of symbolic links",
	}
	for _, p := range c.Problems {
		name, _ := filepath.Rel(d.root, p.Source.File)
		if !strings.Contains(p.Text, want[name]) || want[name] == "" {
			t.Errorf("problem %v", p)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no problems for %v", want)
	}
}
