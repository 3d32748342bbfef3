package cli_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/racetest"
)

// The servers that others wrote have what they really have, and no error; their locks are the
// same each time. npx brings each once: the check starts it many times, and npx takes seconds.
func TestForeignServersAreExamined(t *testing.T) {
	racetest.SkipSerial(t)
	t.Parallel()
	needNPX(t)
	for _, test := range []struct {
		name  string
		args  []string
		codes []string
		lock  bool // its lock is compared, too
	}{
		{
			// It pages nothing and ignores cursors; two tools depend on the client; some arguments
			// have no description; it waits for something after the end of its input.
			"everything",
			[]string{"stdio"},
			[]string{"MCP-CONN-006", "MCP-ERA-008", "MCP-MODEL-002", "MCP-PAGE-006", "MCP-PROMPT-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
			true,
		},
		{
			"filesystem",
			[]string{t.TempDir()},
			[]string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
			true,
		},
		{
			"memory",
			nil,
			[]string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
			false,
		},
		{
			"sequential-thinking",
			nil,
			[]string{"MCP-PAGE-006", "MCP-SCHEMA-013", "MCP-TOOL-007"}, // its description has 2,781 characters
			false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			command := append([]string{installed(t, test.name)}, test.args...)
			code, out, stderr := run(t, "", append([]string{"doctor", "--json", "--timeout", "1m", "--"}, command...)...)
			var report struct {
				Findings []struct {
					Code   string `json:"code"`
					Reason string `json:"reason"`
				} `json:"findings"`
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
				t.Errorf("exit code %d, %v\n%s", code, err, stderr)
			}
			var found []string
			for _, f := range report.Findings {
				if f.Code != "MCP-CONN-006" { // whether it ends in time depends on the machine
					found = append(found, f.Code)
				}
				if !slices.Contains(test.codes, f.Code) {
					t.Errorf("%s: %s", f.Code, f.Reason)
				}
			}
			for _, want := range test.codes {
				if want != "MCP-CONN-006" && !slices.Contains(found, want) {
					t.Errorf("%s is not found", want)
				}
			}
			if !test.lock {
				return
			}
			lock := filepath.Join(t.TempDir(), "lock.json")
			if code, _, stderr := run(t, "", append([]string{"lock", "--out", lock, "--"}, command...)...); code != 0 {
				t.Errorf("lock: exit code %d\n%s", code, stderr)
			}
			if code, out, stderr := run(t, "", append([]string{"diff", "--fail-on", "safe", lock, "--"}, command...)...); code != 0 || out != "" {
				t.Errorf("diff: exit code %d, %s\n%s", code, out, stderr)
			}
		})
	}
}

// installed is the program of a server that others wrote, which npx has brought.
func installed(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "npx", "-y", "-p", "@modelcontextprotocol/server-"+name+"@2026.8.31",
		"-c", "command -v mcp-server-"+name)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return strings.TrimSpace(string(out))
}
