package doctor_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
)

// The guide has a row for each code, and no other codes.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/guide/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, c := range doctor.Codes() {
		row := fmt.Sprintf("| `%s` | %s | %s | %s |", c.ID, c.Severity, c.Title, c.Fix)
		if !strings.Contains(text, row+"\n") {
			t.Errorf("docs/guide/doctor.md must have the row:\n%s", row)
		}
		text = strings.ReplaceAll(text, row, "")
	}
	if more := regexp.MustCompile("(?m)^\\| `MCP-.*").FindString(text); more != "" {
		t.Errorf("docs/guide/doctor.md has a row without a code: %s", more)
	}
}
