package serve

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/everything"
	"github.com/parley-mcp/parley/server"
)

// everythingServer is the demonstration of the protocol.
func everythingServer() builtin {
	return builtin{
		name:  kit.Bundled,
		short: "A demonstration that uses every feature of the protocol",
		risk:  "none: it uses no files, network or programs; it shows the names of its environment variables",
		long: `Serve a demonstration that uses every feature of the protocol: tools of every kind,
resources that change, prompts, input requests to the user and the model, tasks,
skills and apps. It stores nothing permanently.`,
		example: `  parley serve everything
  parley serve everything --http 127.0.0.1:8080`,
		args:     cobra.NoArgs,
		tasks:    true,
		readOnly: true,
		flags: func(*pflag.FlagSet) openBuiltin {
			return func(_ context.Context, _ *group, _ []string, o *builtinOptions) (*server.Server, io.Closer, error) {
				return everything.New(kit.Version(), &everything.Options{
					WriteScope: o.writeScope, ReadOnly: o.readOnly, Server: &o.server, Tasks: o.tasks,
				}), nil, nil
			}
		},
	}
}
