package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/tasks"
	exttasks "github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// A builtin is a server that the program contains, as the command serve offers it.
type builtin struct {
	name    string
	use     string // its arguments, as the usage line shows them
	short   string // what it is for, in one line
	risk    string // what it can do to this machine, in one line
	long    string // the first paragraphs of its help
	example string
	args    cobra.PositionalArgs
	// tasks says that some of its tools become tasks.
	tasks bool
	// readOnly says that it has tools that change something, which --read-only leaves out.
	readOnly bool
	// flags adds flags of its own and returns what makes the server once they were read.
	flags func(f *pflag.FlagSet) openBuiltin
}

// An openBuiltin makes a server of its arguments. What it returns beside it, if anything, is
// closed after the server was shut down.
type openBuiltin func(ctx context.Context, p *group, args []string, o *builtinOptions) (*server.Server, io.Closer, error)

// builtinOptions are what all built-in servers are told.
type builtinOptions struct {
	server server.Options // the keys that seal state, and the log
	// writeScope is what callers need for tools that change something, or "".
	writeScope string
	readOnly   bool
	tasks      exttasks.Store // nil: the memory of the process
}

// builtins are the servers that the program contains.
func builtins() []builtin {
	return []builtin{everythingServer(), filesystemServer(), fetchServer(), gitServer(), memoryServer(), thinkingServer(), timeServer()}
}

// serveFlags are the flags of the commands below serve.
type serveFlags struct {
	front.Flags

	tasks    string
	readOnly bool
}

func (g *group) serveCommand() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "serve NAME",
		Short: "Serve a built-in server on standard input and output, or over HTTP",
		Long: `Serve a built-in server to the client that started this program, over standard
input and output, or with --http to any client that connects. With --list, show the
available servers and what they can do to this machine.

Over HTTP the endpoint is /mcp, for clients of every protocol version; old clients
find HTTP+SSE at /sse, and WebSocket is at /ws. Liveness and readiness are at /livez
and /readyz. An address without a host, such as :8080, is reachable only from this
machine. Without --auth, the server does not authenticate callers: do not expose it.

With --sessionless, /mcp has no sessions for clients of older protocol versions: each
request is independent, and these clients get no input requests and no change
notifications.

The server seals state that clients carry between requests, such as the state of a
call that requests input, with a key. Replicas behind one address need the same key:
use --state-key-file. Run "openssl rand -hex 32" to generate a key.

With --auth, callers need a token from an authorization server, issued for the
endpoint or for --resource: with http://127.0.0.1:8080 there, one sign-in covers all
three endpoints. Tools that change data then require the scope NAME:write; with
--read-only there are none. If there are several authorization servers, the one that
the token names is used. The server checks the token's signature, or with --introspect
asks the authorization server, which also detects revoked tokens: --require-fresh sets
how soon.

Some tool calls become tasks, for clients that support tasks. The server stores tasks
in memory; with --tasks it stores them in an SQLite file or a PostgreSQL database,
where they survive this process and which several processes can share. Data that
clients send is stored there unencrypted.

With --metrics, a separate address serves the number, outcome and duration of requests
for Prometheus. With --otlp, the server sends request traces to an OpenTelemetry
collector, over HTTP as JSON. Put keys for the collector in the environment variable
OTEL_EXPORTER_OTLP_HEADERS, as name=value,name=value.`,
		Example: `  parley serve --list
  parley serve everything
  parley serve everything --http 127.0.0.1:8080
  parley serve everything --http 127.0.0.1:8080 --auth http://127.0.0.1:9000 --scope everything:read
  parley serve everything --http 127.0.0.1:8080 --auth https://login.example --introspect guard.json --require-fresh 30s
  parley serve everything --http 127.0.0.1:8080 --metrics :9090 --otlp http://localhost:4318`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return kit.Usagef("unknown built-in server %q%s; run 'parley serve --list' for a list", args[0], kit.DidYouMean(cmd, args[0]))
			case list:
				return g.listBuiltins()
			}
			return kit.Usagef("missing server name; run 'parley serve --list' for a list")
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the servers and what they can do to this machine")
	g.JSONFlag(cmd)
	for _, b := range builtins() {
		cmd.AddCommand(g.builtinCommand(b))
	}
	return cmd
}

