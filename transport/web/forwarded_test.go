package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/transport/web"
)

// trusting reads the networks of proxies.
func trusting(tb testing.TB, texts ...string) []netip.Prefix {
	tb.Helper()
	var list []netip.Prefix
	for _, text := range texts {
		network, err := web.ParseProxy(text)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, network)
	}
	return list
}

func TestParseProxy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.1.2.3/8": "10.0.0.0/8", "192.0.2.1": "192.0.2.1/32", "2001:db8::1": "2001:db8::1/128", "2001:db8::/32": "2001:db8::/32",
		"::ffff:192.0.2.1": "192.0.2.1/32", "::ffff:10.1.2.3/104": "10.0.0.0/8",
	} {
		if got, err := web.ParseProxy(text); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "write a network", "proxy.example": "write a network", "10.0.0.0/33": "write a network", "fe80::1%eth0": "write a network", "10.0.0.1:80": "write a network",
		"0.0.0.0/0": "every caller could claim", "::/0": "every caller could claim", "::ffff:0:0/96": "every caller could claim",
	} {
		if got, err := web.ParseProxy(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Attack: a forged header, for requests without limit and for another one's
// address in the audit. Proves: SEC-DOS-1.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := trusting(t, "10.0.0.0/8", "2001:db8::1", "127.0.0.1")
	many := strings.Repeat("10.9.9.9, ", 1000)
	for _, tt := range []struct {
		name, from string
		xff        []string
		forwarded  []string
		want       string
	}{
		{"nothing in front", "192.0.2.1:99", nil, nil, "192.0.2.1"},
		{"an untrusted connection", "192.0.2.1:99", []string{"203.0.113.7"}, []string{"for=203.0.113.8"}, "192.0.2.1"},
		{"one proxy", "10.1.2.3:99", []string{"203.0.113.7"}, nil, "203.0.113.7"},
		{"forged entries before it", "10.1.2.3:99", []string{"10.0.0.1, 198.51.100.1, 203.0.113.7"}, nil, "203.0.113.7"},
		{"several proxies", "10.1.2.3:99", []string{"198.51.100.1, 203.0.113.7 ,10.9.9.9,10.8.8.8"}, nil, "203.0.113.7"},
		{"two lines", "10.1.2.3:99", []string{"198.51.100.1", "203.0.113.7"}, nil, "203.0.113.7"},
		{"two lines, a proxy in the last", "10.1.2.3:99", []string{"198.51.100.1, 203.0.113.7", "10.7.7.7"}, nil, "203.0.113.7"},
		{"a proxy that says nothing", "10.1.2.3:99", nil, nil, "10.1.2.3"},
		{"proxies alone", "10.1.2.3:99", []string{"10.1.1.1"}, nil, "10.1.1.1"},
		{"unknown", "10.1.2.3:99", []string{"203.0.113.7, unknown"}, nil, "10.1.2.3"},
		{"unknown behind two proxies", "10.1.2.3:99", []string{"203.0.113.7, unknown, 10.4.4.4"}, nil, "10.4.4.4"},
		{"an empty entry", "10.1.2.3:99", []string{"203.0.113.7,"}, nil, "10.1.2.3"},
		{"an empty header", "10.1.2.3:99", []string{""}, nil, "10.1.2.3"},
		{"a name", "10.1.2.3:99", []string{"client.example"}, nil, "10.1.2.3"},
		{"a number", "10.1.2.3:99", []string{"3405803783"}, nil, "10.1.2.3"},
		{"with a port", "10.1.2.3:99", []string{"203.0.113.7:1234"}, nil, "203.0.113.7"},
		{"with no port behind the colon", "10.1.2.3:99", []string{"203.0.113.7:"}, nil, "10.1.2.3"},
		{"with a port that is none", "10.1.2.3:99", []string{"203.0.113.7:http"}, nil, "10.1.2.3"},
		{"IPv6", "[2001:db8::1]:99", []string{"2001:db8:1::2"}, nil, "2001:db8:1::2"},
		{"IPv6 with a port", "[2001:db8::1]:99", []string{"[2001:db8:1::2]:1234"}, nil, "2001:db8:1::2"},
		{"IPv6 in brackets", "[2001:db8::1]:99", []string{"[2001:db8:1::2]"}, nil, "2001:db8:1::2"},
		{"an open bracket", "[2001:db8::1]:99", []string{"[2001:db8:1::2"}, nil, "2001:db8::1"},
		{"IPv4 in brackets", "10.1.2.3:99", []string{"[203.0.113.7]"}, nil, "10.1.2.3"},
		{"IPv4 in IPv6", "[::ffff:10.1.2.3]:99", []string{"::ffff:203.0.113.7"}, nil, "203.0.113.7"},
		{"a zone", "127.0.0.1:99", []string{"fe80::1%eth0"}, nil, "fe80::1"},
		{"a zone of a proxy", "[2001:db8::1%eth0]:99", []string{"203.0.113.7"}, nil, "203.0.113.7"},
		{"a socket without address", "@", []string{"203.0.113.7"}, nil, "@"},
		{"forged proxies without end", "10.1.2.3:99", []string{"198.51.100.1, " + many + "203.0.113.7"}, nil, "203.0.113.7"},
		{"proxies without end", "10.1.2.3:99", []string{"203.0.113.7, " + many + "10.2.2.2"}, nil, "10.9.9.9"},
		{"lines without end", "10.1.2.3:99", append([]string{"203.0.113.7"}, slices.Repeat([]string{"10.9.9.9"}, 1000)...), nil, "10.9.9.9"},

		{"Forwarded", "10.1.2.3:99", nil, []string{"for=203.0.113.7"}, "203.0.113.7"},
		{"Forwarded, all of it", "10.1.2.3:99", nil, []string{`for=198.51.100.1, For="203.0.113.7:80"; proto=https;host="mcp.example:443";by=_proxy`}, "203.0.113.7"},
		{"Forwarded, IPv6", "10.1.2.3:99", nil, []string{`for="[2001:db8:1::2]:1234"`}, "2001:db8:1::2"},
		{"Forwarded, an obfuscated port", "10.1.2.3:99", nil, []string{`for="203.0.113.7:_p1"`}, "203.0.113.7"},
		{"Forwarded, several proxies", "10.1.2.3:99", nil, []string{"for=198.51.100.1,for=203.0.113.7;by=10.9.9.9", "for=10.9.9.9"}, "203.0.113.7"},
		{"Forwarded, unknown", "10.1.2.3:99", nil, []string{"for=198.51.100.1, for=unknown"}, "10.1.2.3"},
		{"Forwarded, obfuscated", "10.1.2.3:99", nil, []string{"for=198.51.100.1, for=_hidden"}, "10.1.2.3"},
		{"Forwarded without for", "10.1.2.3:99", nil, []string{"for=198.51.100.1, proto=https"}, "10.1.2.3"},
		{"Forwarded with two for", "10.1.2.3:99", nil, []string{"for=198.51.100.1;for=203.0.113.7"}, "10.1.2.3"},
		{"Forwarded, a quote left open by the client", "10.1.2.3:99", nil, []string{`for="198.51.100.1, for=203.0.113.7`}, "203.0.113.7"},
		{"Forwarded, a comma within quotes", "10.1.2.3:99", nil, []string{`for=203.0.113.7;host="x, for=198.51.100.1"`}, "10.1.2.3"},
		{"Forwarded, quotes within quotes", "10.1.2.3:99", nil, []string{`for=203.0.113.7;host="x\", for=198.51.100.1;y=\""`}, "10.1.2.3"},
		{"Forwarded, no pair", "10.1.2.3:99", nil, []string{"203.0.113.7"}, "10.1.2.3"},
		{"Forwarded, a half pair", "10.1.2.3:99", nil, []string{"for=203.0.113.7;"}, "10.1.2.3"},
		{"both headers", "10.1.2.3:99", []string{"203.0.113.7"}, []string{"for=198.51.100.1"}, "203.0.113.7"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = tt.from
		r.Header["X-Forwarded-For"], r.Header["Forwarded"] = tt.xff, tt.forwarded
		if got := web.ClientAddress(r, trusted); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// An endpoint knows its anonymous callers by the address that a trusted proxy
// tells, and two behind one proxy apart.
func TestAccessBehindProxies(t *testing.T) {
	t.Parallel()
	access := web.Access{Hosts: []string{"*"}, TrustedProxies: trusting(t, "10.0.0.0/8")}
	cached := web.NewCachedAccess(access)
	for _, tt := range []struct{ from, xff, want string }{
		{"10.1.2.3:99", "203.0.113.7", "203.0.113.7"},
		{"10.1.2.3:99", "203.0.113.8", "203.0.113.8"},
		{"10.1.2.3:99", "2001:db8::7", "2001:db8::7"},
		{"10.1.2.3:99", "", "10.1.2.3"},
		{"192.0.2.1:99", "203.0.113.7", "192.0.2.1"},
	} {
		for range 2 { // the second time it is remembered
			for name, admit := range map[string]func(http.ResponseWriter, *http.Request) string{
				"access": func(w http.ResponseWriter, r *http.Request) string {
					p, _ := access.Admit(w, r, &web.CORS{})
					return p.Remote
				},
				"cached": func(w http.ResponseWriter, r *http.Request) string {
					p, _ := cached.Admit(w, r, &web.CORS{})
					return p.Remote
				},
			} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://mcp.example/", nil)
				r.RemoteAddr = tt.from
				if tt.xff != "" {
					r.Header.Set("X-Forwarded-For", tt.xff)
				}
				if got := admit(httptest.NewRecorder(), r); got != tt.want {
					t.Errorf("%s: %q by %s is %q, want %q", name, tt.xff, tt.from, got, tt.want)
				}
			}
		}
	}
}

// What clients and proxies write makes an address, or that of the connection.
func FuzzClientAddress(f *testing.F) {
	f.Add("203.0.113.7, 10.1.1.1", "")
	f.Add("", `for="[2001:db8::1]:80";proto=https, for=10.1.1.1`)
	trusted := trusting(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, xff, forwarded string) {
		r := &http.Request{RemoteAddr: "10.1.2.3:99", Header: http.Header{}}
		if xff != "" {
			r.Header["X-Forwarded-For"] = []string{xff}
		}
		if forwarded != "" {
			r.Header["Forwarded"] = []string{forwarded}
		}
		got := web.ClientAddress(r, trusted)
		at, err := netip.ParseAddr(got)
		if err != nil || at.Zone() != "" || at.String() != got {
			t.Errorf("%q, %q: %q, %v", xff, forwarded, got, err)
		}
		r.RemoteAddr = "192.0.2.1:99"
		if got := web.ClientAddress(r, trusted); got != "192.0.2.1" {
			t.Errorf("%q, %q changed the address to %q", xff, forwarded, got)
		}
	})
}
