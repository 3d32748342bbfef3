package tester

import (
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/tester/inspect/doctor"
)

// A report as text is readable whatever the length of a server's names.
func TestDescribeLongReport(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x1b", 100_000)
	text := describeReport(&doctor.Report{
		Model:    []doctor.Cost{{Name: long}},
		Findings: []doctor.Finding{{Where: "$.tools['" + long + "']", Reason: "why " + long, Fix: "mend it"}},
	})
	if len(text) > 5000 || !strings.Contains(text, `$.tools['\u{1b}`) || !strings.Contains(text, "mend it") {
		t.Errorf("%d bytes: %.1000s", len(text), text)
	}
}