// listBuiltins prints the servers that the program contains.
func (g *group) listBuiltins() error {
	if g.JSON {
		list := make([]map[string]string, 0, len(builtins()))
		for _, b := range builtins() {
			list = append(list, map[string]string{"name": b.name, "arguments": b.use, "description": b.short, "risk": b.risk})
		}
		return g.PrintJSON(list)
	}
	var text strings.Builder
	for _, b := range builtins() {
		fmt.Fprintf(&text, "%s\n  %s\n  Risk: %s\n", strings.TrimSpace(b.name+" "+b.use), b.short, b.risk)
	}
	_, err := io.WriteString(g.Streams.Out, text.String())
	return err
}

// builtinCommand makes the command that serves one server.
func (g *group) builtinCommand(b builtin) *cobra.Command {
	flags := &serveFlags{}
	cmd := &cobra.Command{
		Use:     strings.TrimSpace(b.name + " " + b.use),
		Short:   b.short,
		Long:    b.long + "\n\n" + kit.Wrap("Risk: "+b.risk) + "\n\nSee 'parley serve --help' for serving over HTTP.",
		Example: b.example,
		Args:    kit.UsageArgs(b.args),
	}
	f := cmd.Flags()
	open := b.flags(f)
	f.StringVar(&flags.HTTP, "http", "", "serve over HTTP on this `ADDRESS`, such as 127.0.0.1:8080 (default: standard input and output)")
	flags.AddFlags(f)
	if b.tasks {
		f.StringVar(&flags.tasks, "tasks", "", "store tasks in this SQLite `FILE`, or PostgreSQL database: postgres://USER@HOST/NAME (default: in memory)")
	}
	if b.readOnly {
		f.BoolVar(&flags.readOnly, "read-only", false, "offer no tools that change data")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return g.serve(cmd, &b, open, args, flags) }
	return cmd
}

// serve serves a built-in server as the flags say.
func (g *group) serve(cmd *cobra.Command, b *builtin, open openBuiltin, args []string, flags *serveFlags) (err error) {
	if err := flags.CheckTogether(cmd.Flags()); err != nil {
		return err
	}
	o := &builtinOptions{readOnly: flags.readOnly}
	if len(flags.Auth) > 0 && b.readOnly && !flags.readOnly {
		o.writeScope = b.name + ":write"
	}
	keys, err := front.ReadStateKeys(flags.StateKeys)
	if err != nil {
		return err
	}
	o.server = server.Options{StateKeys: keys, Logger: g.ServerLogger()}
	if cmd.Flags().Changed("tasks") {
		store, err := tasks.Open(cmd.Context(), flags.tasks, nil)
		if err != nil {
			return kit.OpeningError(cmd.Context(), "--tasks", "the tasks", err)
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		o.tasks = store
	}
	s, closer, err := open(cmd.Context(), g, args, o)
	if err != nil {
		return err
	}
	if closer != nil {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	watch, stop, err := flags.Start(cmd.Context(), g.Console, cmd.Flags())
	if err != nil {
		return err
	}
	defer stop()
	watch(s)
	if flags.HTTP != "" {
		return front.Serve(cmd.Context(), g.Console, &flags.Flags, &front.Service{
			Name: b.name, What: "serving", WriteScope: o.writeScope, Start: s.Start, Shutdown: s.Shutdown,
			Mount: func(access web.Access) front.Endpoints { return front.MountAll(g.Console, s, access, &flags.Flags) },
		})
	}
	return g.serveStdio(cmd.Context(), b.name, s)
}

func (g *group) serveStdio(ctx context.Context, name string, s *server.Server) error {
	if g.Streams.InTerminal {
		g.Note("parley: serving %q on standard input and output and waiting for a client; Ctrl-D ends it", name)
	}
	s.Start() // tasks that an earlier process left are taken up before the first request
	err := stdio.Serve(ctx, s)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), kit.ShutdownTime)
	defer cancel()
	if shutErr := s.Shutdown(end); err == nil {
		err = shutErr
	}
	return err
}
