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
		Short: "Serve a server under development and restart it when files change",
		Long: `Serve a server under development to the client that started this program, over
standard input and output, or with --http to any client that connects. When files in
the current directory or in --watch folders change, dev restarts the command. Clients
stay connected: they receive list change notifications and do not have to reconnect.

A new process takes over after it has responded and listed its features. If it fails,
because the build fails or it exits immediately, the previous process keeps serving.
Dev shows the standard error of all commands. Requests wait while a process starts.
Requests in progress can finish at the previous process; a request that does not finish
within --drain gets an error saying that it might have run.

A server that needs exclusive use of a resource, such as a port, a lock or a file,
requires --stop-first: dev ends the previous process before it starts the new one.
Clients stay connected, and their requests wait until the new process serves,
regardless of --wait. If it does not start, the server offers nothing until one does.

Dev checks files twice a second. It ignores files and folders that begin with a dot, the
folders node_modules, vendor and __pycache__, matches of --ignore, and files that change
every time the server starts. The command gets the whole environment of this program.`,
		Example: `  parley dev -- go run .
  parley dev --watch src --ignore '*.log' -- npx tsx src/server.ts
  parley dev --http 127.0.0.1:8080 -- python server.py
  parley dev --stop-first -- go run . -database words.db`,
		RunE: func(cmd *cobra.Command, args []string) error { return g.dev(cmd, args, &flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.http, "http", "", "serve over HTTP on this `ADDRESS`, such as 127.0.0.1:8080 (default: standard input and output)")
	f.StringArrayVar(&flags.watch, "watch", nil, "`FOLDER` to watch (repeatable) (default: the current directory)")
	f.StringArrayVar(&flags.ignore, "ignore", nil, "`PATTERN` of files or folders to ignore, such as '*.log' (repeatable)")
	f.DurationVar(&flags.every, "every", 500*time.Millisecond, "`TIME` between two checks of the files")
	f.DurationVar(&flags.start, "start-time", 2*time.Minute, "`TIME` for a process to build and start responding")
	f.DurationVar(&flags.wait, "wait", 30*time.Second, "`TIME` that requests wait for a starting process before the previous one gets them")
	f.DurationVar(&flags.over, "drain", 10*time.Second, "`TIME` for requests in progress to finish at the previous process")
	f.BoolVar(&flags.stopFirst, "stop-first", false, "end the previous process before starting the new one: for servers that hold a port, a lock or a file")
	return cmd
}

func (g *group) dev(cmd *cobra.Command, args []string, flags *devFlags) error {
	ctx := cmd.Context()
	_, t, err := connect.TargetOf(cmd, args, 0)
	switch {
	case err != nil:
		return err
	case !t.Command:
		return kit.Usagef("write the server's command after --, for example: parley dev -- go run .")
	case cmd.Flags().Changed("http") && flags.http == "":
		return kit.Usagef("--http must not be empty; write it as HOST:PORT or :PORT")
	case min(flags.every, flags.start, flags.wait, flags.over) <= 0:
		return kit.Usagef("--every, --start-time, --wait and --drain must be above 0, such as 10s")
	}
	if _, _, err := net.SplitHostPort(flags.http); flags.http != "" && err != nil {
		return kit.Usagef("--http %q: must be HOST:PORT or :PORT", flags.http)
	}
	s, err := g.TargetServer(ctx, t) // an administrator may deny it
	if err != nil {
		return err
	}
	command, ok := s.Dialer.(*stdio.CommandDialer)
	if !ok || kit.IsURL(t.Words[0]) {
		return kit.Usagef("dev starts a command; %q is not a command", t.Words[0])
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
			g.Note("parley: %s; restarting the server", host.EscapeLine(changedFiles(files)))
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
			g.Note("parley: serving on standard input and output and waiting for a client; Ctrl-D ends it")
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
