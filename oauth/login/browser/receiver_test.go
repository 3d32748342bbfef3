package browser_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth/login/browser"
)

const (
	authorizeURL = "https://as.example/authorize?client_id=x"
	goodResponse = "?code=c&state=good&iss=https%3A%2F%2Fas.example"
)

func parsed(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// ours accepts the one good state.
func ours(v url.Values) bool { return len(v["state"]) == 1 && v.Get("state") == "good" }

// opened tells a channel that the browser was opened, so that requests are
// answered by then.
func opened(c chan<- string) func(context.Context, *url.URL) error {
	return func(_ context.Context, u *url.URL) error {
		c <- u.String()
		return nil
	}
}

type waited struct {
	values url.Values
	err    error
}

// wait begins a visit and waits for its response in the background.
func wait(t testing.TB, o *browser.ReceiverOptions, registered ...string) (browser.Visit, <-chan waited) {
	t.Helper()
	v, err := browser.NewReceiver(o).Begin(t.Context(), registered)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	out := make(chan waited, 1)
	go func() {
		values, err := v.Wait(t.Context(), parsed(t, authorizeURL), ours)
		out <- waited{values, err}
	}()
	return v, out
}

// silent opens nothing.
func silent(context.Context, *url.URL) error { return nil }

// A loaded page is what a browser got.
type loaded struct {
	status int
	header http.Header
	body   string
}

// page makes a request without keeping the connection.
func page(t testing.TB, method, target string, change func(*http.Request)) loaded {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("the page was not delivered whole: %v", err)
	}
	return loaded{res.StatusCode, res.Header, string(body)}
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	opening := make(chan string, 1)
	var shown atomic.Value
	v, got := wait(t, &browser.ReceiverOptions{Open: opened(opening), Show: func(u string) { shown.Store(u) }})
	u := parsed(t, v.RedirectURI())
	if u.Hostname() != "127.0.0.1" || u.Path != "/callback" || u.Port() == "" || u.Scheme != "http" {
		t.Errorf("redirect URI %s", u)
	}
	if at := <-opening; at != authorizeURL || shown.Load() != authorizeURL {
		t.Errorf("opened %s, shown %v", at, shown.Load())
	}
	done := page(t, http.MethodGet, v.RedirectURI()+goodResponse, nil)
	if done.status != http.StatusOK || !strings.Contains(done.body, "You can close this window") {
		t.Errorf("status %d, page %q", done.status, done.body)
	}
	w := <-got
	want := url.Values{"code": {"c"}, "state": {"good"}, "iss": {"https://as.example"}}
	if diff := cmp.Diff(want, w.values); diff != "" || w.err != nil {
		t.Error(w.err, diff)
	}
	if _, err := v.Wait(t.Context(), parsed(t, authorizeURL), ours); err == nil {
		t.Error("a visit was used twice")
	}
}

// A response to our request that breaks a rule ends the visit at once, so that the person is told
// and need not wait.
func TestReceiverTakesBadResponses(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"?state=good", goodResponse + "&code=d", goodResponse + "&iss=x", "?state=good&code="} {
		v, got := wait(t, &browser.ReceiverOptions{Open: silent})
		if res := page(t, http.MethodGet, v.RedirectURI()+query, nil); res.status != http.StatusOK {
			t.Errorf("%s: status %d", query, res.status)
		}
		if w := <-got; w.err != nil || w.values.Encode() != parsed(t, query).Query().Encode() {
			t.Errorf("%s: %v, %v", query, w.values, w.err)
		}
	}
}

