package oauth_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
)

// TestMain names a proxy that does not exist: a fetch that looks at the
// environment fails. At the end no connection may be left.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if err := os.Setenv(name, "http://127.0.0.1:1"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	stacks := make([]byte, 1<<20)
	for range 6000 { // what was closed takes a moment to go, on a busy machine a long one
		n := runtime.Stack(stacks, true)
		if !bytes.Contains(stacks[:n], []byte("net/http.")) {
			os.Exit(code)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, _ = os.Stderr.Write(stacks)
	os.Exit(1)
}

// A world is a TLS server called example.com, which stands at a loopback
// address, and a fetcher that may go there.
type world struct {
	*httptest.Server
	addresses atomic.Pointer[[]string] // what names resolve to
	url       string                   // of the server, by name
}

func newWorld(t *testing.T, h http.HandlerFunc) *world {
	t.Helper()
	w := &world{Server: httptest.NewTLSServer(h)}
	t.Cleanup(w.Close)
	w.resolve("127.0.0.1")
	_, port, err := net.SplitHostPort(w.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w.url = "https://example.com:" + port
	return w
}

func (w *world) resolve(addresses ...string) { w.addresses.Store(&addresses) }

// fetcher makes a Fetcher that trusts the server's certificate and uses the
// world's names.
func (w *world) fetcher(t *testing.T, o oauth.FetchOptions) *oauth.Fetcher {
	t.Helper()
	o.TLS = &tls.Config{RootCAs: w.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	o.Resolve = func(context.Context, string) ([]string, error) { return *w.addresses.Load(), nil }
	f := oauth.NewFetcher(&o)
	t.Cleanup(f.Close)
	return f
}

func open() oauth.FetchOptions { return oauth.FetchOptions{AllowHosts: []string{"example.com"}} }

func blocked(t *testing.T, err error) *oauth.BlockedError {
	t.Helper()
	b, ok := errors.AsType[*oauth.BlockedError](err)
	if !ok {
		t.Fatalf("got error %v, want a *BlockedError", err)
	}
	return b
}

func wantBlocked(t *testing.T, err error) {
	t.Helper()
	_ = blocked(t, err)
}

func TestFetchGet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Set-Cookie", "a=b; Path=/")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, strings.Join([]string{
			r.Method, r.Host, r.URL.String(), r.UserAgent(), r.Header.Get("Accept"), r.Header.Get("X-Own"),
			r.Header.Get("Cookie"), r.Header.Get("Accept-Encoding"), r.Referer(),
		}, "|"))
	})
	f := w.fetcher(t, open())
	for range 2 { // the second would carry the cookie
		r, err := f.Get(t.Context(), w.url+"/a%2Fb/'?q=1", http.Header{"X-Own": {"1"}})
		if err != nil {
			t.Fatal(err)
		}
		if !r.JSON() || r.Status != http.StatusTeapot || r.URL != w.url+"/a%2Fb/'?q=1" {
			t.Errorf("got %d %s of %s, want the teapot's JSON", r.Status, r.Header.Get("Content-Type"), r.URL)
		}
		want := "GET|" + strings.TrimPrefix(w.url, "https://") + "|/a%2Fb/'?q=1|parley|application/json|1|||"
		if diff := cmp.Diff(want, string(r.Body)); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
}

func TestFetchPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+"|"+r.Header.Get("Content-Type")+"|"+string(body))
	})
	f := w.fetcher(t, open())
	header := http.Header{"Authorization": {"Basic abc"}}
	r, err := f.PostForm(t.Context(), w.url, url.Values{"a": {"b c"}}, header)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("POST|application/x-www-form-urlencoded|a=b+c", string(r.Body)); diff != "" {
		t.Errorf("form (-want +got):\n%s", diff)
	}
	r, err = f.PostJSON(t.Context(), w.url, []byte(`{}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("POST|application/json|{}", string(r.Body)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(http.Header{"Authorization": {"Basic abc"}}, header); diff != "" {
		t.Errorf("the caller's header was changed (-want +got):\n%s", diff)
	}
}

// HTTP/2 has a transport of its own, under the same bounds.
func TestFetchHTTP2(t *testing.T) {
	t.Parallel()
	var protocol atomic.Int32
	w := &world{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol.Store(int32(r.ProtoMajor))
		_, _ = io.WriteString(w, strings.Repeat("x", 101))
	}))}
	w.EnableHTTP2 = true
	w.StartTLS()
	t.Cleanup(w.Close)
	w.resolve("127.0.0.1")
	target := strings.Replace(w.URL, "127.0.0.1", "example.com", 1)
	o := open()
	if _, err := w.fetcher(t, o).PostForm(t.Context(), target, nil, nil); err != nil || protocol.Load() != 2 {
		t.Errorf("got error %v over HTTP/%d, want HTTP/2", err, protocol.Load())
	}
	o.MaxBody = 100
	if _, err := w.fetcher(t, o).Get(t.Context(), target, nil); err == nil {
		t.Error("a body beyond the bound is read")
	}
	_, err := w.fetcher(t, oauth.FetchOptions{}).Get(t.Context(), target, nil)
	wantBlocked(t, err)
}

// Proves: ruling 42: a byte order mark is no part of a document; and documents are read by what they
// are, whatever their type says.
func TestResponseDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		contentType, body string
		want              bool
	}{
		{"application/json", "nothing", true},
		{"application/json, application/json", `{}`, true},
		{"text/html", " \r\n\t{}", true},
		{"application/octet-stream", "\uFEFF{}", true},
		{"text/html", "<html>{}", false},
		{"text/plain", "[]", false},
		{"", "", false},
	} {
		w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			_, _ = io.WriteString(w, c.body)
		})
		r, err := w.fetcher(t, oauth.FetchOptions{AllowHosts: []string{"example.com"}}).Get(t.Context(), w.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Document(); got != c.want || strings.HasPrefix(string(r.Body), "\uFEFF") {
			t.Errorf("%q with %q: got %v, want %v, and the body %q", c.body, c.contentType, got, c.want, r.Body)
		}
	}
}

func TestResponseJSON(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]bool{
		"application/json":                         true,
		"Application/JSON; charset=utf-8":          true,
		"application/jwk-set+json":                 true,
		"application/json; charset=utf-8; bad bad": true,
		"":                               false,
		"text/html":                      false,
		"application/jsonp":              false,
		"text/plain; x=application/json": false,
	} {
		r := &oauth.Response{Header: http.Header{"Content-Type": {contentType}}}
		if got := r.JSON(); got != want {
			t.Errorf("JSON of %q: got %v, want %v", contentType, got, want)
		}
	}
}

// Attack: token leak on redirect. What is posted stays where it was sent, and
// what is asked for is not fetched from another origin.
func TestAttackTokenLeakOnRedirect(t *testing.T) {
	t.Parallel()
	thief := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("the other origin was reached") })
	var hits atomic.Int32
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		code := map[string]int{"/301": 301, "/302": 302, "/303": 303, "/307": 307, "/308": 308}[r.URL.Path]
		to := thief.url + "/?stolen"
		if r.URL.Query().Has("here") {
			to = "/elsewhere"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(code)
	})
	f := w.fetcher(t, open())
	for _, path := range []string{"/301", "/302", "/303", "/307", "/308"} {
		for _, query := range []string{"", "?here"} {
			before := hits.Load()
			r, err := f.PostForm(t.Context(), w.url+path+query, url.Values{"code": {"secret"}}, nil)
			if err != nil {
				t.Fatalf("POST %s: %v", path, err)
			}
			if r.Status < 300 || r.Status > 399 || hits.Load() != before+1 {
				t.Errorf("POST %s: status %d after %d requests, want the redirect itself", path+query, r.Status, hits.Load()-before)
			}
		}
		_, err := f.Get(t.Context(), w.url+path, http.Header{"Authorization": {"Bearer secret"}})
		if b := blocked(t, err); strings.Contains(b.Error(), "stolen") {
			t.Errorf("error shows the query: %v", b)
		}
	}
}

func TestFetchRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		hop := map[string]string{
			"/1": "/2", "/2": w.url + "/3", "/3": "4?x=1#fragment", "/4": "/5", "/5": "/1",
			"/plain": "http://" + r.Host + "/1", "/metadata": "https://169.254.169.254/latest?secret",
			"/script": "javascript:alert(1)", "/user": "https://user:secret@" + r.Host + "/", "/bad": "https://a b/",
			"/port": "https://example.com/1",
		}[r.URL.Path]
		if r.URL.Path == "/4" && r.URL.RawQuery == "x=1" || hop == "" {
			_, _ = io.WriteString(rw, "end|"+r.Header.Get("X-Own")+r.Referer())
			return
		}
		rw.Header().Set("Location", hop)
		rw.WriteHeader(http.StatusFound)
	})
	f := w.fetcher(t, open())
	r, err := f.Get(t.Context(), w.url+"/1", http.Header{"X-Own": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.URL != w.url+"/4?x=1" || string(r.Body) != "end|1" {
		t.Errorf("got %q of %s, want the end of three redirects", r.Body, r.URL)
	}
	if _, err := f.Get(t.Context(), w.url+"/5?q=secret", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("four redirects: got error %v, want one that says so", err)
	}
	for _, path := range []string{"/plain", "/metadata", "/script", "/user", "/bad", "/port"} {
		_, err := f.Get(t.Context(), w.url+path, nil)
		if b := blocked(t, err); strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error shows a secret: %v", path, b)
		}
	}
	o := open()
	o.MaxRedirects = -1
	if r, err = w.fetcher(t, o).Get(t.Context(), w.url+"/1", nil); err != nil || r.Status != http.StatusFound {
		t.Errorf("without redirects: got %v, %v, want the redirect itself", r, err)
	}
}

func TestFetchLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
		case "/trickle":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/protocols":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "x")
			w.WriteHeader(http.StatusSwitchingProtocols)
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("x", 80<<10))
		default:
			_, _ = io.WriteString(w, strings.Repeat("x", 101))
		}
	})
	o := open()
	o.Timeout, o.MaxBody = 300*time.Millisecond, 100
	f := w.fetcher(t, o)
	for _, path := range []string{"/slow", "/trickle"} {
		if _, err := f.Get(t.Context(), w.url+path, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got error %v, want the deadline", path, err)
		}
	}
	o.Timeout = 0
	f = w.fetcher(t, o)
	for _, path := range []string{"/large", "/protocols", "/headers"} {
		if r, err := f.Get(t.Context(), w.url+path, nil); err == nil {
			t.Errorf("%s: got status %d with %d bytes, want an error", path, r.Status, len(r.Body))
		}
	}
	o.MaxBody = 101
	if _, err := w.fetcher(t, o).Get(t.Context(), w.url+"/large", nil); err != nil {
		t.Errorf("a body of just the size: %v", err)
	}
}

// Errors are logged: they show no query, which may hold codes.
func TestFetchErrorsHideQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	f := w.fetcher(t, open())
	w.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, refused := f.Get(t.Context(), w.url+"/path?secret", nil)
	_, gone := f.Get(cancelled, w.url+"/path?secret", nil)
	_, plain := f.Get(t.Context(), "http://example.com/path?secret", nil)
	_, script := f.Get(t.Context(), "javascript:alert(1)?secret", nil)
	_, user := f.PostJSON(t.Context(), "https://user:secret@example.com/", nil, nil)
	for i, err := range []error{refused, gone, plain, script, user} {
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %d is %v, want one without the query", i, err)
		}
	}
	if !errors.Is(gone, context.Canceled) {
		t.Errorf("got error %v, want one that is context.Canceled", gone)
	}
	for _, err := range []error{plain, script, user} {
		wantBlocked(t, err)
	}
}
