package thinking_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/thinking"
	"github.com/parley-mcp/parley/mcptest"
)

// Reports about the original that no other test covers. The name of each is its number in
// modelcontextprotocol/servers; ../testdata/reports.txt lists all reports.
func TestUpstreamReports(t *testing.T) {
	c := mcptest.Client(t, thinking.New("1.0.0", nil))
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		t.Run("3004", func(t *testing.T) { // the description spells the arguments as the schema does
			var schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			if len(schema.Properties) != 9 {
				t.Errorf("%d arguments, want 9", len(schema.Properties))
			}
			for name := range schema.Properties {
				if name != "thought" && !strings.Contains(tool.Description, name) {
					t.Errorf("the description does not name %s", name)
				}
			}
		})
		t.Run("3403", func(t *testing.T) { // the tool has annotations
			a := tool.Annotations
			if a == nil || a.ReadOnlyHint == nil || a.DestructiveHint == nil || a.IdempotentHint == nil || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Errorf("%+v", a)
			}
		})
	}
}
