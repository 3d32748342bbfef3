// Package front serves handlers over HTTP for commands. It has the flags for serving, the checks of hosts and
// origins, the guard in front of the endpoints, health checks, metrics and traces.
package front

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

	"github.com/parley-mcp/parley/app/internal/kit"
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

// Flags are the flags of commands that serve MCP over HTTP.
type Flags struct {
	HTTP    string
	hosts   []string
	origins []string
	proxies []string

	Sessionless bool
	StateKeys   []string

	Auth         []string
	resource     string
	scopes       []string
	introspect   []string
	tokenTypes   []string
	audiences    []string
	requireFresh time.Duration
	allowPrivate []string
	// keysMaxAge bounds how long a key of auth is taken; 0 is the default of the library.
	keysMaxAge time.Duration

	Observe
}

// AddFlags adds the flags but --http.
func (s *Flags) AddFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.hosts, "allow-host", nil, "`HOST` that clients use to call a server behind a proxy (repeatable)")
	f.StringArrayVar(&s.origins, "allow-origin", nil, "`ORIGIN` whose web pages can call the server, such as https://app.example (repeatable)")
	f.StringArrayVar(&s.proxies, "trusted-proxy", nil, "`NETWORK` of a proxy in front, such as 10.0.0.0/8, whose X-Forwarded-For or Forwarded header names the client for limits (repeatable)")
	f.BoolVar(&s.Sessionless, "sessionless", false, "keep no sessions for clients of older protocol versions, so that each request can reach another replica; requires --http")
	f.StringArrayVar(&s.StateKeys, "state-key-file", nil, "`FILE` with the key that seals state in clients: 64 hexadecimal digits or 32 bytes, the same for all replicas (repeatable: the first key seals, all open) (default: a key for this run)")
	f.StringArrayVar(&s.Auth, "auth", nil, "require a token from the authorization server with this issuer `URL` (repeatable)")
	f.StringArrayVar(&s.introspect, "introspect", nil, "check each token with the --auth server (RFC 7662), as the client in this `FILE`: {\"client_id\": …, \"client_secret\": …} (repeatable, once for each server)")
	f.StringArrayVar(&s.audiences, "audience", nil, "accept tokens for this `AUDIENCE`, as their aud says, in addition to --resource (repeatable)")
	f.StringArrayVar(&s.tokenTypes, "token-type", nil, "accept tokens of this `TYPE`, as their typ says, such as JWT, instead of at+jwt; none is for tokens without typ (repeatable)")
	f.DurationVar(&s.requireFresh, "require-fresh", 0, "detect a revoked token within this `TIME`, also for streams and calls in progress; requires --introspect (default: new requests within 1m)")
	f.StringArrayVar(&s.allowPrivate, "auth-allow-private", nil, "private `NETWORK`, such as 10.20.0.0/16, where the --auth servers can be (repeatable)")
	f.StringVar(&s.resource, "resource", "", "public `URL` that tokens must be issued for (default: the endpoint's URL)")
	f.StringArrayVar(&s.scopes, "scope", nil, "`SCOPE` that every caller needs (repeatable)")
	f.DurationVar(&s.keysMaxAge, "keys-max-age", 0, "maximum age of the authorization server's keys: within this `TIME`, reject tokens of a revoked key, and all tokens (503) if the keys are unavailable (default: about 6 minutes, and a day while they are unavailable)")
	s.AddObserveFlags(f)
}

