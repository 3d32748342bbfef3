package tester

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/connect"
	"github.com/parley-mcp/parley/app/internal/front"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/chaos"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/web"
)

// chaosFlags are the flags of the command chaos.
type chaosFlags struct {
	seed       uint64
	faults     []string
	to         string
	delay      time.Duration
	retryAfter time.Duration
	log        string
	http       string
}

func (g *group) chaosCommand() *cobra.Command {
	flags := &chaosFlags{}
	var table strings.Builder
	for _, f := range chaos.Faults() {
		over := "pipe, HTTP"
		if !f.Pipe {
			over = "HTTP"
		}
		fmt.Fprintf(&table, "\n  %-13s %-11s %s", f.Fault, over, f.Does)
	}
	cmd := &cobra.Command{
		Use:   "chaos [flags] SERVER | -- COMMAND",
		Short: "Inject faults into the traffic between a client and a server",
		Long: `Inject faults into the traffic between a client and a server, to test how both
handle them. The client starts chaos instead of the server, and chaos runs the
server's command with the same environment. With --http, chaos listens for HTTP
clients in front of the server at a URL, and keeps the server's paths.

A seed decides where and how chaos applies faults: the same seed does the same to
the same bytes. Chaos logs each fault as one line of JSON, on standard error or in
the --log file: the number of the connection or HTTP request, the direction, the
number of the frame (a line, a body, or an event of a stream; 0 for a response as
a whole), the fault, and the size of the frame.

Name faults as NAME or NAME=RATE. The rate, from 0 to 1, is the probability of the
fault at each frame, by default ` + fmt.Sprint(chaos.NamedRate) + `. The name "all" means the remaining faults. If you
name none, each fault has the rate ` + fmt.Sprint(chaos.DefaultRate) + `.
` + table.String() + `

A server that receives a call twice can run it twice; with --to client, chaos does
not change the client's messages. The exit code is 4 if a fault ended the
connection, or if the server did not start or ended by itself.`,
		Example: `  parley chaos --seed 1 -- npx -y @modelcontextprotocol/server-everything stdio
  parley chaos --seed 1 --fault delay=0.5 --fault drop=0.01 -- ./server
  parley chaos --seed 1 --fault 429=0.2 --log faults.jsonl --http :8080 http://localhost:3000/mcp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, err := connect.TargetOf(cmd, args, 0)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				flags.seed = rand.Uint64()
			}
			return g.chaos(cmd.Context(), t, flags)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&flags.seed, "seed", 0, "seed `NUMBER` that decides where and how faults are applied (default: random, and printed)")
	f.StringArrayVar(&flags.faults, "fault", nil, "`FAULT` to apply, as NAME or NAME=RATE (repeatable) (default: all)")
	f.StringVar(&flags.to, "to", "", "apply faults only to traffic to this `END`: client or server (default: both)")
	f.DurationVar(&flags.delay, "delay", chaos.DefaultMaxDelay, "maximum `TIME` to delay a frame; a slow one can take twice as long")
	f.DurationVar(&flags.retryAfter, "retry-after", chaos.DefaultRetryAfter, "`TIME` in the Retry-After of a 429 response, in whole seconds")
	f.StringVar(&flags.log, "log", "", "log faults to this `FILE`, which is overwritten (default: standard error)")
	f.StringVar(&flags.http, "http", "", "listen for HTTP clients on this `ADDRESS`, such as 127.0.0.1:8080 or :8080 (this machine only)")
	return cmd
}

// chaos stands in front of a server until the client or the server has ended.
func (g *group) chaos(ctx context.Context, t connect.Target, flags *chaosFlags) (err error) {
	opts, err := flags.options()
	if err != nil {
		return err
	}
	if len(g.Headers) > 0 {
		return kit.Usagef("--header cannot be used with chaos: the client that connects to it sends its own headers")
	}
	over := g.chaosOverStdio
	if flags.http != "" {
		over = g.chaosOverHTTP
	}
	out := g.Streams.Err
	if flags.log != "" {
		file, err := os.OpenFile(flags.log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return kit.Usagef("--log: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	opts.Log = func(e chaos.Event) { logFault(out, e) }
	return over(ctx, t, chaos.New(opts), flags)
}

// options makes the options of the proxy.
func (c *chaosFlags) options() (chaos.Options, error) {
	rates, err := chaos.ParseRates(c.faults)
	if err != nil {
		return chaos.Options{}, kit.Usagef("--fault: %w", err)
	}
	to := chaos.Direction(c.to)
	switch {
	case c.to != "" && to != chaos.ToClient && to != chaos.ToServer:
		return chaos.Options{}, kit.Usagef("--to %q: must be client or server", c.to)
	case c.delay <= 0 || c.retryAfter <= 0:
		return chaos.Options{}, kit.Usagef("--delay and --retry-after must be above 0, such as 500ms")
	}
	if c.http == "" {
		var useless []string
		for _, f := range chaos.Faults() {
			if !f.Pipe && slices.ContainsFunc(c.faults, func(given string) bool {
				name, _, _ := strings.Cut(given, "=")
				return name == string(f.Fault)
			}) {
				useless = append(useless, string(f.Fault))
			}
		}
		if len(useless) > 0 {
			return chaos.Options{}, kit.Usagef("--fault %s: HTTP faults require --http", strings.Join(useless, ", "))
		}
	}
	return chaos.Options{Seed: c.seed, Rates: rates, To: to, MaxDelay: c.delay, RetryAfter: c.retryAfter}, nil
}

// logFault tells of a fault, in one line.
func logFault(w io.Writer, e chaos.Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_, _ = w.Write(append(line, '\n')) // a full disk does not end the traffic
	}
}

// chaosOverStdio stands between the client that started this program and a server that it starts.
func (g *group) chaosOverStdio(ctx context.Context, t connect.Target, proxy *chaos.Proxy, flags *chaosFlags) error {
	s, err := g.TargetServer(ctx, t)
	if err != nil {
		return err
	}
	d, ok := s.Dialer.(*stdio.CommandDialer)
	if !ok {
		return kit.Usagef("missing --http ADDRESS: a server at a URL needs an address for its clients")
	}
	g.Note("parley: chaos with seed %d on standard input and output", flags.seed)
	streams, err := stdio.Standard()
	if err != nil {
		return err
	}
	defer func() { _ = streams.Close() }() // the process ends
	if d.Env == nil {
		d.Env = os.Environ()
	}
	d.Stderr = g.ErrOf()
	out := newStandardOutput(streams)
	defer func() { _ = out.Close() }() // for a server that did not start
	err = proxy.Run(ctx, chaos.Stream{In: streams, Out: out}, d)
	switch {
	case errors.Is(err, chaos.ErrDropped):
		return &kit.SilentError{Code: kit.ExitUnreachable} // the line about the fault says so
	case errors.As(err, new(*stdio.ExitError)), errors.As(err, new(*exec.Error)), errors.As(err, new(*fs.PathError)):
		return &kit.UnreachableError{Err: err}
	}
	return err
}

// A standardOutput is standard output, of which a Write can be given up.
type standardOutput struct {
	*io.PipeWriter

	done chan struct{} // closed when all is written
}

func newStandardOutput(w io.Writer) *standardOutput {
	r, pipe := io.Pipe()
	s := &standardOutput{pipe, make(chan struct{})}
	go func() { // Close waits for it, but for a client that does not read
		defer close(s.done)
		_, err := io.Copy(w, r)
		_ = r.CloseWithError(err) // never fails
	}()
	return s
}

// Close waits until what was written has been taken, for a while. The stream itself ends with the
// process.
func (s *standardOutput) Close() error {
	err := s.PipeWriter.Close()
	timer := time.NewTimer(stdio.DefaultGrace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
	return err
}

// chaosOverHTTP stands in front of the server at a URL.
func (g *group) chaosOverHTTP(ctx context.Context, t connect.Target, proxy *chaos.Proxy, flags *chaosFlags) error {
	if _, _, err := net.SplitHostPort(flags.http); err != nil {
		return kit.Usagef("--http %q: must be HOST:PORT or :PORT", flags.http)
	}
	u, err := g.addressOf(ctx, t)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return kit.Usagef("chaos with --http supports only http:// and https:// servers")
	}
	listening := false
	err = web.Serve(ctx, flags.http, proxy.Handler(u, nil), &web.ServeOptions{
		Grace:  kit.ShutdownTime,
		Logger: g.Logger(),
		Listening: func(addr net.Addr) {
			listening = true
			g.Note("parley: chaos with seed %d at http://%s%s, in front of %s; Ctrl-C ends it", flags.seed, front.Reachable(addr), u.EscapedPath(), web.RedactURL(u))
		},
	})
	if err != nil && !listening {
		return kit.Usagef("--http: %w", err)
	}
	return err
}

// addressOf is the URL of the server that is meant.
func (g *group) addressOf(ctx context.Context, t connect.Target) (*url.URL, error) {
	text := ""
	switch {
	case len(t.Words) == 1:
		text = t.Words[0]
	case len(t.Words) == 0 && len(g.Named) == 1:
		_, text = connect.SplitFlag(g.Named[0])
	}
	if !kit.IsURL(text) && len(t.Words) == 1 && !t.Command && text != kit.Bundled {
		err := g.WithConfig(ctx, "", func(cfg *config.Config, db *local.DB) error {
			entry := cfg.Server(text)
			if entry == nil {
				return kit.Usagef("unknown server %q: not a URL and not in your configuration; run 'parley config list' to list servers", text)
			}
			entry, err := g.Expanded(ctx, entry, g.Streams.InTerminal, db)
			if err == nil {
				text = entry.URL
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	} else if kit.IsURL(text) {
		if _, err := g.TargetServer(ctx, t); err != nil { // checks it, and what the administrator allows
			return nil, err
		}
	}
	if !kit.IsURL(text) {
		return nil, kit.Usagef("--http requires a server at a URL; to serve a command over HTTP, run 'parley bridge --http ADDRESS -- COMMAND'")
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, kit.Usagef("%w", connect.NoURL(text, err))
	}
	return u, nil
}
