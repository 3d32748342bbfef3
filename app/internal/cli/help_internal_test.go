package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// The help of every command fits a terminal of 90 columns, but for tables.
func TestHelpIsNarrow(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Long) {
			if strings.HasPrefix(line, "  ") {
				continue
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 90 {
				t.Errorf("a line of the help of %q has %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	root := newRoot(&kit.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	walk(root)
	if len(root.Commands()) == 0 {
		t.Error("no commands")
	}
}
