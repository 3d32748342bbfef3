package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/dev"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
)

// devFlags are the flags of the command dev.
type devFlags struct {
	http              string
	watch, ignore     []string
	every             time.Duration
	start, wait, over time.Duration
	stopFirst         bool
}

func (g *group) devCommand() *cobra.Command {
	var flags devFlags
	cmd := &cobra.Command{
		Use:   "dev [flags] -- COMMAND",
		Short: "Serve a server that you work on: it is started again when files change",
		Long: `Serve a server that you work on to the client that started this program, over
standard input and output, or with --http to any that connects. When files below
the current directory change, or below those of --watch, the command is started
again, while the clients stay connected: they are told that lists have changed, and
need not begin anew.

A new process takes over once it has answered and listed what it offers. If it does
not, because it was not built or ends at once, the one before goes on serving; what
commands say on standard error is shown. Requests wait while a process starts. What
is under way at the process before may finish there; what does not within --drain
gets an error that says that it may have run.

A server that holds something alone, such as a port, a lock or a file, needs
--stop-first: the process before ends, and the new one starts after that. Clients stay
connected; what they ask waits until the new process serves, whatever --wait says. If it
does not start, nothing is offered until one does.

Files are looked at twice a second. Left out are files and folders that begin with
a dot, the folders node_modules, vendor and __pycache__, what --ignore names, and
files that change each time that the server is started. The command gets the whole
environment of this program.`,
		Example: `  parley dev -- go run .
  parley dev --watch src --ignore '*.log' -- npx tsx src/server.ts
  parley dev --http 127.0.0.1:8080 -- python server.py
  parley dev --stop-first -- go run . -database words.db`,
		RunE: func(cmd *cobra.Command, args []string) error { return g.dev(cmd, args, &flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.http, "http", "", "serve over HTTP on this `ADDRESS`, such as 127.0.0.1:8080 (default: standard input and output)")
	f.StringArrayVar(&flags.watch, "watch", nil, "`FOLDER` whose files are looked at; may be given several times (default: the current one)")
	f.StringArrayVar(&flags.ignore, "ignore", nil, "`PATTERN` of files or folders to leave out, such as '*.log'; may be given several times")
	f.DurationVar(&flags.every, "every", 500*time.Millisecond, "`TIME` between two looks at the files")
	f.DurationVar(&flags.start, "start-time", 2*time.Minute, "`TIME` that a process may take until it answers, with all that is built before")
	f.DurationVar(&flags.wait, "wait", 30*time.Second, "`TIME` that requests wait for a process that starts, before the one before gets them")
	f.DurationVar(&flags.over, "drain", 10*time.Second, "`TIME` that what is under way may take at the process before")
	f.BoolVar(&flags.stopFirst, "stop-first", false, "end the process before, and then start the new one: for servers that hold a port, a lock or a file alone")
	return cmd
}

func (g *group) dev(cmd *cobra.Command, args []string, flags *devFlags) error {
	ctx := cmd.Context()
	_, t, err := connect.TargetOf(cmd, args, 0)
	switch {
	case err != nil:
		return err
	case !t.Command:
		return kit.Usagef("the command of the server belongs after --, such as: parley dev -- go run .")
	case cmd.Flags().Changed("http") && flags.http == "":
		return kit.Usagef("--http is empty; write it as HOST:PORT or :PORT")
	case min(flags.every, flags.start, flags.wait, flags.over) <= 0:
		return kit.Usagef("--every, --start-time, --wait and --drain are times above zero, such as 10s")
	}
	if _, _, err := net.SplitHostPort(flags.http); flags.http != "" && err != nil {
		return kit.Usagef("--http %q: write it as HOST:PORT or :PORT", flags.http)
	}
	s, err := g.TargetServer(ctx, t) // an administrator may deny it
	if err != nil {
		return err
	}
	command, ok := s.Dialer.(*stdio.CommandDialer)
	if !ok || kit.IsURL(t.Words[0]) {
		return kit.Usagef("dev starts a command, and %q is none", t.Words[0])
	}
	started := *command
	started.Stderr, started.Logger = g.Streams.Err, g.Logger()
	if started.Name == t.Words[0] { // it is no entry of the configuration, which says its environment
		started.Env = os.Environ()
	}
	note := func(text string) { g.Note("parley: %s", host.EscapeLine(text)) }
	w := &dev.Watcher{Folders: flags.watch, Ignore: flags.ignore, Interval: flags.every, Report: note}
	if len(w.Folders) == 0 {
		w.Folders = []string{"."}
	}
	if err := w.Prepare(); err != nil {
		return kit.Usagef("%w", err)
	}
	r := dev.New(&started, &dev.Options{
		Name: s.Name, StartTime: flags.start, WaitTime: flags.wait, Drain: flags.over, StopFirst: flags.stopFirst, Report: note, Logger: g.ServerLogger(),
	})
	err = g.serveDev(ctx, r, w, flags)
	return errors.Join(err, r.Close())
}

// serveDev serves until the client leaves or ctx ends.
func (g *group) serveDev(ctx context.Context, r *dev.Runner, w *dev.Watcher, flags *devFlags) error {
	if err := r.Start(ctx); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		err := w.Run(ctx, func(files []string) {
			g.Note("parley: %s; the server is started again", host.EscapeLine(changedFiles(files)))
			_ = r.Restart(ctx) // it is reported
		})
		if ctx.Err() == nil {
			end(err) // there is nothing to watch any more
		}
	}()
	var err error
	if flags.http != "" {
		err = g.devHTTP(ctx, r, flags.http)
	} else {
		if g.Streams.InTerminal {
			g.Note("parley: serving on standard input and output, where a client is expected; Ctrl-D ends it")
		}
		err = stdio.Serve(ctx, r.Server())
	}
	if cause := context.Cause(ctx); cause != nil && err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	end(nil)
	<-watched
	return err
}

func (g *group) devHTTP(ctx context.Context, r *dev.Runner, addr string) error {
	listening := false
	err := streamable.Serve(ctx, addr, r.Server(), &streamable.Options{Logger: g.ServerLogger(), HTTP: web.ServeOptions{
		Grace: kit.ShutdownTime, Logger: g.ServerLogger(),
		Listening: func(at net.Addr) {
			listening = true
			g.Note("parley: serving at http://%s%s; Ctrl-C ends it", front.Reachable(at), streamable.Path)
		},
		Shutdown: r.Server().Shutdown,
	}})
	if err != nil && !listening {
		return kit.Usagef("--http: %w", err)
	}
	return err
}

// changedFiles says which files have changed, some of them by name.
func changedFiles(files []string) string {
	const named = 3
	if len(files) > named {
		return fmt.Sprintf("%s and %d more files changed", strings.Join(files[:named], ", "), len(files)-named)
	}
	return strings.Join(files, ", ") + " changed"
}
