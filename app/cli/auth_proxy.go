package cli

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// proxies are the networks of proxies that are believed when they say who
// comes through them.
type proxies []netip.Prefix

// readProxies reads the --trusted-proxy flags.
func readProxies(flags []string) (proxies, error) {
	var list proxies
	for _, flag := range flags {
		network, err := netip.ParsePrefix(flag)
		if err != nil {
			address, err := netip.ParseAddr(flag)
			if err != nil || address.Zone() != "" {
				return nil, usagef("--trusted-proxy %q: write a network like 10.0.0.0/8, or an address", flag)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if network.Bits() == 0 {
			return nil, usagef("--trusted-proxy %q: then everybody could say to be anybody; name the network of the proxy alone", flag)
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

// remote is the address that a request comes from: that of the connection or,
// as long as that is a proxy, the last one in X-Forwarded-For that is none.
// Each proxy adds whom it saw at the end; what is before that anybody can
// have written.
func (p proxies) remote(r *http.Request) string {
	at, ok := hop(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	// One header may be there several times.
	rest := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	for rest != "" && p.trusts(at) {
		end := strings.LastIndexByte(rest, ',')
		before, ok := hop(strings.TrimSpace(rest[end+1:]))
		if !ok {
			break
		}
		at, rest = before, rest[:max(end, 0)]
	}
	return at.String()
}

// hop reads an address, with a port or without.
func hop(text string) (netip.Addr, bool) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	at, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return at.Unmap().WithZone(""), err == nil
}

func (p proxies) trusts(at netip.Addr) bool {
	for _, network := range p {
		if network.Contains(at) {
			return true
		}
	}
	return false
}

// direct refuses what came through a proxy or a tunnel. It stands before a
// server that asks nobody who they are: that it listens on this machine alone
// is worth nothing if something here hands on what comes from elsewhere.
func direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
			if len(r.Header.Values(name)) > 0 {
				http.Error(w, "with --auto-approve nobody may come through a proxy", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
