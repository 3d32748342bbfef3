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
		risk:  "it reads and writes the one file that it is given, and that file's lock beside it",
		long: `Serve a memory that lasts: entities, observations about them, and relations between
them, in a file of JSON lines that @modelcontextprotocol/server-memory reads and writes
as well. The file is that of --file, or of the environment variable MEMORY_FILE_PATH,
or memory.jsonl in the folder of Parley's settings. Several processes may use it at
once; each change is on the disk when its call is answered.`,
		example: `  parley serve memory
  parley serve memory --file ~/notes/memory.jsonl
  parley serve memory --file ~/notes/memory.jsonl --read-only`,
		args:     cobra.NoArgs,
		readOnly: true,
		flags: func(f *pflag.FlagSet) openBuiltin {
			var o memory.Options
			file := f.String("file", "", "keep the memory in this `FILE` (default: $MEMORY_FILE_PATH, or memory.jsonl in the folder of settings)")
			f.IntVar(&o.MaxFile, "max-file", memory.DefaultMaxFile, "the most `BYTES` that the file may have")
			f.IntVar(&o.MaxResult, "max-result", memory.DefaultMaxResult, "the most `BYTES` of JSON in one result of a tool; more comes in pages")
			f.BoolVar(&o.SetAside, "set-aside", false, "move lines that cannot be read to FILE.rejected, instead of keeping them in the file")
			f.BoolVar(&o.Confirm, "confirm", false, "have the person asked before something is deleted, by clients that can ask")
			return func(_ context.Context, _ *group, _ []string, b *builtinOptions) (*server.Server, io.Closer, error) {
				if o.MaxFile <= 0 || o.MaxResult <= 0 {
					return nil, nil, kit.Usagef("--max-file and --max-result must be more than 0")
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
