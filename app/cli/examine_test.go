package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// The servers that others wrote have what they really have, and no error; their locks are the
// same each time.
func TestForeignServersAreExamined(t *testing.T) {
	needNPX(t)
	for _, test := range []struct {
		command []string
		codes   []string
		lock    bool // its lock is compared, too
	}{
		{
			// It pages nothing and ignores cursors; two tools depend on the client; some arguments
			// have no description; it waits for something after the end of its input.
			[]string{"npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31", "stdio"},
			[]string{"MCP-CONN-006", "MCP-ERA-008", "MCP-MODEL-002", "MCP-PAGE-006", "MCP-PROMPT-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
			true,
		},
		{
			[]string{"npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", t.TempDir()},
			[]string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
			true,
		},
		{
			[]string{"npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"},
			[]string{"MCP-PAGE-006", "MCP-SCHEMA-006", "MCP-SCHEMA-013"},
			false,
		},
		{
			[]string{"npx", "-y", "@modelcontextprotocol/server-sequential-thinking@2026.8.31"},
			[]string{"MCP-PAGE-006", "MCP-SCHEMA-013", "MCP-TOOL-007"}, // its description has 2,781 characters
			false,
		},
	} {
		code, out, stderr := run(t, "", append([]string{"doctor", "--json", "--timeout", "1m", "--"}, test.command...)...)
		var report struct {
			Findings []struct {
				Code   string `json:"code"`
				Reason string `json:"reason"`
			} `json:"findings"`
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
			t.Errorf("%v: exit code %d, %v\n%s", test.command, code, err, stderr)
		}
		var found []string
		for _, f := range report.Findings {
			if f.Code != "MCP-CONN-006" { // whether it ends in time depends on the machine
				found = append(found, f.Code)
			}
			if !slices.Contains(test.codes, f.Code) {
				t.Errorf("%v: %s: %s", test.command, f.Code, f.Reason)
			}
		}
		for _, want := range test.codes {
			if want != "MCP-CONN-006" && !slices.Contains(found, want) {
				t.Errorf("%v: %s is not found", test.command, want)
			}
		}
		if !test.lock {
			continue
		}
		lock := filepath.Join(t.TempDir(), "lock.json")
		if code, _, stderr := run(t, "", append([]string{"lock", "--out", lock, "--"}, test.command...)...); code != 0 {
			t.Errorf("%v: lock: exit code %d\n%s", test.command, code, stderr)
		}
		if code, out, stderr := run(t, "", append([]string{"diff", "--fail-on", "safe", lock, "--"}, test.command...)...); code != 0 || out != "" {
			t.Errorf("%v: diff: exit code %d, %s\n%s", test.command, code, out, stderr)
		}
	}
}
