package oauth_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
)

// Attack: SSRF in discovery. Proves: C29. What a name resolves to is checked
// when it is dialled, and so are addresses in URLs.
func TestAttackSSRFInDiscovery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	port := w.url[strings.LastIndexByte(w.url, ':')+1:]
	strict := w.fetcher(t, oauth.FetchOptions{})
	fetchers := map[string]*oauth.Fetcher{
		"strict":   strict,
		"loopback": strict.Loopback(),
		"open for others": w.fetcher(t, oauth.FetchOptions{
			AllowHosts: []string{"idp.example", "com", "le.com", "192.0.2.7", "10.9.0.0/16", "fd11::/16"},
		}),
	}
	for _, address := range []string{
		"169.254.169.254", "169.254.1.1", "10.0.0.1", "127.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"100.64.0.1", "0.0.0.0", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
		"64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:1::1", "fc00::1", "fd00:ec2::254", "fe80::1",
		"fec0::1", "ff02::1", "fe80::1%1", "::1%1", "4000::1",
	} {
		w.resolve(address)
		for name, f := range fetchers {
			_, err := f.Get(t.Context(), w.url+"/?q=secret", nil)
			if b := blocked(t, err); b.URL != w.url+"/" {
				t.Errorf("%s, %s: blocked URL is %s, want it whole without query", name, address, b.URL)
			}
			_, err = f.PostForm(t.Context(), w.url, nil, nil)
			wantBlocked(t, err)
			if name == "loopback" && oauth.LoopbackHost(address) {
				continue // see TestFetchLoopback
			}
			_, err = f.Get(t.Context(), "https://"+net.JoinHostPort(address, port)+"/", nil)
			wantBlocked(t, err)
		}
	}
}

// Attack: SSRF in discovery, by a name whose address changes between two
// requests.
func TestAttackRebinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	f := w.fetcher(t, oauth.FetchOptions{AllowHosts: []string{"127.0.0.1"}})
	if _, err := f.Get(t.Context(), w.url, nil); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.0.0.1", "127.0.0.2", "169.254.169.254"} {
		w.resolve(address)
		f.Close()
		_, err := f.Get(t.Context(), w.url, nil)
		wantBlocked(t, err)
	}
	// Of several addresses those that are allowed are dialled, the others never.
	w.resolve("10.0.0.1", "not an address", "127.0.0.1")
	if _, err := f.Get(t.Context(), w.url, nil); err != nil {
		t.Error(err)
	}
	f.Close()
	w.resolve(append(strings.Split(strings.Repeat("10.0.0.1,", 7), ","), "10.0.0.1", "127.0.0.1")...)
	_, err := f.Get(t.Context(), w.url, nil)
	wantBlocked(t, err) // the ninth address is not tried
	w.resolve()
	if _, err := f.Get(t.Context(), w.url, nil); err == nil {
		t.Error("a name without address: got no error")
	}
}

func TestFetchAllowHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	for _, host := range []string{"example.com", "EXAMPLE.com", "127.0.0.1", "127.0.0.0/8", "::ffff:127.0.0.1"} {
		f := w.fetcher(t, oauth.FetchOptions{AllowHosts: []string{host}})
		if _, err := f.Get(t.Context(), w.url, nil); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := f.Get(t.Context(), "http"+strings.TrimPrefix(w.url, "https"), nil); err == nil {
			t.Errorf("%s: http is open too", host)
		}
	}
	// A name or a network does not open what hands out credentials.
	for _, address := range []string{"169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254"} {
		w.resolve(address)
		f := w.fetcher(t, oauth.FetchOptions{AllowHosts: []string{"example.com", "169.254.0.0/16", "fd00::/8", "0.0.0.0/0", "::/0"}})
		_, err := f.Get(t.Context(), w.url, nil)
		wantBlocked(t, err)
	}
}

