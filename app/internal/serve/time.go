package serve

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/timezone"
	"github.com/parley-mcp/parley/server"
)

// timeServer tells the time and converts times between zones.
func timeServer() builtin {
	return builtin{
		name:  "time",
		short: "The time in a time zone, and times of one zone in another",
		risk:  "none: it reads the clock, and shows the name of the local time zone",
		long: `Serve the tools get_current_time and convert_time, as mcp-server-time does. All time
zones of the IANA database are part of the program.

The tools use the local zone unless a call names another one. It is set by
--local-timezone, the environment variable TZ or the system. If the system's zone has
no IANA name, as on Windows, it is UTC. The tools also accept names of Windows zones,
such as "W. Europe Standard Time".`,
		example: `  parley serve time
  parley serve time --local-timezone Europe/Paris`,
		args: cobra.NoArgs,
		flags: func(f *pflag.FlagSet) openBuiltin {
			local := f.String("local-timezone", "", "local time `ZONE`, such as Europe/Paris (default: the system time zone)")
			return func(_ context.Context, p *group, _ []string, b *builtinOptions) (*server.Server, io.Closer, error) {
				o := timezone.Options{Server: &b.server, Local: *local}
				if o.Local == "" {
					var err error
					if o.Local, err = timezone.LocalName(); err != nil {
						p.Note("parley: %v; set the zone with --local-timezone", err)
					}
				}
				s, err := timezone.New(kit.Version(), &o)
				if err != nil {
					return nil, nil, kit.Usagef("--local-timezone %q: %w", o.Local, err)
				}
				return s, nil, nil
			}
		},
	}
}
