package web_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/mcptest"
	"github.com/parley-mcp/parley/transport"
	"github.com/parley-mcp/parley/transport/web"
)

// do sends a request through the guarded client of s.
func do(t *testing.T, c *http.Client, method, url, body string) *http.Response {
	t.Helper()
	r := webtest.NewRequest(t, t.Context(), method, url, body, "Authorization", "Bearer secret")
	answer, err := web.Client(c).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// Proves: SEC-AUTH-1. A redirect must not take credentials or a body elsewhere.
func TestClientRedirects(t *testing.T) {
	mcptest.NoLeaks(t)
	elsewhere := webtest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s arrived at another origin, with %q", r.Method, r.Header.Get("Authorization"))
	}))
	home := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"301": 301, "302": 302, "303": 303, "307": 307, "308": 308}[r.URL.Query().Get("status")]
		switch r.URL.Path {
		case "/home":
			http.Redirect(w, r, "/end", status)
		case "/away":
			http.Redirect(w, r, elsewhere.URL+"/mcp?token=secret#x", status)
		case "/loop":
			http.Redirect(w, r, r.URL.String(), status)
		default:
			_, _ = io.Copy(w, r.Body)
			_, _ = io.WriteString(w, " "+r.Method+" "+r.Header.Get("Authorization"))
		}
	}))
	tests := []struct {
		method, path, status string
		want                 int
		body                 string
	}{
		{"GET", "/home", "302", 200, " GET Bearer secret"},
		{"GET", "/home", "303", 200, " GET Bearer secret"},
		{"GET", "/home", "307", 200, " GET Bearer secret"},
		{"POST", "/home", "307", 200, "hello POST Bearer secret"},
		{"POST", "/home", "308", 200, "hello POST Bearer secret"},
		{"DELETE", "/home", "308", 200, " DELETE Bearer secret"},
		{"POST", "/home", "301", 301, ""},
		{"POST", "/home", "302", 302, ""},
		{"POST", "/home", "303", 303, ""},
		{"DELETE", "/home", "302", 302, ""},
		{"GET", "/away", "302", 302, ""},
		{"GET", "/away", "307", 307, ""},
		{"POST", "/away", "307", 307, ""},
		{"POST", "/away", "308", 308, ""},
		{"GET", "/loop", "302", 302, ""},
		{"POST", "/loop", "307", 307, ""},
	}
	for _, test := range tests {
		t.Run(test.method+" "+test.path+" "+test.status, func(t *testing.T) {
			body := ""
			if test.method == "POST" {
				body = "hello"
			}
			answer := do(t, home.Client(), test.method, home.URL+test.path+"?status="+test.status, body) //nolint:bodyclose // do closes it
			if answer.StatusCode != test.want {
				t.Fatalf("status %d, want %d", answer.StatusCode, test.want)
			}
			if test.want != http.StatusOK {
				if err := web.NewStatusError(answer); strings.Contains(err.Error(), "secret") {
					t.Errorf("the error tells a secret: %v", err)
				}
				return
			}
			got, err := io.ReadAll(answer.Body)
			if err != nil || string(got) != test.body {
				t.Errorf("body %q, error %v, want %q", got, err, test.body)
			}
		})
	}
}

// Proves: SEC-DOS-1.
func TestClientRedirectsEnd(t *testing.T) {
	count := 0
	s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count++
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	}))
	answer := do(t, s.Client(), "POST", s.URL, "x") //nolint:bodyclose // do closes it
	if answer.StatusCode != http.StatusTemporaryRedirect || count != 6 {
		t.Errorf("status %d after %d requests, want 307 after the first and 5 redirects", answer.StatusCode, count)
	}
}

func TestClientCopies(t *testing.T) {
	asked := errors.New("asked")
	own := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return asked }}
	s := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := web.Client(own).Do(r)
	if answer != nil {
		answer.Body.Close()
	}
	if !errors.Is(err, asked) {
		t.Errorf("error %v, want that of the caller's own CheckRedirect", err)
	}
	if err := own.CheckRedirect(nil, nil); !errors.Is(err, asked) {
		t.Error("the caller's client was written to")
	}
	if c := web.Client(nil); c.Transport != nil || c.CheckRedirect == nil {
		t.Errorf("the client for nil is %+v, want one with the default transport that checks redirects", c)
	}
}

