package login_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/client"
	"github.com/parley-mcp/parley/internal/clocktest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A client of MCP over HTTP signs in when it connects, steps up when a tool
// needs more, and goes on when tokens end.
func TestMCP(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	rs.needs["greet"] = "greet"
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets.", func(_ context.Context, in struct{ Name string }) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}))
	rs.next = streamable.NewHandler(s, nil)
	signIn, b := newClient(t, login.Options{})
	d := streamable.URL(rs.url())
	d.Client = signIn.HTTPClient(nil)
	c, err := client.Connect(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if b.visits() != 1 {
		t.Errorf("%d visits, want 1", b.visits())
	}
	for range 2 {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				name := fmt.Sprintf("number %d", i)
				got, err := client.Call[string](t.Context(), c, "greet", map[string]string{"Name": name})
				if err != nil || got != "Hello, "+name+"!" {
					t.Errorf("%q %v", got, err)
				}
			})
		}
		wg.Wait()
		as.expire(false)
	}
	if b.visits() != 2 {
		t.Errorf("%d visits, want 2: one for more scopes", b.visits())
	}
	// What goes wrong on the way is found in the error of the call.
	as.expire(true)
	change(as, func() { as.denies = oauth.AccessDenied })
	_, err = client.Call[string](t.Context(), c, "greet", map[string]string{"Name": "x"})
	var denied *login.AuthorizationError
	if !errors.As(err, &denied) || denied.Code != oauth.AccessDenied {
		t.Errorf("error %v, want an AuthorizationError", err)
	}
}

// farAway is a resource and its server over TLS under a public name, and
// options with which they can be reached.
func farAway(t *testing.T, authorizationEndpoint string) (resource string, o login.Options, base *http.Client) {
	t.Helper()
	var origin string
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			reply(w, 200, map[string]any{"resource": origin + "/mcp", "authorization_servers": []string{origin}})
		case "/.well-known/oauth-authorization-server":
			reply(w, 200, map[string]any{
				"issuer": origin, "authorization_endpoint": authorizationEndpoint, "token_endpoint": origin + "/token",
				"registration_endpoint": origin + "/register", "code_challenge_methods_supported": []string{"S256"},
			})
		case "/register":
			reply(w, 201, map[string]any{"client_id": "me"})
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(far.Close)
	origin = strings.Replace(far.URL, "127.0.0.1", "example.com", 1)
	roots := x509.NewCertPool()
	roots.AddCert(far.Certificate())
	o.Fetch = oauth.NewFetcher(&oauth.FetchOptions{
		AllowHosts: []string{"example.com"}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Resolve: func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil },
	})
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, far.Listener.Addr().String())
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return origin + "/mcp", o, &http.Client{Transport: transport}
}

// Proves: C28, C29: a server elsewhere does not send the browser to this
// machine, unless that was allowed.
func TestAttackEndpointOnThisMachine(t *testing.T) {
	t.Parallel()
	resource, o, base := farAway(t, "http://127.0.0.1:1/authorize")
	c, b := newClient(t, o)
	_, _, err := get(t, c.HTTPClient(base), resource)
	var d *login.DiscoveryError
	if !errors.As(err, &d) || d.Step != login.StepServer || !strings.Contains(d.Advice, "Loopback") || b.begun != 0 {
		t.Errorf("error %v, want a DiscoveryError", err)
	}
}

// Proves: C16: an https redirect is that of a web application, and gets there
// over TLS.
func TestWebApplication(t *testing.T) {
	t.Parallel()
	resource, o, base := farAway(t, "https://example.com/authorize")
	errStop := errors.New("seen enough")
	var redirect string
	o.Authorizer = webAuthorizer(func(target string) error {
		redirect = target
		return errStop
	})
	c := login.New(&o)
	t.Cleanup(func() { _ = c.Close() })
	_, _, err := get(t, c.HTTPClient(base), resource)
	if !errors.Is(err, errStop) || !strings.Contains(redirect, "redirect_uri=https%3A%2F%2Fapp.example%2Fcb") {
		t.Errorf("error %v, sent to %s", err, redirect)
	}
}

// forgetful serves MCP with sessions as servers of rmcp do: a session that is not known is told by a bare
// 401 and words (modelcontextprotocol/rust-sdk#559).
type forgetful struct {
	t *testing.T
	sync.Mutex
	inner *streamable.Handler
}

