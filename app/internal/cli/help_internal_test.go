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
	root := newRoot(&kit.Console{Streams: &kit.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}})
	walk(root)
	if len(root.Commands()) == 0 {
		t.Error("no commands")
	}
}

// A flag that cannot be read is told with what to write, and not in the words of Go.
func TestFlagErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"auth", "user", "list", "--limit", "x"}, `--limit "x": must be a whole number; see 'parley auth user list --help'`},
		{[]string{"serve", "memory", "--max-file", "99999999999999999999"}, `--max-file "99999999999999999999": the number is too large; see 'parley serve memory --help'`},
		{[]string{"auth", "serve", "--access-lifetime", "5"}, `--access-lifetime "5": must be a number with a unit, such as 90s, 5m or 24h; see 'parley auth serve --help'`},
		{[]string{"auth", "serve", "--allow-device=x"}, `--allow-device "x": must be true or false; see 'parley auth serve --help'`},
		{[]string{"auth", "serve", "--alow-device"}, `unknown flag: --alow-device; see 'parley auth serve --help'`},
	} {
		root := newRoot(&kit.Console{Streams: &kit.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}})
		root.SetArgs(c.args)
		root.SilenceErrors, root.SilenceUsage = true, true
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
}
