package login_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/internal/webtest"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/login"
)

// Proves: C2, C3, C4: challenge first, then the path's place, then the root.
func TestResourceMetadataPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		prmPath  string
		resource string // "origin": the origin
		silent   bool
		want     []string // paths asked for
	}{
		{
			name: "challenge", prmPath: "/odd/place",
			want: []string{"/odd/place"},
		},
		{
			name: "path", prmPath: "/.well-known/oauth-protected-resource/mcp", silent: true,
			want: []string{"/.well-known/oauth-protected-resource/mcp"},
		},
		{
			name: "root", prmPath: "/.well-known/oauth-protected-resource", resource: "origin", silent: true,
			want: []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, rs := newServers(t)
			rs.prmPath, rs.silent = test.prmPath, test.silent
			if test.resource == "origin" {
				rs.resource = rs.URL
			}
			c, _ := newClient(t, login.Options{})
			welcome(t, c.HTTPClient(nil), rs.url())
			var got []string
			for _, r := range rs.requests {
				if r.URL.Path != "/mcp" {
					got = append(got, r.URL.Path)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves: C7, C8: the places of server metadata, in order, with OpenID
// Connect's among them.
func TestServerMetadataPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path string
		place      string // where the document is
		want       []string
	}{
		{
			"root", "", "/.well-known/openid-configuration",
			[]string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		},
		{
			"path", "/tenant1", "/tenant1/.well-known/openid-configuration",
			[]string{
				"/.well-known/oauth-authorization-server/tenant1", "/.well-known/openid-configuration/tenant1",
				"/tenant1/.well-known/openid-configuration",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			as := newAuthServer(t, test.path)
			as.places = []string{test.place}
			rs := newResource(t, as)
			c, _ := newClient(t, login.Options{})
			welcome(t, c.HTTPClient(nil), rs.url())
			_, _, _, hits := as.seen()
			var got []string
			for _, hit := range hits {
				if _, path, _ := strings.Cut(hit, " "); strings.Contains(path, "/.well-known/") {
					got = append(got, path)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

// stops is stopped for those who do not look at the error.
func stops(t *testing.T, c *login.Client, rs *resourceServer, b *browser, step login.Step) {
	t.Helper()
	_ = stopped(t, c, rs, b, step)
}

// stopped checks that a request ends in an error at a step, before the person
// and the token endpoint see anything.
func stopped(t *testing.T, c *login.Client, rs *resourceServer, b *browser, step login.Step) *login.DiscoveryError {
	t.Helper()
	_, _, err := get(t, c.HTTPClient(nil), rs.url())
	var d *login.DiscoveryError
	if !errors.As(err, &d) || d.Step != step {
		t.Fatalf("error %v, want a DiscoveryError at %s", err, step)
	}
	if b.visits() != 0 {
		t.Error("a person was sent to the browser")
	}
	for _, as := range rs.as {
		if _, tokens, _, _ := as.seen(); len(tokens) != 0 {
			t.Error("the token endpoint was asked")
		}
	}
	if d.Advice == "" {
		t.Error("no advice")
	}
	return d
}

// Proves: C5. Attack: PRM resource spoof: a document about something else is
// refused, also one in which a tenant claims its whole origin.
func TestAttackPRMResourceSpoof(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, place string
		resource    func(rs *resourceServer) string
	}{
		{"other origin", "/.well-known/oauth-protected-resource/mcp", func(*resourceServer) string { return "https://evil.example/mcp" }},
		{"other path", "/.well-known/oauth-protected-resource/mcp", func(rs *resourceServer) string { return rs.URL + "/other" }},
		{"path prefix", "/.well-known/oauth-protected-resource/mcp", func(rs *resourceServer) string { return rs.URL + "/mc" }},
		{"child", "/.well-known/oauth-protected-resource/mcp", func(rs *resourceServer) string { return rs.URL + "/mcp/deep" }},
		{"whole origin from a tenant's place", "/mcp/metadata", func(rs *resourceServer) string { return rs.URL }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rs := newResource(t, newAuthServer(t, ""))
			rs.resource, rs.prmPath = test.resource(rs), test.place
			c, b := newClient(t, login.Options{})
			stops(t, c, rs, b, login.StepMetadata)
		})
	}
}

// Attack: metadata poisoning: a challenge that points to another origin is not
// followed, unless that was allowed; the resource's own place is asked. Proves: C19.
func TestAttackMetadataPoisoning(t *testing.T) {
	t.Parallel()
	var asked int
	as, rs := newServers(t)
	evil := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		reply(w, 200, map[string]any{"resource": rs.url(), "authorization_servers": []string{as.issuer()}})
	}))
	rs.header = `Bearer resource_metadata="` + evil.URL + `/prm?secret=1"`
	rs.prmPath = "/nowhere"
	c, b := newClient(t, login.Options{})
	d := stopped(t, c, rs, b, login.StepMetadata)
	if asked != 0 {
		t.Error("the other origin was asked")
	}
	if strings.Contains(d.Error(), "secret") {
		t.Errorf("the error shows the query: %v", d)
	}
	change(rs, func() { rs.prmPath = prmPath })
	c, _ = newClient(t, login.Options{})
	welcome(t, c.HTTPClient(nil), rs.url())
	if asked != 0 {
		t.Error("the other origin was asked")
	}
	c, _ = newClient(t, login.Options{MetadataOrigins: []string{evil.URL}})
	welcome(t, c.HTTPClient(nil), rs.url())
	if asked == 0 {
		t.Error("the other origin, which was allowed, was not asked")
	}
}

// Proves: C9: a document of another issuer is not used, and the search ends.
func TestServerMetadataIssuer(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"https://honest.example", "slash"} {
		t.Run(issuer, func(t *testing.T) {
			t.Parallel()
			as := newAuthServer(t, "/tenant")
			rs := newResource(t, as)
			as.override["issuer"] = issuer
			if issuer == "slash" {
				as.override["issuer"] = as.issuer() + "/"
			}
			c, b := newClient(t, login.Options{})
			d := stopped(t, c, rs, b, login.StepServer)
			var mine *oauth.IssuerError
			if !errors.As(d, &mine) {
				t.Errorf("error %v, want an IssuerError within", d)
			}
			if issuer == "slash" != strings.Contains(d.Advice, "slash") {
				t.Errorf("advice %q", d.Advice)
			}
			_, _, registered, hits := as.seen()
			if len(registered) != 0 || len(hits) != 1 {
				t.Errorf("went on after the mismatch: %q", hits)
			}
		})
	}
}

// Proves: C11: no PKCE in the metadata, no sign-in.
func TestPKCERefused(t *testing.T) {
	t.Parallel()
	for name, methods := range map[string]any{"absent": nil, "plain": []string{"plain"}, "empty": []string{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := newAuthServer(t, "")
			as.override["code_challenge_methods_supported"] = methods
			rs := newResource(t, as)
			c, b := newClient(t, login.Options{})
			stops(t, c, rs, b, login.StepPKCE)
		})
	}
}

// Proves: C10: no metadata at all: the origin is the server, at default
// endpoints, with the version of the request on discovery; no resource.
func TestLegacy(t *testing.T) {
	t.Parallel()
	for _, metadata := range []bool{true, false} {
		rs, as := newLegacy(t)
		if !metadata {
			as.places = []string{}
			as.iss = "omit"
		}
		c, _ := newClient(t, login.Options{})
		welcome(t, c.HTTPClient(nil), rs.url(), "MCP-Protocol-Version", "an-old-one")
		authorize, tokens, registered, _ := as.seen()
		if len(registered) != 1 || len(authorize) != 1 || len(tokens) != 1 {
			t.Fatalf("%d registrations, %d authorizations, %d tokens; want 1 each", len(registered), len(authorize), len(tokens))
		}
		if authorize[0].Has("resource") || tokens[0].Has("resource") {
			t.Error("resource was sent")
		}
		if authorize[0].Get("code_challenge_method") != "S256" {
			t.Error("no PKCE")
		}
		var version bool
		for i, hit := range as.hits {
			if strings.Contains(hit, "oauth-authorization-server") {
				version = as.headers[i].Get("MCP-Protocol-Version") == "an-old-one"
			}
		}
		if !version {
			t.Error("no MCP-Protocol-Version on discovery")
		}
		// The whole origin is the resource.
		all, err := c.Status(t.Context())
		if err != nil || len(all) != 1 || all[0].Resource != rs.URL {
			t.Errorf("status %+v %v", all, err)
		}
	}
}

// A resource with another kind of authorization altogether.
func TestNoOAuth(t *testing.T) {
	t.Parallel()
	rs, as := newLegacy(t)
	as.places, as.path = []string{}, "/not/there"
	c, b := newClient(t, login.Options{})
	d := stopped(t, c, rs, b, login.StepRegister)
	if !strings.Contains(d.Advice, "Authorization header") {
		t.Errorf("advice %q", d.Advice)
	}
	c, b = newClient(t, login.Options{NoLegacy: true})
	stops(t, c, rs, b, login.StepMetadata)

	// A scheme that is none of ours is left to the caller.
	rs.header = `Basic realm="x"`
	status, body, err := get(t, c.HTTPClient(nil), rs.url())
	if status != 401 || body != "refused" || err != nil {
		t.Errorf("%d %q %v, want the 401 as it was", status, body, err)
	}
}

// A server in trouble is not taken for one without metadata: trouble must not
// choose the way.
func TestMetadataTrouble(t *testing.T) {
	t.Parallel()
	rs := newResource(t, newAuthServer(t, ""))
	rs.silent = true
	rs.handlers["/.well-known/oauth-protected-resource/mcp"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}
	c, b := newClient(t, login.Options{})
	stops(t, c, rs, b, login.StepMetadata)

	// Pages for everything, as of applications of one page, are no documents.
	rs.handlers["/.well-known/oauth-protected-resource/mcp"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>")
	}
	rs.handlers["/.well-known/oauth-protected-resource"] = func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"resource": rs.URL, "authorization_servers": []string{rs.as[0].issuer()}})
	}
	welcome(t, c.HTTPClient(nil), rs.url())
}

