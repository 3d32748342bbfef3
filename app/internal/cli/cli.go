// Package cli is the command line of the program: it reads the commands and
// puts the other packages together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
)

// Main runs one command and returns the exit code of the process. The first
// interrupt ends what is under way in good order; at the second, Main returns
// at once and leaves the rest to the end of the process.
func Main(ctx context.Context, args []string, s *kit.Streams) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.ShareErr()
	done := make(chan error, 1)
	go func() { done <- execute(ctx, args, s) }()
	signalled := kit.ExitInterrupted
	for interrupts := 0; ; {
		select {
		case err := <-done:
			if err != nil && interrupts > 0 {
				err = kit.ErrInterrupted // whatever it was, the person ended it
			}
			code := finish(s, err)
			if code == kit.ExitInterrupted {
				code = signalled
			}
			return code
		case sig := <-s.Interrupts:
			if s.Divert(sig) {
				continue
			}
			interrupts++
			if number, ok := sig.(syscall.Signal); ok {
				signalled = kit.ExitSignal + int(number)
			}
			if interrupts > 1 {
				_, _ = fmt.Fprintln(s.Err) // after the ^C that terminals show
				return signalled
			}
			_, _ = fmt.Fprintln(s.Err, "\nparley: ending; press Ctrl-C again to quit at once")
			cancel(kit.ErrInterrupted)
		}
	}
}

// execute runs the command that args name.
func execute(ctx context.Context, args []string, s *kit.Streams) error {
	console := &kit.Console{Streams: s}
	root := newRoot(console)
	if cmd, _, err := root.Find(args); err == nil {
		args = console.Rewritten(cmd, args)
	}
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args if they are nil
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	return root.ExecuteContext(ctx)
}

// finish writes an error to standard error, and returns its exit code.
func finish(s *kit.Streams, err error) int {
	if err == nil {
		return kit.ExitOK
	}
	var silent *kit.SilentError
	if !errors.As(err, &silent) {
		_, _ = fmt.Fprintf(s.Err, "parley: %s\n", connect.Explain(err))
	}
	return connect.ExitCode(err)
}

// Commands returns the tree of commands, for what is written about them: manual
// pages and completions.
func Commands() *cobra.Command {
	return newRoot(&kit.Console{Streams: &kit.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}})
}

// newRoot makes the tree of commands.
func newRoot(console *kit.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Use MCP servers from a terminal, with a model or by hand",
		Long: `Parley lists and calls what MCP servers offer, and lets a model work with them
while you keep the last word: every call is shown to you before it is made,
unless a rule allows it.

Alone, at a terminal, it opens a conversation; without a file of your own it first
says what it found on this machine. 'parley init' writes that file.

Commands that are about one server use the demonstration server that is built in,
unless --server names another.`,
		Example: `  parley
  parley init
  parley run "add 2 and 3"
  parley tools --server 'npx -y @modelcontextprotocol/server-everything stdio'
  parley tools --server https://example.com/mcp
  parley call echo message=hello
  parley login https://example.com/mcp`,
		Version:       kit.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          kit.NoCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	// Lines of flags fit terminals of the usual width.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 80 "))
	root.SetFlagErrorFunc(kit.FlagError)
	kit.AddGroups(root)
	c := connect.New(console)
	console.VerboseFlag(root)
	for _, register := range groups {
		register(root, c)
	}
	root.AddCommand(versionCommand(c.Console))
	return root
}
