package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// maxAddresses is how many addresses of a name are tried.
const maxAddresses = 8

// check says whether a URL may be fetched, as far as the URL tells; the
// address is checked when it is dialled.
func (f *Fetcher) check(target string) (*url.URL, error) {
	u, err := parseURL(target, maxAuthorizationURL)
	if err != nil {
		return nil, &BlockedError{URL: shown(target), Reason: err.Error()}
	}
	u.Host = strings.ToLower(u.Host)
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && !LoopbackHost(host):
		return nil, &BlockedError{URL: withoutQuery(u), Reason: "must be https"}
	case u.Scheme != "https" && !f.loopback:
		return nil, &BlockedError{URL: withoutQuery(u), Reason: "must be https: this machine itself is not allowed here"}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if reason := f.judge(host, addr); reason != "" {
			return nil, &BlockedError{URL: withoutQuery(u), Reason: reason}
		}
	}
	return u, nil
}

// shown is a URL that is none, for an error: without query, bounded.
func shown(target string) string {
	target, _, _ = strings.Cut(target, "?")
	target, _, _ = strings.Cut(target, "#")
	if i := strings.LastIndexByte(target, '@'); i >= 0 {
		target = target[i+1:] // what stands before may be a password
	}
	return cleanText(target, 256)
}

// judge says why an address must not be dialled for a host, or "".
func (f *Fetcher) judge(host string, addr netip.Addr) string {
	local := LoopbackHost(host)
	if f.loopback && local {
		// Nothing but this machine goes by these names, and no http leaves it.
		if a := addr.Unmap(); a.IsLoopback() {
			return ""
		}
		return "address " + addr.String() + " is not this machine, though its name says so"
	}
	kind := classify(addr)
	switch {
	case kind.class == public, f.allow.contains(kind.addr):
		return ""
	case kind.class == private && f.allow.opens(host):
		return ""
	}
	reason := "address " + addr.String() + " is not public (" + kind.name + ")"
	if kind.class == private {
		return reason + "; AllowHosts can allow it"
	}
	return reason
}

// dial connects to an address that the transport asks for, host and port of
// the URL or of the proxy.
func (f *Fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if routeOf(ctx) != nil {
		// The operator's proxy may be anywhere.
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host = strings.ToLower(host)
	d := net.Dialer{ControlContext: func(_ context.Context, _, dialled string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(dialled)
		if err != nil {
			return &BlockedError{URL: host, Reason: "dials no address"}
		}
		if reason := f.judge(host, to.Addr()); reason != "" {
			return &BlockedError{URL: host, Reason: reason}
		}
		return nil
	}}
	name := host
	if LoopbackHost(host) && strings.HasSuffix(host, ".localhost") {
		name = "localhost" // resolvers need not know names below it (RFC 6761, section 6.3)
	}
	if _, err := netip.ParseAddr(name); err == nil || f.options.Resolve == nil {
		return d.DialContext(ctx, network, net.JoinHostPort(name, port))
	}
	addresses, err := f.options.Resolve(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", name, err)
	}
	return dialFirst(ctx, &d, network, addresses[:min(len(addresses), maxAddresses)], port)
}

// dialFirst connects to the first address that can be reached.
func dialFirst(ctx context.Context, d *net.Dialer, network string, addresses []string, port string) (net.Conn, error) {
	var first error
	for _, a := range addresses {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			continue // a name here would be resolved behind our back
		}
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = errors.New("name has no address")
	}
	return nil, first
}

// routeKey is the key of a request's proxy in its context, which the dialer
// sees as well.
type routeKey struct{}

// route puts the proxy of a request, if there is one, into its context.
func (f *Fetcher) route(req *http.Request) (*http.Request, error) {
	if f.options.Proxy == nil || LoopbackHost(req.URL.Hostname()) {
		return req, nil // the proxy's loopback is not ours
	}
	proxy, err := f.options.Proxy(req)
	if err != nil || proxy == nil {
		return req, err
	}
	return req.WithContext(context.WithValue(req.Context(), routeKey{}, proxy)), nil
}

func routeOf(ctx context.Context) *url.URL {
	proxy, _ := ctx.Value(routeKey{}).(*url.URL)
	return proxy
}

func routeProxy(req *http.Request) (*url.URL, error) { return routeOf(req.Context()), nil }
