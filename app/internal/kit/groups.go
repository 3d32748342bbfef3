package kit

import (
	"slices"

	"github.com/spf13/cobra"
)

// Titles of the groups of commands in the help, in their order.
const (
	GroupTalk        = "Conversations:"
	GroupPermissions = "Permissions:"
	GroupUse         = "Using servers:"
	GroupTest        = "Testing servers:"
	GroupServe       = "Writing and running servers:"
)

// AddGroups adds the titles to the help of root.
func AddGroups(root *cobra.Command) {
	for _, title := range []string{GroupTalk, GroupPermissions, GroupUse, GroupTest, GroupServe} {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
	}
}

// AddCommands adds commands below a title. If root has a command of a name already, it adds the commands below
// the new one to that one.
func AddCommands(root *cobra.Command, title string, commands ...*cobra.Command) {
	for _, c := range commands {
		i := slices.IndexFunc(root.Commands(), func(known *cobra.Command) bool { return known.Name() == c.Name() })
		if i < 0 {
			c.GroupID = title
			root.AddCommand(c)
			continue
		}
		below := c.Commands()
		c.RemoveCommand(below...)
		root.Commands()[i].AddCommand(below...)
	}
}

// AuthCommand returns the command auth with commands below it.
func AuthCommand(below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   "auth",
		Short: "Manage sign-ins and run an authorization server",
		Args:  NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(below...)
	return c
}
