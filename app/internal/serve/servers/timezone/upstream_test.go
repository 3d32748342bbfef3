package timezone_test

import (
	"testing"

	"github.com/parley-mcp/parley/mcptest"
)

// Reports about the original that no other test covers. The name of each is its number in
// modelcontextprotocol/servers; ../testdata/reports.txt lists all reports.
func TestUpstreamReports(t *testing.T) {
	t.Run("3574", func(t *testing.T) { // the tools have annotations
		n := 0
		for tool, err := range mcptest.Client(t, newServer(t, "2025-07-01T12:00:00Z", nil)).Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			if a := tool.Annotations; a == nil || !*a.ReadOnlyHint || *a.DestructiveHint || *a.OpenWorldHint {
				t.Errorf("%s: %+v", tool.Name, a)
			}
		}
		if n != 2 {
			t.Errorf("%d tools, want 2", n)
		}
	})
}
