// Package serve has the commands that serve the built-in servers, bridge other servers to another transport,
// and help develop new servers.
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
