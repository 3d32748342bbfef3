package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/parley-mcp/parley/app/internal/config"
	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/store/local"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/transport/web"
)

// A target is the words of a command line that say which server is meant: a configured name,
// a URL, "everything", or a command after "--".
type target struct {
	words   []string
	command bool // they stood after "--"
}

// targetOf splits the arguments of a command that has own arguments before its server. None
// is a target without words.
func targetOf(cmd *cobra.Command, args []string, own int) (before []string, t target, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash >= 0:
		before, t = args[:dash], target{args[dash:], true}
	case len(args) > own:
		before, t = args[:own], target{words: args[own:]}
	default:
		before = args
	}
	switch {
	case len(before) < own:
		return nil, t, kit.Usagef("an argument is missing: parley %s", cmd.Use)
	case len(before) > own:
		return nil, t, kit.Usagef("name the server or give its command after --, not both: parley %s", cmd.Use)
	case !t.command && len(t.words) > 1:
		return nil, t, kit.Usagef("one server is meant; a command with arguments stands after --, as in: parley %s -- %s", cmd.Name(), strings.Join(t.words, " "))
	case t.command && (len(t.words) == 0 || t.words[0] == ""):
		return nil, t, kit.Usagef("a command belongs after --, such as: parley %s -- ./server", cmd.Name())
	}
	return before, t, nil
}

// targetServer makes the server that is meant. p.tap is shown what its connections carry.
func (p *program) targetServer(ctx context.Context, t target) (host.Server, error) {
	s, err := p.meant(ctx, t)
	if p.protocol != "" && err == nil {
		s.Versions = []string{p.protocol}
	}
	return s, err
}

func (p *program) meant(ctx context.Context, t target) (host.Server, error) {
	switch {
	case len(t.words) > 0 && len(p.serverFlags) > 0:
		return host.Server{}, kit.Usagef("name the server once: with --server, or as the last argument")
	case len(p.serverFlags) == 1:
		return p.flagServer(ctx, p.serverFlags[0])
	case len(t.words) == 0:
		return host.Server{}, kit.Usagef("say which server is meant: its name, its URL, or -- and its command")
	case len(t.words) == 1 && (kit.IsURL(t.words[0]) || !t.command && t.words[0] == kit.Bundled):
		return p.flagServer(ctx, t.words[0])
	case !t.command:
		return p.configuredServer(ctx, t.words[0])
	}
	if len(t.words) == 1 {
		if _, err := exec.LookPath(t.words[0]); err != nil {
			if s, err := p.configuredServer(ctx, t.words[0]); !errors.Is(err, errNoEntry) {
				return s, err
			}
		}
	}
	name := nameOf(t.words)
	managed, err := p.managedRules()
	if err != nil {
		return host.Server{}, err
	}
	if err := managed.Permits(&config.Server{Name: name, Transport: config.TransportStdio, Command: t.words[0], Args: t.words[1:]}); err != nil {
		return host.Server{}, kit.Usagef("%w", err)
	}
	command := strings.Join(t.words, " ")
	d := p.command(t.words[0], t.words[1:]...)
	return host.Server{Name: name, Key: "command " + command, Dialer: d, Origin: command, Dir: startFolder("", t.words, nil)}, nil
}

// flagServer is the server of a --server flag of that text.
func (p *program) flagServer(ctx context.Context, flag string) (host.Server, error) {
	p.serverFlags = []string{flag}
	list, err := p.servers(ctx)
	if err != nil {
		return host.Server{}, err
	}
	return list[0], nil
}

// errNoEntry says that the configuration has no server of a name.
var errNoEntry = errors.New("no server of your configuration")

// configuredServer is the server of an entry of the configuration.
func (p *program) configuredServer(ctx context.Context, name string) (s host.Server, err error) {
	err = withLocal(func(db *local.DB) error {
		cfg, err := p.loadConfig(ctx, "", db)
		if err != nil {
			return err
		}
		entry := cfg.Server(name)
		if entry == nil {
			return kit.Usagef("%q is no URL, and %w; 'parley config list' shows those, and a command stands after --", name, errNoEntry)
		}
		s, err = p.configured(ctx, entry, p.Streams.InTerminal, db)
		return err
	})
	return s, err
}

// maxIdleConnections is how many connections to one server are kept that nothing uses: as many as calls
// may be under way at once, which each have one over HTTP/1.1.
const maxIdleConnections = 256

// connections are those over HTTP of this process.
var connections = sync.OnceValue(func() http.RoundTripper {
	shared, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	own := shared.Clone()
	own.MaxIdleConns, own.MaxIdleConnsPerHost = 0, maxIdleConnections // 0 is no limit for all together
	own.DialContext, own.Proxy = dialLocal(shared.DialContext), directLocal(shared.Proxy)
	return own
})

// dialLocal connects to this machine for names below localhost, which resolvers need not know (RFC
// 6761, section 6.3), and must not send elsewhere: they may be asked over plain http.
func dialLocal(next func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		name, port, err := net.SplitHostPort(address)
		if err == nil && net.ParseIP(name) == nil && oauth.LoopbackHost(name) {
			address = net.JoinHostPort("localhost", port)
		}
		return next(ctx, network, address)
	}
}

// directLocal uses no proxy for this machine, by whatever name.
func directLocal(next func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if next == nil || oauth.LoopbackHost(r.URL.Hostname()) {
			return nil, nil
		}
		return next(r)
	}
}

// tapped is a client for HTTP with a tappedTransport.
func (p *program) tapped() *http.Client {
	return &http.Client{Transport: p.tappedTransport(connections())}
}

// tappedTransport shows p.tap, if there is one, what a transport sends, and learns the credentials
// in it, which are masked from then on.
func (p *program) tappedTransport(next http.RoundTripper) http.RoundTripper {
	return &credentialTransport{wrapper{web.TapTransport(next, p.tap)}, p.Streams}
}
