// Package use has the commands that use MCP servers directly: they list and call tools, prompts and
// resources, and sign in to servers.
package use

import (
	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// A group is the commands of the package, with the servers that they use.
type group struct{ *connect.Connector }

// Register adds the commands to the tree of the program.
func Register(root *cobra.Command, c *connect.Connector) {
	g := &group{c}
	tools, call, tasks, read := g.toolsCommand(), g.callCommand(), g.tasksCommand(), g.readCommand()
	prompt, complete, skills := g.promptCommand(), g.completeCommand(), g.skillsCommand()
	g.SessionFlags(tools, call, read, prompt, complete, skills)
	auth := kit.AuthCommand(g.statusCommand(), g.doctorCommand())
	g.JSONFlag(append(auth.Commands(), tools, call, tasks, read, prompt, complete, skills)...)
	kit.AddCommands(root, kit.GroupUse, tools, call, tasks, read, prompt, complete, skills)
	kit.AddCommands(root, kit.GroupPermissions, g.loginCommand(), g.logoutCommand())
	kit.AddCommands(root, kit.GroupServe, auth)
}
