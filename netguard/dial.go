package netguard

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
	"unicode/utf8"
)

// maxAddresses is how many addresses of a name are tried.
const maxAddresses = 8

// refuseReason says why an address must not be dialled for a host, or "".
func (t *Transport) refuseReason(host string, addr netip.Addr) string {
	host = strings.ToLower(host)
	if t.rules.Loopback && LoopbackHost(host) {
		// Nothing but this machine goes by these names, and no http leaves it.
		if a := addr.Unmap(); a.IsLoopback() {
			return ""
		}
		return "address " + addr.String() + " is not this machine, though its name says so"
	}
	kind := classify(addr)
	switch {
	case kind.class == public, t.allow.contains(kind.addr):
		return ""
	case kind.class == private && t.allow.opens(host):
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
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
		if reason := t.refuseReason(host, to.Addr()); reason != "" {
			return &BlockedError{URL: host, Reason: reason}
		}
		return nil
	}}
	name := host
	if LoopbackHost(host) && strings.HasSuffix(host, ".localhost") {
		name = "localhost" // resolvers need not know names below it (RFC 6761, section 6.3)
	}
	if _, err := netip.ParseAddr(name); err == nil || t.rules.Resolve == nil {
		return d.DialContext(ctx, network, net.JoinHostPort(name, port))
	}
	addresses, err := t.rules.Resolve(ctx, name)
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

// route returns the context of a request, with its proxy if there is one.
func (t *Transport) route(req *http.Request) (context.Context, error) {
	ctx := req.Context()
	if t.rules.Proxy == nil || LoopbackHost(req.URL.Hostname()) {
		return ctx, nil // the proxy's loopback is not ours
	}
	proxy, err := t.rules.Proxy(req)
	if err != nil || proxy == nil {
		return ctx, err
	}
	if strings.ContainsFunc(req.URL.Hostname(), func(r rune) bool { return r >= utf8.RuneSelf }) {
		// net/http turns fullwidth digits and the like into ASCII on the way to the
		// proxy, and the address that is dialled there is not checked.
		return ctx, &BlockedError{URL: shown(req.URL), Reason: "host is not ASCII; through a proxy, write it in Punycode, like xn--bcher-kva.example"}
	}
	if t.rules.CheckProxied {
		if err := t.checkName(ctx, req.URL); err != nil {
			return ctx, err
		}
	}
	return context.WithValue(ctx, routeKey{}, proxy), nil
}

// checkName refuses a URL whose name has no address here, or one that must not be
// dialled.
func (t *Transport) checkName(ctx context.Context, u *url.URL) error {
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil {
		return nil // Check has seen it
	}
	resolve := t.rules.Resolve
	if resolve == nil {
		resolve = net.DefaultResolver.LookupHost
	}
	addresses, err := resolve(ctx, host)
	if err != nil {
		return fmt.Errorf("resolve %s before it goes to the proxy: %w", host, err)
	}
	if len(addresses) == 0 {
		return &BlockedError{URL: shown(u), Reason: "name has no address"}
	}
	for _, a := range addresses {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			return &BlockedError{URL: shown(u), Reason: "name resolves to no address"}
		}
		if reason := t.refuseReason(host, addr); reason != "" {
			return &BlockedError{URL: shown(u), Reason: reason}
		}
	}
	return nil
}

func routeOf(ctx context.Context) *url.URL {
	proxy, _ := ctx.Value(routeKey{}).(*url.URL)
	return proxy
}

func routeProxy(req *http.Request) (*url.URL, error) { return routeOf(req.Context()), nil }
