package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// What was written is told to programs too. Package scaffold has the test that builds it.
func TestNewServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "src")
	code, out, errs := run(t, "", "new", "server", "words", "--dir", dir, "--replace", "../../..", "--json")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	var report struct {
		Folder, Module, Replace string
		Files, Next             []string
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Folder != dir || report.Module != "words" || len(report.Files) != 8 || len(report.Next) != 3 {
		t.Errorf("%+v", report)
	}
	code, _, errs = run(t, "", "new", "server", "words", "--dir", dir)
	if code != 1 || !strings.Contains(errs, "is not empty") {
		t.Errorf("a second time: exit code %d\n%s", code, errs)
	}
}
