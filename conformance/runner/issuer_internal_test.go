package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcptest"
)

func TestLines(t *testing.T) {
	const prefix = "http://127.0.0.1:1/"
	for name, test := range map[string]struct {
		writes []string
		want   string
	}{
		"in one piece":        {[]string{"Running\n" + prefix + "authorize?a=b\nWaiting\n"}, prefix + "authorize?a=b"},
		"in pieces":           {[]string{"Run", "ning\nhttp://127.0", ".0.1:1/authorize?a", "=b\r", "\n"}, prefix + "authorize?a=b"},
		"the first of two":    {[]string{prefix + "one?a=b\n" + prefix + "two?a=b\n"}, prefix + "one?a=b"},
		"not yet whole":       {[]string{prefix + "authorize?a=b"}, ""},
		"another server's":    {[]string{"http://127.0.0.1:10/authorize?a=b\n"}, ""},
		"not at the start":    {[]string{"tested: " + prefix + "authorize?a=b\n"}, ""},
		"without a query":     {[]string{prefix + "\n"}, ""},
		"nothing of the kind": {[]string{"Running\n", "\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lines{prefix: prefix, found: make(chan string, 1)}
			for _, w := range test.writes {
				if n, err := l.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("wrote %d of %d: %v", n, len(w), err)
				}
			}
			got := ""
			select {
			case got = <-l.found:
			default:
			}
			if got != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// A visit goes from the issuer, with its cookies, to the suite, and fails if
// it ends anywhere else; then the suite is ended too.
func TestVisited(t *testing.T) {
	mcptest.NoLeaks(t)
	arrived := make(chan string, 1)
	suite := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.URL.Query().Get("code") }))
	defer suite.Close()
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/authorize":
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/"})
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		case "/login":
			if _, err := r.Cookie("seen"); err != nil {
				http.Error(w, "no cookie", http.StatusForbidden)
				return
			}
			http.Redirect(w, r, suite.URL+"/callback?code=c", http.StatusSeeOther)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusSeeOther)
		case "/away":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusSeeOther)
		case "/page":
			w.WriteHeader(http.StatusOK) // and waits for somebody who signs in
		default:
			http.NotFound(w, r)
		}
	}))
	defer issuer.Close()
	_, number, err := net.SplitHostPort(suite.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	visit := func(line string, until func(context.Context) error) error {
		return visited(t.Context(), issuer.URL, port, func(ctx context.Context, l *lines) error {
			if _, err := l.Write([]byte(line + "\n")); err != nil {
				return err
			}
			return until(ctx)
		})
	}
	stopped := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}

	err = visit(issuer.URL+"/authorize?a=b", func(ctx context.Context) error {
		select {
		case code := <-arrived:
			if code != "c" {
				return fmt.Errorf("the code is %q", code)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"/loop?a=b":   "in circles",
		"/away?a=b":   "leads elsewhere",
		"/page?a=b":   "it ended at ",
		"/nobody?a=b": "404 Not Found",
	} {
		if err := visit(issuer.URL+path, stopped); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	// A suite that ends without a URL is not waited for.
	failed := errors.New("failed")
	if err := visit("nothing", func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the error is %v, want that of the suite", err)
	}
}

// fakeIssuerSuite tests authorization servers without opening anything.
const fakeIssuerSuite = `
while [ $# -gt 0 ]; do
	case $1 in
	--url) url=$2 ;;
	-o) dir=$2 ;;
	esac
	shift
done
[ "$url" = http://127.0.0.1:1 ] || exit 7
for name in authorization-server-metadata-endpoint authorization-code-grant; do
	mkdir -p "$dir/authorization-server-$name-2026-11-20T12-34-56-789Z"
	echo '[{"name":"A","status":"SUCCESS"}]' >"$dir/authorization-server-$name-2026-11-20T12-34-56-789Z/checks.json"
done
`

func TestRunIssuer(t *testing.T) {
	mcptest.NoLeaks(t)
	fixture := program(t, "trap 'exit 0' TERM; echo http://127.0.0.1:1; while :; do sleep 0.01; done")
	got := make(map[scenario]*result)
	if err := runIssuer(t.Context(), &suite{node: program(t, fakeIssuerSuite), script: "index.js"}, fixture, t.TempDir(), got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"authorization-server-metadata-endpoint", "authorization-code-grant"} {
		if r := got[scenario{leg: legIssuer, revision: "2026-07-28", name: name}]; r == nil || r.success != 1 {
			t.Errorf("%s gave %v, want one success", name, r)
		}
	}
}

// A port that nobody listens at is waited for, but not for ever.
func TestAwaitPort(t *testing.T) {
	port, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitPort(ctx, port); err == nil {
		t.Error("nobody listens, and no error")
	}
}
