package cli

import (
	"errors"
	"os"
	"os/exec"
	"testing"
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
