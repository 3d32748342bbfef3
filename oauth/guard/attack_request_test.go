package guard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/principal"
	"github.com/parley-mcp/parley/transport/web"
)

// raw sends text over a connection of its own and returns the response.
func raw(t *testing.T, address, text string) (status int, body string) {
	t.Helper()
	_, in := webtest.Raw(t, address, text)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, string(data)
}

// There is one reading of the header that carries the token, whatever the bytes
// on the wire are. Proves: R4, R6. Attack: smuggling of Authorization.
func TestAttackSmuggledAuthorization(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	far := webtest.Serve(t, b.h)
	ada, bob := b.token(nil), b.token(claims{"sub": "bob"})
	tests := []struct {
		name   string
		header string
		status int
	}{
		{"usual", "Authorization: Bearer " + ada, 200},
		{"name in another case", "aUTHORIZATION: bEARER " + ada, 200},
		{"blanks around", "Authorization: \t  Bearer " + ada + " \t ", 200},
		{"two headers", "Authorization: Bearer " + ada + "\r\nAuthorization: Bearer " + bob, 400},
		{"the same twice", "Authorization: Bearer " + ada + "\r\nAuthorization: Bearer " + ada, 400},
		{"two, one empty", "Authorization: Bearer " + ada + "\r\nAuthorization:", 400},
		{"two, one basic", "Authorization: Basic YTpi\r\nAuthorization: Bearer " + ada, 400},
		{"joined", "Authorization: Bearer " + ada + ", Bearer " + bob, 400},
		{"joined without blank", "Authorization: Bearer " + ada + ",Bearer " + bob, 400},
		{"two tokens", "Authorization: Bearer " + ada + " " + bob, 400},
		{"folded", "Authorization: Bearer\r\n " + ada, 200},
		{"folded within", "Authorization: Bearer " + ada[:20] + "\r\n " + ada[20:], 400},
		{"tab", "Authorization: Bearer\t" + ada, 400},
		{"no blank", "Authorization: Bearer" + ada, 401},
		{"quoted", `Authorization: Bearer "` + ada + `"`, 400},
		{"parameter", "Authorization: Bearer token=" + ada, 400},
		{"padded", "Authorization: Bearer " + ada + "=", 401},
		{"blank before the colon", "Authorization : Bearer " + ada, 400},
		{"proxy's", "Proxy-Authorization: Bearer " + ada, 401},
		{"underscore", "X_Authorization: Bearer " + ada, 401},
		{"query and form", "Content-Type: application/x-www-form-urlencoded", 401},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			form := "access_token=" + ada
			status, body := raw(t, far.Listener.Addr().String(), fmt.Sprintf("POST /mcp?access_token=%s HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
				ada, test.header, len(form), form))
			if status != test.status || strings.Contains(body, "bob") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// A token in a trailer is not looked at, and does not go on: a proxy behind the
// guard would pass it on. Proves: R5. Attack: smuggling of Authorization.
func TestAttackTokenInTrailer(t *testing.T) {
	t.Parallel()
	b := setUp(t, nil)
	token := b.token(nil)
	// HTTP/2 refuses such trailers by itself.
	far := webtest.Serve(t, b.guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, r.Trailer, r.Header["Authorization"])
	})))
	for want, header := range map[string]http.Header{
		"map[] []": {"Authorization": {"Bearer " + token}}, `{"error_description":"An access token is needed."}`: {},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, far.URL, io.MultiReader(strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.Trailer = header, http.Header{"Authorization": {"Bearer " + token}, "Dpop": {"x"}, "X-Other": {"y"}}
		resp, err := far.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(data) != want {
			t.Errorf("%d %s, %v; want %s", resp.StatusCode, data, err, want)
		}
	}
}

