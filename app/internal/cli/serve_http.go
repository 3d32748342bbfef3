package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/sse"
	"github.com/parley-mcp/parley/transport/streamable"
	"github.com/parley-mcp/parley/transport/web"
	"github.com/parley-mcp/parley/transport/websocket"
)

// Paths of a server over HTTP, in addition to streamable.Path: the transport of
// the first revision, and WebSocket.
const (
	ssePath       = "/sse"
	websocketPath = "/ws"
)

// httpFlags are the flags of commands that serve MCP over HTTP.
type httpFlags struct {
	http    string
	hosts   []string
	origins []string
	proxies []string

	sessionless bool
	stateKeys   []string

	auth         []string
	resource     string
	scopes       []string
	introspect   []string
	tokenTypes   []string
	audiences    []string
	requireFresh time.Duration
	allowPrivate []string
	// keysMaxAge bounds how long a key of auth is taken; 0 is the default of the library.
	keysMaxAge time.Duration

	observeFlags
}

// guarded adds the flags but --http.
func (s *httpFlags) guarded(f *pflag.FlagSet) {
	f.StringArrayVar(&s.hosts, "allow-host", nil, "`HOST` under which the server may be called, for one behind a proxy; may be given several times")
	f.StringArrayVar(&s.origins, "allow-origin", nil, "`ORIGIN` whose web pages may call the server, such as https://app.example; may be given several times")
	f.StringArrayVar(&s.proxies, "trusted-proxy", nil, "`NETWORK` of a proxy in front, such as 10.0.0.0/8: its X-Forwarded-For or Forwarded header says who comes, for limits; may be given several times")
	f.BoolVar(&s.sessionless, "sessionless", false, "keep no sessions for clients of older revisions, so that each request may reach another replica; needs --http")
	f.StringArrayVar(&s.stateKeys, "state-key-file", nil, "`FILE` with the key that seals what clients carry between requests: 64 hexadecimal digits or 32 bytes, the same for all replicas; the first of several seals, each opens (default: a key of this run)")
	f.StringArrayVar(&s.auth, "auth", nil, "let nobody in without a token of this authorization server: its issuer `URL`; may be given several times")
	f.StringArrayVar(&s.introspect, "introspect", nil, "ask the server of --auth about each token (RFC 7662), as the client in this `FILE`: {\"client_id\": …, \"client_secret\": …}; once for each server that is to be asked")
	f.StringArrayVar(&s.audiences, "audience", nil, "accept tokens for this `AUDIENCE`, as their aud says, in addition to --resource (repeatable)")
	f.StringArrayVar(&s.tokenTypes, "token-type", nil, "accept tokens of this `TYPE`, as their typ says, such as JWT, instead of at+jwt; none is for tokens without typ (repeatable)")
	f.DurationVar(&s.requireFresh, "require-fresh", 0, "see within this `TIME` that a token was revoked, also for streams and calls under way; needs --introspect (default: new requests within 1m)")
	f.StringArrayVar(&s.allowPrivate, "auth-allow-private", nil, "`NETWORK` inside the company, such as 10.20.0.0/16, where the servers of --auth may be; may be given several times")
	f.StringVar(&s.resource, "resource", "", "public `URL` that tokens must be made out to (default: that of the endpoint)")
	f.StringArrayVar(&s.scopes, "scope", nil, "`SCOPE` that every caller needs; may be given several times")
	f.DurationVar(&s.keysMaxAge, "keys-max-age", 0, "refuse tokens of a key that the authorization server has revoked within this `TIME`, and all tokens (503) when its keys cannot be had for as long (default: about 6 minutes, and a day while the keys cannot be had)")
	s.observed(f)
}

// checkTogether refuses flags that do not go together.
func (s *httpFlags) checkTogether(set *pflag.FlagSet) error {
	switch {
	case set.Changed("http") && s.http == "":
		return usagef("--http is empty; write it as HOST:PORT or :PORT")
	case s.http == "" && len(s.hosts)+len(s.origins)+len(s.proxies) > 0:
		return usagef("--allow-host, --allow-origin and --trusted-proxy go with --http")
	case s.http == "" && s.sessionless:
		return usagef("--sessionless goes with --http: standard input and output belong to one client")
	case s.http == "" && len(s.auth) > 0:
		return usagef("--auth goes with --http: over standard input and output the caller is known")
	case len(s.auth) == 0 && (s.resource != "" || len(s.scopes) > 0):
		return usagef("--resource and --scope go with --auth")
	case len(s.auth) == 0 && len(s.audiences)+len(s.tokenTypes) > 0:
		return usagef("--audience and --token-type go with --auth")
	case slices.Contains(s.audiences, ""):
		return usagef("--audience is empty; write the aud of the tokens, such as api://files")
	case slices.Contains(s.tokenTypes, ""):
		return usagef("--token-type is empty; write JWT, at+jwt, or none for tokens without typ")
	case len(s.auth) == 0 && set.Changed("keys-max-age"):
		return usagef("--keys-max-age goes with --auth")
	case set.Changed("keys-max-age") && s.keysMaxAge < time.Second:
		return usagef("--keys-max-age %v: write a second or more, such as 5s", s.keysMaxAge)
	case len(s.auth) == 0 && (len(s.introspect)+len(s.allowPrivate) > 0 || set.Changed("require-fresh")):
		return usagef("--introspect, --require-fresh and --auth-allow-private go with --auth")
	case set.Changed("require-fresh") && s.requireFresh < time.Second:
		return usagef("--require-fresh %v: write a time of a second or more, such as 30s", s.requireFresh)
	}
	return nil
}

