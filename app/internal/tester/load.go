package tester

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/model"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/load"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/jsonrpc"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/policy"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// loadFlags are the flags of the command load.
type loadFlags struct {
	clients   int
	rate      float64
	duration  time.Duration
	requests  int64
	timeout   time.Duration
	method    string
	params    string
	call      string
	args      string
	yesRemote bool
}

func (g *group) loadCommand() *cobra.Command {
	flags := &loadFlags{}
	cmd := &cobra.Command{
		Use:   "load [flags] [KEY=VALUE...] SERVER | [KEY=VALUE...] -- COMMAND",
		Short: "Send many calls to a server and measure their latency",
		Long: `Send calls to a server from one or more concurrent clients and print the latency
percentiles, the maximum, the calls per second, and the errors by kind. If the
server is a command, Parley starts it once for each client.

Each client sends a call when its previous one has ended. With --rate, calls are
scheduled at regular times instead, and the latency of a call starts at its
scheduled time, so a stall shows in every call that had to wait for it. Parley also
reports calls that it could not send in time because all clients were still
waiting; add clients to reduce them.

Each call uses --method, by default tools/list, or with --call a tool, with
KEY=VALUE before the server or --args as in 'parley call'. Parley does not use
cached responses and does not retry. Only calls without errors count for latency.

Without --duration and --requests, Parley sends calls for 10 seconds. It uses at most
` + fmt.Sprint(load.MaxClients) + ` clients. For a server that is not on this machine, pass --yes-remote to confirm
that its operator agrees.`,
		Example: `  parley load -- ./server
  parley load --clients 20 --rate 500 --duration 30s http://localhost:3000/mcp
  parley load --requests 1000 --call add a=2 b=3 --json everything`,
		RunE: func(cmd *cobra.Command, args []string) error {
			given, rest := []string(nil), args
			for len(rest) > 0 && len(args)-len(rest) != cmd.ArgsLenAtDash() && strings.Contains(rest[0], "=") && !kit.IsURL(rest[0]) {
				given, rest = append(given, rest[0]), rest[1:]
			}
			t, err := loadTarget(cmd, args, rest)
			if err != nil {
				return err
			}
			return g.load(cmd.Context(), t, given, flags)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&flags.clients, "clients", "c", 1, "`NUMBER` of clients, each with a connection and one call at a time")
	f.Float64Var(&flags.rate, "rate", 0, "`CALLS` per second of all clients together (default: as many as possible)")
	f.DurationVar(&flags.duration, "duration", 0, "`TIME` to send calls for (default: 10s, or until --requests)")
	f.Int64Var(&flags.requests, "requests", 0, "total `NUMBER` of calls to send (default: no limit)")
	f.DurationVar(&flags.timeout, "timeout", 10*time.Second, "`TIME` after which a call without a response is an error")
	f.StringVar(&flags.method, "method", "tools/list", "`METHOD` to call")
	f.StringVar(&flags.params, "params", "", "params of the method as one `JSON` object")
	f.StringVar(&flags.call, "call", "", "`TOOL` to call, instead of a method")
	f.StringVar(&flags.args, "args", "", "arguments of the tool as one `JSON` object")
	f.BoolVar(&flags.yesRemote, yesRemote, false, "also send calls to a server that is not on this machine")
	return cmd
}

// loadTarget is the server of a command line from which leading KEY=VALUE were taken.
func loadTarget(cmd *cobra.Command, all, rest []string) (connect.Target, error) {
	dash := cmd.ArgsLenAtDash()
	taken := len(all) - len(rest)
	switch {
	case dash < 0 && len(rest) > 1, dash > taken:
		return connect.Target{}, kit.Usagef("%q: tool arguments must be KEY=VALUE; name one server, and write a command with arguments after --", rest[0])
	case dash >= 0 && (len(rest) == 0 || rest[0] == ""):
		return connect.Target{}, kit.Usagef("write the command after --, for example: parley load -- ./server")
	}
	return connect.Target{Words: rest, Command: dash >= 0}, nil
}

// check refuses flags that do not go together, and values out of bounds.
func (l *loadFlags) check(given []string) error {
	isCall := l.call != ""
	switch {
	case l.clients < 1:
		return kit.Usagef("--clients %d: must be at least 1", l.clients)
	case l.duration < 0 || l.requests < 0 || l.rate < 0 || l.timeout <= 0:
		return kit.Usagef("--duration, --requests, --rate and --timeout must not be negative")
	case isCall && (l.method != "tools/list" || l.params != ""):
		return kit.Usagef("--call cannot be used with --method or --params")
	case !isCall && (len(given) > 0 || l.args != ""):
		return kit.Usagef("KEY=VALUE and --args are tool arguments; name the tool with --call")
	case l.args != "" && len(given) > 0:
		return kit.Usagef("arguments cannot be given both as KEY=VALUE and with --args")
	}
	for flag, text := range map[string]string{"args": l.args, "params": l.params} {
		if text == "" {
			continue
		}
		if err := model.CheckObject(mcp.RawValue(text)); err != nil {
			return kit.Usagef("--%s: must be a JSON object: %w", flag, err)
		}
	}
	return nil
}

// load runs a load and tells what came of it.
func (g *group) load(ctx context.Context, t connect.Target, given []string, flags *loadFlags) error {
	pairs, err := connect.KeyValues(given)
	if err != nil {
		return err
	}
	if err := flags.check(given); err != nil {
		return err
	}
	run := load.Options{Clients: flags.clients, Rate: flags.rate, Duration: flags.duration, Requests: flags.requests, Kind: kindOfError}
	if err := run.Check(); err != nil {
		return kit.Usagef("%w", err)
	}
	s, err := g.TargetServer(ctx, t)
	defer g.SignIns.Close()
	if err != nil {
		return err
	}
	if err := remoteLoad(&s, flags.yesRemote); err != nil {
		return err
	}
	if flags.call != "" {
		if err := g.ManagedDenial(&policy.Query{Kind: policy.KindTool, Server: s.Name, Name: flags.call}); err != nil {
			return err
		}
	}
	opts := &client.Options{
		Versions: s.Versions, CallTimeout: flags.timeout, MaxCallTime: flags.timeout, Retries: -1, Eras: client.NewEraMemory(), CacheBytes: -1, CacheEntries: -1,
		Logger: g.Logger(),
	}
	call, err := flags.caller(ctx, &s, opts, pairs)
	if err != nil {
		return g.Output.WithLog(connect.AtServer(s.Name, err))
	}
	run.Connect = func(ctx context.Context) (*load.Conn, error) {
		c, err := client.Connect(ctx, s.Dialer, opts)
		if err != nil {
			return nil, err
		}
		return &load.Conn{Call: func(ctx context.Context) error { return call(ctx, c) }, Close: c.Close}, nil
	}
	defer collectLess()()
	r, err := load.Run(ctx, run)
	if err != nil {
		return g.Output.WithLog(connect.AtServer(s.Name, err))
	}
	return g.printLoad(r)
}

// loadGarbage is how much garbage there may be while load is generated, in percent of what is in use:
// there is little of that, and collecting it takes time from calls.
const loadGarbage = 800

// collectLess has less garbage collected until the function that it returns is called.
func collectLess() (restore func()) {
	before := debug.SetGCPercent(loadGarbage)
	return func() { debug.SetGCPercent(before) }
}

// remoteLoad refuses a server that is not on this machine, unless that is agreed to.
func remoteLoad(s *host.Server, agreed bool) error {
	if _, command := s.Dialer.(*stdio.CommandDialer); command || agreed {
		return nil
	}
	u, err := url.Parse(s.Dialer.Key())
	if err == nil && oauth.LoopbackHost(u.Hostname()) {
		return nil
	}
	return kit.Usagef("the server %s is not on this machine: many calls could harm it and its other users; pass --yes-remote if its operator agrees", host.EscapeLine(s.Name))
}

// caller makes the call of each request. The schema of a tool is asked for once.
func (l *loadFlags) caller(ctx context.Context, s *host.Server, opts *client.Options, pairs []model.Pair) (func(ctx context.Context, c *client.Client) error, error) {
	once := &client.CallOptions{NoCache: true}
	if l.call == "" {
		var params any
		if l.params != "" {
			params = mcp.RawValue(l.params)
		}
		return func(ctx context.Context, c *client.Client) error {
			var result mcp.RawValue
			return c.Request(ctx, l.method, params, &result, once)
		}, nil
	}
	args := mcp.RawValue(l.args)
	if l.args == "" {
		c, err := client.Connect(ctx, s.Dialer, opts)
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Close() }() // the tool is known
		tool, err := c.Tool(ctx, l.call)
		if err != nil {
			return nil, err
		}
		if args, err = model.Arguments(tool.InputSchema, pairs); err != nil {
			return nil, kit.Usagef("%w", err)
		}
	}
	return func(ctx context.Context, c *client.Client) error {
		result, err := c.CallTool(ctx, l.call, args, once)
		if err == nil && result.IsError {
			err = &client.ToolError{Tool: l.call, Result: result}
		}
		return err
	}, nil
}

