// Package serve has the commands that serve the built-in servers and write new ones.
package serve

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// A program is one run of a command.
type program struct {
	*kit.Console

	// misplaced reports whether flags were given that are for commands that use a server.
	misplaced func() bool
}

// Command returns the command serve. misplaced reports whether flags were given that are for
// commands that use a server.
func Command(c *kit.Console, misplaced func() bool) *cobra.Command {
	return (&program{c, misplaced}).serveCommand()
}

// NewCommand returns the command new.
func NewCommand(c *kit.Console) *cobra.Command { return (&program{Console: c}).newCommand() }

// IsBuiltin reports whether the program contains a server of a name.
func IsBuiltin(name string) bool {
	return slices.ContainsFunc(builtins(), func(b builtin) bool { return b.name == name })
}
