package losses

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
)

// maxLossesShown is how many losses of one server are printed.
const maxLossesShown = 100

// Describe returns losses as lines of text. tools is how many tools the server has.
func Describe(list []*Loss, tools int) string {
	var b strings.Builder
	for i, l := range list {
		if i == maxLossesShown {
			fmt.Fprintf(&b, "    and %d more\n", len(list)-i)
			break
		}
		of := l.ToolNames()
		if len(l.Tools) == tools && tools > 1 {
			of = fmt.Sprintf("all %d tools", tools)
		}
		fmt.Fprintf(&b, "    %s\n        for %s, of %s\n        why: %s\n        fix: %s\n",
			host.EscapeLine(l.What), l.ProviderNames(), host.EscapeLine(of), host.EscapeLine(l.Why), host.EscapeLine(l.Mend))
	}
	return b.String()
}
