package fetch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/app/internal/serve/servers/fetch"
	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/mcptest"
)

// A site is a web server that stands at a loopback address, under the name of a public
// one.
type site struct {
	url string // of its root, by its name

	mu        sync.Mutex
	addresses []string // what names resolve to
	requests  []*http.Request
}

const siteName = "example.com"

func newSite(t *testing.T, h http.Handler) *site {
	t.Helper()
	s := &site{addresses: []string{"127.0.0.1"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s.url = strings.Replace(srv.URL, "127.0.0.1", siteName, 1)
	return s
}

// seen returns the paths that were asked for.
func (s *site) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for _, r := range s.requests {
		paths = append(paths, r.URL.RequestURI())
	}
	return paths
}

// headers returns the values of a header in the requests.
func (s *site) headers(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var values []string
	for _, r := range s.requests {
		values = append(values, r.Header.Get(name))
	}
	return values
}

func (s *site) resolve(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = addresses
}

// options are those of a server whose names are the site's.
func (s *site) options(change ...func(*fetch.Options)) *fetch.Options {
	o := &fetch.Options{
		AllowPrivate: []string{siteName},
		Resolve: func(context.Context, string) ([]string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.addresses, nil
		},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

// join connects a client to a server that can reach the site.
func (s *site) join(t *testing.T, change ...func(*fetch.Options)) *client.Client {
	t.Helper()
	return mcptest.Client(t, fetch.New("1.0.0", s.options(change...)))
}

// call calls the tool and returns the first of its texts, and whether it failed.
func call(t *testing.T, c *client.Client, args map[string]any) (text string, failed bool) {
	t.Helper()
	res := result(t, c, args)
	if len(res.Content) == 0 {
		t.Fatal("the result has no content")
	}
	return host.ContentText(res.Content[0]), res.IsError
}

func result(t *testing.T, c *client.Client, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := c.CallTool(t.Context(), "fetch", args, nil)
	if err != nil {
		t.Fatalf("fetch %v: %v", args, err)
	}
	return res
}

// fetched calls the tool for a URL and wants it to work.
func fetched(t *testing.T, c *client.Client, url string) string {
	t.Helper()
	text, failed := call(t, c, map[string]any{"url": url})
	if failed {
		t.Fatalf("fetch %s failed: %s", url, text)
	}
	return text
}

// refused calls the tool for a URL and wants it to fail with a text that has all of these.
func refused(t *testing.T, c *client.Client, url string, want ...string) {
	t.Helper()
	text, failed := call(t, c, map[string]any{"url": url})
	if !failed {
		t.Errorf("fetch %s worked: %s", url, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("fetch %s: got %q, want it to say %q", url, text, w)
		}
	}
}

// pages serves texts by path, each with a content type; "" is none. Other paths are not
// found.
func pages(list map[string][2]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := list[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if w.Header()["Content-Type"] = nil; p[0] != "" {
			w.Header().Set("Content-Type", p[0])
		}
		_, _ = w.Write([]byte(p[1]))
	})
}