// CheckTogether refuses flags that do not go together.
func (s *Flags) CheckTogether(set *pflag.FlagSet) error {
	switch {
	case set.Changed("http") && s.HTTP == "":
		return kit.Usagef("--http must not be empty; write it as HOST:PORT or :PORT")
	case s.HTTP == "" && len(s.hosts)+len(s.origins)+len(s.proxies) > 0:
		return kit.Usagef("--allow-host, --allow-origin and --trusted-proxy require --http")
	case s.HTTP == "" && s.Sessionless:
		return kit.Usagef("--sessionless requires --http: standard input and output belong to one client")
	case s.HTTP == "" && len(s.Auth) > 0:
		return kit.Usagef("--auth requires --http: over standard input and output the caller is known")
	case len(s.Auth) == 0 && (s.resource != "" || len(s.scopes) > 0):
		return kit.Usagef("--resource and --scope require --auth")
	case len(s.Auth) == 0 && len(s.audiences)+len(s.tokenTypes) > 0:
		return kit.Usagef("--audience and --token-type require --auth")
	case slices.Contains(s.audiences, ""):
		return kit.Usagef("--audience must not be empty; write the aud of the tokens, such as api://files")
	case slices.Contains(s.tokenTypes, ""):
		return kit.Usagef("--token-type must not be empty; write JWT, at+jwt, or none for tokens without typ")
	case len(s.Auth) == 0 && set.Changed("keys-max-age"):
		return kit.Usagef("--keys-max-age requires --auth")
	case set.Changed("keys-max-age") && s.keysMaxAge < time.Second:
		return kit.Usagef("--keys-max-age %v: must be at least one second, such as 5s", s.keysMaxAge)
	case len(s.Auth) == 0 && (len(s.introspect)+len(s.allowPrivate) > 0 || set.Changed("require-fresh")):
		return kit.Usagef("--introspect, --require-fresh and --auth-allow-private require --auth")
	case set.Changed("require-fresh") && s.requireFresh < time.Second:
		return kit.Usagef("--require-fresh %v: must be at least one second, such as 30s", s.requireFresh)
	}
	return nil
}

// A Service is what a command serves over HTTP.
type Service struct {
	Name, What string // whose endpoint it is, and what is done with it, for people
	WriteScope string // what tools that change something need, or ""
	Mount      func(access web.Access) Endpoints
	Start      func()                          // is called before the first request
	Shutdown   func(ctx context.Context) error // ends what is behind the endpoints
}

// Endpoints are endpoints by path. They end in two steps: with what is behind them, and after it.
type Endpoints struct {
	Handlers  map[string]http.Handler
	with      []func(ctx context.Context) error
	afterward func(ctx context.Context) error // may be nil
}

// MountAll serves a server at all paths.
func MountAll(c *kit.Console, s *server.Server, access web.Access, flags *Flags) Endpoints {
	o := NewEndpointOptions(access)
	o.HTTP.Sessionless = flags.Sessionless
	return Mount(c, s, o)
}

// endpointOptions are those of the endpoints of a server, one for each transport.
type endpointOptions struct {
	HTTP      streamable.Options
	SSE       sse.Options
	WebSocket websocket.Options
}

// NewEndpointOptions are the defaults for who may reach the endpoints.
func NewEndpointOptions(access web.Access) *endpointOptions {
	return &endpointOptions{streamable.Options{Access: access}, sse.Options{Access: access}, websocket.Options{Access: access}}
}

// Mount serves h by each transport, at a path of its own.
func Mount(c *kit.Console, h transport.Handler, o *endpointOptions) Endpoints {
	o.HTTP.Logger, o.SSE.Logger, o.WebSocket.Logger = c.ServerLogger(), c.ServerLogger(), c.ServerLogger()
	endpoint := streamable.NewHandler(h, &o.HTTP)
	old := sse.NewHandler(h, &o.SSE)
	sockets := websocket.NewHandler(h, &o.WebSocket)
	return Endpoints{
		Handlers: map[string]http.Handler{streamable.Path: endpoint, ssePath: old, websocketPath: sockets},
		with:     []func(ctx context.Context) error{endpoint.Shutdown, old.Shutdown},
		// The sockets last: they cut off what the server may still finish.
		afterward: sockets.Shutdown,
	}
}

