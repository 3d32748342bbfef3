package kit

import (
	"fmt"
	"strings"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
)

// Contents returns the text of content blocks.
func Contents(list []mcp.Content) string {
	lines := make([]string, 0, len(list))
	for _, c := range list {
		lines = append(lines, host.ContentText(c))
	}
	return strings.Join(lines, "\n")
}

// A Table is a list of names with descriptions.
type Table struct{ rows [][2]string }

// Add adds a line with the first line of about.
func (t *Table) Add(name, about string) {
	about, _, _ = strings.Cut(strings.TrimSpace(about), "\n")
	t.rows = append(t.rows, [2]string{host.EscapeLine(name), host.EscapeLine(about)})
}

// String formats the table in two columns. A very long name does not widen the first one.
func (t *Table) String() string {
	const widest = 40
	width := 0
	for _, r := range t.rows {
		if n := len([]rune(r[0])); n <= widest {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		line := r[0]
		if r[1] != "" {
			line = fmt.Sprintf("%-*s  %s", width, r[0], r[1])
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
