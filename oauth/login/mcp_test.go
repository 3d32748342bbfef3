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

	"github.com/parley-mcp/parley/client"
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