// Tokens that are remembered keep apart whom they are of, also when many come at
// once and few can be remembered. Proves: R11. Attack: wrong-user cache.
func TestAttackWrongUserCache(t *testing.T) {
	t.Parallel()
	v := guard.Func(issuerID, func(_ context.Context, token string) (*guard.Token, error) {
		return &guard.Token{Subject: "user of " + token, Audience: []string{resource}, Scopes: []string{token}, Groups: []string{"group of " + token}}, nil
	})
	b := (&bench{t: t, clock: clocktest.New(epoch)}).with(v, &guard.Options{CacheSize: 32})
	h := b.guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := principal.FromContext(r.Context())
		_, _ = fmt.Fprint(w, p.Subject, p.Scopes, p.Groups)
	}))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 400 {
				token := fmt.Sprintf("t%d", (i*7+worker)%100)
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, resource, nil)
				r.Header.Set("Authorization", "Bearer "+token)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if want := fmt.Sprintf("user of %s[%s] [group of %s]", token, token, token); w.Body.String() != want {
					t.Errorf("%s: %d %s", token, w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
}

// A page whose name was rebound to this machine gets nowhere, with a token or
// without, and can read nothing of a refusal. Proves: R12. Attack: DNS rebinding,
// CSRF on local servers.
func TestAttackDNSRebinding(t *testing.T) {
	t.Parallel()
	x := newSite(t, newTools(nil), guard.Options{}, web.Access{})
	address := strings.TrimSuffix(strings.TrimPrefix(x.url, "http://"), "/mcp")
	token := x.tokenOf("ada")
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`
	post := func(host, more, kind string) (int, string) {
		return raw(t, address, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: %s\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-03-26\r\n%sContent-Length: %d\r\n\r\n%s",
			host, kind, more, len(body), body))
	}
	bearer := "Authorization: Bearer " + token + "\r\n"
	for name, test := range map[string]struct {
		host, more, kind string
		status           int
	}{
		"rebound name":                  {"evil.example", bearer, "application/json", 403},
		"rebound name with its origin":  {"evil.example", bearer + "Origin: http://evil.example\r\n", "application/json", 403},
		"another origin":                {address, bearer + "Origin: http://evil.example\r\n", "application/json", 403},
		"no origin that can be named":   {address, bearer + "Origin: null\r\n", "application/json", 403},
		"simple request, without token": {address, "Origin: http://evil.example\r\n", "text/plain", 401},
		"rebound, without token":        {"evil.example", "Origin: http://evil.example\r\n", "application/json", 401},
		"simple request":                {address, bearer, "text/plain", 415},
	} {
		status, said := post(test.host, test.more, test.kind)
		if status != test.status || strings.Contains(said, "ada") {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
	for _, origin := range []string{"http://evil.example", "null"} {
		for _, method := range []string{http.MethodPost, http.MethodOptions} {
			got := x.send(method, "", "", "Origin", origin, "Access-Control-Request-Method", "POST")
			if got.status != 401 || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s of %s: %d %v", method, origin, got.status, got.header)
			}
		}
	}
}

// No spelling of a path leads past the guard or to the metadata of something
// else. Proves: R2, R4. Attack: path confusion.
func TestAttackPaths(t *testing.T) {
	t.Parallel()
	const odd = "https://api.example/a%2Fb"
	v := newFixed()
	v.token.Audience = []string{odd}
	g, err := guard.New(odd, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	reached := false
	h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	for path, status := range map[string]int{
		"/a%2Fb": 401, "/a%2fb": 404, "/a/b": 404, "/a%2Fb/": 404, "//a%2Fb": 404, "/./a%2Fb": 404, "/x/../a%2Fb": 404, "/a%252Fb": 404, "/%61%2Fb": 404, "/": 404, "": 404,
		"/.well-known/oauth-protected-resource/a%2Fb": 200, "/.well-known/oauth-protected-resource": 200,
		"/.well-known/oauth-protected-resource/a/b": 404, "/.well-known/oauth-protected-resource/": 404, "/.well-known/oauth-protected-resource/a%2Fb/": 404,
		"//.well-known/oauth-protected-resource": 404, "/.well-known/oauth-protected-resource%2Fa%2Fb": 404, "/.well-known/%6fauth-protected-resource": 404,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := httptest.NewRequestWithContext(t.Context(), method, "https://api.example/", nil)
			if r.URL, err = url.Parse("https://api.example" + path); err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != status || reached {
				t.Errorf("%s %s: %d, reached %t; want %d", method, path, w.Code, reached, status)
			}
		}
	}
}
