package tester

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/trace"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/transport"
)

func (g *group) traceCommand() *cobra.Command {
	secrets, session := &secretFlags{}, &sessionFlags{}
	var har string
	cmd := &cobra.Command{
		Use:   "trace [flags] SERVER | -- COMMAND",
		Short: "Show every message between this program and a server",
		Long: `Connect to a server, list everything it offers or make the calls you specify, and
show all traffic: every message in both directions with the time since the start,
headers of HTTP requests and responses, event ids, connection steps (process, DNS,
TCP, TLS, exit), rejections with their reasons, and the server's standard error.

SERVER is the name of a configured server, a URL, or the built-in "everything"; write
a command after --.

Parley masks secrets: values of headers, fields and parameters with secret-like names,
strings that look like a token or key, values of environment variables with such
names, values of --header and --secret-env, and any value seen before in such a
place. Parley cannot recognize every secret, so check the output before you share it.

Parley answers no input requests, except for roots (--root).

With --json each event is a line of JSON. With --har Parley also writes the HTTP
traffic to a file in the format HTTP Archive 1.2, which browsers can display.`,
		Example: `  parley trace everything
  parley trace --call echo message=hello everything
  parley trace --json --har trace.har https://example.com/mcp
  parley trace --method tools/list -- npx -y @modelcontextprotocol/server-everything`,
		Args: kit.UsageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error { return g.trace(cmd, args, har, secrets, session) },
	}
	cmd.Flags().StringVar(&har, "har", "", "also write HTTP requests and responses to this `FILE`")
	secrets.flags(cmd.Flags())
	session.flags(cmd.Flags())
	return cmd
}

func (g *group) trace(cmd *cobra.Command, args []string, har string, secrets *secretFlags, session *sessionFlags) error {
	t, calls, m, err := g.observation(cmd, args, secrets, session)
	if err != nil {
		return err
	}
	write := trace.Text(g.Streams.Out)
	if g.JSON {
		write = trace.JSON(g.JSONOut())
	}
	tracer := trace.New(m, write)
	g.Tap = tracer.Tap
	writeHAR := func() error { return nil }
	if har != "" {
		file, err := os.OpenFile(har, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return kit.Usagef("--har: %w", err)
		}
		archive := trace.NewHAR(m)
		g.Tap = both(tracer.Tap, archive.Tap)
		writeHAR = func() error { return errors.Join(archive.Write(file, kit.Version()), file.Close()) }
	}
	err = g.observe(cmd.Context(), t, m, session, calls)
	counts, writing := tracer.Close()
	writing = errors.Join(writing, writeHAR())
	if !g.JSON && counts != (trace.Counts{}) {
		g.Note("parley: %s", counts)
	}
	return errors.Join(err, writing)
}

// observe has a session with one server, whose dialers have p.Tap.
func (g *group) observe(ctx context.Context, t connect.Target, m *mask.Masker, session *sessionFlags, calls []toolCall) error {
	s, err := g.TargetServer(ctx, t)
	if err != nil {
		return err
	}
	defer g.SignIns.Close()
	session.bound(&s)
	err = g.connected(ctx, &s, func(c *client.Client) error { return g.converse(ctx, c, s.Name, m, session, calls) })
	if err != nil {
		return g.maskedLog(m, err)
	}
	return nil
}

// connected has a client of one server for as long as fn runs. It sends nothing by itself but
// what a connection begins with, and answers no questions but that for roots.
func (g *group) connected(ctx context.Context, s *host.Server, fn func(c *client.Client) error) error {
	opts := &client.Options{
		Info: mcp.Implementation{Name: "parley", Version: kit.Version()}, Versions: s.Versions,
		Extensions: []client.Extension{tasks.Client(nil)}, Logger: g.Logger(),
		CallTimeout: s.CallTimeout, ConnectTimeout: s.ConnectTimeout,
	}
	roots, err := g.Roots()
	if err != nil {
		return err
	}
	if len(roots) > 0 {
		opts.OnRoots = func(context.Context) ([]mcp.Root, error) { return roots, nil }
	}
	if opts.LogLevel, err = g.Level(); err != nil {
		return err
	}
	if opts.LogLevel != "" {
		opts.OnLog = func(context.Context, *mcp.LogParams) {} // they are among the messages
	}
	c, err := client.Connect(ctx, s.Dialer, opts)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &host.ServerError{Server: s.Name, State: host.StateStarting, Err: err}
	}
	err = connect.AtServer(s.Name, fn(c))
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	return err
}

// both returns a tap that shows two others what it is shown.
func both(a, b transport.Tap) transport.Tap {
	return func(e transport.TapEvent) {
		a(e)
		b(e)
	}
}
