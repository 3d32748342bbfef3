package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/servers/git"
	"github.com/parley-mcp/parley/server"
)

// gitServer is the server for Git repositories.
func gitServer() builtin {
	return builtin{
		name:  "git",
		use:   "[--repository DIR]",
		short: "Git repositories: status, diffs, log, commits and branches",
		risk:  "it reads and changes repositories: those in --repository, or in the client's roots, or without both any",
		long: `Serve Git repositories, in the place of the reference server mcp-server-git and with the
same tools. Every tool takes the path of a repository; with --repository it has to be
that folder or one within it.

No program is started, whatever a repository says: no hook, filter, pager, monitor or
other command. What cannot be done so says that it needs git: with --git the git
program does everything, with all of these switched off.`,
		example: `  parley serve git --repository ~/project
  parley serve git --repository ~/project --read-only
  parley serve git --repository ~/project --git /usr/bin/git`,
		args:     cobra.NoArgs,
		readOnly: true,
		flags: func(f *pflag.FlagSet) openBuiltin {
			var o git.Options
			f.StringArrayVarP(&o.Repositories, "repository", "r", nil, "touch repositories in this `DIR` alone; may be repeated (default: the roots of the client, if it has any)")
			f.StringVar(&o.Program, "git", "", "use this git `PROGRAM` for everything (default: none)")
			f.BoolVar(&o.Confirm, "confirm", false, "have the person asked before staged changes are thrown away, by clients that can ask")
			f.IntVar(&o.Limits.Output, "max-output", 1<<20, "cut results that have more `BYTES`")
			f.IntVar(&o.Limits.Files, "max-files", 500_000, "look at no more `FILES` in one call")
			f.IntVar(&o.Limits.Commits, "max-commits", 500_000, "read no more `COMMITS` in one call")
			f.Int64Var(&o.Limits.Object, "max-object", 64<<20, "look into no file that has more `BYTES`")
			f.DurationVar(&o.Limits.Time, "timeout", 0, "let the program of --git run no longer (default 1m)")
			return func(ctx context.Context, _ *program, _ []string, b *builtinOptions) (*server.Server, io.Closer, error) {
				if o.Limits.Output < 1 || o.Limits.Files < 1 || o.Limits.Commits < 1 || o.Limits.Object < 1 || o.Limits.Time < 0 {
					return nil, nil, usagef("--max-output, --max-files, --max-commits and --max-object need to be at least 1, and --timeout at least 0")
				}
				for _, dir := range o.Repositories {
					if info, err := os.Stat(dir); err != nil || !info.IsDir() {
						return nil, nil, usagef("--repository %q: there is no such folder", dir)
					}
				}
				o.WriteScope, o.ReadOnly, o.Server = b.writeScope, b.readOnly, &b.server
				s, err := git.New(ctx, version(), &o)
				return s, nil, err
			}
		},
	}
}