func TestFetchLoopback(t *testing.T) {
	t.Parallel()
	server := webtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	strict := oauth.NewFetcher(nil)
	t.Cleanup(strict.Close)
	local := strict.Loopback()
	if local.Loopback() != local {
		t.Error("the loopback of a loopback is another")
	}
	for _, host := range []string{"127.0.0.1", "localhost", "app.localhost", "LOCALHOST"} {
		target := "http://" + net.JoinHostPort(host, port)
		if _, err := local.Get(t.Context(), target, nil); err != nil {
			t.Errorf("loopback, %s: %v", host, err)
		}
		_, err := strict.Get(t.Context(), target, nil)
		wantBlocked(t, err)
		_, err = strict.Get(t.Context(), "https://"+net.JoinHostPort(host, port), nil)
		wantBlocked(t, err)
	}
	for _, host := range []string{"127.1", "0x7f.1", "2130706433", "127.0.0.1.", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::1%25lo]", "0", "example.com"} {
		_, err := local.Get(t.Context(), "http://"+host+":"+port, nil)
		wantBlocked(t, err)
	}
}

// Attack: SSRF in discovery, by a resolver that sends loopback names out, or
// other names in.
func TestAttackLoopbackNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, address string }{
		{"http://localhost/", "10.0.0.1"},
		{"http://localhost/", "192.0.2.1"},
		{"http://app.localhost/", "169.254.169.254"},
		{"https://evil.example/", "127.0.0.1"},
		{"https://evil.example/", "::1"},
		{"http://evil.example/", "127.0.0.1"},
		{"http://localhost.evil.example/", "127.0.0.1"},
	} {
		f := oauth.NewFetcher(&oauth.FetchOptions{Resolve: func(context.Context, string) ([]string, error) {
			return []string{c.address}, nil
		}})
		_, err := f.Loopback().Get(t.Context(), c.url, nil)
		wantBlocked(t, err)
		f.Close()
	}
}

func TestFetchResolveError(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such name")
	f := oauth.NewFetcher(&oauth.FetchOptions{Resolve: func(context.Context, string) ([]string, error) { return nil, broken }})
	t.Cleanup(f.Close)
	if _, err := f.Get(t.Context(), "https://example.com/", nil); !errors.Is(err, broken) {
		t.Errorf("got error %v, want that of the resolver", err)
	}
}

func TestFetchProxy(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[string]
	proxy := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := r.Method + " " + r.Host + " " + r.RequestURI
		asked.Store(&seen)
		w.WriteHeader(http.StatusForbidden)
	}))
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	o := open()
	o.Proxy = func(r *http.Request) (*url.URL, error) {
		switch r.URL.Path {
		case "/direct":
			return nil, nil
		case "/broken":
			return nil, errors.New("no proxy today")
		}
		return at, nil
	}
	f := w.fetcher(t, o)
	if _, err := f.Get(t.Context(), "https://proxied.example/", nil); err == nil {
		t.Error("the proxy refuses, and there was an answer")
	}
	if got := asked.Swap(nil); got == nil || *got != "CONNECT proxied.example:443 proxied.example:443" {
		t.Errorf("the proxy was asked for %v, want the host", got)
	}
	_, err = f.Get(t.Context(), "https://10.0.0.1/", nil)
	wantBlocked(t, err)
	if _, err := f.Get(t.Context(), w.url+"/direct", nil); err != nil {
		t.Error(err)
	}
	w.resolve("169.254.169.254")
	f.Close()
	_, err = f.Get(t.Context(), w.url+"/direct", nil)
	wantBlocked(t, err)
	if _, err := f.Get(t.Context(), w.url+"/broken", nil); err == nil {
		t.Error("no proxy, and there was an answer")
	}
	if _, err := f.Loopback().Get(t.Context(), proxy.URL+"/own", nil); err != nil {
		t.Error(err)
	}
	if got := asked.Swap(nil); got == nil || *got != "GET "+at.Host+" /own" {
		t.Errorf("the server on loopback was asked for %v, want it direct", got)
	}
	if got := asked.Load(); got != nil {
		t.Errorf("the proxy was asked for %s", *got)
	}
}
