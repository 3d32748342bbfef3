package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Attack: a forged X-Forwarded-For, for attempts without limit and for somebody
// else's name in the audit.
func TestRemoteBehindProxies(t *testing.T) {
	t.Parallel()
	trusted, err := readProxies([]string{"10.0.0.0/8", "2001:db8::1", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, from string
		header     []string
		want       string
	}{
		{"nothing in front", "192.0.2.1:99", nil, "192.0.2.1"},
		{"a stranger is not believed", "192.0.2.1:99", []string{"203.0.113.7"}, "192.0.2.1"},
		{"one proxy", "10.1.2.3:99", []string{"203.0.113.7"}, "203.0.113.7"},
		{"what the client wrote before", "10.1.2.3:99", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"two proxies", "10.1.2.3:99", []string{"198.51.100.1, 203.0.113.7 ,10.9.9.9"}, "203.0.113.7"},
		{"two headers", "10.1.2.3:99", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		{"a proxy that says nothing", "10.1.2.3:99", nil, "10.1.2.3"},
		{"nobody but proxies", "10.1.2.3:99", []string{"10.1.1.1"}, "10.1.1.1"},
		{"no address", "10.1.2.3:99", []string{"203.0.113.7, unknown"}, "10.1.2.3"},
		{"an empty one", "10.1.2.3:99", []string{"203.0.113.7,"}, "10.1.2.3"},
		{"with a port", "10.1.2.3:99", []string{"203.0.113.7:1234"}, "203.0.113.7"},
		{"IPv6", "[2001:db8::1]:99", []string{"[2001:db8:1::2]:1234"}, "2001:db8:1::2"},
		{"IPv6 in brackets", "[2001:db8::1]:99", []string{"[2001:db8:1::2]"}, "2001:db8:1::2"},
		{"IPv4 in 6", "[::ffff:10.1.2.3]:99", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"another zone is no other address", "127.0.0.1:99", []string{"fe80::1%eth0"}, "fe80::1"},
		{"a socket without address", "@", []string{"203.0.113.7"}, "@"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = tt.from
		r.Header["X-Forwarded-For"] = tt.header
		if got := trusted.remote(r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/33", "0.0.0.0/0", "::/0", "fe80::1%eth0", "10.0.0.1:80"} {
		if _, err := readProxies([]string{bad}); exitCode(err) != exitUsage {
			t.Errorf("--trusted-proxy %q: %v", bad, err)
		}
	}
}
