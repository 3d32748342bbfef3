// Package authserver has the commands that run and administer an authorization server.
package authserver

import (
	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
)

// A group is the commands of the package.
type group struct{ *kit.Console }

// Register adds the commands to the tree of the program.
func Register(root *cobra.Command, c *kit.Console) {
	g := &group{c}
	kit.AddCommands(root, kit.GroupServe, kit.AuthCommand(append([]*cobra.Command{
		g.serveCommand(), g.backupCommand(), g.restoreCommand(), g.migrateCommand(), g.auditCommand(), g.secretsCommand(),
	}, g.adminCommands()...)...))
}
