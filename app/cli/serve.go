package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/app/servers/everything"
	"github.com/parley-mcp/parley/app/store/tasks"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/stdio"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// shutdownTime is how long a server gets to end what it does.
const shutdownTime = 5 * time.Second

// Paths of a server over HTTP, in addition to streamable.Path: the transport of
// the first revision, and WebSocket.
const (
	ssePath       = "/sse"
	websocketPath = "/ws"
)

// serveFlags are the flags of the command serve.
type serveFlags struct {
	http    string
	hosts   []string
	origins []string
	proxies []string

	sessionless bool
	stateKeys   []string

	auth     string
	resource string
	scopes   []string

	tasks string

	observeFlags
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
	f.StringArrayVar(&flags.hosts, "allow-host", nil, "`HOST` under which the server may be called, for one behind a proxy; may be given several times")
	f.StringArrayVar(&flags.origins, "allow-origin", nil, "`ORIGIN` whose web pages may call the server, such as https://app.example; may be given several times")
	f.StringArrayVar(&flags.proxies, "trusted-proxy", nil, "`NETWORK` of a proxy in front, such as 10.0.0.0/8: its X-Forwarded-For or Forwarded header says who comes, for limits; may be given several times")
	f.BoolVar(&flags.sessionless, "sessionless", false, "keep no sessions for clients of older revisions, so that each request may reach another replica; needs --http")
	f.StringArrayVar(&flags.stateKeys, "state-key-file", nil, "`FILE` with the key that seals what clients carry between requests: 64 hexadecimal digits or 32 bytes, the same for all replicas; the first of several seals, each opens (default: a key of this run)")
	f.StringVar(&flags.auth, "auth", "", "let nobody in without a token of this authorization server: its issuer `URL`")
	f.StringVar(&flags.resource, "resource", "", "public `URL` that tokens must be made out to (default: that of the endpoint)")
	f.StringArrayVar(&flags.scopes, "scope", nil, "`SCOPE` that every caller needs; may be given several times")
	f.StringVar(&flags.tasks, "tasks", "", "keep tasks in this SQLite `FILE`, or PostgreSQL database: postgres://USER@HOST/NAME (default: in memory)")
	flags.observed(f)
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
	stop, err := flags.start(cmd.Context(), p, cmd.Flags(), s)
	if err != nil {
		return err
	}
	defer stop()
	if flags.http != "" {
		return p.serveHTTP(cmd.Context(), s, flags)
	}
	return p.serveStdio(cmd.Context(), s)
}

// checkTogether refuses flags that do not go together.
func (s *serveFlags) checkTogether(set *pflag.FlagSet) error {
	switch {
	case set.Changed("http") && s.http == "":
		return usagef("--http is empty; write it as HOST:PORT or :PORT")
	case s.http == "" && len(s.hosts)+len(s.origins)+len(s.proxies) > 0:
		return usagef("--allow-host, --allow-origin and --trusted-proxy go with --http")
	case s.http == "" && s.sessionless:
		return usagef("--sessionless goes with --http: standard input and output belong to one client")
	case s.http == "" && s.auth != "":
		return usagef("--auth goes with --http: over standard input and output the caller is known")
	case s.auth == "" && (s.resource != "" || len(s.scopes) > 0):
		return usagef("--resource and --scope go with --auth")
	}
	return nil
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

// serveHTTP serves until the person ends it.
func (p *program) serveHTTP(ctx context.Context, s *server.Server, flags *serveFlags) error {
	if _, _, err := net.SplitHostPort(flags.http); err != nil {
		return usagef("--http %q: write it as HOST:PORT or :PORT", flags.http)
	}
	if err := flags.check(); err != nil {
		return err
	}
	if err := flags.checkAuth(); err != nil {
		return err
	}
	trusted, err := readProxies(flags.proxies)
	if err != nil {
		return err
	}
	access := web.Access{Hosts: flags.hosts, Origins: flags.origins, TrustedProxies: trusted}
	endpoint := streamable.NewHandler(s, &streamable.Options{Access: access, Sessionless: flags.sessionless, Logger: p.serverLogger()})
	old := sse.NewHandler(s, &sse.Options{Access: access, Logger: p.serverLogger()})
	sockets := websocket.NewHandler(s, &websocket.Options{Access: access, Logger: p.serverLogger()})
	mux := http.NewServeMux()
	for path, h := range map[string]http.Handler{streamable.Path: endpoint, ssePath: old, websocketPath: sockets} {
		mux.Handle(path, h)
	}
	door := newLateHandler()
	g := &guardFlags{p: p, flags: flags}
	defer g.close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	listening := false
	err = web.Serve(ctx, flags.http, door, &web.ServeOptions{
		Grace:  shutdownTime,
		Logger: p.serverLogger(),
		Listening: func(addr net.Addr) {
			listening = true
			guarded, err := g.protect(mux, reachable(addr))
			if err != nil {
				end(err)
				return
			}
			door.open(guarded)
			s.Start() // as in serveStdio
			p.note("parley: serving %q at http://%s%s; Ctrl-C ends it", bundled, reachable(addr), streamable.Path)
			g.announce()
		},
		Shutdown: func(ctx context.Context) error {
			// The sockets last: they cut off what the server may still finish.
			err := runAll(ctx, s.Shutdown, endpoint.Shutdown, old.Shutdown)
			return errors.Join(err, sockets.Shutdown(ctx))
		},
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	shutErr := s.Shutdown(last)
	switch {
	case g.err != nil:
		return g.err
	case err != nil && !listening:
		return usagef("--http: %w", err)
	case err == nil && shutErr != nil:
		return fmt.Errorf("ending the server: %w", shutErr)
	}
	return err
}

// check refuses names that would never match, which the person would only
// find out from a page that is refused.
func (s *serveFlags) check() error {
	for _, origin := range s.origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.Contains(origin, "*") {
			return usagef("--allow-origin %q: write one origin as browsers do, like https://app.example, with nothing behind it", origin)
		}
	}
	for _, name := range s.hosts {
		if name != "*" && (name == "" || strings.ContainsAny(name, "/@* ")) {
			return usagef("--allow-host %q: write a host, like mcp.example or mcp.example:8080", name)
		}
	}
	return nil
}

// reachable is an address to listen on as one to call: all addresses of this
// machine are none that a client could write.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}

// runAll runs functions at once and returns the first error.
func runAll(ctx context.Context, fs ...func(context.Context) error) error {
	errs := make(chan error, len(fs))
	for _, f := range fs {
		go func() { errs <- f(ctx) }()
	}
	var first error
	for range fs {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
