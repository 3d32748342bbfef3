package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A loopbackAddress is an address where a visit may listen.
type loopbackAddress struct {
	host string // as the redirect URI has it, with brackets
	port int    // 0 is any
	path string
}

// redirect is the redirect URI of a place with the port that was taken.
func (p loopbackAddress) redirect(port int) string {
	return "http://" + p.host + ":" + strconv.Itoa(port) + p.path
}

// addresses are those to try, in order: at the ports of registered redirect URIs, then at those of
// the options, under the host and path of a registered URI if there is one, since servers let the
// port alone vary (RFC 8252, section 7.3).
func (o *ReceiverOptions) addresses(registered []string) ([]loopbackAddress, error) {
	if o.Host != "127.0.0.1" && o.Host != "localhost" {
		return nil, fmt.Errorf("host %q: it must be 127.0.0.1 or localhost", o.Host)
	}
	own := loopbackAddress{host: o.Host, path: o.Path}
	if u, err := url.ParseRequestURI(own.path); err != nil || u.Path != own.path || u.RawPath != "" || u.RawQuery != "" || u.Host != "" {
		return nil, fmt.Errorf("path %q is none of a redirect URI", o.Path)
	}
	var out []loopbackAddress
	known := false
	for _, raw := range registered {
		p, ok := parseLoopback(raw)
		if !ok {
			continue
		}
		if !known {
			own.host, own.path, known = p.host, p.path, true
		}
		if p.port != 0 {
			out = append(out, p)
		}
	}
	ports := slices.Clone(o.Ports)
	if o.Port != 0 || len(ports) == 0 {
		ports = slices.Insert(ports, 0, o.Port)
	}
	for _, port := range ports {
		if port < 0 || port > 65535 {
			return nil, fmt.Errorf("port %d is none", port)
		}
		own.port = port
		out = append(out, own)
	}
	return out, nil
}

// parseLoopback is the place of a registered redirect URI, if it is one on this machine that this
// package would write the same.
func parseLoopback(raw string) (loopbackAddress, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || u.RawPath != "" {
		return loopbackAddress{}, false
	}
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	if host != "127.0.0.1" && host != "localhost" && host != "[::1]" {
		return loopbackAddress{}, false
	}
	p := loopbackAddress{host: host, path: u.Path}
	if u.Port() == "" {
		return p, raw == "http://"+host+u.Path
	}
	p.port, err = strconv.Atoi(u.Port())
	return p, err == nil && p.port > 0 && p.port < 65536 && raw == p.redirect(p.port)
}

// loopbackHosts are the Host headers of requests that mean this listener.
func loopbackHosts(port int) []string {
	var out []string
	for _, name := range []string{"127.0.0.1", "[::1]", "localhost"} {
		out = append(out, name+":"+strconv.Itoa(port))
		if port == 80 {
			out = append(out, name) // a default port is left out
		}
	}
	return out
}

// listenLoopback listens on those of 127.0.0.1 and [::1] that there are, at the same port; 0 is
// any. Both, since browsers may take localhost for either, and nobody else shall sit at the other
// one.
func listenLoopback(ctx context.Context, port int) (listeners []net.Listener, got int, err error) {
	const tries = 10
	for range tries {
		if listeners, got, err = listenOnce(ctx, port); err == nil || port != 0 {
			break
		}
	}
	return listeners, got, err
}

func listenOnce(ctx context.Context, port int) ([]net.Listener, int, error) {
	var listeners []net.Listener
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := listenAt(ctx, host, port)
		switch {
		case err == nil:
			listeners = append(listeners, l)
			port = l.Addr().(*net.TCPAddr).Port
		case hasAddress(ctx, host):
			closeAll(listeners)
			return nil, 0, err
		}
	}
	if len(listeners) == 0 {
		return nil, 0, errors.New("this machine has no loopback address")
	}
	return listeners, port, nil
}

// hasAddress reports whether there is an address, so that one that there is not is told from a port
// that is taken.
func hasAddress(ctx context.Context, host string) bool {
	l, err := listenAt(ctx, host, 0)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func listenAt(ctx context.Context, host string, port int) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}
