package serve

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http/httpproxy"

	"github.com/parley-mcp/parley/app/internal/kit"
	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch"
	"github.com/parley-mcp/parley/server"
)

// fetchFlags are the flags of the server fetch. The first three are those of
// mcp-server-fetch.
type fetchFlags struct {
	userAgent    string
	ignoreRobots bool
	proxy        string
	trustProxy   bool
	allowPrivate []string
	timeout      time.Duration
	maxBytes     int64
}

// fetchServer gets pages from the web.
func fetchServer() builtin {
	return builtin{
		name:  "fetch",
		short: "Fetch web pages, HTML as markdown",
		risk:  "it reads internet pages that this machine can reach; private addresses only with --allow-private",
		long: `Serve a server that fetches web pages: HTML as markdown, other texts and images
unchanged. It replaces mcp-server-fetch: the tool, the prompt and the flags are the
same.

The server fetches only http and https URLs with public addresses. It rejects addresses
of this machine, its network and cloud metadata services, also when a name or a redirect
leads there. --allow-private allows an address, a network or a host. The tool obeys a
robots.txt that forbids a page to programs; the prompt, which a user picks, does not.

With --proxy-url, or the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY,
the server fetches pages through a proxy. It resolves and checks names first. If only
the proxy can resolve them, and the proxy rejects private addresses itself, pass
--trust-proxy to leave both to the proxy.`,
		example: `  parley serve fetch
  parley serve fetch --user-agent "ExampleBot/1.0 (+https://example.com/bot)"
  parley serve fetch --allow-private 10.1.0.0/16 --http 127.0.0.1:8080`,
		args:  cobra.NoArgs,
		tasks: true,
		flags: func(f *pflag.FlagSet) openBuiltin {
			flags := &fetchFlags{}
			f.StringVar(&flags.userAgent, "user-agent", "", "send this `TEXT` as the user agent (default: ModelContextProtocol/1.0)")
			f.BoolVar(&flags.ignoreRobots, "ignore-robots-txt", false, "fetch pages that a robots.txt forbids to programs")
			f.StringVar(&flags.proxy, "proxy-url", "", "fetch through the proxy at this `URL`: http, https, socks5 or socks5h (default: the proxy of the environment)")
			f.BoolVar(&flags.trustProxy, "trust-proxy", false, "let the proxy resolve names and reject private addresses")
			f.StringArrayVar(&flags.allowPrivate, "allow-private", nil, "also fetch from this private `NETWORK` (CIDR), address or host (repeatable)")
			f.DurationVar(&flags.timeout, "timeout", 30*time.Second, "`TIME` after which to stop fetching a page")
			f.Int64Var(&flags.maxBytes, "max-bytes", 10<<20, "maximum size of a page, in `BYTES`")
			return flags.open
		},
	}
}

// open makes the server.
func (flags *fetchFlags) open(_ context.Context, _ *group, _ []string, o *builtinOptions) (*server.Server, io.Closer, error) {
	proxy, err := flags.proxyOf()
	if err != nil {
		return nil, nil, err
	}
	for _, host := range flags.allowPrivate {
		if !isHost(host) {
			return nil, nil, kit.Usagef("--allow-private %q: must be a network such as 10.0.0.0/8, an address or a host name", host)
		}
	}
	if !httpguts.ValidHeaderFieldValue(flags.userAgent) {
		return nil, nil, kit.Usagef("--user-agent must be one line of text")
	}
	if flags.timeout <= 0 || flags.maxBytes <= 0 {
		return nil, nil, kit.Usagef("--timeout and --max-bytes must be greater than 0")
	}
	return fetch.New(kit.Version(), &fetch.Options{
		Server: &o.server, Tasks: o.tasks,
		UserAgent: flags.userAgent, IgnoreRobots: flags.ignoreRobots, AllowPrivate: flags.allowPrivate,
		Proxy: proxy, TrustProxy: flags.trustProxy, Timeout: flags.timeout, MaxBytes: flags.maxBytes,
	}), nil, nil
}

// isHost reports whether a text is a network, an address or the name of a host in ASCII.
func isHost(text string) bool {
	if _, err := netip.ParsePrefix(text); err == nil {
		return true
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Zone() == ""
	}
	return text != "" && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

// proxyOf returns the proxy of the flag, or of the environment.
func (flags *fetchFlags) proxyOf() (func(*http.Request) (*url.URL, error), error) {
	if flags.proxy == "" {
		find := httpproxy.FromEnvironment().ProxyFunc()
		return func(req *http.Request) (*url.URL, error) { return find(req.URL) }, nil
	}
	u, err := url.Parse(flags.proxy)
	if err != nil || u.Host == "" {
		return nil, kit.Usagef("--proxy-url: invalid proxy URL; write it like http://proxy.example.com:3128") // it may have a password
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return http.ProxyURL(u), nil
	}
	return nil, kit.Usagef("--proxy-url: unsupported scheme %s; use http, https, socks5 or socks5h", u.Scheme)
}
