package tasks

import (
	"testing"

	"github.com/parley-mcp/parley/mcp"
)

// A result whose _meta is null says which task it belongs to, as others do.
func TestCoreOutcomeNullMeta(t *testing.T) {
	got, err := coreOutcome(&Task{ID: "a", Status: Completed, Result: mcp.RawValue(`{"content":[],"_meta":null}`)})
	const want = `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}},"content":[]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
