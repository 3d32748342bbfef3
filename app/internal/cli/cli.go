// Package cli implements the parley command line: it builds the command tree from the command packages,
// runs one command and maps its error to an exit code.
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
// interrupt cancels the command and waits for it; at the second, Main returns
// immediately, and the end of the process cleans up.
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
				err = kit.ErrInterrupted // whatever the error was, the user caused it
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
			_, _ = fmt.Fprintln(s.Err, "\nparley: stopping; press Ctrl-C again to quit immediately")
			cancel(kit.ErrInterrupted)
		}
	}
}

// execute runs the command named by args.
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

// Commands returns the command tree, from which manual
// pages and completions are generated.
func Commands() *cobra.Command {
	return newRoot(&kit.Console{Streams: &kit.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}})
}

// newRoot creates the command tree.
func newRoot(console *kit.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Use MCP servers from a terminal, with a model or by hand",
		Long: `Parley lists and calls the tools, prompts and resources of MCP servers, and lets a
model work with them under your control: it asks for your approval before each
call, unless a rule allows the call.

Without a command, at a terminal, it opens a conversation. If you have no
configuration file, it first lists the servers and models that it found on this
machine. 'parley init' writes the file.

Commands that use one server use the built-in demo server, unless --server names
another one.`,
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
