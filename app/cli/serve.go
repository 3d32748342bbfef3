package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/servers/everything"
	"github.com/parley-mcp/parley/app/store/tasks"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// shutdownTime is how long a server gets to end what it does.
const shutdownTime = 5 * time.Second

// serveFlags are the flags of the command serve.
type serveFlags struct {
	httpFlags

	tasks string
}

func (p *program) serveCommand() *cobra.Command {
	flags := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve NAME",
		Short: "Serve a built-in server on standard input and output, or over HTTP",
		Long: `Serve a built-in server to the client that started this program, over standard
input and output, or with --http to any that connects. There is one server:
everything, a demonstration that uses every feature of the protocol.

Over HTTP the endpoint is /mcp, for clients of every revision; old clients find
HTTP+SSE at /sse, and WebSocket is at /ws. An address without host, such as
:8080, is reached from this machine alone. Nobody is asked who they are: do
not open it to others.

With --sessionless no sessions are kept at /mcp for clients of revisions before
the newest: each request is served by itself, and these clients are asked nothing
and told of no changes.

What clients carry from one request to the next, such as the state of a call that
asks them something, is sealed with a key. Replicas behind one address need the
same one: --state-key-file. "openssl rand -hex 32" makes a key.

With --auth callers need a token of an authorization server, made out to the
endpoint, or to --resource: with http://127.0.0.1:8080 there one sign-in is good
for all three endpoints. Tools that change something, such as toggle-extra-tool,
then need the scope everything:write.

Calls of some tools become tasks, for clients that know them. They are kept in
memory; with --tasks in an SQLite file or a PostgreSQL database, where they survive
this process, and which several processes may share. What clients send is kept there
in the clear.

With --metrics a page for Prometheus shows how many requests there are, how they
go and how long they take, at an address of its own. With --otlp traces of them go
to a collector of OpenTelemetry, over HTTP as JSON; keys that it wants are in the
environment variable OTEL_EXPORTER_OTLP_HEADERS, as name=value,name=value.`,
		Example: `  parley serve everything
  parley serve everything --http 127.0.0.1:8080
  parley serve everything --http 127.0.0.1:8080 --auth http://127.0.0.1:9000 --scope everything:read
  parley serve everything --http 127.0.0.1:8080 --metrics :9090 --otlp http://localhost:4318`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return p.serve(cmd, args[0], flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.http, "http", "", "serve over HTTP on this `ADDRESS`, such as 127.0.0.1:8080 (default: standard input and output)")
	flags.guarded(f)
	f.StringVar(&flags.tasks, "tasks", "", "keep tasks in this SQLite `FILE`, or PostgreSQL database: postgres://USER@HOST/NAME (default: in memory)")
	return cmd
}

// serve serves a built-in server as the flags say.
func (p *program) serve(cmd *cobra.Command, name string, flags *serveFlags) (err error) {
	if name != bundled {
		return usagef("there is no built-in server %q; there is %q", name, bundled)
	}
	if len(p.serverFlags)+len(p.headers) > 0 {
		return usagef("serve is a server itself; --server and --header are for commands that use one")
	}
	if err := flags.checkTogether(cmd.Flags()); err != nil {
		return err
	}
	write := ""
	if flags.auth != "" {
		write = writeScope
	}
	keys, err := readStateKeys(flags.stateKeys)
	if err != nil {
		return err
	}
	opts := &everything.Options{WriteScope: write, Server: &server.Options{StateKeys: keys}, Logger: p.serverLogger()}
	if cmd.Flags().Changed("tasks") {
		store, err := tasks.Open(cmd.Context(), flags.tasks, nil)
		if err != nil {
			return openingError(cmd.Context(), "--tasks", "the tasks", err)
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		opts.Tasks = store
	}
	s := everything.New(version(), opts)
	watch, stop, err := flags.start(cmd.Context(), p, cmd.Flags())
	if err != nil {
		return err
	}
	defer stop()
	watch(s)
	if flags.http != "" {
		return p.serveHTTP(cmd.Context(), &flags.httpFlags, &httpService{
			name: bundled, what: "serving", writeScope: writeScope, start: s.Start, shutdown: s.Shutdown,
			mount: func(access web.Access) mounted { return p.mountAll(s, access, &flags.httpFlags) },
		})
	}
	return p.serveStdio(cmd.Context(), s)
}

func (p *program) serveStdio(ctx context.Context, s *server.Server) error {
	if p.streams.InTerminal {
		p.note("parley: serving %q on standard input and output, where a client is expected; Ctrl-D ends it", bundled)
	}
	s.Start() // tasks that an earlier process left are taken up before the first request
	err := stdio.Serve(ctx, s)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if shutErr := s.Shutdown(end); err == nil {
		err = shutErr
	}
	return err
}
