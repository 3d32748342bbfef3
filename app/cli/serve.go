package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/servers/everything"
	"github.com/parley-mcp/parley/transport/stdio"
)

// shutdownTime is how long a server gets to end what it does.
const shutdownTime = 5 * time.Second

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve NAME",
		Short: "Serve a built-in server on standard input and output",
		Long: `Serve a built-in server to the client that started this program, over standard
input and output. There is one server: everything, a demonstration that uses
every feature of the protocol.`,
		Example: `  parley serve everything`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != bundled {
				return usagef("there is no built-in server %q; there is %q", args[0], bundled)
			}
			if p.streams.InTerminal {
				p.note("parley: serving %q on standard input and output, where a client is expected; Ctrl-D ends it", bundled)
			}
			s := everything.New(version(), &everything.Options{Logger: p.logger()})
			err := stdio.Serve(cmd.Context(), s)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), shutdownTime)
			defer cancel()
			if shutErr := s.Shutdown(ctx); err == nil {
				err = shutErr
			}
			return err
		},
	}
}
