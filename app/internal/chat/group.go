// Package chat has the commands that hold conversations, with what belongs to them: configuration, models,
// rules, approvals and the log of what was done.
package chat

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// A group is the commands that hold conversations.
type group struct {
	*connect.Connector
	models *models

	held    map[string]*os.File // locks of the sessions that are open here, by their ids
	unkept  bool                // there is no folder for sessions
	welcome string              // what the screen says at the beginning of a first conversation
}

// settings are the commands that show and change the user's files, rules and approvals.
type settings struct{ *connect.Connector }

// models are the models that the user can choose, and the commands for them.
type models struct{ *connect.Connector }

// Register adds the commands to the tree of the program. Without a command, the program holds a conversation.
func Register(root *cobra.Command, c *connect.Connector) {
	ms, st := &models{c}, &settings{c}
	g := &group{Connector: c, models: ms}
	kit.AddCommands(root, kit.GroupTalk, g.chatCommand(), g.runCommand(), g.initCommand(), ms.modelCommand(),
		g.sessionCommand(), g.historyCommand())
	kit.AddCommands(root, kit.GroupPermissions, st.configCommand(), st.policyCommand(), st.grantsCommand(),
		st.pinsCommand(), st.auditCommand())
	alone := g.chatCommand()
	root.Flags().AddFlagSet(alone.Flags())
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if !c.Streams.InTerminal || !c.Streams.OutTerminal {
			return cmd.Help()
		}
		alone.SetContext(cmd.Context())
		return g.start(alone)
	}
}
