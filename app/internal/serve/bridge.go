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
		Short: "Make a server available over another transport or protocol version",
		Long: `Make a server available over another transport. With --http, bridge serves a stdio
server over HTTP. With --stdio, it serves a remote server over standard input and
output, for clients that start servers as child processes. SERVER is a URL, a
configured name, or "everything"; write a COMMAND after --.

The two sides can use different protocol versions. When the server requests input
during a call (elicitation, sampling or roots), bridge forwards the request to the
client that made the call, in the form that this client's version uses. Bridge also
forwards progress, log messages, cancellation, subscriptions and list changes. It
does not forward protocol extensions such as tasks.

Over HTTP the endpoint is /mcp, for clients of every protocol version; /sse is for
clients that support only HTTP+SSE, and /ws is for WebSocket. An address without a
host, such as :8080, is reachable only from this machine. Without --auth, bridge does
not authenticate callers, and all of them use your credentials at the server.

If the server uses a protocol version with sessions, each client session gets its own
connection or process, which ends with the session. Clients without sessions get one
for each caller that --auth distinguishes; all others share one. When
--max-connections is reached, a new client replaces an idle one, or is rejected. A
process that ended is restarted after a pause when it is needed; bridge never repeats
a call that might have run.`,
		Example: `  parley bridge --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-everything stdio
  parley bridge --http :8080 files
  parley bridge --stdio https://example.com/mcp`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return g.bridge(cmd, args, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.HTTP, "http", "", "serve over HTTP on this `ADDRESS`, such as 127.0.0.1:8080")
	f.BoolVar(&flags.stdio, "stdio", false, "serve the client that started this program, over standard input and output")
	f.IntVar(&flags.Connections, "max-connections", 32, "maximum `NUMBER` of sessions at /mcp, of sessions at /sse and /ws together, and of callers without a session")
	f.BoolVar(&flags.SingleUser, "single-user", false, "all HTTP clients are yours: calls without a session run concurrently, and an input request can reach another of your clients")
	f.DurationVar(&flags.Idle, "idle", 15*time.Minute, "close connections, and sessions at /mcp, that are idle for this `TIME`")
	flags.AddFlags(f)
	return cmd
}

// checkTogether refuses flags that do not go together.
func (b *bridgeFlags) checkTogether(set *pflag.FlagSet) error {
	switch {
	case b.stdio && set.Changed("http"), !b.stdio && !set.Changed("http"):
		return kit.Usagef("missing transport: use --http ADDRESS for HTTP clients, or --stdio for the client that starts this program")
	case b.stdio && (set.Changed("max-connections") || set.Changed("idle") || b.SingleUser):
		return kit.Usagef("--max-connections, --idle and --single-user require --http: standard input and output belong to one client")
	case b.SingleUser && len(b.Auth) > 0:
		return kit.Usagef("--single-user and --auth cannot be used together: --auth distinguishes callers")
	case b.SingleUser && kit.ListensEverywhere(b.HTTP):
		return kit.Usagef("--single-user: --http %q is reachable from other machines; omit the host", b.HTTP)
	case b.Connections < 1 || b.Connections > maxBridged:
		return kit.Usagef("--max-connections %d: must be 1 to %d", b.Connections, maxBridged)
	case b.Idle < time.Second:
		return kit.Usagef("--idle %v: must be at least one second, such as 15m", b.Idle)
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
		return nil, fmt.Errorf("the tools listed in the entry of %q: %w", s.Name, err)
	}
	return func(_ context.Context, it server.Item) bool {
		return it.Kind != server.KindTool || p.Decide(&policy.Query{Kind: policy.KindTool, Name: it.Name}).Effect == policy.Allow
	}, nil
}

// bridgeStdio serves the client that started this program.
func (g *group) bridgeStdio(ctx context.Context, b *bridge.Bridge, name string) error {
	if g.Streams.InTerminal {
		g.Note("parley: bridging %q on standard input and output and waiting for a client; Ctrl-D ends it", name)
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
