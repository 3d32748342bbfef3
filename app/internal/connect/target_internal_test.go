package connect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// Names of this machine lead here, and past no proxy; all others stay what they are.
func TestConnectionsToThisMachine(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy.example:3128"}
	for host, test := range map[string]struct {
		dials string
		here  bool
	}{
		"app.localhost:80":     {"localhost:80", true},
		"a.b.LOCALHOST:80":     {"localhost:80", true},
		"localhost:80":         {"localhost:80", true},
		"127.0.0.1:80":         {"127.0.0.1:80", true},
		"127.0.0.2:80":         {"127.0.0.2:80", true},
		"[::1]:80":             {"[::1]:80", true},
		"localhost.example:80": {"localhost.example:80", false},
		"10.0.0.1:80":          {"10.0.0.1:80", false},
	} {
		var dialled string
		dial := dialLocal(func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, errors.New("dialled")
		})
		_, _ = dial(t.Context(), "tcp", host)
		if dialled != test.dials {
			t.Errorf("%s: dials %s, want %s", host, dialled, test.dials)
		}
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil)
		got, err := directLocal(http.ProxyURL(proxy))(r)
		if err != nil || (got == nil) != test.here {
			t.Errorf("%s: proxy %v, %v", host, got, err)
		}
	}
	if got, err := directLocal(nil)(httptest.NewRequest(http.MethodGet, "http://mcp.example/", nil)); got != nil || err != nil {
		t.Errorf("without a proxy: %v, %v", got, err)
	}
}
