package issuer_test

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Attack: refresh replay. The use of a rotated token revokes the family, also
// when everybody comes at once: the chain that was stolen ends there.
func TestAttackRefreshReplay(t *testing.T) {
	t.Parallel()
	t.Run("later", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil, nil)
		first := d.signIn("public")
		second := d.want(refreshWith("public", first.text("refresh_token")))
		third := d.want(refreshWith("public", second.text("refresh_token")))
		for _, a := range []*answer{first, second, third} {
			if !d.active(a.text("access_token")) {
				t.Error("an access token is not active")
			}
		}
		if got := d.token(refreshWith("public", first.text("refresh_token"))).brief(); got != oauth.InvalidGrant {
			t.Errorf("the first refresh token again: %s", got)
		}
		for _, a := range []*answer{first, second, third} {
			if d.active(a.text("access_token")) {
				t.Error("an access token of the family is still active")
			}
			if got := d.token(refreshWith("public", a.text("refresh_token"))).brief(); got != oauth.InvalidGrant {
				t.Errorf("a refresh token of the family: %s", got)
			}
		}
		if d.events.count("refresh.reused", oauth.InvalidGrant) < 1 {
			t.Error("the audit log does not know")
		}
	})
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		for range 5 {
			d := newDesk(t, slowly(), nil)
			first := d.signIn("public")
			form := refreshWith("public", first.text("refresh_token"))
			good := sortAnswers(t, atOnce(func() *answer { return d.token(form) }))
			if len(good) != 1 {
				t.Fatalf("%d of %d requests got tokens, want 1", len(good), crowd)
			}
			if d.active(first.text("access_token")) || d.active(good[0].text("access_token")) {
				t.Error("an access token of the family is still active")
			}
			if got := d.token(refreshWith("public", good[0].text("refresh_token"))).brief(); got != oauth.InvalidGrant {
				t.Errorf("the successor: %s", got)
			}
		}
	})
}

// Clients of several processes that race get the same successor within the
// grace, confidential ones too; a thief who comes later still ends the family, and so
// does one who comes within the grace when the successor was used.
func TestRefreshGrace(t *testing.T) {
	t.Parallel()
	grace := func(o *issuer.Options) { o.RefreshGrace = 10 * time.Second }
	d := newDesk(t, slowly(), grace)
	first := d.signIn("public")
	form := refreshWith("public", first.text("refresh_token"))
	good := sortAnswers(t, atOnce(func() *answer { return d.token(form) }))
	if len(good) != crowd {
		t.Fatalf("%d of %d requests got tokens, want all", len(good), crowd)
	}
	for _, a := range good {
		if a.text("refresh_token") != good[0].text("refresh_token") {
			t.Fatal("two successors of one token")
		}
	}
	if got := good[0].text("refresh_token"); got == first.text("refresh_token") || len(got) < 43 {
		t.Errorf("the successor is %q", got)
	}
	// The other process of the same client has the same store, after a restart.
	d.server = d.open(grace)
	d.clock.Add(9 * time.Second)
	if got := d.want(form).text("refresh_token"); got != good[0].text("refresh_token") {
		t.Error("another process gives another successor")
	}
	if !d.active(good[1].text("access_token")) {
		t.Error("an access token is not active")
	}
	d.clock.Add(2 * time.Second)
	if got := d.token(form).brief(); got != oauth.InvalidGrant {
		t.Errorf("after the grace: %s", got)
	}
	if d.active(good[1].text("access_token")) {
		t.Error("the family outlived a reuse after the grace")
	}

	a := d.want(redeem("web", d.code("web")), basic("web", secret))
	form = refreshWith("web", a.text("refresh_token"))
	next := d.want(form, basic("web", secret)).text("refresh_token")
	if got := d.want(form, basic("web", secret)).text("refresh_token"); got != next {
		t.Error("a confidential client gets another successor within the grace")
	}
	last := d.want(refreshWith("web", next), basic("web", secret))
	if got := d.token(form, basic("web", secret)).brief(); got != oauth.InvalidGrant {
		t.Errorf("within the grace, when the successor was used: %s", got)
	}
	if d.active(last.text("access_token")) {
		t.Error("the family outlived a reuse after the use of the successor")
	}
}

