package cli

import (
	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/authserver"
	"github.com/parley-mcp/parley/app/internal/chat"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/serve"
	"github.com/parley-mcp/parley/app/internal/tester"
	"github.com/parley-mcp/parley/app/internal/use"
)

// groups add commands to the command tree. They do not depend on each other.
var groups = []func(root *cobra.Command, c *connect.Connector){
	chat.Register,
	use.Register,
	tester.Register,
	serve.Register,
	func(root *cobra.Command, c *connect.Connector) { authserver.Register(root, c.Console) },
}
