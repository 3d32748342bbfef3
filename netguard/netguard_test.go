package netguard_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/netguard"
)

// A site is a server under the name example.com, over TLS and without, which
// stands at a loopback address.
type site struct {
	secure, plain string // URLs
	roots         *tls.Config
	addresses     atomic.Pointer[[]string] // what names resolve to
}

func newSite(t *testing.T, h http.HandlerFunc) *site {
	t.Helper()
	secure, plain := httptest.NewTLSServer(h), httptest.NewServer(h)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	s := &site{
		secure: strings.Replace(secure.URL, "127.0.0.1", "example.com", 1),
		plain:  strings.Replace(plain.URL, "127.0.0.1", "example.com", 1),
		roots:  &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
	}
	s.resolve("127.0.0.1")
	return s
}

func (s *site) resolve(addresses ...string) { s.addresses.Store(&addresses) }

// client makes a Client that trusts the site's certificate and uses its names.
func (s *site) client(t *testing.T, r netguard.Rules) *http.Client {
	t.Helper()
	r.TLS = s.roots
	r.Resolve = func(context.Context, string) ([]string, error) { return *s.addresses.Load(), nil }
	c := netguard.Client(&r)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// An answer is a response that was read.
type answer struct {
	status         int
	encoding, body string
}

func get(t *testing.T, c *http.Client, target string) (answer, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Content-Encoding"), string(data)}, err
}

func wantBlocked(t *testing.T, what string, err error) {
	t.Helper()
	b, ok := errors.AsType[*netguard.BlockedError](err)
	if !ok {
		t.Errorf("%s: got error %v, want a *BlockedError", what, err)
	} else if strings.Contains(b.Error(), "secret") {
		t.Errorf("%s: the error shows a secret: %v", what, b)
	}
}

// notPublic are addresses of every range that is not for everybody.
var notPublic = []string{
	"169.254.169.254", "169.254.1.1", "10.0.0.1", "127.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
	"100.64.0.1", "0.0.0.0", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
	"64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:1::1", "fc00::1", "fd00:ec2::254", "fe80::1",
	"fec0::1", "ff02::1", "fe80::1%1", "::1%1", "4000::1",
}

// Attack: SSRF. What a name resolves to is checked when it is dialled, and so
// are addresses in URLs, with and without TLS.
func TestAttackSSRF(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	for name, rules := range map[string]netguard.Rules{
		"strict":   {},
		"plain":    {Plain: true},
		"loopback": {Plain: true, Loopback: true},
		"others":   {Plain: true, AllowHosts: []string{"other.example", "com", "le.com", "192.0.2.7", "10.9.0.0/16", "fd11::/16"}},
	} {
		c := s.client(t, rules)
		for _, address := range notPublic {
			s.resolve(address)
			for _, target := range []string{s.secure, s.plain} {
				_, err := get(t, c, target+"/?q=secret")
				wantBlocked(t, name+", name at "+address, err)
			}
			if name == "loopback" && netguard.LoopbackHost(address) {
				continue
			}
			host := strings.ReplaceAll(net.JoinHostPort(address, "80"), "%", "%25")
			_, err := get(t, c, "http://"+host+"/")
			wantBlocked(t, name+", "+address, err)
		}
	}
}

// Attack: SSRF by a name whose address changes between two requests.
func TestAttackRebinding(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	c := s.client(t, netguard.Rules{AllowHosts: []string{"127.0.0.1"}})
	if _, err := get(t, c, s.secure); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.0.0.1", "127.0.0.2", "169.254.169.254"} {
		s.resolve(address)
		c.CloseIdleConnections()
		_, err := get(t, c, s.secure)
		wantBlocked(t, address, err)
	}
	// Of several addresses those that are allowed are dialled, the others never.
	s.resolve("10.0.0.1", "not an address", "127.0.0.1")
	if _, err := get(t, c, s.secure); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	strict := netguard.NewTransport(nil)
	plain := netguard.NewTransport(&netguard.Rules{Plain: true})
	local := netguard.NewTransport(&netguard.Rules{Loopback: true})
	metadata := netguard.NewTransport(&netguard.Rules{AllowHosts: []string{"169.254.169.254"}})
	mapped := netguard.NewTransport(&netguard.Rules{AllowHosts: []string{"::ffff:10.1.0.0/112"}})
	network := netguard.NewTransport(&netguard.Rules{AllowHosts: []string{"169.254.0.0/16", "10.1.0.0/16", "[fd11::1]", "0.0.0.0/0"}})
	for _, c := range []struct {
		rules *netguard.Transport
		url   string
		ok    bool
	}{
		{strict, "https://example.com/", true},
		{strict, "http://example.com/", false},
		{strict, "http://localhost/", false},
		{strict, "https://user:secret@example.com/", false},
		{strict, "ftp://example.com/", false},
		{strict, "file:///etc/passwd", false},
		{strict, "https:example.com", false},
		{strict, "https:///path", false},
		{strict, "/path", false},
		{strict, "https://8.8.8.8/", true},
		{strict, "https://[::ffff:10.0.0.1]/", false},
		{plain, "http://127.1/", false},
		{plain, "http://0x7f.1:80/", false},
		{plain, "http://0X7F000001/", false},
		{plain, "http://2130706433/", false},
		{plain, "http://0177.0.0.1/", false},
		{plain, "http://127.0.0.1./", false},
		{plain, "http://0x/", false},
		{plain, "http://1.example.com/", true},
		{plain, "http://0x7f.example/", true},
		{plain, "http://example.com./", true},
		{plain, "http://bücher.example/", true},
		{plain, "http://example.com/", true},
		{plain, "http://127.0.0.1/", false},
		{local, "http://localhost/", true},
		{local, "http://127.0.0.1/", true},
		{local, "http://example.com/", false},
		{local, "https://10.0.0.1/", false},
		{metadata, "https://169.254.169.254/", true},
		{mapped, "https://10.1.2.3/", true},
		{mapped, "https://10.2.2.3/", false},
		{network, "https://169.254.169.254/", false},
		{network, "https://169.254.1.1/", true},
		{network, "https://10.1.2.3/", true},
		{network, "https://[fd11::1]/", true},
		{network, "https://[fd11::2]/", false},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		err = c.rules.Check(u)
		if err == nil != c.ok {
			t.Errorf("%s: got error %v, want none: %v", c.url, err, c.ok)
		}
		if err != nil {
			wantBlocked(t, c.url, err)
		}
	}
}