// Proves: an error response is a response too, and both loopback addresses lead
// to the visit (RFC 8252, section 7.3).
func TestReceiverOnBothAddresses(t *testing.T) {
	t.Parallel()
	hosts := []string{"127.0.0.1", "localhost"}
	if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0"); err == nil {
		_ = l.Close()
		hosts = append(hosts, "[::1]")
	}
	for _, host := range hosts {
		v, got := wait(t, &browser.ReceiverOptions{Host: "localhost", Path: "/", Open: silent})
		u := parsed(t, v.RedirectURI())
		if u.Hostname() != "localhost" || u.Path != "/" {
			t.Errorf("redirect URI %s", u)
		}
		if res := page(t, http.MethodGet, "http://"+host+":"+u.Port()+"/?error=access_denied&state=good", nil); res.status != http.StatusOK {
			t.Errorf("%s: status %d", host, res.status)
		}
		if w := <-got; w.err != nil || w.values.Get("error") != "access_denied" {
			t.Errorf("%s: %v, %v", host, w.values, w.err)
		}
	}
}

// freePorts are ports at which nobody listens, below those that systems give to whoever asks for any,
// as other tests do meanwhile.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		port := 10_000 + rand.IntN(20_000)
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			if tries == 1000 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close() // so that none is there twice
		ports = append(ports, port)
	}
	return ports
}

