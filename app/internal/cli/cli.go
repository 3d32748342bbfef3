// Package cli is the command line of the program: it reads the commands and
// puts the other packages together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/discover"
	"github.com/parley-mcp/parley/app/internal/inspect/mask"
)

// Streams are what the program is connected to. Results go to Out, and nothing
// else; questions, progress, labels and errors go to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal say that a person is at the
	// other end.
	InTerminal, OutTerminal, ErrTerminal bool
	// Screen says that In and Out are one terminal on which a screen can be drawn.
	Screen bool
	// Width tells the columns of the terminal at Err; nil means 80.
	Width func() int
	// Secret reads a line from the terminal without showing it, or gives up at
	// the end of ctx; nil means that this cannot be done.
	Secret func(ctx context.Context) (string, error)
	// Flush throws away what was typed at the terminal In and not read yet; nil means
	// that this cannot be done.
	Flush func()
	// Passphrase is that of the encrypted store of tokens, if it needs none to
	// be asked for it.
	Passphrase string
	// SystemRoot stands before the paths of the machine's administrator; empty is the
	// machine's own root.
	SystemRoot string
	// ModelPorts are asked for local models at the first run; nil means the usual ports.
	ModelPorts []discover.Port
	// ModelWait is how long they may take to answer; 0 means the usual time.
	ModelWait time.Duration
	// StartWait is how long the first message of a conversation waits for servers that are
	// starting; 0 means the usual time.
	StartWait time.Duration
	// Now is the clock by which lines are typed or pasted; nil means time.Now.
	Now func() time.Time
	// Interrupts are the person's Ctrl-C, and what else asks the program to
	// end; nil means that none come.
	Interrupts <-chan os.Signal

	// chat gets the Ctrl-C of a command that handles it by itself; nil otherwise.
	chat atomic.Pointer[chan os.Signal]
	// secrets is what mask returns; nil before its first call.
	secrets atomic.Pointer[mask.Masker]
}

// Standard returns the streams of the process.
func Standard() *Streams {
	interrupts := make(chan os.Signal, 2)
	// SIGTERM and SIGHUP as well: servers that do not end when their input
	// does would be left behind.
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The browser, and what it starts in turn, would inherit it.
	phrase := os.Getenv(passphraseName)
	_ = os.Unsetenv(passphraseName) // fails for impossible names alone
	in, out := term.IsTerminal(int(os.Stdin.Fd())), term.IsTerminal(int(os.Stdout.Fd()))
	return &Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: in, OutTerminal: out, Screen: in && out && drawable(),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			width, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 0
			}
			return width
		},
		Secret:     readSecret,
		Flush:      func() { flushTerminal(int(os.Stdin.Fd())) },
		Passphrase: phrase,
		Interrupts: interrupts,
	}
}

// readSecret reads a line from the terminal without showing it. What it
// switched off is on again when it returns, also if it gave up.
func readSecret(ctx context.Context) (string, error) {
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	done := make(chan line, 1)
	go func() { // ends with the line, or with the process
		text, err := term.ReadPassword(fd)
		done <- line{text, err}
	}()
	select {
	case got := <-done:
		return string(got.text), got.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, state))
	}
}

// Main runs one command and returns the exit code of the process. The first
// interrupt ends what is under way in good order; at the second, Main returns
// at once and leaves the rest to the end of the process.
func Main(ctx context.Context, args []string, s *Streams) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if _, shared := s.Err.(*sharedWriter); !shared {
		s.Err = &sharedWriter{w: s.Err, secrets: s.mask}
	}
	done := make(chan error, 1)
	go func() { done <- execute(ctx, args, s) }()
	signalled := exitInterrupted
	for interrupts := 0; ; {
		select {
		case err := <-done:
			if err != nil && interrupts > 0 {
				err = errInterrupted // whatever it was, the person ended it
			}
			code := finish(s, err)
			if code == exitInterrupted {
				code = signalled
			}
			return code
		case sig := <-s.Interrupts:
			if chat := s.chat.Load(); chat != nil && sig == os.Interrupt {
				select {
				case *chat <- sig:
					continue
				default: // it does not take them any more
				}
			}
			interrupts++
			if number, ok := sig.(syscall.Signal); ok {
				signalled = exitSignal + int(number)
			}
			if interrupts > 1 {
				_, _ = fmt.Fprintln(s.Err) // after the ^C that terminals show
				return signalled
			}
			_, _ = fmt.Fprintln(s.Err, "\nparley: ending; press Ctrl-C again to quit at once")
			cancel(errInterrupted)
		}
	}
}