// Broken metadata ends the way where it breaks.
func TestServerMetadataRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]map[string]any{
		"no token endpoint":         {"token_endpoint": nil},
		"no authorization endpoint": {"authorization_endpoint": nil},
		"http endpoint":             {"authorization_endpoint": "http://as.example/authorize"},
		"script":                    {"authorization_endpoint": "javascript:alert(1)"},
		"no code":                   {"response_types_supported": []string{"token"}},
	}
	for name, override := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := newAuthServer(t, "")
			as.override = override
			c, b := newClient(t, login.Options{})
			stops(t, c, newResource(t, as), b, login.StepServer)
		})
	}
	t.Run("no metadata", func(t *testing.T) {
		t.Parallel()
		as := newAuthServer(t, "")
		as.places = []string{}
		c, b := newClient(t, login.Options{})
		stops(t, c, newResource(t, as), b, login.StepServer)
	})
	t.Run("no servers", func(t *testing.T) {
		t.Parallel()
		c, b := newClient(t, login.Options{})
		stops(t, c, newResource(t), b, login.StepMetadata)
	})
}

// Proves: C6: several servers: the client selects, and keeps them apart.
func TestChooseServer(t *testing.T) {
	t.Parallel()
	as1, as2 := newAuthServer(t, ""), newAuthServer(t, "")
	tests := []struct {
		name string
		o    login.Options
		want *authServer
	}{
		{"first", login.Options{}, as1},
		{"credentials", login.Options{Credentials: []login.Credentials{{Issuer: as2.issuer(), ClientID: "mine"}}}, as2},
		{"chosen", login.Options{ChooseServer: func(_ context.Context, issuers []string) (string, error) { return issuers[1], nil }}, as2},
	}
	for _, test := range tests {
		rs := newResource(t, as1, as2)
		c, _ := newClient(t, test.o)
		welcome(t, c.HTTPClient(nil), rs.url())
		all, err := c.Status(t.Context())
		if err != nil || len(all) != 1 || all[0].Issuer != test.want.issuer() {
			t.Errorf("%s: status %+v %v, want %s", test.name, all, err, test.want.issuer())
		}
	}
	c, _ := newClient(t, login.Options{
		ChooseServer: func(context.Context, []string) (string, error) { return "https://third.example", nil },
	})
	if _, _, err := get(t, c.HTTPClient(nil), newResource(t, as1, as2).url()); err == nil {
		t.Error("a server that the resource does not name was taken")
	}
}

