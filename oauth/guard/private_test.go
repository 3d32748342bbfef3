package guard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
)

// An issuer in a private network is reached where its network is opened: metadata, keys and
// introspection. No other network is, whether by metadata, by a redirect or by the address that a
// name has next time. Attack: SSRF by way of an issuer that may be in a private network.
func TestAttackPrivateIssuer(t *testing.T) {
	t.Parallel()
	const place = "/.well-known/oauth-authorization-server"
	for name, test := range map[string]struct {
		opened   string
		metadata func(own string) map[string]any
		redirect string // of the metadata
		address  string // of the issuer, once its metadata was read; "" as before
		want     string // in the log; "" if tokens are judged
	}{
		"opened":             {opened: "127.0.0.0/30"},
		"one address":        {opened: "127.0.0.1/32"},
		"not opened":         {opened: "10.0.0.0/8", want: "blocked: "},
		"endpoint elsewhere": {opened: "127.0.0.0/30", metadata: func(string) map[string]any { return map[string]any{"introspection_endpoint": "https://10.1.2.3/"} }, want: "10.1.2.3 is not public"},
		"endpoint over http": {opened: "127.0.0.0/30", metadata: func(string) map[string]any { return map[string]any{"introspection_endpoint": "http://10.1.2.3/"} }, want: "introspection_endpoint"},
		"endpoint of a cloud": {opened: "127.0.0.0/30", metadata: func(string) map[string]any {
			return map[string]any{"introspection_endpoint": "https://169.254.169.254/"}
		}, want: "169.254.169.254"},
		"redirect elsewhere":    {opened: "127.0.0.0/30", redirect: "https://10.1.2.3/metadata", want: "blocked: "},
		"redirect, same net":    {opened: "127.0.0.0/30", redirect: "https://127.0.0.2/metadata", want: "blocked: "},
		"name that moves":       {opened: "127.0.0.0/30", address: "127.0.0.9", want: "127.0.0.9 is not public"},
		"name moves to a cloud": {opened: "127.0.0.0/30", address: "169.254.169.254", want: "169.254.169.254"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			secure := httptest.NewTLSServer(mux)
			t.Cleanup(secure.Close)
			issuer := "https://example.com" + secure.URL[strings.LastIndexByte(secure.URL, ':'):]
			address := "127.0.0.1"
			mux.HandleFunc(place, func(w http.ResponseWriter, r *http.Request) {
				if test.redirect != "" {
					http.Redirect(w, r, test.redirect, http.StatusFound)
					return
				}
				m := map[string]any{"issuer": issuer, "introspection_endpoint": issuer + "/introspect"}
				if test.metadata != nil {
					for member, value := range test.metadata(issuer) {
						m[member] = value
					}
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Connection", "close") // the next request dials anew
				_ = json.NewEncoder(w).Encode(m)
				if test.address != "" {
					address = test.address
				}
			})
			asked := false
			mux.HandleFunc("/introspect", func(w http.ResponseWriter, _ *http.Request) {
				asked = true
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(says(nil)))
			})
			fetch := oauth.NewFetcher(&oauth.FetchOptions{
				AllowHosts: []string{test.opened},
				TLS:        secure.Client().Transport.(*http.Transport).TLSClientConfig,
				Resolve:    func(context.Context, string) ([]string, error) { return []string{address}, nil },
			})
			t.Cleanup(fetch.Close)
			b := &bench{t: t, clock: clocktest.New(epoch)}
			b.with(guard.Introspection(issuer, &guard.IntrospectionOptions{ClientID: "rs", ClientSecret: "hush", Fetch: fetch, Now: b.clock.Now}), nil)
			w := b.bearer("opaque")
			if test.want == "" {
				b.passed(w)
				return
			}
			b.refused(w, 503, "")
			if log := b.log.String(); !strings.Contains(log, test.want) || asked {
				t.Errorf("asked %v; log: %s", asked, log)
			}
		})
	}
}
