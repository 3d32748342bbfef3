package issuer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Proves: RFC 8693 in its narrow profile, and R5: a resource server gets a
// token of its own for the next one.
func TestExchange(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	d.clock.Add(-time.Minute)
	user := d.signIn("public").text("access_token")
	d.clock.Add(time.Minute)
	form := params("grant_type", oauth.GrantTokenExchange, "subject_token", user,
		"subject_token_type", oauth.TokenTypeAccessToken, "resource", otherServer)
	a := d.want(form, basic("rs", secret))
	if a.text("issued_token_type") != oauth.TokenTypeAccessToken || a.text("refresh_token") != "" || a.Body["expires_in"] != 540.0 {
		t.Errorf("answer %s", a.Raw)
	}
	token := d.claims(a.text("access_token"))
	c := token.Claims
	if c.Subject != "ada" || c.ClientID != "rs" || c.Scope != "other" || !slices.Equal(c.Audience, []string{otherServer}) ||
		c.Grant != d.claims(user).Claims.Grant || !strings.Contains(string(token.Raw), `"act":{"sub":"rs"}`) {
		t.Errorf("claims %s", token.Raw)
	}
	for name, tt := range map[string]struct {
		pairs  []string
		extras []extra
		want   string
	}{
		"audience instead":            {[]string{"resource", "-", "audience", otherServer}, []extra{basic("rs", secret)}, "ok"},
		"audience too":                {[]string{"audience", otherServer}, []extra{basic("rs", secret)}, oauth.InvalidTarget},
		"no target":                   {[]string{"resource", "-"}, []extra{basic("rs", secret)}, oauth.InvalidTarget},
		"the same resource":           {[]string{"resource", mcpServer}, []extra{basic("rs", secret)}, oauth.InvalidTarget},
		"an unknown target":           {[]string{"resource", "https://evil.example"}, []extra{basic("rs", secret)}, oauth.InvalidTarget},
		"another resource's server":   {nil, []extra{basic("rs2", secret)}, oauth.InvalidGrant},
		"back, though not permitted":  {[]string{"subject_token", a.text("access_token"), "resource", mcpServer}, []extra{basic("rs2", secret)}, oauth.InvalidTarget},
		"a client without this grant": {nil, []extra{basic("web", secret)}, oauth.UnauthorizedClient},
		"a public client":             {[]string{"client_id", "public"}, nil, oauth.UnauthorizedClient},
		"a scope of the first":        {[]string{"scope", "admin"}, []extra{basic("rs", secret)}, oauth.InvalidScope},
		"garbage":                     {[]string{"subject_token", "x"}, []extra{basic("rs", secret)}, oauth.InvalidGrant},
		"no token":                    {[]string{"subject_token", "-"}, []extra{basic("rs", secret)}, oauth.InvalidRequest},
		"another type":                {[]string{"subject_token_type", oauth.TokenTypeIDToken}, []extra{basic("rs", secret)}, oauth.InvalidRequest},
		"another result":              {[]string{"requested_token_type", oauth.TokenTypeIDToken}, []extra{basic("rs", secret)}, oauth.InvalidRequest},
		"an actor":                    {[]string{"actor_token", "x"}, []extra{basic("rs", secret)}, oauth.InvalidRequest},
	} {
		if got := d.token(change(form, tt.pairs...), tt.extras...).brief(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	// Attack: a token that permits little at one resource becomes one that
	// permits all at another.
	widen := func(scopes ...string) func(o *issuer.Options) {
		return func(o *issuer.Options) {
			o.Resources[1].Scopes = append(o.Resources[1].Scopes, issuer.Scope{Name: "wipe"}, issuer.Scope{Name: "admin", Implies: []string{"list"}}, issuer.Scope{Name: "list"})
			for i := range o.Clients {
				if o.Clients[i].ID == "rs" {
					o.Clients[i].Scopes = scopes
				}
			}
		}
	}
	for _, tt := range []struct {
		listed []string
		asked  string
		want   string
	}{
		{nil, "wipe", oauth.InvalidScope},
		{nil, "other wipe", oauth.InvalidScope},
		{nil, "other", "ok"},
		{nil, "admin list", "ok"}, // the person granted admin
		{[]string{"wipe"}, "wipe", "ok"},
		{[]string{"wipe"}, "other", oauth.InvalidScope},
	} {
		if got := send(d.open(widen(tt.listed...)), "token", change(form, "scope", tt.asked), basic("rs", secret)).brief(); got != tt.want {
			t.Errorf("scope %q with %q listed: %s, want %s", tt.asked, tt.listed, got, tt.want)
		}
	}
	// A chain of exchanges names everybody who acts.
	d.server = d.open(func(o *issuer.Options) { o.Resources[1].ExchangeTo = []string{mcpServer} })
	back := d.want(change(form, "subject_token", a.text("access_token"), "resource", mcpServer), basic("rs2", secret))
	if raw := string(d.claims(back.text("access_token")).Raw); !strings.Contains(raw, `"act":{"sub":"rs2","act":{"sub":"rs"}}`) {
		t.Errorf("claims %s", raw)
	}
	// What hangs on the grant falls with it.
	if err := d.store.RevokeGrant(t.Context(), c.Grant, d.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if got := d.token(form, basic("rs", secret)).brief(); got != oauth.InvalidGrant {
		t.Errorf("a revoked token: %s", got)
	}
	got := send(d.server, "introspect", params("token", a.text("access_token")), basic("rs2", secret))
	if got.Body["active"] != false {
		t.Errorf("the exchanged token of a revoked grant: %s", got.Raw)
	}
}