// Proves: C29: a resource elsewhere leads to no address of this machine, nor of
// the network around it.
func TestAttackSSRF(t *testing.T) {
	t.Parallel()
	// A transport that answers for a public name; discovery must not be able
	// to follow to where it points.
	refuse := func(metadata string) http.RoundTripper {
		return webtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			h := http.Header{"Www-Authenticate": {`Bearer resource_metadata="` + metadata + `"`}}
			return &http.Response{StatusCode: 401, Header: h, Body: http.NoBody, Request: r}, nil
		})
	}
	for _, metadata := range []string{"http://127.0.0.1:1/prm", "https://169.254.169.254/latest"} {
		c, b := newClient(t, login.Options{})
		h := &http.Client{Transport: c.Transport(refuse(metadata))}
		_, _, err := get(t, h, "https://169.254.169.254/mcp")
		var blocked *oauth.BlockedError
		var d *login.DiscoveryError
		if !errors.As(err, &d) || strings.HasPrefix(metadata, "https") && !errors.As(err, &blocked) {
			t.Errorf("%s: %v, want it blocked", metadata, err)
		}
		if b.visits() != 0 {
			t.Error("a person was asked")
		}
	}
}

// Proves: C12, C13: the canonical resource goes into every request; scheme and
// host in upper case and a query are taken.
func TestResourceParameter(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	c, _ := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	odd := strings.Replace(rs.url(), "http://", "HTTP://", 1) + "?key=secret#part"
	welcome(t, h, odd)
	as.expire(false)
	welcome(t, h, rs.url())
	authorize, tokens, _, _ := as.seen()
	got := []string{authorize[0].Get("resource")}
	for _, form := range tokens {
		got = append(got, form.Get("grant_type"), form.Get("resource"))
	}
	want := []string{rs.url(), "authorization_code", rs.url(), "refresh_token", rs.url()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resource (-want +got):\n%s", diff)
	}
}

// Attack: custom headers and secrets of requests do not reach the
// authorization server, nor the places of metadata.
func TestAttackCustomHeadersToAS(t *testing.T) {
	t.Parallel()
	as, rs := newServers(t)
	c, _ := newClient(t, login.Options{})
	h := c.HTTPClient(nil)
	secrets := []string{"X-Api-Key", "secret-1", "Cookie", "secret=2", "Mcp-Session-Id", "secret-3", "Mcp-Name", "secret-4"}
	welcome(t, h, rs.url()+"?key=secret-5", secrets...)
	as.expire(false)
	welcome(t, h, rs.url(), secrets...)
	seen := slices.Clone(as.headers)
	for _, r := range rs.requests {
		if r.URL.Path != "/mcp" {
			seen = append(seen, r.Header)
		}
	}
	for _, header := range seen {
		for name, values := range header {
			if strings.Contains(strings.Join(values, ","), "secret") {
				t.Errorf("%s: %q was sent on", name, values)
			}
		}
	}
	authorize, tokens, _, _ := as.seen()
	for _, values := range append(slices.Clone(authorize), tokens...) {
		if strings.Contains(url.Values(values).Encode(), "secret") {
			t.Errorf("a secret went into %v", values)
		}
	}
}
