package serve

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/thinking"
	"github.com/parley-mcp/parley/server"
)

// thinkingServer is the tool to think step by step.
func thinkingServer() builtin {
	return builtin{
		name:  "thinking",
		short: "A tool in which a model thinks step by step",
		risk:  "thoughts are shown on standard error, which some clients keep in log files; DISABLE_THOUGHT_LOGGING=true shows none",
		long: `Serve the tool sequentialthinking, in which a model writes down one thought in each
call, revises earlier ones and tries other ways, as
@modelcontextprotocol/server-sequential-thinking does. Thoughts are not kept.

They are shown on standard error for people. With the environment variable
DISABLE_THOUGHT_LOGGING=true they are not.`,
		example: `  parley serve thinking
  DISABLE_THOUGHT_LOGGING=true parley serve thinking`,
		args: cobra.NoArgs,
		flags: func(*pflag.FlagSet) openBuiltin {
			return func(_ context.Context, p *group, _ []string, b *builtinOptions) (*server.Server, io.Closer, error) {
				o := thinking.Options{Server: &b.server}
				if !strings.EqualFold(os.Getenv("DISABLE_THOUGHT_LOGGING"), "true") {
					o.Thoughts = p.Streams.Err
				}
				return thinking.New(kit.Version(), &o), nil, nil
			}
		},
	}
}
