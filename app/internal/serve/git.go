package serve

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/git"
	"github.com/parley-mcp/parley/server"
)

// gitServer is the server for Git repositories.
func gitServer() builtin {
	return builtin{
		name:  "git",
		use:   "[--repository DIR]",
		short: "Git repositories: status, diffs, log, commits and branches",
		risk:  "it reads and changes repositories: those in --repository, or in the client's roots, or any if both are missing",
		long: `Serve Git repositories with the tools of the reference server mcp-server-git, which this
server replaces. Every tool takes the path of a repository, or of a folder in it. With
--repository, the repository must be that folder or one within it. If the folder is a part
of a repository, that repository is served too, all of it.

The server starts no program, whatever a repository says: no git, hook, filter, pager,
monitor or other command. If a repository needs git, for example because it uses SHA-256,
the server says so and changes nothing.`,
		example: `  parley serve git --repository ~/project
  parley serve git --repository ~/project --read-only`,
		args:     cobra.NoArgs,
		readOnly: true,
		flags: func(f *pflag.FlagSet) openBuiltin {
			var o git.Options
			f.StringArrayVarP(&o.Repositories, "repository", "r", nil, "use only repositories in this `DIR` (repeatable) (default: the client's roots, if it has any)")
			f.BoolVar(&o.Confirm, "confirm", false, "ask the user before discarding staged changes, if the client supports it")
			f.IntVar(&o.Limits.Output, "max-output", 1<<20, "truncate results to this many `BYTES`")
			f.IntVar(&o.Limits.Files, "max-files", 500_000, "process at most this many `FILES` in one call")
			f.IntVar(&o.Limits.Commits, "max-commits", 500_000, "read at most this many `COMMITS` in one call")
			f.Int64Var(&o.Limits.Object, "max-object", 64<<20, "do not read files larger than this many `BYTES`")
			return func(_ context.Context, p *group, _ []string, b *builtinOptions) (*server.Server, io.Closer, error) {
				if o.Limits.Output < 1 || o.Limits.Files < 1 || o.Limits.Commits < 1 || o.Limits.Object < 1 {
					return nil, nil, kit.Usagef("--max-output, --max-files, --max-commits and --max-object must be at least 1")
				}
				if err := p.checkRepositories(o.Repositories); err != nil {
					return nil, nil, err
				}
				o.WriteScope, o.ReadOnly, o.Server = b.writeScope, b.readOnly, &b.server
				s, err := git.New(kit.Version(), &o)
				return s, nil, err
			}
		},
	}
}

// checkRepositories checks the folders of --repository, and notes what a caller can reach that the
// flags do not name.
func (g *group) checkRepositories(dirs []string) error {
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return kit.Usagef("--repository %q: folder not found", dir)
		}
		if above, err := git.Above(dir); err == nil && above != "" {
			g.Note("parley: %q is in the repository %q; the whole repository is served", dir, above)
		}
	}
	if len(dirs) == 0 {
		g.Note("parley: without --repository DIR, a local client can use every repository in its roots, and if it has no roots every repository that you can read")
	}
	return nil
}