// Serve serves until the user ends it.
func Serve(ctx context.Context, c *kit.Console, flags *Flags, s *Service) error {
	trusted, err := flags.Checked()
	if err != nil {
		return err
	}
	endpoints := s.Mount(web.Access{
		Hosts: flags.hosts, HostsName: "--allow-host",
		Origins: flags.origins, OriginsName: "--allow-origin",
		TrustedProxies: trusted,
	})
	mux := http.NewServeMux()
	for path, h := range endpoints.Handlers {
		mux.Handle(path, h)
		mux.Handle(path+"/{$}", h) // as many clients write it
	}
	door := NewLateHandler()
	g := &guardFlags{console: c, flags: flags, name: s.Name, writeScope: s.WriteScope}
	defer g.close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	listening := false
	var health *Health // once there is one
	defer func() {
		if health != nil {
			health.Close()
		}
	}()
	err = web.Serve(ctx, flags.HTTP, door, &web.ServeOptions{
		Grace:  kit.ShutdownTime,
		Logger: c.ServerLogger(),
		Listening: func(addr net.Addr) {
			listening = true
			guarded, err := g.protect(ctx, mux, Reachable(addr))
			if err != nil {
				end(err)
				return
			}
			// In front of the guard; no endpoint has its paths.
			health = NewHealth(c.ServerLogger(), g.healthChecks()...)
			door.Open(health.Front(guarded))
			s.Start()
			c.Note("parley: %s %q at http://%s%s; Ctrl-C ends it", s.What, s.Name, Reachable(addr), streamable.Path)
			g.announce()
		},
		Shutdown: func(ctx context.Context) error {
			err := runAll(ctx, append(endpoints.with, s.Shutdown)...)
			if endpoints.afterward != nil {
				err = errors.Join(err, endpoints.afterward(ctx))
			}
			return err
		},
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), kit.ShutdownTime)
	defer cancel()
	shutErr := s.Shutdown(last)
	switch {
	case g.err != nil:
		return g.err
	case err != nil && !listening:
		return kit.Usagef("--http: %w", err)
	case err == nil && shutErr != nil:
		return fmt.Errorf("ending the server: %w", shutErr)
	}
	return err
}

// Checked refuses flags that could not work, before anything is served. It returns the networks
// of proxies in front.
func (s *Flags) Checked() ([]netip.Prefix, error) {
	if _, _, err := net.SplitHostPort(s.HTTP); err != nil {
		return nil, kit.Usagef("--http %q: must be HOST:PORT or :PORT", s.HTTP)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.checkAuth(); err != nil {
		return nil, err
	}
	return ReadProxies(s.proxies)
}

// check refuses names that would never match, which the user would only
// find out from a page that is refused.
func (s *Flags) check() error {
	for _, origin := range s.origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.Contains(origin, "*") {
			return kit.Usagef("--allow-origin %q: must be one origin as browsers write it, like https://app.example, with nothing after it", origin)
		}
	}
	for _, name := range s.hosts {
		if name != "*" && (name == "" || strings.ContainsAny(name, "/@* ")) {
			return kit.Usagef("--allow-host %q: must be a host, like mcp.example or mcp.example:8080", name)
		}
	}
	return nil
}

// Reachable is an address to listen on as one to call: all addresses of this
// machine are none that a client could write.
func Reachable(addr net.Addr) string {
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

// ReadProxies reads the --trusted-proxy flags.
func ReadProxies(flags []string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, flag := range flags {
		network, err := web.ParseProxy(flag)
		if err != nil {
			return nil, kit.Usagef("--trusted-proxy: %w", err)
		}
		list = append(list, network)
	}
	return list, nil
}

// A LateHandler is a handler that comes when the address is known: requests
// wait for it.
type LateHandler struct {
	ready   chan struct{}
	handler http.Handler
}

// NewLateHandler returns a LateHandler without a handler.
func NewLateHandler() *LateHandler { return &LateHandler{ready: make(chan struct{})} }

// Open lets the requests in. It is called once.
func (l *LateHandler) Open(h http.Handler) {
	l.handler = h
	close(l.ready)
}

func (l *LateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-l.ready:
		l.handler.ServeHTTP(w, r)
	case <-r.Context().Done():
	case <-time.After(kit.ShutdownTime):
		http.Error(w, "not ready", http.StatusServiceUnavailable)
	}
}
