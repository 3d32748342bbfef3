package connect

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

// A Target is the words of a command line that say which server is meant: a configured name,
// a URL, "everything", or a command after "--".
type Target struct {
	Words   []string
	Command bool // they stood after "--"
}

// TargetOf splits the arguments of a command that has own arguments before its server. None
// is a target without words.
func TargetOf(cmd *cobra.Command, args []string, own int) (before []string, t Target, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash >= 0:
		before, t = args[:dash], Target{args[dash:], true}
	case len(args) > own:
		before, t = args[:own], Target{Words: args[own:]}
	default:
		before = args
	}
	switch {
	case len(before) < own:
		return nil, t, kit.Usagef("missing argument; usage: parley %s", cmd.Use)
	case len(before) > own:
		return nil, t, kit.Usagef("write either a server name or, after --, a command; usage: parley %s", cmd.Use)
	case !t.Command && len(t.Words) > 1:
		return nil, t, kit.Usagef("too many servers; write a command with arguments after --, such as: parley %s -- %s", cmd.Name(), strings.Join(t.Words, " "))
	case t.Command && (len(t.Words) == 0 || t.Words[0] == ""):
		return nil, t, kit.Usagef("missing command after --; write, for example: parley %s -- ./server", cmd.Name())
	}
	return before, t, nil
}

// TargetServer returns the server that is meant. c.Tap is shown what its connections carry.
func (c *Connector) TargetServer(ctx context.Context, t Target) (host.Server, error) {
	s, err := c.meant(ctx, t)
	if c.Protocol != "" && err == nil {
		s.Versions = []string{c.Protocol}
	}
	return s, err
}

func (c *Connector) meant(ctx context.Context, t Target) (host.Server, error) {
	switch {
	case len(t.Words) > 0 && len(c.Named) > 0:
		return host.Server{}, kit.Usagef("duplicate server; name it with --server or as the last argument, not both")
	case len(c.Named) == 1:
		return c.flagServer(ctx, c.Named[0])
	case len(t.Words) == 0:
		return host.Server{}, kit.Usagef("missing server; write its name, its URL, or -- and its command")
	case len(t.Words) == 1 && (kit.IsURL(t.Words[0]) || !t.Command && t.Words[0] == kit.Bundled):
		return c.flagServer(ctx, t.Words[0])
	case !t.Command:
		return c.configuredServer(ctx, t.Words[0])
	}
	if len(t.Words) == 1 {
		if _, err := exec.LookPath(t.Words[0]); err != nil {
			if s, err := c.configuredServer(ctx, t.Words[0]); !errors.Is(err, errNoEntry) {
				return s, err
			}
		}
	}
	name := nameOf(t.Words)
	managed, err := c.managedRules()
	if err != nil {
		return host.Server{}, err
	}
	if err := managed.Permits(&config.Server{Name: name, Transport: config.TransportStdio, Command: t.Words[0], Args: t.Words[1:]}); err != nil {
		return host.Server{}, kit.Usagef("%w", err)
	}
	command := strings.Join(t.Words, " ")
	d := c.command(t.Words[0], t.Words[1:]...)
	return host.Server{Name: name, Key: "command " + command, Dialer: d, Origin: command, Dir: startFolder("", t.Words, nil)}, nil
}

// flagServer is the server of a --server flag of that text.
func (c *Connector) flagServer(ctx context.Context, flag string) (host.Server, error) {
	c.Named = []string{flag}
	list, err := c.Servers(ctx)
	if err != nil {
		return host.Server{}, err
	}
	return list[0], nil
}

// errNoEntry says that the configuration has no server of a name.
var errNoEntry = errors.New("unknown server")

// configuredServer is the server of an entry of the configuration.
func (c *Connector) configuredServer(ctx context.Context, name string) (s host.Server, err error) {
	err = c.WithConfig(ctx, "", func(cfg *config.Config, db *local.DB) error {
		entry := cfg.Server(name)
		if entry == nil {
			return kit.Usagef("%w %q: not a URL and not in your configuration; run 'parley config list' to list servers, or write a command after --", errNoEntry, name)
		}
		s, err = c.configured(ctx, entry, c.Streams.InTerminal, db)
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

// Around shows c.Tap, if there is one, what a transport sends, and learns the credentials
// in it, which are masked from then on.
func (c *Connector) Around(next http.RoundTripper) http.RoundTripper {
	return &credentialTransport{wrapper{web.TapTransport(next, c.Tap)}, c.Streams}
}

// RemoteEntry returns the entry of a server at a URL, ready to be used.
func (c *Connector) RemoteEntry(ctx context.Context, name string) (entry *config.Server, err error) {
	err = c.WithConfig(ctx, "", func(cfg *config.Config, db *local.DB) error {
		s := cfg.Server(name)
		switch {
		case s == nil:
			return kit.Usagef("unknown server %q: not a URL and not in your configuration; write a URL like https://example.com/mcp, or run 'parley config list' to list servers", name)
		case s.Transport == config.TransportStdio:
			return kit.Usagef("%s is a program on this machine and does not need a sign-in", name)
		case s.NoOAuth:
			return kit.Usagef("%s does not use sign-in: its entry (%s) turns it off or sets the header Authorization", name, s.Source)
		}
		entry, err = c.Expanded(ctx, s, c.Streams.InTerminal, db)
		return err
	})
	return entry, err
}

// ClientEntries returns the entries that name a client and can be used as they are: those of a
// project only with consent, and none whose values are asked for. Nothing else is known of
// what cannot be read, so that signing out works with any configuration.
func (c *Connector) ClientEntries(ctx context.Context) []*config.Server {
	var list []*config.Server
	err := c.WithConfig(ctx, "", func(cfg *config.Config, db *local.DB) error {
		for _, s := range cfg.Servers {
			if s.OAuth == nil || s.NoOAuth || s.Transport == config.TransportStdio {
				continue
			}
			if e, err := c.Expanded(ctx, s, false, db); err == nil && e.OAuth.ClientID != "" {
				list = append(list, e)
			}
		}
		return nil
	})
	if err != nil {
		c.Logger().Debug("the clients of entries are not known", "err", err)
	}
	return list
}