// Proves: C27 and C16: a registered redirect URI is used to the letter if its
// port can be had, and with another port if not.
func TestReceiverPlaces(t *testing.T) {
	t.Parallel()
	p := freePorts(t, 4)
	held, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(p[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	at := func(host string, port int, path string) string {
		return fmt.Sprintf("http://%s:%d%s", host, port, path)
	}
	for _, tt := range []struct {
		name       string
		o          browser.ReceiverOptions
		registered []string
		want       string // %d is any port
		fails      bool
	}{
		{"port given", browser.ReceiverOptions{Port: p[1]}, nil, at("127.0.0.1", p[1], "/callback"), false},
		{"port taken", browser.ReceiverOptions{Port: p[0]}, nil, "", true},
		{"port taken, another given", browser.ReceiverOptions{Port: p[0], Ports: []int{p[1]}}, nil, at("127.0.0.1", p[1], "/callback"), false},
		{"only others given", browser.ReceiverOptions{Ports: []int{p[0], p[2]}}, nil, at("127.0.0.1", p[2], "/callback"), false},
		{"registered", browser.ReceiverOptions{Port: p[1]}, []string{"https://app.example/cb", at("localhost", p[3], "/cb")}, at("localhost", p[3], "/cb"), false},
		{"registered, first taken", browser.ReceiverOptions{}, []string{at("127.0.0.1", p[0], "/a"), at("localhost", p[3], "/b")}, at("localhost", p[3], "/b"), false},
		{"registered, all taken", browser.ReceiverOptions{}, []string{at("127.0.0.1", p[0], "/a")}, "http://127.0.0.1:%d/a", false},
		{"registered without port", browser.ReceiverOptions{}, []string{"http://localhost/cb"}, "http://localhost:%d/cb", false},
		{"registered, none of ours", browser.ReceiverOptions{}, []string{
			"https://127.0.0.1:1/a", "http://127.0.0.2:1/a", "http://app.example/", "http://localhost:1/a?q", "http://localhost:1/a#f", "http://u@localhost:1/a", "http://localhost:99999/a", "::",
		}, "http://127.0.0.1:%d/callback", false},
		{"foreign host", browser.ReceiverOptions{Host: "0.0.0.0"}, nil, "", true},
		{"bad path", browser.ReceiverOptions{Path: "callback"}, nil, "", true},
		{"path with query", browser.ReceiverOptions{Path: "/a?b"}, nil, "", true},
		{"bad port", browser.ReceiverOptions{Port: 70000}, nil, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := browser.NewReceiver(&tt.o).Begin(t.Context(), tt.registered)
			if tt.fails {
				if err == nil {
					_ = v.Close()
					t.Errorf("listens at %s", v.RedirectURI())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			got, want := v.RedirectURI(), tt.want
			if strings.Contains(want, "%d") {
				want = fmt.Sprintf(want, func() int { n, _ := strconv.Atoi(parsed(t, got).Port()); return n }())
			}
			if got != want {
				t.Errorf("redirect URI %s, want %s", got, want)
			}
		})
	}
}

// Attack: XSS in the loopback callback page (CVE-2025-62800).
func TestAttackXSSInCallbackPage(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(1)</script>"
	e := url.QueryEscape(evil)
	v, got := wait(t, &browser.ReceiverOptions{Open: silent})
	pages := map[string]string{}
	for _, query := range []string{
		"?state=" + e, "?state=bad&error=x&error_description=" + e, "?" + e + "=1", "/" + e, "?code=" + e + "&state=" + e,
		"?error=access_denied&error_description=" + e + "&error_uri=javascript:alert(1)&state=good&iss=" + e,
	} {
		res := page(t, http.MethodGet, v.RedirectURI()+query, func(r *http.Request) {
			r.Header.Set("User-Agent", evil)
			r.Header.Set("Referer", evil)
		})
		if strings.Contains(res.body, "alert") || strings.Contains(res.body, "script") {
			t.Errorf("%s: page %q", query, res.body)
		}
		pages[res.body] = query
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		} {
			if got := res.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", query, name, got)
			}
		}
	}
	if w := <-got; w.err != nil || w.values.Get("error_description") != evil {
		t.Errorf("%v, %v", w.values, w.err)
	}
	if len(pages) != 2 {
		t.Errorf("%d different pages, want the two fixed ones", len(pages))
	}
}

// Attack: loopback callback abuse (RFC 8252, section 8): rebound names, other
// methods and paths, foreign states, floods. The visit outlives all of it.
func TestAttackLoopbackCallbackAbuse(t *testing.T) {
	t.Parallel()
	v, got := wait(t, &browser.ReceiverOptions{Open: silent})
	at := v.RedirectURI()
	port := parsed(t, at).Port()
	root := "http://127.0.0.1:" + port
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	for _, tt := range []struct {
		name, method, target string
		change               func(*http.Request)
		status               int
	}{
		{"rebound name", "GET", at + goodResponse, host("evil.example:" + port), 403},
		{"name without port", "GET", at + goodResponse, host("127.0.0.1"), 403},
		{"other port", "GET", at + goodResponse, host("127.0.0.1:1"), 403},
		{"name below localhost", "GET", at + goodResponse, host("evil.localhost:" + port), 403},
		{"other loopback address", "GET", at + goodResponse, host("127.0.0.2:" + port), 403},
		{"wrong state", "GET", at + "?code=c&state=bad", nil, 400},
		{"no state", "GET", at + "?code=c", nil, 400},
		{"no parameters", "GET", at, nil, 400},
		{"another parameter alone", "GET", at + "?scope=good", nil, 400},
		{"state twice", "GET", at + goodResponse + "&state=good", nil, 400},
		{"bad escape", "GET", at + goodResponse + "&x=%zz", nil, 400},
		{"semicolons", "GET", at + "?code=c;state=good", nil, 400},
		{"many parameters", "GET", at + goodResponse + strings.Repeat("&a=b", 40), nil, 400},
		{"long query", "GET", at + goodResponse + "&a=" + strings.Repeat("b", 17<<10), nil, 414},
		{"POST", "POST", at + goodResponse, nil, 405},
		{"HEAD", "HEAD", at + goodResponse, nil, 405},
		{"OPTIONS", "OPTIONS", at + goodResponse, nil, 405},
		{"favicon", "GET", root + "/favicon.ico", nil, 404},
		{"root", "GET", root + "/" + goodResponse, nil, 404},
		{"path below", "GET", at + "/x" + goodResponse, nil, 404},
		{"path with slash", "GET", at + "/" + goodResponse, nil, 404},
		{"path escaped", "GET", root + "/%63allback" + goodResponse, nil, 404},
		{"path doubled", "GET", root + "//callback" + goodResponse, nil, 404},
		{"header flood", "GET", at + goodResponse, func(r *http.Request) {
			for i := range 500 {
				r.Header.Set(fmt.Sprintf("X-Flood-%d", i), strings.Repeat("x", 200))
			}
		}, 431},
	} {
		res := page(t, tt.method, tt.target, tt.change)
		if res.status != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, res.status, tt.status)
		}
		select {
		case w := <-got:
			t.Fatalf("%s ended the visit: %v, %v", tt.name, w.values, w.err)
		default:
		}
	}
	for _, raw := range []string{
		"GET http://evil.example/callback" + goodResponse + " HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\n\r\n",
		"GET /callback" + goodResponse + " HTTP/1.0\r\n\r\n",
		"GET /callback" + goodResponse + " HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\nHost: evil.example\r\n\r\n",
	} {
		if status := rawRequest(t, "127.0.0.1:"+port, raw); status == http.StatusOK || status == 0 {
			t.Errorf("%q: status %d", raw, status)
		}
	}
	if res := page(t, http.MethodGet, at+goodResponse, host("LOCALHOST:"+port)); res.status != http.StatusOK {
		t.Errorf("status %d", res.status)
	}
	if w := <-got; w.err != nil {
		t.Error(w.err)
	}
}

