package tester

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/cassette"
	"github.com/parley-mcp/parley/host"
)

// replayFlags are the flags of the command replay.
type replayFlags struct {
	against string
	http    string
	ignore  []string
	timeout time.Duration
	secretFlags
}

func (g *group) replayCommand() *cobra.Command {
	flags := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay FILE [--against SERVER | -- COMMAND]",
		Short: "Serve a recorded session, or compare another server with it",
		Long: `Serve a cassette, recorded by 'parley record', as a stdio server. Each request gets
its recorded response, and the other messages that the server sent with it. Ids, the
order of requests, _meta and progress tokens can differ from the recording. A request
that was not recorded gets an error that lists the recorded ones.

With --against, or a command after --, replay sends the recorded requests to that
server instead, and compares its responses with the recorded ones. It prints each
difference with its JSON pointer, and the exit code is 6 if there are any.
` + kit.Wrap("Not compared are "+cassette.Ignored+".") + `
Notifications are not compared, nor requests that had no answer. Questions of the
server are answered as they were in the recording.`,
		Example: `  parley replay notes.cassette
  parley tools --server 'parley replay notes.cassette'
  parley replay notes.cassette --against https://example.com/mcp
  parley replay notes.cassette --ignore '/result/content/*/text' -- ./server`,
		Args: kit.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return g.replay(cmd, args, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.against, "against", "", "send the recorded requests to this `SERVER` and compare: its name, its URL, or \"everything\"")
	f.StringVar(&flags.http, "http", "", "serve over HTTP on this `ADDRESS`, such as :8080, instead of standard input and output")
	f.StringArrayVar(&flags.ignore, "ignore", nil, "do not compare values at or below this JSON `POINTER`; * matches any name (repeatable)")
	f.DurationVar(&flags.timeout, "timeout", time.Minute, "with --against, timeout of one request")
	flags.flags(f)
	return cmd
}

func (g *group) replay(cmd *cobra.Command, args []string, flags *replayFlags) error {
	var t connect.Target
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 1 && flags.against == "" && len(args) > 1:
		t = connect.Target{Words: args[1:], Command: true}
	case dash >= 0:
		return kit.Usagef("missing FILE; use parley replay FILE [--against SERVER | -- COMMAND]")
	case len(args) > 1:
		return kit.Usagef("replay accepts one FILE; name the server to compare with after --against, or its command after --")
	case flags.against != "":
		t = connect.Target{Words: []string{flags.against}}
	case len(flags.ignore) > 0 || cmd.Flags().Changed("timeout"):
		return kit.Usagef("--ignore and --timeout require --against, or a command after --")
	}
	if cmd.Flags().Changed("http") {
		if len(t.Words) > 0 {
			return kit.Usagef("--http cannot be used with --against or a command: it serves the recording")
		}
		if err := localAddress(flags.http); err != nil {
			return err
		}
	}
	for _, pointer := range flags.ignore {
		if !strings.HasPrefix(pointer, "/result") && !strings.HasPrefix(pointer, "/error") {
			return kit.Usagef("--ignore %q: must be a JSON pointer that begins with /result or /error", pointer)
		}
	}
	file, err := os.Open(args[0])
	if err != nil {
		return kit.Usagef("%w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	c, err := cassette.Open(file)
	if err != nil {
		return kit.Usagef("%s: %w", args[0], err)
	}
	if !c.Complete() {
		g.Note("parley: the recording did not end cleanly; the last messages might be missing")
	}
	if len(t.Words) > 0 {
		return g.replayAgainst(cmd.Context(), c, t, flags)
	}
	if flags.http != "" {
		return g.replayHTTP(cmd.Context(), args[0], flags.http)
	}
	if g.Streams.InTerminal {
		g.Note("parley: serving the recording on standard input and output and waiting for a client; Ctrl-D ends it")
	}
	streams, err := g.standardStreams()
	if err != nil {
		return err
	}
	return c.Serve(cmd.Context(), streams)
}

// replayAgainst compares a server with a recording.
func (g *group) replayAgainst(ctx context.Context, c *cassette.Cassette, t connect.Target, flags *replayFlags) error {
	m, err := g.masker(&flags.secretFlags)
	if err != nil {
		return err
	}
	s, err := g.TargetServer(ctx, t)
	if err != nil {
		return err
	}
	defer g.SignIns.Close()
	report, err := c.Against(ctx, s.Dialer, &cassette.AgainstOptions{Ignore: flags.ignore, Timeout: flags.timeout, Mask: m})
	if err != nil && !cassette.Gone(err) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return g.maskedLog(m, &host.ServerError{Server: s.Name, State: host.StateStarting, Err: err})
	}
	if report.Compared == 0 && len(report.Differences) == 0 {
		return kit.Usagef("the cassette has no request with a response to compare")
	}
	if g.JSON {
		err = g.PrintJSON(report)
	} else {
		err = g.Print(reportText(report))
	}
	if report.Masked > 0 {
		g.Note("parley: sent %d requests with marks instead of secrets, which the recording masked", report.Masked)
	}
	if err == nil && len(report.Differences) > 0 {
		err = &kit.SilentError{Code: kit.ExitContract}
	}
	return err
}

// reportText is a report for people.
func reportText(r *cassette.Report) string {
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "%s (line %d)\n", host.EscapeLine(strings.TrimSpace(d.Method+" "+d.Target)), d.Line)
		if d.Error != "" {
			fmt.Fprintf(&b, "  no answer: %s\n", host.EscapeLine(d.Error))
		}
		for _, c := range d.Changes {
			fmt.Fprintf(&b, "  %s\n    was: %s\n    is:  %s\n", host.EscapeLine(c.Path), shownValue(c.Was), shownValue(c.Is))
		}
	}
	if len(r.Differences) == 0 {
		fmt.Fprintf(&b, "no difference in %d answers", r.Compared)
	} else {
		fmt.Fprintf(&b, "%d of %d answers differ", len(r.Differences), r.Compared)
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "; %d requests had no response in the recording or stay open", r.Skipped)
	}
	return b.String() + "\n"
}

// shownValue is a value in a report.
func shownValue(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return kit.OneLine(raw)
}
