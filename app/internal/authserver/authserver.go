// Package authserver has the commands that run an authorization server and administer it.
package authserver

import (
	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// A program is one run of a command.
type program struct {
	*kit.Console

	// misplaced reports whether flags were given that are for commands that use an MCP server.
	misplaced func() bool
}

// Commands returns the commands. misplaced reports whether flags were given that are for commands
// that use an MCP server.
func Commands(c *kit.Console, misplaced func() bool) []*cobra.Command {
	p := &program{c, misplaced}
	return append([]*cobra.Command{
		p.serveCommand(), p.backupCommand(), p.restoreCommand(), p.migrateCommand(), p.auditCommand(), p.secretsCommand(),
	}, p.adminCommands()...)
}
