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
		risk:  "thoughts go to standard error, which some clients store in log files; turn this off with DISABLE_THOUGHT_LOGGING=true",
		long: `Serve the tool sequentialthinking, with which a model writes one thought in each call,
revises earlier thoughts and tries alternatives, as in
@modelcontextprotocol/server-sequential-thinking. The server does not store thoughts.

It prints them on standard error for users. To turn this off, set the environment
variable DISABLE_THOUGHT_LOGGING=true.`,
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
