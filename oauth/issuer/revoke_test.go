package issuer_test

import (
	"net/http"
	"testing"

	"github.com/parley-mcp/parley/oauth"
)

// Proves: RFC 7009: only one's own tokens, and one answer for all.
func TestRevoke(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	a, b := d.signIn("public"), d.signIn("public")
	revoke := func(want int, pairs ...string) {
		t.Helper()
		if got := send(d.server, "revoke", params(pairs...)); got.Status != want {
			t.Errorf("revoke: %d %s, want %d", got.Status, got.Raw, want)
		}
	}
	revoke(http.StatusOK, "client_id", "thief", "token", a.text("access_token"))
	revoke(http.StatusOK, "client_id", "thief", "token", a.text("refresh_token"))
	revoke(http.StatusOK, "client_id", "public", "token", "unknown")
	revoke(http.StatusBadRequest, "client_id", "public")
	revoke(http.StatusUnauthorized, "token", a.text("access_token"))
	revoke(http.StatusUnauthorized, "client_id", "web", "token", a.text("access_token"))
	revoke(http.StatusUnauthorized, "client_id", "web", "client_secret", "x", "token", a.text("access_token"))
	if !d.active(a.text("access_token")) {
		t.Fatal("others revoked the token")
	}
	revoke(http.StatusOK, "client_id", "public", "token", a.text("access_token"), "token_type_hint", "refresh_token")
	if d.active(a.text("access_token")) {
		t.Error("the access token is active after it was revoked")
	}
	a = d.want(refreshWith("public", a.text("refresh_token")))
	if !d.active(a.text("access_token")) {
		t.Error("a revoked access token took its family along")
	}
	revoke(http.StatusOK, "client_id", "public", "token", a.text("refresh_token"), "token_type_hint", "nonsense")
	if d.active(a.text("access_token")) || d.token(refreshWith("public", a.text("refresh_token"))).brief() != oauth.InvalidGrant {
		t.Error("the family outlived its refresh token")
	}
	if !d.active(b.text("access_token")) {
		t.Error("another family is gone too")
	}
	if d.events.count("grant.revoked", "ok") != 1 {
		t.Error("the audit log does not know")
	}
}
