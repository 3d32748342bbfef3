package tester

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/mask"
	"github.com/parley-mcp/parley/app/internal/tester/inspect/cassette"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/stdio"
)

func (g *group) recordCommand() *cobra.Command {
	secrets, session := &secretFlags{}, &sessionFlags{}
	var file, address string
	cmd := &cobra.Command{
		Use:   "record --out FILE [flags] SERVER | -- COMMAND",
		Short: "Record a session with a server in a file",
		Long: `Record the traffic between a client and a server in a file, a cassette. 'parley
replay' can serve the recording again, or compare another server with it.

By default, record is a stdio server: put it in front of a server's command in the
configuration of any client. It passes every frame through unchanged in both
directions, and records it. With a server at a URL, this applies to the frames the
server sends; each client frame is recorded as one message. At a terminal, and with
--list, --call or --method, record opens its own session instead: it lists
everything, or makes the calls you specify.

With --http, record is an HTTP server for clients on this machine. Traffic between
them and a server at a URL passes through unchanged. A command is served at /mcp as
'parley bridge' does, and the recording has the traffic with bridge's clients.
Ctrl-C stops it.

The file consists of JSON lines: a header, then each frame with its sender and
time. Secrets are masked as described in 'parley trace --help', but check the file
before you share it.`,
		Example: `  parley record --out notes.cassette --list everything
  parley record --out echo.cassette --call echo message=hello -- ./server
  parley record --out far.cassette --http :8080 https://example.com/mcp
  parley record --out session.cassette -- npx -y @modelcontextprotocol/server-everything < requests.jsonl`,
		Args: kit.UsageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.record(cmd, args, file, address, secrets, session)
		},
	}
	cmd.Flags().StringVarP(&file, "out", "o", "", "`FILE` to write; an existing cassette is replaced")
	cmd.Flags().StringVar(&address, "http", "", "listen for HTTP clients on this `ADDRESS`, such as :8080")
	secrets.flags(cmd.Flags())
	session.flags(cmd.Flags())
	return cmd
}

func (g *group) record(cmd *cobra.Command, args []string, file, address string, secrets *secretFlags, session *sessionFlags) error {
	if file == "" {
		return kit.Usagef("missing --out FILE: the cassette to write")
	}
	t, calls, m, err := g.observation(cmd, args, secrets, session)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("http") {
		if err := localAddress(address); err != nil {
			return err
		}
		if session.asked() {
			return kit.Usagef("--list, --call and --method cannot be used with --http, which records the sessions of its clients")
		}
	}
	own := g.Streams.InTerminal || session.asked()
	var tap transport.Tap // once there is a file
	g.Tap = func(e transport.TapEvent) {
		if tap != nil {
			tap(e)
		}
	}
	s, err := g.TargetServer(cmd.Context(), t)
	if err != nil {
		return err
	}
	defer g.SignIns.Close()
	session.bound(&s)
	out, recorder, err := beginCassette(file, s.Origin, m)
	if err != nil {
		return err
	}
	switch {
	case address != "":
		err = g.recordHTTP(cmd.Context(), t, &s, m, recorder, address)
	case own:
		tap = recorder.Tap
		err = g.connected(cmd.Context(), &s, func(c *client.Client) error { return g.converse(cmd.Context(), c, s.Name, m, session, calls) })
	default:
		err = g.recordBetween(cmd.Context(), &s, m, recorder, &tap)
	}
	if address != "" && errors.Is(err, kit.ErrInterrupted) {
		err = nil // it goes on until then
	}
	frames, writing := recorder.Close()
	if closeErr := out.Close(); writing == nil {
		writing = closeErr
	}
	if writing == nil {
		g.Note("parley: %d frames are in %s", frames, host.EscapeLine(file))
	}
	if err != nil {
		err = g.maskedLog(m, err)
	}
	return errors.Join(err, writing)
}

// beginCassette begins a recording in a file.
func beginCassette(file, server string, m *mask.Masker) (*os.File, *cassette.Recorder, error) {
	out, err := createCassette(file)
	if err != nil {
		return nil, nil, err
	}
	recorder, err := cassette.Record(out, cassette.Header{Program: "parley " + kit.Version(), Server: server}, m)
	if err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	return out, recorder, nil
}

// createCassette opens a file to write a cassette to. It holds what a server said: others may not
// read it. A file that is something else is left alone.
func createCassette(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, kit.Usagef("--out: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if _, wrong := cassette.NewReader(f); wrong != nil {
			return nil, errors.Join(kit.Usagef("--out %s: the existing file is not a cassette of this version; name another file", file), f.Close())
		}
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			err = f.Truncate(0)
		}
	}
	if err != nil {
		return nil, errors.Join(kit.Usagef("--out: %w", err), f.Close())
	}
	return f, nil
}

// recordBetween stands between the client that started this program and a server.
func (g *group) recordBetween(ctx context.Context, s *host.Server, m *mask.Masker, recorder *cassette.Recorder, tap *transport.Tap) error {
	streams, err := g.standardStreams()
	if err != nil {
		return err
	}
	d, ok := s.Dialer.(*stdio.CommandDialer)
	if !ok {
		b := cassette.NewBridge(recorder, streams)
		*tap = b.Tap
		if err := b.Run(ctx, s.Dialer); err != nil && ctx.Err() == nil {
			return &host.ServerError{Server: s.Name, State: host.StateWaiting, Err: err}
		}
		return context.Cause(ctx)
	}
	if !g.Verbose {
		d.Stderr = noting{g, m} // the client's to show, as that of the server itself
	}
	server, err := d.Start()
	if err != nil {
		return errors.Join(&host.ServerError{Server: s.Name, State: host.StateStarting, Err: err}, streams.Close())
	}
	err = recorder.Relay(ctx, streams, server)
	if errors.As(err, new(*stdio.ExitError)) {
		return &host.ServerError{Server: s.Name, State: host.StateWaiting, Err: err}
	}
	return err
}

// noting passes lines of a server's standard error on, without their secrets.
type noting struct {
	p *group
	m *mask.Masker
}

// Write takes one line.
func (n noting) Write(line []byte) (int, error) {
	n.p.Note("%s", n.m.Text(strings.TrimSuffix(string(line), "\n")))
	return len(line), nil
}

// standardStreams are standard input and output for a command that is a server.
func (g *group) standardStreams() (io.ReadWriteCloser, error) {
	if g.Streams.In == io.Reader(os.Stdin) {
		return stdio.Standard()
	}
	return &givenStreams{g.Streams.In, g.Streams.Out}, nil
}

// givenStreams are streams that stand for standard input and output.
type givenStreams struct {
	io.Reader
	io.Writer
}

// Close closes the input, if it can be closed.
func (g *givenStreams) Close() error {
	if c, ok := g.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
