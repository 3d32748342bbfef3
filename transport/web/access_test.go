package web_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/web"
)

var cors = &web.CORS{
	Methods: []string{"POST", "GET"},
	Headers: []string{"Content-Type", "Mcp-Param-*"},
	Exposed: []string{"Mcp-Session-Id"},
}

// request makes a request as it comes in over a connection to the address
// local; an empty one is unknown.
func request(tb testing.TB, method, host, local string, origins ...string) *http.Request {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), method, "/mcp", http.NoBody)
	r.Host = host
	r.RemoteAddr = "192.0.2.7:4711"
	for _, origin := range origins {
		r.Header.Add("Origin", origin)
	}
	if local != "" {
		addr := &net.TCPAddr{IP: net.ParseIP(local), Port: 8080}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
	}
	return r
}

// none is a request without Origin, which no browser page sends.
const none = "(none)"

const (
	loopback = "127.0.0.1"
	public   = "203.0.113.5"
)

// Proves: SEC-HTTP-1. Each row is an attack, or what looks like one and is not.
func TestAdmit(t *testing.T) {
	tests := []struct {
		name                string
		local, host, origin string
		hosts, origins      []string
		tls                 bool
		want                bool
	}{
		{name: "plain", local: loopback, host: "localhost:8080", origin: none, want: true},
		{name: "plain address", local: loopback, host: "127.0.0.1:8080", origin: none, want: true},
		{name: "plain IPv6", local: "::1", host: "[::1]:8080", origin: none, want: true},
		{name: "another loopback address", local: loopback, host: "127.8.9.1", origin: none, want: true},
		{name: "upper case", local: loopback, host: "LocalHost:8080", origin: none, want: true},
		{name: "below localhost", local: loopback, host: "app.localhost", origin: none, want: true},
		{name: "unknown local address is loopback", host: "mcp.example", origin: none},

		{name: "rebound name", local: loopback, host: "evil.example:8080", origin: "http://evil.example:8080"},
		{name: "rebound name without Origin", local: loopback, host: "evil.example:8080", origin: none},
		{name: "rebound name over IPv6", local: "::1", host: "evil.example:8080", origin: none},
		{name: "rebound name over mapped IPv4", local: "::ffff:127.0.0.1", host: "evil.example:8080", origin: none},
		{name: "name that begins well", local: loopback, host: "localhost.evil.example", origin: none},
		{name: "name that ends well", local: loopback, host: "evillocalhost", origin: none},
		{name: "empty label", local: loopback, host: ".localhost", origin: none},
		{name: "two dots", local: loopback, host: "a..localhost", origin: none},
		{name: "dot at the end", local: loopback, host: "localhost.:8080", origin: none},
		{name: "unspecified", local: loopback, host: "0.0.0.0:8080", origin: none},
		{name: "unspecified IPv6", local: loopback, host: "[::]:8080", origin: none},
		{name: "decimal address", local: loopback, host: "2130706433:8080", origin: none},
		{name: "hexadecimal address", local: loopback, host: "0x7f.0.0.1", origin: none},
		{name: "octal address", local: loopback, host: "0177.0.0.1", origin: none},
		{name: "short address", local: loopback, host: "127.1", origin: none},
		{name: "zone", local: "::1", host: "[::1%25lo]:8080", origin: none},
		{name: "plain zone", local: "::1", host: "[::1%lo]", origin: none},
		{name: "no brackets", local: "::1", host: "::1", origin: none},
		{name: "open bracket", local: "::1", host: "[::1", origin: none},
		{name: "brackets around a name", local: loopback, host: "[localhost]", origin: none},
		{name: "brackets around IPv4", local: loopback, host: "[127.0.0.1]", origin: none},
		{name: "empty", local: loopback, host: "", origin: none},
		{name: "port alone", local: loopback, host: ":8080", origin: none},
		{name: "empty port", local: loopback, host: "localhost:", origin: none},
		{name: "two ports", local: loopback, host: "localhost:8080:80", origin: none},
		{name: "port that is none", local: loopback, host: "localhost:evil.example", origin: none},
		{name: "port with user", local: loopback, host: "localhost:80@evil.example", origin: none},
		{name: "port too large", local: loopback, host: "localhost:65536", origin: none},
		{name: "port with zero", local: loopback, host: "localhost:08080", origin: none},
		{name: "user", local: loopback, host: "localhost@evil.example", origin: none},
		{name: "blank", local: loopback, host: "localhost evil.example", origin: none},
		{name: "list", local: loopback, host: "localhost,evil.example", origin: none},
		{name: "percent", local: loopback, host: "localhost%00.evil.example", origin: none},
		{name: "Kelvin sign and long s", local: loopback, host: "localhoſt", origin: none},

		{name: "own page", local: loopback, host: "localhost:8080", origin: "http://localhost:8080", want: true},
		{name: "own page, case", local: loopback, host: "localhost:8080", origin: "HTTP://LOCALHOST:8080", want: true},
		{name: "own page, port of the scheme", local: loopback, host: "localhost", origin: "http://localhost:80", want: true},
		{name: "own page, IPv6 written otherwise", local: "::1", host: "[::1]:8080", origin: "http://[0:0:0:0:0:0:0:1]:8080", want: true},
		{name: "own page behind a proxy with TLS", local: loopback, host: "localhost", origin: "https://localhost", want: true},
		{name: "insecure page, secure endpoint", local: loopback, host: "localhost", origin: "http://localhost", tls: true},
		{name: "secure page, secure endpoint", local: loopback, host: "localhost", origin: "https://localhost:443", tls: true, want: true},
		{name: "page on another port", local: loopback, host: "localhost:8080", origin: "http://localhost:3000"},
		{name: "page under another loopback name", local: loopback, host: "localhost:8080", origin: "http://127.0.0.1:8080"},
		{name: "page of another scheme", local: loopback, host: "localhost:8080", origin: "ftp://localhost:8080"},
		{name: "extension", local: loopback, host: "localhost:8080", origin: "chrome-extension://localhost:8080"},
		{name: "foreign page", local: loopback, host: "localhost:8080", origin: "https://evil.example"},
		{name: "null", local: loopback, host: "localhost:8080", origin: "null"},
		{name: "empty Origin", local: loopback, host: "localhost:8080", origin: ""},
		{name: "Origin without scheme", local: loopback, host: "localhost:8080", origin: "localhost:8080"},
		{name: "Origin with user", local: loopback, host: "localhost:8080", origin: "http://localhost:8080@evil.example"},
		{name: "Origin with user before", local: loopback, host: "localhost:8080", origin: "http://evil.example@localhost:8080"},
		{name: "Origin with path", local: loopback, host: "localhost:8080", origin: "http://localhost:8080/"},
		{name: "Origin with query", local: loopback, host: "localhost:8080", origin: "http://localhost:8080?.evil.example"},
		{name: "Origin with two schemes", local: loopback, host: "localhost:8080", origin: "http://http://localhost:8080"},
		{name: "two origins in one", local: loopback, host: "localhost:8080", origin: "http://localhost:8080 https://evil.example"},
		{name: "Origin with line break", local: loopback, host: "localhost:8080", origin: "http://localhost:8080\r\nX: y"},
		{name: "Origin with zone", local: "::1", host: "[::1]:8080", origin: "http://[::1%25lo]:8080"},
		{name: "Origin with dot", local: loopback, host: "localhost:8080", origin: "http://localhost.:8080"},
		{name: "Origin without host", local: loopback, host: "localhost:8080", origin: "http://"},

		{name: "public, any name", local: public, host: "mcp.example", origin: none, want: true},
		{name: "public, own page under an unknown name", local: public, host: "mcp.example", origin: "http://mcp.example"},
		{name: "public, own page by address", local: public, host: "203.0.113.5:8080", origin: "http://203.0.113.5:8080", want: true},
		{name: "public, own page by decimal address", local: public, host: "3405803781:8080", origin: "http://3405803781:8080"},
		{name: "public, own page by unspecified address", local: public, host: "0.0.0.0:8080", origin: "http://0.0.0.0:8080"},
		{name: "public, own page under a known name", local: public, host: "mcp.example", origin: "http://mcp.example", hosts: []string{"mcp.example"}, want: true},
		{name: "public, foreign page", local: public, host: "203.0.113.5", origin: "http://evil.example"},
		{name: "public, empty Host", local: public, host: "", origin: none},

		{name: "listed name on loopback", local: loopback, host: "MCP.example:1234", origin: none, hosts: []string{"mcp.example"}, want: true},
		{name: "name that is not listed", local: public, host: "other.example", origin: none, hosts: []string{"mcp.example"}},
		{name: "localhost is not listed", local: loopback, host: "localhost", origin: none, hosts: []string{"mcp.example"}},
		{name: "below a listed name", local: public, host: "x.mcp.example", origin: none, hosts: []string{"mcp.example"}},
		{name: "listed port", local: public, host: "mcp.example:8443", origin: none, hosts: []string{"mcp.example:8443"}, want: true},
		{name: "another port", local: public, host: "mcp.example:8444", origin: none, hosts: []string{"mcp.example:8443"}},
		{name: "listed port of the scheme", local: public, host: "mcp.example", origin: none, hosts: []string{"mcp.example:443"}, tls: true, want: true},
		{name: "not the port of the scheme", local: public, host: "mcp.example", origin: none, hosts: []string{"mcp.example:443"}},
		{name: "listed address", local: public, host: "[2001:DB8::1]", origin: none, hosts: []string{"[2001:db8:0::1]"}, want: true},
		{name: "Punycode is a name of its own", local: public, host: "xn--mcp-9la.example", origin: none, hosts: []string{"mcp.example"}},
		{name: "Unicode in Host", local: public, host: "mçp.example", origin: none, hosts: []string{"mçp.example"}},
		{name: "any name", local: loopback, host: "whatever.example", origin: none, hosts: []string{"*"}, want: true},
		{name: "any name is still a name", local: loopback, host: "a b", origin: none, hosts: []string{"*"}},

		{name: "listed page", local: loopback, host: "localhost:8080", origin: "https://app.example", origins: []string{"https://app.example"}, want: true},
		{name: "listed page, written otherwise", local: loopback, host: "localhost:8080", origin: "https://App.Example:443", origins: []string{"HTTPS://app.example"}, want: true},
		{name: "listed page, public endpoint", local: public, host: "mcp.example", origin: "https://app.example", origins: []string{"https://app.example"}, want: true},
		{name: "listed extension", local: loopback, host: "localhost", origin: "chrome-extension://abcdef", origins: []string{"chrome-extension://abcdef"}, want: true},
		{name: "another scheme than listed", local: loopback, host: "localhost", origin: "http://app.example", origins: []string{"https://app.example"}},
		{name: "another port than listed", local: loopback, host: "localhost", origin: "https://app.example:8443", origins: []string{"https://app.example"}},
		{name: "below the listed page", local: loopback, host: "localhost", origin: "https://x.app.example", origins: []string{"https://app.example"}},
		{name: "star is no entry", local: loopback, host: "localhost", origin: "https://evil.example", origins: []string{"*"}},
		{name: "null is no entry", local: loopback, host: "localhost", origin: "null", origins: []string{"null"}},
		{name: "listed page, rebound name", local: loopback, host: "evil.example", origin: "https://app.example", origins: []string{"https://app.example"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request(t, http.MethodPost, test.host, test.local)
			if test.origin != none {
				r.Header.Set("Origin", test.origin)
			}
			if test.tls {
				r.TLS = new(tls.ConnectionState)
			}
			w := httptest.NewRecorder()
			a := &web.Access{Hosts: test.hosts, Origins: test.origins}
			who, ok := a.Admit(w, r, cors)
			if ok != test.want {
				t.Fatalf("admitted: %v, want %v", ok, test.want)
			}
			if ok {
				if who.Identity() != "" || who.Remote != "192.0.2.7" {
					t.Errorf("the caller is %+v, want the anonymous one at 192.0.2.7", who)
				}
				return
			}
			if who != nil || w.Code != http.StatusForbidden {
				t.Errorf("status %d for %+v, want 403 for nobody", w.Code, who)
			}
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("a refused page is told %s", name)
				}
			}
		})
	}
}

