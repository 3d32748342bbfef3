package issuer_test

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

func TestResourcesAreChecked(t *testing.T) {
	t.Parallel()
	for name, resources := range map[string][]issuer.Resource{
		"no URL":                  {{URI: "mcp"}},
		"fragment":                {{URI: mcpServer + "#x"}},
		"twice":                   {{URI: mcpServer}, {URI: "HTTPS://mcp.example/mcp"}},
		"a scope that is none":    {{URI: mcpServer, Scopes: []issuer.Scope{{Name: "a b"}}}},
		"an empty scope":          {{URI: mcpServer, Scopes: []issuer.Scope{{}}}},
		"a scope twice":           {{URI: mcpServer, Scopes: []issuer.Scope{{Name: "a"}, {Name: "a"}}}},
		"offline_access":          {{URI: mcpServer, Scopes: []issuer.Scope{{Name: "offline_access"}}}},
		"an unknown default":      {{URI: mcpServer, Default: []string{"a"}}},
		"an unknown implication":  {{URI: mcpServer, Scopes: []issuer.Scope{{Name: "a", Implies: []string{"b"}}}}},
		"exchange for a stranger": {{URI: mcpServer, ExchangeTo: []string{otherServer}}},
	} {
		if _, err := issuer.New(deskIssuer, issuer.NewMemory(), formLogin{}, &issuer.Options{Resources: resources}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Clients of the configuration are bound to resources and scopes, and a
// resource may have lifetimes of its own.
func TestGrantableScopes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, func(o *issuer.Options) {
		o.Resources[0].AccessLifetime = time.Minute
		o.Resources[0].Default = []string{"read", "write"}
		o.Resources[0].Scopes[1].Implies = []string{"read"}
	})
	form := params("grant_type", oauth.GrantClientCredentials)
	for _, tt := range []struct{ client, resource, asked, want, err string }{
		{"narrow", "-", "-", "read write", ""},
		{"narrow", mcpServer, "write", "write", ""},
		{"narrow", mcpServer, "read read", "read", ""},
		{"narrow", mcpServer, "admin", "", oauth.InvalidScope},
		{"narrow", otherServer, "-", "", oauth.InvalidTarget},
		{"basic", "-", "-", "", oauth.InvalidTarget},
		{"basic", mcpServer, "admin", "admin", ""},
		{"basic", otherServer, "-", "other", ""},
		{"basic", otherServer, "read", "", oauth.InvalidScope},
	} {
		a := d.token(change(form, "resource", tt.resource, "scope", tt.asked), basic(tt.client, secret))
		if a.text("error") != tt.err || a.text("scope") != tt.want {
			t.Errorf("%s %s %q: %d %s, want %q %s", tt.client, tt.resource, tt.asked, a.Status, a.Raw, tt.want, tt.err)
		}
		if want := map[bool]float64{true: 60, false: 600}[tt.resource != otherServer]; tt.err == "" && a.Body["expires_in"] != want {
			t.Errorf("%s lives %v s, want %v s", tt.resource, a.Body["expires_in"], want)
		}
	}
}

// A token that ends within the second still says so: without expires_in
// clients would take it for one that lasts.
func TestExpiresInIsNeverAbsent(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, func(o *issuer.Options) { o.AccessLifetime = time.Second })
	d.clock.Add(900 * time.Millisecond)
	a := d.want(params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer), basic("basic", secret))
	if a.Body["expires_in"] != 1.0 {
		t.Errorf("expires_in is %v", a.Body["expires_in"])
	}
}

// A client of the configuration that comes with a person and says nothing else
// may renew its tokens.
func TestStaticClientsMayRefresh(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	for client, want := range map[string]bool{"usual": true, "code only": false} {
		if got := d.signIn(client).text("refresh_token") != ""; got != want {
			t.Errorf("%s gets a refresh token: %v, want %v", client, got, want)
		}
	}
}

// A client that acts for itself is its own subject, under the name that the
// configuration gives it.
func TestOwnSubject(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	form := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer)
	for want, a := range map[string]*answer{
		"basic": d.want(form, basic("basic", secret)),
		"robot": d.want(change(form, "client_id", "post", "client_secret", secret)),
	} {
		if got := d.claims(a.text("access_token")).Claims.Subject; got != want {
			t.Errorf("subject is %q, want %q", got, want)
		}
		if a.text("refresh_token") != "" {
			t.Error("it came with a refresh token")
		}
	}
}
