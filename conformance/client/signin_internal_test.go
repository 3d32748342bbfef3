package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/guard"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/login"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/transport/streamable"
)

// A site is a resource and its authorization server.
type site struct {
	url    string
	issued atomic.Int32 // tokens
}

// newSite starts a site whose authorization server knows a client with these
// metadata and a secret, or lets clients register if there is none.
func newSite(t *testing.T, known *oauth.ClientMetadata) *site {
	t.Helper()
	far, as := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil)
	s := &site{url: "http://" + far.Listener.Addr().String() + "/mcp"}
	o := &issuer.Options{
		Resources: []issuer.Resource{{URI: s.url}},
		Documents: issuer.DocumentPolicy{Off: true},
		Audit: func(_ context.Context, e issuer.Event) {
			if e.Name == "token.issued" {
				s.issued.Add(1)
			}
		},
	}
	if known == nil {
		o.Registration.On = true
	} else {
		o.Clients = []issuer.StaticClient{{ID: "known", Secret: strings.Repeat("secret", 6), Metadata: *known}}
	}
	id := "http://" + as.Listener.Addr().String()
	authorization, err := issuer.New(id, issuer.NewMemory(), issuer.AutoApprove("ada"), o)
	if err != nil {
		t.Fatal(err)
	}
	as.Config.Handler = authorization
	as.Start()
	t.Cleanup(as.Close)

	fetch := oauth.NewFetcher(nil).Loopback()
	t.Cleanup(fetch.Close)
	g, err := guard.New(s.url, guard.JWT(id, &guard.JWTOptions{Fetch: fetch}), nil)
	if err != nil {
		t.Fatal(err)
	}
	resource := server.New("site", "1.0.0", nil)
	resource.Add(server.Tool("test-tool", "Tests.", func(context.Context, mcp.None) (string, error) { return "test", nil }))
	far.Config.Handler = g.Handler(streamable.NewHandler(resource, nil))
	far.Start()
	t.Cleanup(far.Close)
	return s
}

// tell sets what the suite would tell.
func tell(t *testing.T, told map[string]string) {
	t.Helper()
	text, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MCP_CONFORMANCE_CONTEXT", string(text))
}

// Proves: C3. A client without anything signs in as the server tells it to,
// in front of a real authorization server and guard.
func TestSignIn(t *testing.T) {
	s := newSite(t, nil)
	if err := signIns["auth/metadata-default"].run(t.Context(), s.url); err != nil {
		t.Error(err)
	}
	if n := s.issued.Load(); n != 1 {
		t.Errorf("%d tokens were issued, want 1", n)
	}
}

func TestSignInWithCredentials(t *testing.T) {
	for name, grants := range map[string][]string{
		"auth/pre-registration":         {oauth.GrantAuthorizationCode},
		"auth/client-credentials-basic": {oauth.GrantClientCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, &oauth.ClientMetadata{RedirectURIs: []string{redirectURI}, GrantTypes: grants})
			tell(t, map[string]string{"client_id": "known", "client_secret": strings.Repeat("secret", 6)})
			if err := signIns[name].run(t.Context(), s.url); err != nil {
				t.Error(err)
			}
			tell(t, map[string]string{"client_id": "known", "client_secret": "guessed"})
			if err := signIns[name].run(t.Context(), s.url); err == nil {
				t.Error("a wrong secret was enough")
			}
		})
	}
}

// A scenario that must end with an error passes with that error alone.
func TestRefused(t *testing.T) {
	s := newSite(t, nil)
	for name, scenario := range signIns {
		if scenario.refused == nil {
			continue
		}
		if err := scenario.run(t.Context(), s.url); err == nil || err.Error() != "nothing was refused" {
			t.Errorf("%s: a sign-in that works gives %v", name, err)
		}
		if err := scenario.run(t.Context(), "http://127.0.0.1:1/mcp"); err == nil || !strings.Contains(err.Error(), "another error") {
			t.Errorf("%s: a server that is not there gives %v", name, err)
		}
	}
	foreign := &login.AuthorizationError{Reason: "iss is that of another server"}
	for name, test := range map[string]struct {
		is   func(error) bool
		err  error
		want bool
	}{
		"another server's response": {isForeignResponse, foreign, true},
		"a person who says no":      {isForeignResponse, &login.AuthorizationError{Code: oauth.AccessDenied}, false},
		"another issuer":            {isForeignServer, &login.DiscoveryError{Step: login.StepServer, Err: &oauth.IssuerError{}}, true},
		"no metadata of a server":   {isForeignServer, &login.DiscoveryError{Step: login.StepServer, Err: errors.New("404")}, false},
		"another resource":          {isForeignResource, &login.DiscoveryError{Step: login.StepMetadata, Rule: "RFC 9728"}, true},
		"no metadata":               {isForeignResource, &login.DiscoveryError{Step: login.StepMetadata}, false},
		"nothing":                   {isForeignResponse, nil, false},
	} {
		if got := test.is(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// A failed sign-in is not tried again as an older revision would: a person
// would be asked twice.
func TestAskedOnce(t *testing.T) {
	var requests, visits atomic.Int32
	site := httptest.NewUnstartedServer(nil)
	url := "http://" + site.Listener.Addr().String()
	site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mcp":
			requests.Add(1)
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
		case "/.well-known/oauth-protected-resource/mcp":
			answer(t, w, map[string]any{"resource": url + "/mcp", "authorization_servers": []string{url}})
		case "/.well-known/oauth-authorization-server":
			answer(t, w, map[string]any{
				"issuer": url, "authorization_endpoint": url + "/authorize", "token_endpoint": url + "/token",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
				"client_id_metadata_document_supported": true,
			})
		case "/authorize":
			visits.Add(1)
			http.Redirect(w, r, redirectURI+"?code=c&iss=https://evil.example&state="+r.URL.Query().Get("state"), http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	site.Start()
	defer site.Close()
	if err := signIns["auth/iss-wrong-issuer"].run(t.Context(), url+"/mcp"); err != nil {
		t.Error(err)
	}
	if requests.Load() != 1 || visits.Load() != 1 {
		t.Errorf("%d requests, %d visits, want one of each", requests.Load(), visits.Load())
	}
}

func answer(t *testing.T, w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}

// No scenario is in both tables, and each can be found.
func TestFind(t *testing.T) {
	for name := range signIns {
		if _, twice := scenarios[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		if _, ok := find(name); !ok {
			t.Errorf("%s is not found", name)
		}
	}
	if _, ok := find("tools_call"); !ok {
		t.Error("tools_call is not found")
	}
	if _, ok := find("auth/none"); ok {
		t.Error("auth/none is found")
	}
}