// A sharedWriter is standard error, to which the log and the program write at once, or the
// screen while there is one. Each write is whole, and the secrets in it are masked.
type sharedWriter struct {
	secrets func() *mask.Masker

	mu sync.Mutex
	w  io.Writer
}

// divert has everything go elsewhere until the function that it returns is called.
func (s *sharedWriter) divert(to io.Writer) (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.w
	s.w = to
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.w = before
	}
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	text := s.secrets().Known(string(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.WriteString(s.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// execute runs the command that args name.
func execute(ctx context.Context, args []string, s *Streams) error {
	root := newRoot(s)
	if cmd, _, err := root.Find(args); err == nil && cmd.Name() == inspectName {
		args = spreadWords(args)
	}
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args if they are nil
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	return root.ExecuteContext(ctx)
}

// finish tells the person about an error, and returns its exit code.
func finish(s *Streams, err error) int {
	if err == nil {
		return exitOK
	}
	var silent *silentError
	if !errors.As(err, &silent) {
		_, _ = fmt.Fprintf(s.Err, "parley: %s\n", explain(err))
	}
	return exitCode(err)
}

// Commands returns the tree of commands, for what is written about them: manual
// pages and completions.
func Commands() *cobra.Command {
	return newRoot(&Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
}

// newRoot makes the tree of commands.
func newRoot(s *Streams) *cobra.Command {
	p := &program{streams: s}
	alone := p.chatCommand() // what the program does without a command
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
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !s.InTerminal || !s.OutTerminal {
				return cmd.Help()
			}
			alone.SetContext(cmd.Context())
			return p.start(alone)
		},
	}
	root.Flags().AddFlagSet(alone.Flags())
	root.CompletionOptions.HiddenDefaultCmd = true
	// Lines of flags fit terminals of the usual width.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 80 "))
	root.SetFlagErrorFunc(flagError)
	p.globals(root.PersistentFlags())
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Conversations:", []*cobra.Command{
			p.chatCommand(), p.runCommand(), p.initCommand(), p.modelCommand(), p.sessionCommand(), p.historyCommand(),
		}},
		{"What may be done:", []*cobra.Command{
			p.configCommand(), p.policyCommand(), p.grantsCommand(), p.pinsCommand(), p.auditCommand(), p.loginCommand(), p.logoutCommand(),
		}},
		{"Using servers:", []*cobra.Command{
			p.toolsCommand(), p.callCommand(), p.tasksCommand(), p.readCommand(), p.promptCommand(), p.completeCommand(), p.skillsCommand(),
		}},
		{"Testing servers:", []*cobra.Command{
			p.inspectCommand(), p.examineCommand(), p.traceCommand(), p.recordCommand(), p.replayCommand(), p.lockCommand(), p.diffCommand(),
			p.loadCommand(), p.chaosCommand(),
		}},
		{"Writing and running servers:", []*cobra.Command{
			p.newCommand(), p.devCommand(), p.packageCommand(), p.serveCommand(), p.bridgeCommand(), p.authCommand(),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(p.versionCommand())
	return root
}

// noCommand refuses arguments of a command that takes none and has commands beneath it: they are the
// name of one that is not there.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	name := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " " + args[0])
	return usagef("there is no command %q%s; '%s --help' lists the commands", name, didYouMean(cmd, args[0]), cmd.CommandPath())
}

// didYouMean asks after a command beneath cmd whose name is nearly that of one that is not there.
func didYouMean(cmd *cobra.Command, name string) string {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	near := config.Nearest(name, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// usageArgs makes a wrong number of arguments an error of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("too few or too many arguments; write: %s", cmd.UseLine())
		}
		return nil
	}
}