func rawRequest(t testing.TB, addr, raw string) int {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// Attack: a second response, at the same time. Proves: one use.
func TestAttackSecondUseOfCallback(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int32
	v, err := browser.NewReceiver(&browser.ReceiverOptions{Open: silent}).Begin(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	got := make(chan waited, 1)
	go func() {
		values, err := v.Wait(t.Context(), parsed(t, authorizeURL), func(v url.Values) bool {
			own := v.Get("state") == "second"
			if own {
				accepted.Add(1)
			}
			return own
		})
		got <- waited{values, err}
	}()
	var pages atomic.Int32
	var wg sync.WaitGroup
	// Where the port is another visit's by now, it does not take the state for its own.
	response := strings.ReplaceAll(goodResponse, "state=good", "state=second")
	for range 8 {
		wg.Go(func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.RedirectURI()+response, nil)
			if err != nil {
				t.Error(err)
				return
			}
			transport := &http.Transport{DisableKeepAlives: true}
			// Late ones may find the listener gone.
			if res, err := transport.RoundTrip(req); err == nil {
				if res.StatusCode == http.StatusOK {
					pages.Add(1)
				}
				_ = res.Body.Close()
			}
		})
	}
	wg.Wait()
	if w := <-got; w.err != nil || accepted.Load() != 1 || pages.Load() != 1 {
		t.Errorf("accepted %d times, %d pages, %v", accepted.Load(), pages.Load(), w.err)
	}
}

func TestReceiverWithoutBrowser(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, *url.URL) error { return browser.ErrNotFound }
	_, got := wait(t, &browser.ReceiverOptions{Open: broken})
	if w := <-got; !errors.Is(w.err, browser.ErrNotFound) {
		t.Errorf("error %v", w.err)
	}
	v, got := wait(t, &browser.ReceiverOptions{Open: broken, Show: func(string) {}})
	page(t, http.MethodGet, v.RedirectURI()+goodResponse, nil)
	if w := <-got; w.err != nil {
		t.Errorf("although the URL was shown: %v", w.err)
	}
}

