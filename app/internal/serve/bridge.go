package serve

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/internal/bridge"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// maxBridged is the greatest --max-connections.
const maxBridged = 10_000

// bridgeFlags are the flags of the command bridge.
type bridgeFlags struct {
	front.Flags

	bridge.Endpoints

	stdio bool
}

func (g *group) bridgeCommand() *cobra.Command {
	flags := &bridgeFlags{}
	cmd := &cobra.Command{
		Use:   "bridge [flags] SERVER | -- COMMAND",
		Short: "Serve a server of one transport and revision to clients of any other",
		Long: `Serve what one server has to clients that cannot reach it: a program that speaks
over its standard input and output to clients over HTTP, with --http; one at a URL
to a client that starts programs, with --stdio. SERVER is a URL, a configured name,
or "everything"; a COMMAND stands after --.

Each side may speak any revision. Where a server asks in the middle of a call, by
requests of its own or by the rounds of the newest revision, the client of that
call is asked, in the way of its own revision. Progress, log messages,
cancellation, subscriptions and changes of lists go through. Extensions of the
protocol, such as tasks, do not.

Over HTTP the endpoint is /mcp, for clients of every revision; /sse is for those that
speak HTTP+SSE alone, and /ws for WebSocket. An address without host, such as :8080, is
reached from this machine alone. Nobody is asked who they are without --auth, and all
act with your credentials at the server.

A server of a revision with sessions gets a connection, or a process, of its own
for each session of a client, which ends with that; clients without sessions have
one for each caller that --auth tells apart, and all others one together. With
--max-connections one more client takes the place of one that is idle, or is
refused. A process that ends is started again when it is needed, after a pause;
no call that may have run is sent again.`,
		Example: `  parley bridge --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-everything stdio
  parley bridge --http :8080 files
  parley bridge --stdio https://example.com/mcp`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return g.bridge(cmd, args, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.HTTP, "http", "", "serve over HTTP on this `ADDRESS`, such as 127.0.0.1:8080")
	f.BoolVar(&flags.stdio, "stdio", false, "serve on standard input and output, to the client that started this program")
	f.IntVar(&flags.Connections, "max-connections", 32, "the most sessions at /mcp, as many at /sse and /ws together, and the most callers without a session: `NUMBER`")
	f.BoolVar(&flags.SingleUser, "single-user", false, "all clients over HTTP are yours: calls of clients without session need not wait for each other, and a question of the server may reach another of your clients than its own")
	f.DurationVar(&flags.Idle, "idle", 15*time.Minute, "end connections, and sessions at /mcp, that nobody has used for this `TIME`")
	flags.AddFlags(f)
	return cmd
}

// checkTogether refuses flags that do not go together.
func (b *bridgeFlags) checkTogether(set *pflag.FlagSet) error {
	switch {
	case b.stdio && set.Changed("http"), !b.stdio && !set.Changed("http"):
		return kit.Usagef("say where to serve: --http ADDRESS for clients over HTTP, or --stdio for the one that starts this program")
	case b.stdio && (set.Changed("max-connections") || set.Changed("idle") || b.SingleUser):
		return kit.Usagef("--max-connections, --idle and --single-user go with --http: standard input and output belong to one client")
	case b.SingleUser && len(b.Auth) > 0:
		return kit.Usagef("--single-user and --auth contradict each other: with --auth the callers are told apart")
	case b.SingleUser && kit.ListensEverywhere(b.HTTP):
		return kit.Usagef("--single-user: --http %q can be reached from other machines; leave the host out", b.HTTP)
	case b.Connections < 1 || b.Connections > maxBridged:
		return kit.Usagef("--max-connections %d: write a number from 1 to %d", b.Connections, maxBridged)
	case b.Idle < time.Second:
		return kit.Usagef("--idle %v: write a time of a second or more, such as 15m", b.Idle)
	}
	return b.CheckTogether(set)
}

// bridge serves the server that the arguments name.
func (g *group) bridge(cmd *cobra.Command, args []string, flags *bridgeFlags) error {
	_, t, err := connect.TargetOf(cmd, args, 0)
	if err != nil {
		return err
	}
	if err := flags.checkTogether(cmd.Flags()); err != nil {
		return err
	}
	if flags.HTTP != "" { // before anything is started
		if _, err := flags.Checked(); err != nil {
			return err
		}
	}
	keys, err := front.ReadStateKeys(flags.StateKeys)
	if err != nil {
		return err
	}
	s, err := g.TargetServer(cmd.Context(), t)
	defer g.SignIns.Close()
	if err != nil {
		return err
	}
	if d, ok := s.Dialer.(*stdio.CommandDialer); ok && !g.Verbose {
		d.Stderr = g.Streams.Err // its log is that of this program
	}
	watch, stop, err := flags.Start(cmd.Context(), g.Console, cmd.Flags())
	if err != nil {
		return err
	}
	defer stop()
	only, err := onlyTools(&s)
	if err != nil {
		return err
	}
	b := bridge.New(s.Dialer, &bridge.Options{
		Proxy:       bridge.ProxyOptions(g.Console, &s, keys),
		MaxSessions: flags.Connections,
		MaxCallers:  flags.Connections,
		Idle:        flags.Idle,
		OnServer: func(srv *server.Server) {
			watch(srv)
			if only != nil {
				srv.Visible(only)
			}
		},
		Logger: g.ServerLogger(),
	})
	if err := b.Start(cmd.Context()); err != nil {
		return g.SignIns.Named(&host.ServerError{Server: s.Name, Err: err})
	}
	if flags.stdio {
		return g.bridgeStdio(cmd.Context(), b, s.Name)
	}
	return front.Serve(cmd.Context(), g.Console, &flags.Flags, &front.Service{
		Name: s.Name, What: "bridging", Start: func() {},
		Shutdown: func(ctx context.Context) error {
			b.Cancel()
			return b.Shutdown(ctx)
		},
		Mount: func(access web.Access) front.Endpoints {
			return bridge.Mount(g.Console, b, access, &flags.Endpoints, flags.Sessionless)
		},
	})
}

// onlyTools hides the tools that a configured entry does not list. It is nil if all are offered.
func onlyTools(s *host.Server) (func(context.Context, server.Item) bool, error) {
	if len(s.OnlyTools) == 0 {
		return nil, nil
	}
	var rules []policy.Rule
	for _, glob := range s.OnlyTools {
		rules = append(rules, policy.Rule{Effect: policy.Allow, Name: glob})
	}
	p, err := policy.New(rules)
	if err != nil {
		return nil, fmt.Errorf("the tools that the entry of %q lists: %w", s.Name, err)
	}
	return func(_ context.Context, it server.Item) bool {
		return it.Kind != server.KindTool || p.Decide(&policy.Query{Kind: policy.KindTool, Name: it.Name}).Effect == policy.Allow
	}, nil
}

// bridgeStdio serves the client that started this program.
func (g *group) bridgeStdio(ctx context.Context, b *bridge.Bridge, name string) error {
	if g.Streams.InTerminal {
		g.Note("parley: bridging %q on standard input and output, where a client is expected; Ctrl-D ends it", name)
	}
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ended := make(chan error, 1)
	end := func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), kit.ShutdownTime)
		defer cancel()
		ended <- b.Shutdown(last) // calls are answered before standard output ends
		stop(context.Cause(ctx))
	}
	early := context.AfterFunc(ctx, func() {
		b.Cancel()
		end()
	})
	err := stdio.Serve(serving, b)
	if early() { // the client ended it
		end()
	}
	if shutErr := <-ended; err == nil {
		err = shutErr
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