// kindOfError names the kind of an error of a call. None of the names is a server's text.
func kindOfError(err error) string {
	var answered *jsonrpc.Error
	var status *web.StatusError
	switch {
	case errors.As(err, new(*client.ToolError)):
		return "the tool failed"
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &status):
		return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status.Status, http.StatusText(status.Status)))
	case errors.As(err, &answered):
		return fmt.Sprintf("error %d", answered.Code)
	case errors.Is(err, transport.ErrInterrupted):
		return "connection ended during the call"
	case errors.Is(err, transport.ErrClosed), errors.Is(err, transport.ErrStalled):
		return "connection ended"
	case connect.IsServerFault(err):
		return "unusable answer"
	}
	return "no connection"
}

// printLoad prints a report. Without any success it is an error.
func (g *group) printLoad(r *load.Report) error {
	if g.JSON {
		if err := g.PrintJSON(r); err != nil {
			return err
		}
	} else if err := g.Println(loadText(r)); err != nil {
		return err
	}
	switch {
	case r.Interrupted:
		return kit.ErrInterrupted
	case r.OK == 0:
		return &kit.SilentError{Code: kit.ExitTool}
	}
	return nil
}

// loadText is a report for a user.
func loadText(r *load.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests in %.3f s, %d without error, %.1f per second\n", r.Requests, r.Seconds, r.OK, r.PerSecond)
	if l := r.Latency; l != nil {
		fmt.Fprintf(&b, "latency  p50 %s  p90 %s  p99 %s  p99.9 %s  max %s  mean %s\n", ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max), ms(l.Mean))
	}
	if r.Rate > 0 {
		fmt.Fprintf(&b, "rate     %g per second; latency starts at the scheduled time of a call\n", r.Rate)
	}
	if r.NotSent > 0 {
		fmt.Fprintf(&b, "not sent %d, scheduled while all clients were waiting; use more --clients or a lower --rate\n", r.NotSent)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, "errors   %d  %s\n", r.Errors[kind], kind)
	}
	return b.String()
}

// ms writes a time in milliseconds with three digits or so.
func ms(t float64) string {
	switch {
	case t < 10:
		return fmt.Sprintf("%.3f ms", t)
	case t < 1000:
		return fmt.Sprintf("%.1f ms", t)
	}
	return fmt.Sprintf("%.2f s", t/1000)
}