// Proves: signing in works from another machine: whichever comes first.
func TestReceiverWithPaste(t *testing.T) {
	t.Parallel()
	lines := make(chan string)
	read := func(ctx context.Context) (string, error) {
		select {
		case s := <-lines:
			return s, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	o := &browser.ReceiverOptions{Open: silent, Read: read, Refused: func(error) {}}
	v, got := wait(t, o)
	for _, s := range []string{"", "nonsense", v.RedirectURI() + "?code=c&state=bad", v.RedirectURI() + goodResponse} {
		lines <- s
	}
	if w := <-got; w.err != nil || w.values.Get("code") != "c" {
		t.Errorf("pasted: %v, %v", w.values, w.err)
	}
	v, got = wait(t, o)
	page(t, http.MethodGet, v.RedirectURI()+goodResponse, nil)
	if w := <-got; w.err != nil {
		t.Errorf("by the browser: %v", w.err)
	}
	// The end of input ends the reading alone; a bad text, unless somebody is
	// told, the visit.
	v, got = wait(t, &browser.ReceiverOptions{Open: silent, Read: func(context.Context) (string, error) { return "", io.EOF }})
	page(t, http.MethodGet, v.RedirectURI()+goodResponse, nil)
	if w := <-got; w.err != nil {
		t.Errorf("after the end of input: %v", w.err)
	}
	_, got = wait(t, &browser.ReceiverOptions{Open: silent, Read: func(context.Context) (string, error) { return "hush", nil }})
	if w := <-got; w.err == nil || strings.Contains(w.err.Error(), "hush") {
		t.Errorf("error %v", w.err)
	}
}

// Proves: nothing is left, however a visit ends.
func TestReceiverEnds(t *testing.T) {
	t.Run("before Wait", func(t *testing.T) {
		v, err := browser.NewReceiver(nil).Begin(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(v.Close(), v.Close()); err != nil {
			t.Error(err)
		}
		if _, err := v.Wait(t.Context(), parsed(t, authorizeURL), ours); err == nil {
			t.Error("a closed visit waits")
		}
		mustBeFree(t, v)
	})
	t.Run("by Close", func(t *testing.T) {
		opening := make(chan string, 1)
		v, got := wait(t, &browser.ReceiverOptions{Open: opened(opening)})
		<-opening
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if w := <-got; w.err == nil {
			t.Error("no error")
		}
		mustBeFree(t, v)
	})
	t.Run("by context", func(t *testing.T) {
		v, err := browser.NewReceiver(&browser.ReceiverOptions{Open: func(ctx context.Context, _ *url.URL) error {
			<-ctx.Done()
			return ctx.Err()
		}}).Begin(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		boom := errors.New("boom")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(boom)
		if _, err := v.Wait(ctx, parsed(t, authorizeURL), ours); !errors.Is(err, boom) {
			t.Errorf("error %v", err)
		}
		mustBeFree(t, v)
	})
	t.Run("by timeout", func(t *testing.T) {
		_, got := wait(t, &browser.ReceiverOptions{Open: silent, Timeout: time.Millisecond})
		if w := <-got; !errors.Is(w.err, context.DeadlineExceeded) || !strings.Contains(w.err.Error(), "within 1ms") {
			t.Errorf("error %v", w.err)
		}
	})
	t.Run("goroutines", func(t *testing.T) {
		before := runtime.NumGoroutine()
		for range 10 {
			v, got := wait(t, &browser.ReceiverOptions{Open: silent, Read: func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}})
			page(t, http.MethodGet, v.RedirectURI()+goodResponse, nil)
			if w := <-got; w.err != nil {
				t.Error(w.err)
			}
			_ = v.Close()
		}
		for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(deadline) {
				buf := make([]byte, 64<<10)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	})
}

// mustBeFree fails if the visit still listens. Its port may be somebody else's by now.
func mustBeFree(t testing.TB, v browser.Visit) {
	t.Helper()
	for _, l := range browser.Listeners(v) {
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s still listens: %v", l.Addr(), err)
		}
	}
}

// A person's browser ends at the redirect URI with the answer of the
// authorization server.
func ExampleReceiver() {
	receiver := browser.NewReceiver(&browser.ReceiverOptions{
		Open: func(ctx context.Context, u *url.URL) error { // instead of a browser
			answer := u.Query().Get("redirect_uri") + "?code=abc&state=" + u.Query().Get("state")
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, answer, nil)
			if err != nil {
				return err
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			return res.Body.Close()
		},
	})
	ctx := context.Background()
	visit, err := receiver.Begin(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer visit.Close()
	query := url.Values{"redirect_uri": {visit.RedirectURI()}, "state": {"xyz"}}
	response, err := visit.Wait(ctx, &url.URL{Scheme: "https", Host: "as.example", Path: "/authorize", RawQuery: query.Encode()},
		func(v url.Values) bool { return v.Get("state") == "xyz" })
	fmt.Println(response.Get("code"), err)
	// Output: abc <nil>
}
