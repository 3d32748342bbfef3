package issuer_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/issuer/storetest"
)

// crowd is how many requests come at once.
const crowd = 64

// slowly makes a memory store that lets everybody else run before and after
// each operation, several times: a store far away, without a clock.
func slowly() issuer.Store {
	return storetest.Slow(issuer.NewMemory(), func() {
		for range 20 {
			runtime.Gosched()
		}
	})
}

// atOnce sends the same request many times and returns the answers.
func atOnce(request func() *answer) []*answer {
	answers := make([]*answer, crowd)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-gate
			answers[i] = request()
		})
	}
	close(gate)
	wg.Wait()
	return answers
}

// sort splits answers into the good ones and the others, which must all be
// invalid_grant.
func sortAnswers(t *testing.T, answers []*answer) (good []*answer) {
	t.Helper()
	for _, a := range answers {
		switch a.brief() {
		case "ok":
			good = append(good, a)
		case oauth.InvalidGrant:
		default:
			t.Errorf("answer %d %s", a.Status, a.Raw)
		}
	}
	return good
}

// Attack: code replay, one after the other and all at once. One request gets
// tokens, and once the second came these are worth nothing (RFC 6749, section
// 4.1.2).
func TestAttackCodeReplay(t *testing.T) {
	t.Parallel()
	t.Run("later", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil, nil)
		code := d.code("public")
		first := d.want(redeem("public", code))
		if !d.active(first.text("access_token")) {
			t.Fatal("the token is not active")
		}
		if got := d.token(redeem("public", code)).brief(); got != oauth.InvalidGrant {
			t.Errorf("the code again: %s", got)
		}
		if d.active(first.text("access_token")) {
			t.Error("the token is still active")
		}
		if got := d.token(refreshWith("public", first.text("refresh_token"))).brief(); got != oauth.InvalidGrant {
			t.Errorf("the refresh token: %s", got)
		}
		if d.events.count("code.reused", oauth.InvalidGrant) != 1 {
			t.Error("the audit log does not know")
		}
	})
	for _, client := range []string{"public", "poster"} {
		t.Run("at once, "+client, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				d := newDesk(t, slowly(), nil)
				form := redeem(client, d.code(client))
				if client == "poster" {
					form = change(form, "client_secret", secret)
				}
				good := sortAnswers(t, atOnce(func() *answer { return d.token(form) }))
				if len(good) != 1 {
					t.Fatalf("%d of %d requests got tokens, want 1", len(good), crowd)
				}
				if d.active(good[0].text("access_token")) {
					t.Error("the access token is active though the code was replayed")
				}
				again := change(form, "grant_type", oauth.GrantRefreshToken, "refresh_token", good[0].text("refresh_token"))
				if got := d.token(again).brief(); got != oauth.InvalidGrant {
					t.Errorf("the refresh token though the code was replayed: %s", got)
				}
			}
		})
	}
}

// Attack: client id not checked at redeem. What belongs to one client is
// nothing to another, nor to another key.
func TestAttackClientIDNotCheckedAtRedeem(t *testing.T) {
	t.Parallel()
	mine, theirs := newKey(t), newKey(t)
	t.Run("code", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil, nil)
		code := d.code("public")
		if got := d.token(redeem("thief", code)).brief(); got != oauth.InvalidGrant {
			t.Errorf("a code of another client: %s", got)
		}
		code = d.code("web")
		if got := d.token(redeem("web", code)).brief(); got != oauth.InvalidClient {
			t.Errorf("a code of a confidential client, without its secret: %s", got)
		}
		if got := d.token(redeem("web", code), basic("web", secret)).brief(); got != "ok" {
			t.Errorf("the client itself: %s", got)
		}
		code = d.code("public", func(g *issuer.Grant, _ *issuer.Code) { g.ClientID = "thief" })
		if got := d.token(redeem("public", code)).brief(); got != oauth.InvalidGrant {
			t.Errorf("a code whose grant is of another client: %s", got)
		}
		code = d.code("public", func(g *issuer.Grant, _ *issuer.Code) { g.ClientID = "thief" })
		if got := d.token(redeem("thief", code)).brief(); got != oauth.InvalidGrant {
			t.Errorf("a code of another client than its grant: %s", got)
		}
	})
	t.Run("refresh", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil, nil)
		token := d.signIn("public").text("refresh_token")
		if got := d.token(refreshWith("thief", token)).brief(); got != oauth.InvalidGrant {
			t.Errorf("a refresh token of another client: %s", got)
		}
		a := d.want(refreshWith("public", token))
		if got := d.token(refreshWith("thief", token)).brief(); got != oauth.InvalidGrant {
			t.Errorf("a rotated refresh token of another client: %s", got)
		}
		if got := d.token(refreshWith("public", a.text("refresh_token"))).brief(); got != "ok" {
			t.Errorf("the family after somebody else tried: %s", got)
		}
		web := d.want(redeem("web", d.code("web")), basic("web", secret)).text("refresh_token")
		if got := d.token(refreshWith("web", web)).brief(); got != oauth.InvalidClient {
			t.Errorf("a refresh token of a confidential client, without its secret: %s", got)
		}
	})
	t.Run("key of a code", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil, nil)
		for name, proof := range map[string][]extra{"another key": {d.proof(theirs, "")}, "no key": nil} {
			if got := d.token(redeem("public", d.code("public", bound(mine))), proof...).brief(); got != oauth.InvalidDPoPProof {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := d.token(redeem("public", d.code("public", bound(mine))), d.proof(mine, "")).brief(); got != "ok" {
			t.Errorf("the key itself: %s", got)
		}
	})
	t.Run("key of a refresh token", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil, nil)
		a := d.want(redeem("public", d.code("public")), d.proof(mine, ""))
		form := refreshWith("public", a.text("refresh_token"))
		for name, proof := range map[string][]extra{"another key": {d.proof(theirs, "")}, "no key": nil} {
			if got := d.token(form, proof...).brief(); got != oauth.InvalidDPoPProof {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := d.token(form, d.proof(mine, "")).brief(); got != "ok" {
			t.Errorf("the key itself: %s", got)
		}
	})
	t.Run("assertion", func(t *testing.T) {
		t.Parallel()
		d, idp := newEnterprise(t)
		form := idp.grant(func(c *jwt.Claims) { c.ClientID = "web" })
		if got := d.token(form, basic("agent", secret)).brief(); got != oauth.InvalidGrant {
			t.Errorf("an assertion for another client: %s", got)
		}
	})
}

// A scope that is no longer configured when the code comes is not issued.
func TestCodeOfRemovedScope(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	wide := func(g *issuer.Grant, _ *issuer.Code) { g.Scopes = []string{"read", "write"} }
	some, none := d.code("public", wide), d.code("public")
	d.server = d.open(func(o *issuer.Options) { o.Resources[0].Scopes = o.Resources[0].Scopes[:1] })
	if got := d.want(redeem("public", some)).text("scope"); got != "read" {
		t.Errorf("scopes %q, want read alone", got)
	}
	if got := d.token(redeem("public", none)).brief(); got != oauth.InvalidScope {
		t.Errorf("a code for nothing that is left: %s", got)
	}
}
