package interop_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Clients of others use 'parley serve fetch'.
func TestServersFetchClients(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/page" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body><article><h2>Bridges</h2><p>They span rivers, roads and valleys.</p></article></body></html>"))
	}))
	t.Cleanup(site.Close)
	useBuiltin(t, func(*testing.T) useCase {
		return useCase{
			args:  []string{"fetch", "--allow-private", "127.0.0.1"},
			tools: []string{"fetch"},
			calls: []useCall{
				{tool: "fetch", args: map[string]any{"url": site.URL + "/page"}, want: "Contents of " + site.URL + "/page:\n## Bridges\n\nThey span rivers"},
				{tool: "fetch", args: map[string]any{"url": site.URL + "/other"}, want: "status code 404", failed: true},
				{tool: "fetch", args: map[string]any{"url": "http://169.254.169.254/"}, want: "blocked: ", failed: true},
			},
		}
	})
}
