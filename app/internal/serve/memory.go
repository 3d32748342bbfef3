package serve

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/memory"
	"github.com/parley-mcp/parley/server"
)

// memoryServer is the memory of facts in a file.
func memoryServer() builtin {
	return builtin{
		name:  "memory",
		short: "A memory of facts, as a graph of entities and relations in one file",
		risk:  "it reads and writes one file, and the lock file next to it",
		long: `Serve a persistent memory: entities, observations about them, and relations between
them, in a file of JSON lines that @modelcontextprotocol/server-memory reads and writes
too. The file is --file, or the environment variable MEMORY_FILE_PATH, or memory.jsonl
in Parley's settings folder. Several processes can use it at once. Each change is on
disk before the server answers the call.`,
		example: `  parley serve memory
  parley serve memory --file ~/notes/memory.jsonl
  parley serve memory --file ~/notes/memory.jsonl --read-only`,
		args:     cobra.NoArgs,
		readOnly: true,
		flags: func(f *pflag.FlagSet) openBuiltin {
			var o memory.Options
			file := f.String("file", "", "store the memory in this `FILE` (default: $MEMORY_FILE_PATH, or memory.jsonl in the settings folder)")
			f.IntVar(&o.MaxFile, "max-file", memory.DefaultMaxFile, "maximum size of the file, in `BYTES`")
			f.IntVar(&o.MaxResult, "max-result", memory.DefaultMaxResult, "maximum size of one tool result, in `BYTES` of JSON; longer results have pages")
			f.BoolVar(&o.SetAside, "set-aside", false, "move unreadable lines to FILE.rejected instead of keeping them in the file")
			f.BoolVar(&o.Confirm, "confirm", false, "ask the user before deleting anything, if the client supports it")
			return func(_ context.Context, _ *group, _ []string, b *builtinOptions) (*server.Server, io.Closer, error) {
				if o.MaxFile <= 0 || o.MaxResult <= 0 {
					return nil, nil, kit.Usagef("--max-file and --max-result must be above 0")
				}
				path := cmp.Or(*file, os.Getenv("MEMORY_FILE_PATH"))
				if path == "" {
					var err error
					if path, err = kit.Path("memory.jsonl"); err != nil {
						return nil, nil, err
					}
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						return nil, nil, err
					}
				}
				o.Server, o.ReadOnly, o.WriteScope = &b.server, b.readOnly, b.writeScope
				s, err := memory.New(kit.Version(), path, &o)
				if err != nil {
					return nil, nil, kit.Usagef("--file: %w", err)
				}
				return s, nil, nil
			}
		},
	}
}
