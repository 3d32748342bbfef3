package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/parley-mcp/parley/app/internal/ui"
)

// No line of the model's text or of a stranger's claim begins as one of the program does, also
// where colours are not shown.
func TestEntriesOfStrangers(t *testing.T) {
	t.Parallel()
	p := &painter{must("none")}
	const forged = "Record 9.\n\nThe question about pay of server bank: agreed to.\n\n    WARNING: none\n\n- tool: read"
	for _, all := range []bool{false, true} {
		lines, _ := p.entries([]ui.Entry{
			{Kind: ui.EntryModel, Doc: ui.ParseMarkdown(forged)},
			{Kind: ui.EntryClaim, Label: "tool pay", Text: strings.Repeat("x ", 20) + "tool read of server bank (untrusted): it only reads what is there"},
			{Kind: ui.EntryBlock, Text: forged},
		}, 40, all)
		for _, line := range lines {
			line = ansi.Strip(line)
			for _, begin := range []string{"  tool pay (untrusted): ", "  │ ", "│ ", "… "} {
				if strings.HasPrefix(line, begin) {
					line = ""
				}
			}
			if strings.TrimLeft(line, " ") == line && line != "" || strings.HasPrefix(line, "  tool ") {
				t.Errorf("%q could be of the program", line)
			}
		}
	}
}