func TestStatusError(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	to := func(location string) http.Header { return http.Header{"Location": {location}} }
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		want   string
	}{
		{"unauthorized", 401, nil, "", "the server answered 401 Unauthorized; it wants authorization"},
		{"forbidden", 403, nil, "", "the server answered 403 Forbidden; it does not let this caller in"},
		{"not found", 404, html, "<h1>No</h1>\r\n", "the server answered 404 Not Found; check the URL (it said: <h1>No</h1>)"},
		{
			"broken", 502,
			http.Header{"Content-Type": {"application/problem+json"}},
			`{"x":1}`,
			`the server answered 502 Bad Gateway; the fault is on its side (it said: {"x":1})`,
		},
		{"busy", 503, nil, "", "the server answered 503 Service Unavailable; try again later"},
		{"too large", 413, nil, "", "the server answered 413 Request Entity Too Large; send less at a time"},
		{"proxy", 407, nil, "", "the server answered 407 Proxy Authentication Required; the proxy between wants authorization"},
		{"upgrade required", 426, nil, "", "the server answered 426 Upgrade Required; it speaks another protocol there; check the URL"},
		{"success", 204, nil, "", "the server answered 204 No Content; that is no answer of this protocol; check the URL"},
		{"unknown", 799, nil, "", "the server answered 799"},
		{"teapot", 418, nil, "", "the server answered 418 I'm a teapot"},
		{"controls", 400, html, "a\x1b[31mb\x00\u202ec\xff\n", "the server answered 400 Bad Request (it said: a?[31mb??c?)"},
		{"binary", 400, http.Header{"Content-Type": {"image/png"}}, "x", "the server answered 400 Bad Request"},
		{"no type", 400, nil, "x", "the server answered 400 Bad Request (it said: x)"},
		{"no type, binary", 400, nil, "\x00\x01\x02", "the server answered 400 Bad Request"},
		{"bad type", 400, http.Header{"Content-Type": {"text/"}}, "x", "the server answered 400 Bad Request"},
		{"stream", 400, http.Header{"Content-Type": {"text/event-stream"}}, "data: x", "the server answered 400 Bad Request (it said: data: x)"},
		{
			"foreign", 307, to("https://user:pass@other.example/mcp?token=x#y"), "",
			"the server answered 307 to https://other.example/mcp, which is another origin; use that URL if you trust it",
		},
		{
			"insecure", 307, to("http://home.example/mcp"), "",
			"the server answered 307 to http://home.example/mcp, which is another origin; use that URL if you trust it",
		},
		{
			"relative", 302, to("/new?x=y"), "",
			"the server answered 302 to https://home.example/new, which was not followed; use that URL",
		},
		{
			"same port", 302, to("https://HOME.example:443/new"), "",
			"the server answered 302 to https://HOME.example:443/new, which was not followed; use that URL",
		},
		{"nowhere", 307, nil, "", "the server answered 307 Temporary Redirect"},
		{"bad location", 307, to("https://a b/\x7f"), "", "the server answered 307 Temporary Redirect"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := test.header
			if header == nil {
				header = http.Header{}
			}
			e := web.NewStatusError(&http.Response{
				StatusCode: test.status,
				Header:     header,
				Body:       io.NopCloser(strings.NewReader(test.body)),
				Request:    &http.Request{URL: &url.URL{Scheme: "https", Host: "home.example", Path: "/mcp"}},
			})
			if e.Error() != test.want {
				t.Errorf("error\n%q, want\n%q", e.Error(), test.want)
			}
			if e.Status != test.status {
				t.Errorf("status %d, want %d", e.Status, test.status)
			}
		})
	}
}

// Proves: SEC-DOS-1.
func TestStatusErrorIsShort(t *testing.T) {
	e := web.NewStatusError(&http.Response{
		StatusCode: 500,
		Header:     http.Header{"Content-Type": {"text/plain"}},
		Body:       io.NopCloser(strings.NewReader("x" + strings.Repeat("é", 10_000))),
	})
	if want := "x" + strings.Repeat("é", 255); e.Text != want {
		t.Errorf("%d bytes are kept of a long body, want 511 that end with a whole letter", len(e.Text))
	}
}

// Statuses that may pass are a transport.TemporaryError, with how long to wait.
func TestStatusIsTemporary(t *testing.T) {
	for _, test := range []struct {
		status       int
		after        string
		busy, notRun bool
		wait         time.Duration
	}{
		{status: 408},
		{status: 429, busy: true, notRun: true},
		{status: 429, after: "3", busy: true, notRun: true, wait: 3 * time.Second},
		{status: 429, after: " 3 ", busy: true, notRun: true, wait: 3 * time.Second},
		{status: 429, after: "-3", busy: true, notRun: true},
		{status: 429, after: "99999999999", busy: true, notRun: true},
		{status: 429, after: "Thu, 01 Jan 1970 00:00:00 GMT", busy: true, notRun: true},
		{status: 500},
		{status: 502},
		{status: 504},
		{status: 599},
		{status: 503, busy: true},
		{status: 503, after: "60", busy: true, wait: time.Minute},
	} {
		e := error(web.NewStatusError(&http.Response{StatusCode: test.status, Header: http.Header{"Retry-After": {test.after}}}))
		var temporary *transport.TemporaryError
		if !errors.As(fmt.Errorf("posting: %w", e), &temporary) {
			t.Errorf("%d is not temporary", test.status)
			continue
		}
		if temporary.Busy != test.busy || temporary.NotRun != test.notRun || temporary.RetryAfter != test.wait || temporary.Error() != e.Error() || !errors.Is(temporary, e) {
			t.Errorf("%d, Retry-After %q: %+v", test.status, test.after, temporary)
		}
	}
	for _, status := range []int{204, 307, 400, 401, 403, 404, 405, 413, 418, 426, 799} {
		var temporary *transport.TemporaryError
		if errors.As(web.NewStatusError(&http.Response{StatusCode: status}), &temporary) {
			t.Errorf("%d is temporary", status)
		}
	}
	in := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	var temporary *transport.TemporaryError
	if !errors.As(web.NewStatusError(&http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {in}}}), &temporary) ||
		temporary.RetryAfter < 50*time.Minute || temporary.RetryAfter > time.Hour {
		t.Errorf("a date in an hour: %+v", temporary)
	}
}