// Attack: SSRF by redirect. Each hop is checked; another host that is permitted
// is followed, and learns nothing that was meant for the first.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	var seen atomic.Pointer[http.Header]
	other := newSite(t, func(_ http.ResponseWriter, r *http.Request) { seen.Store(&r.Header) })
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	})
	c := s.client(t, netguard.Rules{Plain: true, AllowHosts: []string{"example.com"}})
	for _, to := range []string{
		"http://169.254.169.254/latest?secret", "http://10.0.0.1/", "http://localhost/", "file:///etc/passwd",
		"https://user:secret@example.com/", "http://[::1]/", "http://2130706433/",
	} {
		if to == "http://2130706433/" {
			s.resolve("127.0.0.1") // as resolvers of systems read it
		}
		_, err := get(t, c, s.plain+"/?to="+url.QueryEscape(to))
		wantBlocked(t, to, err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.plain+"/?to="+url.QueryEscape(other.plain), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer secret"}, "X-Key": {"secret"}, "Cookie": {"a=secret"}, "Accept": {"text/html"}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	want := http.Header{"Accept": {"text/html"}, "User-Agent": {"parley"}}
	if diff := cmp.Diff(&want, seen.Load()); diff != "" {
		t.Errorf("header at the other host (-want +got):\n%s", diff)
	}
	// A body stays where it was sent.
	seen.Store(nil)
	resp, err = c.Post(s.plain+"/?to="+url.QueryEscape(other.plain), "text/plain", strings.NewReader("secret"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || seen.Load() != nil {
		t.Errorf("POST: got status %d, other host asked: %v; want the redirect itself", resp.StatusCode, seen.Load() != nil)
	}
	loop := s.plain + "/?to=" + url.QueryEscape("/?to=%2F%3Fto%3D%252F")
	c = s.client(t, netguard.Rules{Plain: true, AllowHosts: []string{"example.com"}, MaxRedirects: 1})
	if _, err := get(t, c, loop); err == nil || !strings.Contains(err.Error(), "more than 1 redirects") {
		t.Errorf("got error %v, want one about redirects", err)
	}
	c = s.client(t, netguard.Rules{Plain: true, AllowHosts: []string{"example.com"}, MaxRedirects: -1})
	if got, err := get(t, c, loop); err != nil || got.status != http.StatusTemporaryRedirect {
		t.Errorf("without redirects: got error %v, want the redirect itself", err)
	}
}

func squeeze(t *testing.T, kind string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch kind {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zlib":
		w = zlib.NewWriter(&out)
	default:
		raw, err := flate.NewWriter(&out, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		w = raw
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Attack: a small answer that decompresses to a large one, or to none for ever.
func TestAttackDecompressionBomb(t *testing.T) {
	t.Parallel()
	const limit = 1000
	answers := map[string][]byte{
		"/gzip":        squeeze(t, "gzip", bytes.Repeat([]byte{'x'}, limit)),
		"/gzip-bomb":   squeeze(t, "gzip", make([]byte, 10<<20)),
		"/zlib":        squeeze(t, "zlib", bytes.Repeat([]byte{'x'}, limit)),
		"/zlib-bomb":   squeeze(t, "zlib", make([]byte, limit+1)),
		"/raw":         squeeze(t, "raw", bytes.Repeat([]byte{'x'}, limit)),
		"/raw-bomb":    squeeze(t, "raw", make([]byte, limit+1)),
		"/empty":       {},
		"/frames-bomb": bytes.Repeat(squeeze(t, "gzip", nil), 10_000),
		"/plain":       bytes.Repeat([]byte{'x'}, limit),
		"/plain-bomb":  make([]byte, limit+1),
	}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		switch {
		case path == "/brotli":
			w.Header().Set("Content-Encoding", "br")
			return
		case path == "/cut":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(answers["/gzip"][:15])
			return
		case strings.HasPrefix(path, "/plain"):
		case strings.HasPrefix(path, "/zlib"), strings.HasPrefix(path, "/raw"):
			w.Header().Set("Content-Encoding", "deflate")
		default:
			w.Header().Set("Content-Encoding", "GZIP")
		}
		if r.Header.Get("Accept-Encoding") != "gzip, deflate" {
			t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
		}
		_, _ = w.Write(answers[path])
	})
	c := s.client(t, netguard.Rules{AllowHosts: []string{"example.com"}, MaxBody: limit, Decompress: true})
	for path := range answers {
		got, err := get(t, c, s.secure+path)
		if strings.HasSuffix(path, "-bomb") {
			if large, ok := errors.AsType[*netguard.TooLargeError](err); !ok || large.Limit != limit || len(got.body) > limit {
				t.Errorf("%s: got %d bytes and error %v, want a *TooLargeError", path, len(got.body), err)
			}
			continue
		}
		want := strings.Repeat("x", limit)
		if path == "/empty" {
			want = ""
		}
		if err != nil || got.body != want || got.encoding != "" {
			t.Errorf("%s: got %d bytes, encoding %q, error %v", path, len(got.body), got.encoding, err)
		}
	}
	for _, path := range []string{"/brotli", "/cut"} {
		if got, err := get(t, c, s.secure+path); err == nil {
			t.Errorf("%s: got %d bytes, want an error", path, len(got.body))
		}
	}
}

// Attack: SSRF through the operator's proxy, which dials where nothing is
// checked, by an address in an unusual form.
func TestAttackSpelledAddressBehindProxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the proxy was asked for %s", r.URL)
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := netguard.Client(&netguard.Rules{Plain: true, Proxy: http.ProxyURL(at)})
	t.Cleanup(c.CloseIdleConnections)
	for _, host := range []string{
		"2852039166", "0xa9fea9fe", "169.254.43518", "0251.0376.0251.0376", "169.254.169.254.", "[::ffff:169.254.169.254]", "localhost", "localhost.", "a.LOCALHOST.",
		// What net/http turns into one of these.
		"１６９.２５４.１６９.２５４", "169。254。169。254", "①②⑦.0.0.①", "ｌｏｃａｌｈｏｓｔ", "localhoſt",
	} {
		_, err := get(t, c, "http://"+host+"/latest?q=secret")
		wantBlocked(t, host, err)
	}
}

// A limit that is as good as none is one.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(squeeze(t, "gzip", []byte("hello")))
	})
	for _, limit := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 1<<15} {
		c := s.client(t, netguard.Rules{AllowHosts: []string{"example.com"}, MaxBody: limit, Decompress: true})
		if got, err := get(t, c, s.secure); err != nil || got.body != "hello" {
			t.Errorf("with a limit of %d: %q, error %v", limit, got.body, err)
		}
	}
}

func TestLoopbackHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "app.localhost": true, "a_b.c-d.localhost": true, "127.0.0.1": true,
		"127.9.9.9": true, "::1": true, "[::1]": true, "": false, ".localhost": false, "-a.localhost": false,
		"a..localhost": false, "a b.localhost": false, "localhost.": false, "localhost.example": false, "127.1": false,
		"0.0.0.0": false, "::": false, "::ffff:127.0.0.1": false, "::1%lo": false, "[127.0.0.1]": false, "[::1": false,
		strings.Repeat("a.", 130) + "localhost": false, strings.Repeat("a", 64) + ".localhost": false,
	} {
		if got := netguard.LoopbackHost(host); got != want {
			t.Errorf("LoopbackHost(%q) is %v, want %v", host, got, want)
		}
	}
}

// Whatever an operator writes and a stranger names, neither ends the process
// nor opens what hands out credentials, unless its address was listed.
func FuzzRules(f *testing.F) {
	f.Add("10.0.0.0/8", "https://10.0.0.1/")
	f.Add("::/0", "http://[64:ff9b::169.254.169.254]/")
	f.Add("169.254.0.0/16", "https://[::ffff:a9fe:a9fe]")
	f.Add("[fd00:ec2::254%eth0]", "https://[fd00:ec2::254]:443/a?b#c")
	f.Add("a.localhost", "http://a.localhost")
	f.Fuzz(func(t *testing.T, allow, target string) {
		u, err := url.Parse(target)
		if err != nil {
			return
		}
		rules := netguard.NewTransport(&netguard.Rules{AllowHosts: []string{allow}, Plain: true})
		if rules.Check(u) != nil {
			return
		}
		if u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
			t.Errorf("%q is permitted", target)
		}
		for _, address := range []string{"169.254.169.254", "100.100.100.200", "fd00:ec2::254"} {
			for _, host := range []string{address, "::ffff:" + address, "64:ff9b::" + address} {
				if strings.EqualFold(u.Hostname(), host) && !strings.Contains(allow, address) &&
					!strings.Contains(allow, ":") && !strings.Contains(allow, "/32") {
					t.Errorf("%q is permitted by %q", target, allow)
				}
			}
		}
	})
}

