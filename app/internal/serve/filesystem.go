package serve

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/filesystem"
	"github.com/parley-mcp/parley/server"
)

// filesystemServer serves the files of chosen directories.
func filesystemServer() builtin {
	return builtin{
		name:  "filesystem",
		use:   "[DIR...]",
		short: "Read, write, edit, search and move the files of chosen directories",
		risk:  "it reads all files in the given directories, and changes them unless --read-only; nothing outside of them",
		long: `Serve the files in the given directories: tools that read, write, edit, list, search
and move them, and the files as resources to subscribe to. The tools are the same as
in @modelcontextprotocol/server-filesystem.

Without directories, a client on standard input and output sets them with its roots.
Roots never extend or replace the given directories.`,
		example: `  parley serve filesystem ~/notes
  parley serve filesystem ~/src ~/docs --read-only
  parley serve filesystem /srv/data --http 127.0.0.1:8080`,
		args:     cobra.ArbitraryArgs,
		readOnly: true,
		flags: func(f *pflag.FlagSet) openBuiltin {
			var opts filesystem.Options
			f.BoolVar(&opts.Confirm, "confirm", false, "ask the user before changing or moving an existing file, if the client supports it")
			f.Int64Var(&opts.MaxRead, "max-read", 8<<20, "read at most this many `BYTES` of files in one call")
			return func(_ context.Context, _ *group, args []string, o *builtinOptions) (*server.Server, io.Closer, error) {
				if opts.MaxRead < 1 {
					return nil, nil, kit.Usagef("--max-read: must be at least 1 byte")
				}
				opts.Server, opts.WriteScope, opts.ReadOnly = &o.server, o.writeScope, o.readOnly
				s, closer, err := filesystem.New(kit.Version(), args, &opts)
				if err != nil {
					return nil, nil, kit.Usagef("serve filesystem: %v", err)
				}
				return s, closer, nil
			}
		},
	}
}
