// Package serve has the commands that serve the built-in servers, pass others on over another transport, and
// help to write new ones.
package serve

import (
	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// A group is the commands of the package.
type group struct{ *connect.Connector }

// Register adds the commands to the tree of the program.
func Register(root *cobra.Command, c *connect.Connector) {
	g := &group{c}
	bridge := g.bridgeCommand()
	g.ServerFlags(bridge)
	kit.AddCommands(root, kit.GroupServe, g.newCommand(), g.devCommand(), g.serveCommand(), bridge)
}