// With CheckProxied a name is held to the rules before a proxy gets it, although the proxy
// looks it up again.
func TestAttackPrivateNameBehindProxy(t *testing.T) {
	var asked atomic.Int64
	proxied := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxied.Close()
	at, err := url.Parse(proxied.URL)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{}
	c := netguard.Client(&netguard.Rules{
		Plain: true, Proxy: http.ProxyURL(at), CheckProxied: true, AllowHosts: []string{"10.9.0.0/16"},
		Resolve: func(context.Context, string) ([]string, error) { return addresses, nil },
	})
	defer c.CloseIdleConnections()
	for _, test := range []struct {
		addresses []string
		blocked   bool
	}{
		{nil, true},
		{[]string{"10.1.2.3"}, true},
		{[]string{"93.184.215.14", "169.254.169.254"}, true},
		{[]string{"::ffff:127.0.0.1"}, true},
		{[]string{"no-address.example"}, true},
		{[]string{"93.184.215.14"}, false},
		{[]string{"10.9.2.3"}, false},
	} {
		addresses = test.addresses
		before := asked.Load()
		resp, err := c.Get("http://example.com/")
		if err == nil {
			_ = resp.Body.Close() // nothing is read of it
		}
		if _, blocked := errors.AsType[*netguard.BlockedError](err); blocked != test.blocked || (asked.Load() == before) != test.blocked {
			t.Errorf("%v: %v, the proxy was asked: %t; want blocked: %t", test.addresses, err, asked.Load() > before, test.blocked)
		}
	}
}