// Proves: SEC-HTTP-1. One value may hide the other from whoever is behind.
func TestAdmitTwice(t *testing.T) {
	r := request(t, http.MethodPost, "localhost", loopback, "http://localhost", "http://localhost")
	if _, ok := new(web.Access).Admit(httptest.NewRecorder(), r, cors); ok {
		t.Error("a request with two Origin headers was admitted")
	}
	r = request(t, http.MethodPost, "localhost", loopback)
	r.Header.Set("Host", "localhost")
	if _, ok := new(web.Access).Admit(httptest.NewRecorder(), r, cors); ok {
		t.Error("a request with two Host headers was admitted")
	}
}

// Proves: SEC-HTTP-1. Anybody can send the headers of a proxy.
func TestAdmitIgnoresForwarded(t *testing.T) {
	r := request(t, http.MethodPost, "evil.example", loopback, "http://evil.example")
	r.Header.Set("X-Forwarded-Host", "localhost")
	r.Header.Set("X-Forwarded-For", "127.0.0.1")
	r.Header.Set("Forwarded", "host=localhost")
	if _, ok := new(web.Access).Admit(httptest.NewRecorder(), r, cors); ok {
		t.Error("X-Forwarded-Host was believed")
	}
}

func TestAdmitSaysWhat(t *testing.T) {
	long := "http://" + strings.Repeat("a", 300) + ".example"
	tests := []struct{ name, host, origin, want string }{
		{
			"Host", `evil.example`, none,
			`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Host \"evil.example\" is not allowed here; ` +
				`add the name to the endpoint's allowed hosts (Access.Hosts) if it is its own"}}`,
		},
		{
			"Origin", "localhost", "<script>\x1b[2Jé",
			`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Origin \"<script>\\x1b[2J\\u00e9\" is not allowed here; ` +
				`add it to the endpoint's allowed origins (Access.Origins) if you trust its pages, or its own name to the allowed hosts (Access.Hosts)"}}`,
		},
		{
			"long", "localhost", long,
			`{"jsonrpc":"2.0","error":{"code":-32600,"message":"Origin \"` + long[:100] + `\" is not allowed here; ` +
				`add it to the endpoint's allowed origins (Access.Origins) if you trust its pages, or its own name to the allowed hosts (Access.Hosts)"}}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request(t, http.MethodPost, test.host, loopback)
			if test.origin != none {
				r.Header.Set("Origin", test.origin)
			}
			w := httptest.NewRecorder()
			new(web.Access).Admit(w, r, cors)
			if diff := cmp.Diff(test.want, w.Body.String()); diff != "" {
				t.Errorf("the refusal (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdmitPrincipal(t *testing.T) {
	ada := &principal.Principal{Issuer: "https://issuer.example", Subject: "ada"}
	grace := &principal.Principal{Issuer: "https://issuer.example", Subject: "grace"}
	r := request(t, http.MethodPost, "localhost", loopback)
	authenticated := r.WithContext(principal.NewContext(r.Context(), ada))

	got, _ := new(web.Access).Admit(httptest.NewRecorder(), authenticated, cors)
	if got != ada {
		t.Errorf("the caller is %+v, want the one of the context", got)
	}
	own := &web.Access{Principal: func(*http.Request) *principal.Principal { return grace }}
	if got, _ = own.Admit(httptest.NewRecorder(), authenticated, cors); got != grace {
		t.Errorf("the caller is %+v, want what Principal says", got)
	}
	nobody := &web.Access{Principal: func(*http.Request) *principal.Principal { return nil }}
	if got, _ = nobody.Admit(httptest.NewRecorder(), r, cors); got == nil || got.Identity() != "" || got.Remote != "192.0.2.7" {
		t.Errorf("the caller is %+v, want an anonymous one", got)
	}
	r.RemoteAddr = "@"
	if got, _ = new(web.Access).Admit(httptest.NewRecorder(), r, cors); got.Remote != "@" {
		t.Errorf("the caller over a Unix socket is at %q, want @", got.Remote)
	}
}

func TestCORS(t *testing.T) {
	app := &web.Access{Origins: []string{"https://app.example"}}
	preflight := http.Header{
		"Access-Control-Request-Method":  {"POST"},
		"Access-Control-Request-Headers": {"content-type,mcp-param-city, MCP-Param-,authorization", "x-evil,mcp-param-a\r\nb"},
	}
	tests := []struct {
		name, method, origin string
		header               http.Header
		admitted             bool
		status               int
		want                 http.Header
	}{
		{
			name: "listed page", method: "POST", origin: "https://app.example", admitted: true,
			want: http.Header{
				"Access-Control-Allow-Origin":   {"https://app.example"},
				"Access-Control-Expose-Headers": {"Mcp-Session-Id"},
				"Vary":                          {"Origin"},
			},
		},
		{name: "own page", method: "POST", origin: "http://localhost", admitted: true, want: http.Header{}},
		{
			name: "preflight", method: "OPTIONS", origin: "https://app.example", header: preflight, status: 204,
			want: http.Header{
				"Access-Control-Allow-Origin":  {"https://app.example"},
				"Access-Control-Allow-Methods": {"POST, GET"},
				"Access-Control-Allow-Headers": {"content-type, mcp-param-city, MCP-Param-"},
				"Access-Control-Max-Age":       {"600"},
				"Vary":                         {"Origin"},
			},
		},
		{
			name: "preflight of the own origin", method: "OPTIONS", origin: "http://localhost", header: preflight, status: 204,
			want: http.Header{
				"Access-Control-Allow-Methods": {"POST, GET"},
				"Access-Control-Allow-Headers": {"content-type, mcp-param-city, MCP-Param-"},
				"Access-Control-Max-Age":       {"600"},
			},
		},
		{
			name: "OPTIONS that asks nothing", method: "OPTIONS", origin: "http://localhost", admitted: true,
			want: http.Header{},
		},
		{
			name: "question without Origin", method: "OPTIONS", origin: none, header: preflight, admitted: true,
			want: http.Header{},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request(t, test.method, "localhost", loopback)
			for name, values := range test.header {
				r.Header[name] = values
			}
			if test.origin != none {
				r.Header.Set("Origin", test.origin)
			}
			w := httptest.NewRecorder()
			_, ok := app.Admit(w, r, cors)
			if ok != test.admitted {
				t.Errorf("admitted: %v, want %v", ok, test.admitted)
			}
			if test.status != 0 && w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
			if diff := cmp.Diff(test.want, w.Header()); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// A preflight of a page that may not come is refused like the request itself.
// Proves: SEC-HTTP-1.
func TestCORSRefused(t *testing.T) {
	r := request(t, http.MethodOptions, "localhost", loopback, "https://evil.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	w := httptest.NewRecorder()
	if _, ok := new(web.Access).Admit(w, r, cors); ok || w.Code != http.StatusForbidden {
		t.Errorf("admitted: %v, status %d, want 403", ok, w.Code)
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("a refused page is told %s", name)
		}
	}
}

// Proves: SEC-HTTP-1. What is let in with an Origin is listed, or comes from
// the host that is called.
func FuzzAdmit(f *testing.F) {
	for _, host := range []string{"localhost:8080", "[::1]", "mcp.example", "evil.example:80", "0.0.0.0", "127.1", ""} {
		for _, origin := range []string{
			"http://localhost:8080", "https://app.example", "null", "http://[::1]", "http://[0::1]", "http://a@b",
			"HTTP://MCP.example:80", "https://mcp.example:443", "http://127.0.0.1", "x://y",
		} {
			f.Add(host, origin, "", true)
			f.Add(host, origin, "mcp.example", false)
		}
	}
	f.Fuzz(func(t *testing.T, host, origin, allowed string, local bool) {
		addr := public
		if local {
			addr = loopback
		}
		a := &web.Access{Origins: []string{"https://app.example"}}
		if allowed != "" {
			a.Hosts = []string{allowed}
		}
		w := httptest.NewRecorder()
		who, ok := a.Admit(w, request(t, http.MethodPost, host, addr, origin), cors)
		if ok != (who != nil) || !ok && w.Code != http.StatusForbidden {
			t.Fatalf("admitted: %v, caller %v, status %d", ok, who, w.Code)
		}
		listed := strings.EqualFold(strings.TrimSuffix(origin, ":443"), "https://app.example")
		if ok && !listed && !sameHost(origin, host) {
			t.Errorf("page of %q was let in to %q", origin, host)
		}
		if cors := w.Header().Get("Access-Control-Allow-Origin"); cors != "" && !listed {
			t.Errorf("page of %q may read, by %q", origin, cors)
		}
		if name := hostname("http://" + host); ok && local && allowed == "" && !isLoopbackName(name) {
			t.Errorf("%q leads to a loopback endpoint", host)
		}
	})
}

// sameHost compares as package net/url reads, which is not how Admit does.
func sameHost(origin, host string) bool {
	o, err := url.Parse(origin)
	if err != nil || o.Scheme != "http" && o.Scheme != "https" {
		return false
	}
	h, err := url.Parse(o.Scheme + "://" + host)
	if err != nil {
		return false
	}
	port := func(u *url.URL) string {
		if u.Port() != "" {
			return u.Port()
		}
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	a, b := net.ParseIP(o.Hostname()), net.ParseIP(h.Hostname())
	same := strings.EqualFold(o.Hostname(), h.Hostname()) || a != nil && a.Equal(b)
	return same && port(o) == port(h)
}

func hostname(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func isLoopbackName(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && ip.IsLoopback()
}

// Admit runs for every request, so that it must cost next to nothing.
func TestAdmitAllocates(t *testing.T) {
	who := &principal.Principal{Subject: "ada"}
	own := func(*http.Request) *principal.Principal { return who }
	w := httptest.NewRecorder()
	for name, test := range map[string]struct {
		access      *web.Access
		host, local string
		want        float64
	}{
		"loopback":      {&web.Access{Principal: own}, "localhost:8080", loopback, 0},
		"address":       {&web.Access{Principal: own}, "127.0.0.1:8080", loopback, 0},
		"IPv6":          {&web.Access{Principal: own}, "[::1]:8080", "::1", 0},
		"public":        {&web.Access{Principal: own}, "mcp.example", public, 0},
		"listed":        {&web.Access{Principal: own, Hosts: []string{"a.example", "mcp.example:443"}}, "mcp.example:443", public, 0},
		"the anonymous": {&web.Access{}, "localhost:8080", loopback, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, http.MethodPost, test.host, test.local)
			got := testing.AllocsPerRun(100, func() {
				if _, ok := test.access.Admit(w, r, cors); !ok {
					t.Fatal("not admitted")
				}
			})
			if got > test.want {
				t.Errorf("%v allocations, want %v", got, test.want)
			}
		})
	}
}

func BenchmarkAdmit(b *testing.B) {
	w := httptest.NewRecorder()
	r := request(b, http.MethodPost, "127.0.0.1:8080", loopback)
	a := new(web.Access)
	b.ReportAllocs()
	for b.Loop() {
		a.Admit(w, r, cors)
	}
}