// Proves: scopes only ever get narrower (RFC 6749, section 6), and a narrow
// token does not make the family narrow.
func TestRefreshScopes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	writer := func(g *issuer.Grant, _ *issuer.Code) { g.Scopes = []string{"write", "read"} }
	token := d.want(redeem("public", d.code("public", writer))).text("refresh_token")
	for _, step := range []struct{ asked, want, err string }{
		{"-", "write read", ""},
		{"read", "read", ""},
		{"read offline_access", "read", ""},
		{"admin", "", oauth.InvalidScope},
		{"read admin", "", oauth.InvalidScope},
		{"other", "", oauth.InvalidScope},
		{"write", "write", ""},
		{"-", "write read", ""},
	} {
		a := d.token(change(refreshWith("public", token), "scope", step.asked))
		if a.text("error") != step.err || a.text("scope") != step.want {
			t.Errorf("scope %q: %d %s, want %q %s", step.asked, a.Status, a.Raw, step.want, step.err)
		}
		if next := a.text("refresh_token"); next != "" {
			token = next // what failed did not rotate
		}
	}
	admin := d.signIn("public").text("refresh_token")
	if a := d.token(change(refreshWith("public", admin), "scope", "read")); a.text("scope") != "read" {
		t.Errorf("a scope that is implied: %d %s", a.Status, a.Raw)
	}
}

func TestRefreshResource(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	token := d.signIn("public").text("refresh_token")
	for _, step := range []struct{ resource, err string }{
		{"-", ""},
		{mcpServer, ""},
		{mcpServer + "/", ""},
		{otherServer, oauth.InvalidTarget},
		{"https://evil.example", oauth.InvalidTarget},
	} {
		a := d.token(change(refreshWith("public", token), "resource", step.resource))
		if a.text("error") != step.err {
			t.Errorf("resource %q: %d %s, want %s", step.resource, a.Status, a.Raw, step.err)
			continue
		}
		if step.err == "" {
			token = a.text("refresh_token")
			if got := d.claims(a.text("access_token")).Claims.Audience; len(got) != 1 || got[0] != mcpServer {
				t.Errorf("audience %q", got)
			}
		}
	}
}

// A family ends when nobody uses it, and in any case at its expiry; no access
// token lives longer.
func TestRefreshExpiry(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	d := newDesk(t, nil, nil)
	idle, used := d.signIn("public").text("refresh_token"), d.signIn("public").text("refresh_token")
	start := d.clock.Now()
	for range 3 {
		d.clock.Add(9 * day)
		used = d.want(refreshWith("public", used)).text("refresh_token")
	}
	if got := d.token(refreshWith("public", idle)).brief(); got != oauth.InvalidGrant {
		t.Errorf("a token that lay idle: %s", got)
	}
	d.clock.Add(start.Add(30*day - 3*time.Minute).Sub(d.clock.Now()))
	a := d.want(refreshWith("public", used))
	if a.Body["expires_in"] != 180.0 {
		t.Errorf("the last access token lives %v s, the family 180 s", a.Body["expires_in"])
	}
	held, err := d.store.Refresh(t.Context(), issuer.Hash(a.text("refresh_token")), d.clock.Now())
	if err != nil || !held.Expires.Equal(start.Add(30*day)) {
		t.Errorf("the last refresh token: %+v, %v", held, err)
	}
	d.clock.Add(4 * time.Minute)
	if got := d.token(refreshWith("public", a.text("refresh_token"))).brief(); got != oauth.InvalidGrant {
		t.Errorf("a token of a family that is over: %s", got)
	}
}

func TestNoRefresh(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	token := d.signIn("public").text("refresh_token")
	d.server = d.open(func(o *issuer.Options) { o.Resources[0].NoRefresh = true })
	if d.signIn("public").text("refresh_token") != "" {
		t.Error("a refresh token for a resource without")
	}
	if got := d.token(refreshWith("public", token)).brief(); got != oauth.InvalidGrant {
		t.Errorf("a refresh token of before: %s", got)
	}
	for _, token := range []string{"-", "x", "' OR 1=1 --"} {
		got := d.token(change(refreshWith("public", "x"), "refresh_token", token)).brief()
		if got != oauth.InvalidGrant && got != oauth.InvalidRequest {
			t.Errorf("refresh token %q: %s", token, got)
		}
	}
}