// restart begins anew, without the sessions of before.
func (f *forgetful) restart() {
	s := server.New("hello", "1.0.0", nil)
	s.Add(server.Tool("greet", "Greets.", func(context.Context, struct{}) (string, error) { return "Hello!", nil }))
	h := streamable.NewHandler(s, nil)
	f.t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
	f.Lock()
	defer f.Unlock()
	f.inner = h
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Lock()
	inner := f.inner
	f.Unlock()
	inner.ServeHTTP(&bareRefusal{ResponseWriter: w}, r)
}

// bareRefusal turns 404 into a bare 401.
type bareRefusal struct {
	http.ResponseWriter
	refused bool
}

func (b *bareRefusal) WriteHeader(status int) {
	if b.refused = status == http.StatusNotFound; !b.refused {
		b.ResponseWriter.WriteHeader(status)
		return
	}
	h := b.Header()
	h.Set("Content-Type", "text/plain")
	h.Del("Content-Length")
	b.ResponseWriter.WriteHeader(http.StatusUnauthorized)
	_, _ = b.ResponseWriter.Write([]byte("Unauthorized: Session not found"))
}

func (b *bareRefusal) Write(p []byte) (int, error) {
	if b.refused {
		return len(p), nil
	}
	return b.ResponseWriter.Write(p)
}

func (b *bareRefusal) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// A server that was restarted, and says so by 401 and words, gets a new session, and nobody is asked to
// sign in: neither where no sign-in is needed, nor where there was one.
// Proves: Ruling 40.
func TestMCPSessionForgotten(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		f := &forgetful{t: t}
		f.restart()
		_, rs := newServers(t)
		rs.next = f
		if !guarded {
			rs.handlers["/mcp"] = func(w http.ResponseWriter, r *http.Request) {
				rs.Unlock()
				defer rs.Lock()
				f.ServeHTTP(w, r)
			}
			rs.prmPath = "none"
		}
		now := clocktest.New(time.Now())
		signIn, b := newClient(t, login.Options{Now: now.Now})
		d := streamable.URL(rs.url())
		d.Client = signIn.HTTPClient(nil)
		var clients []*client.Client // as a bridge has them
		for range 3 {
			c, err := client.Connect(t.Context(), d, &client.Options{Versions: []string{"2025-11-25"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			clients = append(clients, c)
		}
		visits := b.visits()
		for range 3 {
			for _, c := range clients {
				got, err := client.Call[string](t.Context(), c, "greet", struct{}{})
				if err != nil || got != "Hello!" {
					t.Errorf("guarded: %v: %q %v", guarded, got, err)
				}
			}
			now.Add(2 * time.Minute)
			f.restart()
		}
		if b.visits() != visits {
			t.Errorf("guarded: %v: %d visits more, want none", guarded, b.visits()-visits)
		}
	}
}

// The words of a bare 401 do not keep anybody from signing in: without a session, for one that has just begun
// since another was lost, and beside a challenge they are none.
func TestMCPSessionWords(t *testing.T) {
	t.Parallel()
	_, rs := newServers(t)
	const words = "Unauthorized: Session not found"
	challenge := ""
	rs.handlers["/mcp"] = func(w http.ResponseWriter, r *http.Request) {
		switch id := r.Header.Get("Begin"); {
		case id != "": // needs no token
			w.Header().Set("Mcp-Session-Id", id)
		case r.Header.Get("Authorization") == "":
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(words))
		}
	}
	in, begin := "Mcp-Session-Id", "Begin"
	for name, test := range map[string]struct {
		challenge string
		requests  [][]string // their headers
		want      []int      // their statuses
	}{
		"no session":       {"", [][]string{nil}, []int{200}},
		"a challenge":      {"Bearer", [][]string{{in, "a"}}, []int{200}},
		"a new session":    {"", [][]string{{begin, "a"}, {in, "a"}, {in, "a"}, {begin, "b"}, {in, "b"}}, []int{200, 401, 401, 200, 200}},
		"others of before": {"", [][]string{{in, "a"}, {begin, "c"}, {in, "b"}}, []int{401, 200, 401}},
		"then none":        {"", [][]string{{in, "a"}, nil}, []int{401, 200}},
		"with its id in":   {"", [][]string{{in, "Session"}}, []int{200}}, // the words are other ones then
	} {
		challenge = test.challenge
		c, _ := newClient(t, login.Options{})
		for i, header := range test.requests {
			status, body, err := get(t, c.HTTPClient(nil), rs.url(), header...)
			if err != nil || status != test.want[i] || status == 401 && body != words {
				t.Errorf("%s: request %d: %d %q %v, want %d", name, i, status, body, err, test.want[i])
			}
		}
	}
}
