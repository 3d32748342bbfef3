// Package tester has the commands that test servers: they inspect, check, trace, record, replay, load-test,
// compare and package them, and inject faults.
package tester

import (
	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// A group is the commands of the package, with the servers that they test.
type group struct{ *connect.Connector }

// Register adds the commands to the tree of the program.
func Register(root *cobra.Command, c *connect.Connector) {
	g, in, pk := &group{c}, &inspector{c}, &packer{c}
	inspect := in.inspectCommand()
	c.Rewrite(inspect, spreadWords)
	examine, trace, record, replay := g.examineCommand(), g.traceCommand(), g.recordCommand(), g.replayCommand()
	lock, diff, load, chaos, pack := g.lockCommand(), g.diffCommand(), g.loadCommand(), g.chaosCommand(), pk.packageCommand()
	c.SessionFlags(trace)
	c.ServerFlags(inspect, examine, record, replay, lock, diff, load, chaos)
	c.RootFlag(inspect)
	c.JSONFlag(inspect, examine, trace, replay, diff, load, pack)
	kit.AddCommands(root, kit.GroupTest, inspect, examine, trace, record, replay, lock, diff, load, chaos)
	kit.AddCommands(root, kit.GroupServe, pack)
}
