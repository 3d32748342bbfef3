package netguard

import (
	"net/netip"
	"strings"
)

// A class says when an address may be dialled.
type class int

const (
	public class = iota
	// private addresses can be opened for a host by its name.
	private
	// forbidden ones are opened by address or network alone.
	forbidden
	// guarded ones, the metadata services of clouds, which hand out
	// credentials, are opened by their exact address alone.
	guarded
)

// A special is a range of addresses for special purposes (IANA
// special-purpose address registries, RFC 6890).
type special struct {
	prefix netip.Prefix
	class  class
	name   string
}

// specials are in the order in which they are looked at.
var specials = []special{
	{netip.MustParsePrefix("169.254.169.254/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.2/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.23/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("169.254.0.23/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("169.254.42.42/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("fd00:42::42/128"), guarded, "cloud metadata"},
	{netip.MustParsePrefix("fe80::a9fe:a9fe/128"), guarded, "cloud metadata"},

	{netip.MustParsePrefix("0.0.0.0/8"), forbidden, "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), private, "private use"},
	{netip.MustParsePrefix("100.64.0.0/10"), private, "shared address space"},
	{netip.MustParsePrefix("127.0.0.0/8"), private, "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), private, "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), private, "private use"},
	{netip.MustParsePrefix("192.0.0.0/24"), forbidden, "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), forbidden, "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), forbidden, "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), private, "private use"},
	{netip.MustParsePrefix("198.18.0.0/15"), private, "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), forbidden, "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), forbidden, "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), forbidden, "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), forbidden, "reserved"},

	{netip.MustParsePrefix("::1/128"), private, "loopback"},
	{netip.MustParsePrefix("::/96"), forbidden, "IPv4-compatible"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), forbidden, "local translation"},
	{netip.MustParsePrefix("100::/64"), forbidden, "discard"},
	{netip.MustParsePrefix("2001::/23"), forbidden, "protocol assignments, Teredo"},
	{netip.MustParsePrefix("2001:db8::/32"), forbidden, "documentation"},
	{netip.MustParsePrefix("3fff::/20"), forbidden, "documentation"},
	{netip.MustParsePrefix("fc00::/7"), private, "unique local"},
	{netip.MustParsePrefix("fe80::/10"), private, "link-local"},
	{netip.MustParsePrefix("fec0::/10"), private, "site-local"},
	{netip.MustParsePrefix("ff00::/8"), forbidden, "multicast"},
}

// Where IPv6 carries IPv4 addresses, and all of it that is routed.
var (
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
	globalUnicast = netip.MustParsePrefix("2000::/3")
)

// A kind is what an address turns out to be.
type kind struct {
	addr  netip.Addr // where packets end, out of mapping and translation
	class class
	name  string
}

// classify says what is behind an address: an IPv4 address that an IPv6
// address carries is judged in its place.
func classify(addr netip.Addr) kind {
	if !addr.IsValid() || addr.Zone() != "" {
		return kind{addr: addr, class: forbidden, name: "zone"}
	}
	addr = embedded(addr.Unmap())
	for _, s := range specials {
		if s.prefix.Contains(addr) {
			return kind{addr: addr, class: s.class, name: s.name}
		}
	}
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return kind{addr: addr, class: forbidden, name: "reserved"}
	}
	return kind{addr: addr}
}

// embedded is the IPv4 address to which a translator (RFC 6052) or 6to4 (RFC
// 3056) carries what is sent to addr, or addr.
func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

// numeric reports whether a host is no address in its usual form, but ends in a
// number as no name does: 127.1, 0x7f.1, 2130706433 (WHATWG URL, "ends in a
// number"). Resolvers and proxies read such a host as an address.
func numeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// An allowList is Rules.AllowHosts, read.
type allowList struct {
	names    map[string]bool
	networks []netip.Prefix
}

func newAllowList(hosts []string) allowList {
	list := allowList{names: make(map[string]bool)}
	for _, host := range hosts {
		host = strings.ToLower(strings.Trim(host, "[]"))
		if addr, err := netip.ParseAddr(host); err == nil {
			addr = addr.Unmap()
			list.networks = append(list.networks, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		if network, err := netip.ParsePrefix(host); err == nil {
			if at := network.Addr(); at.Is4In6() && network.Bits() >= 96 { // addresses are compared as IPv4
				network = netip.PrefixFrom(at.Unmap(), network.Bits()-96)
			}
			list.networks = append(list.networks, network.Masked())
			continue
		}
		list.names[host] = true
	}
	return list
}

// opens reports whether private addresses may be dialled under a name.
func (l allowList) opens(host string) bool { return l.names[host] }

// contains reports whether an address is listed, for one of a metadata service
// whether it is listed by itself.
func (l allowList) contains(addr netip.Addr) bool {
	exact := classify(addr).class == guarded
	for _, network := range l.networks {
		if network.Contains(addr) && (!exact || network.IsSingleIP()) {
			return true
		}
	}
	return false
}
