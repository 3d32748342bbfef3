package netguard

import (
	"net/netip"
	"testing"
)

// Both ends of each range that is not public, and their neighbours. It is
// within the package because nobody may dial the public ones in a test.
func TestClassify(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]class{
		"0.0.0.0": forbidden, "0.255.255.255": forbidden, "1.0.0.0": public,
		"9.255.255.255": public, "10.0.0.0": private, "10.255.255.255": private, "11.0.0.0": public,
		"100.63.255.255": public, "100.64.0.0": private, "100.127.255.255": private, "100.128.0.0": public,
		"100.100.100.200": guarded, "126.255.255.255": public, "127.0.0.0": private, "127.255.255.255": private,
		"128.0.0.0": public, "169.253.255.255": public, "169.254.0.0": private, "169.254.169.254": guarded,
		"169.254.255.255": private, "169.255.0.0": public, "172.15.255.255": public, "172.16.0.0": private,
		"172.31.255.255": private, "172.32.0.0": public, "191.255.255.255": public, "192.0.0.0": forbidden,
		"192.0.0.255": forbidden, "192.0.1.0": public, "192.0.2.1": forbidden, "192.0.3.0": public,
		"192.88.98.255": public, "192.88.99.1": forbidden, "192.88.100.0": public, "192.167.255.255": public,
		"192.168.0.0": private, "192.168.255.255": private, "192.169.0.0": public, "198.17.255.255": public,
		"198.18.0.0": private, "198.19.255.255": private, "198.20.0.0": public, "198.51.99.255": public,
		"198.51.100.1": forbidden, "198.51.101.0": public, "203.0.112.255": public, "203.0.113.1": forbidden,
		"203.0.114.0": public, "223.255.255.255": public, "224.0.0.0": forbidden, "239.255.255.255": forbidden,
		"240.0.0.0": forbidden, "255.255.255.255": forbidden, "8.8.8.8": public, "168.63.129.16": guarded,
		"169.254.0.23": guarded, "169.254.42.42": guarded, "fd00:42::42": guarded, "fe80::a9fe:a9fe": guarded,

		"::": forbidden, "::1": private, "::2": forbidden, "::8.8.8.8": forbidden, "::1:0:0:0": forbidden,
		"::ffff:8.8.8.8": public, "::ffff:127.0.0.1": private, "::ffff:0.0.0.0": forbidden, "::ffff:0:808:808": forbidden,
		"64:ff9b::8.8.8.8": public, "64:ff9b::10.0.0.1": private, "64:ff9b::169.254.169.254": guarded,
		"64:ff9b::1:0:0": forbidden, "64:ff9b:1::8.8.8.8": forbidden, "100::1": forbidden, "1fff::1": forbidden,
		"2000::1": public, "2001::1": forbidden, "2001:1ff:ffff::": forbidden, "2001:200::1": public,
		"2001:db7:ffff::": public, "2001:db8::1": forbidden, "2001:db9::": public, "2001:4860:4860::8888": public,
		"2002:808:808::1": public, "2002:7f00:1::1": private, "2002:a9fe:a9fe::1": guarded, "2003::1": public,
		"3ffe:ffff::": public, "3fff::1": forbidden, "3fff:fff:ffff::": forbidden, "3fff:1000::": public,
		"4000::": forbidden, "5f00::1": forbidden, "fbff::1": forbidden, "fc00::": private, "fdff::1": private,
		"fd00:ec2::254": guarded, "fe00::1": forbidden, "fe80::1": private, "febf::1": private, "fec0::1": private,
		"feff::1": private, "ff00::1": forbidden, "ff02::fb": forbidden, "2001:4860:4860::8888%eth0": forbidden,
	} {
		if got := classify(netip.MustParseAddr(address)); got.class != want {
			t.Errorf("%s is of class %d (%s), want %d", address, got.class, got.name, want)
		}
	}
	if got := classify(netip.Addr{}); got.class != forbidden {
		t.Errorf("no address is of class %d, want it forbidden", got.class)
	}
}