// An httpService is what a command serves over HTTP.
type httpService struct {
	name, what string // whose endpoint it is, and what is done with it, for people
	writeScope string // what tools that change something need, or ""
	mount      func(access web.Access) mounted
	start      func()                          // is called before the first request
	shutdown   func(ctx context.Context) error // ends what is behind the endpoints
}

// mounted are endpoints by path. They end in two steps: with what is behind them, and after it.
type mounted struct {
	handlers  map[string]http.Handler
	with      []func(ctx context.Context) error
	afterward func(ctx context.Context) error // may be nil
}

// mountAll serves a server at all paths.
func (p *program) mountAll(s *server.Server, access web.Access, flags *httpFlags) mounted {
	o := newEndpointOptions(access)
	o.http.Sessionless = flags.sessionless
	return p.mountEndpoints(s, o)
}

// endpointOptions are those of the endpoints of a server, one for each transport.
type endpointOptions struct {
	http      streamable.Options
	sse       sse.Options
	websocket websocket.Options
}

// newEndpointOptions are the defaults for who may reach the endpoints.
func newEndpointOptions(access web.Access) *endpointOptions {
	return &endpointOptions{streamable.Options{Access: access}, sse.Options{Access: access}, websocket.Options{Access: access}}
}

// mountEndpoints serves h by each transport, at a path of its own.
func (p *program) mountEndpoints(h transport.Handler, o *endpointOptions) mounted {
	o.http.Logger, o.sse.Logger, o.websocket.Logger = p.serverLogger(), p.serverLogger(), p.serverLogger()
	endpoint := streamable.NewHandler(h, &o.http)
	old := sse.NewHandler(h, &o.sse)
	sockets := websocket.NewHandler(h, &o.websocket)
	return mounted{
		handlers: map[string]http.Handler{streamable.Path: endpoint, ssePath: old, websocketPath: sockets},
		with:     []func(ctx context.Context) error{endpoint.Shutdown, old.Shutdown},
		// The sockets last: they cut off what the server may still finish.
		afterward: sockets.Shutdown,
	}
}

// serveHTTP serves until the person ends it.
func (p *program) serveHTTP(ctx context.Context, flags *httpFlags, s *httpService) error {
	trusted, err := flags.checked()
	if err != nil {
		return err
	}
	endpoints := s.mount(web.Access{
		Hosts: flags.hosts, HostsName: "--allow-host",
		Origins: flags.origins, OriginsName: "--allow-origin",
		TrustedProxies: trusted,
	})
	mux := http.NewServeMux()
	for path, h := range endpoints.handlers {
		mux.Handle(path, h)
		mux.Handle(path+"/{$}", h) // as many clients write it
	}
	door := newLateHandler()
	g := &guardFlags{p: p, flags: flags, name: s.name, writeScope: s.writeScope}
	defer g.close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	listening := false
	var health *health // once there is one
	defer func() {
		if health != nil {
			health.Close()
		}
	}()
	err = web.Serve(ctx, flags.http, door, &web.ServeOptions{
		Grace:  shutdownTime,
		Logger: p.serverLogger(),
		Listening: func(addr net.Addr) {
			listening = true
			guarded, err := g.protect(ctx, mux, reachable(addr))
			if err != nil {
				end(err)
				return
			}
			// In front of the guard; no endpoint has its paths.
			health = newHealth(p.serverLogger(), g.healthChecks()...)
			door.open(health.front(guarded))
			s.start()
			p.note("parley: %s %q at http://%s%s; Ctrl-C ends it", s.what, s.name, reachable(addr), streamable.Path)
			g.announce()
		},
		Shutdown: func(ctx context.Context) error {
			err := runAll(ctx, append(endpoints.with, s.shutdown)...)
			if endpoints.afterward != nil {
				err = errors.Join(err, endpoints.afterward(ctx))
			}
			return err
		},
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	shutErr := s.shutdown(last)
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

// checked refuses flags that could not work, before anything is served. It returns the networks
// of proxies in front.
func (s *httpFlags) checked() ([]netip.Prefix, error) {
	if _, _, err := net.SplitHostPort(s.http); err != nil {
		return nil, usagef("--http %q: write it as HOST:PORT or :PORT", s.http)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.checkAuth(); err != nil {
		return nil, err
	}
	return readProxies(s.proxies)
}

// check refuses names that would never match, which the person would only
// find out from a page that is refused.
func (s *httpFlags) check() error {
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
