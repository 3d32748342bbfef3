package issuer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
)

// Proves: RFC 7662: only the token's own resource server sees into it.
func TestIntrospect(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	key := newKey(t)
	a := d.want(redeem("public", d.code("public")), d.proof(key, ""))
	token := a.text("access_token")
	claims := d.claims(token).Claims
	got := send(d.server, "introspect", params("token", token, "token_type_hint", "access_token"), basic("rs", secret))
	want := map[string]any{
		"active": true, "iss": deskIssuer, "sub": "ada", "aud": mcpServer, "client_id": "public", "scope": "admin",
		"token_type": "DPoP", "jti": claims.ID, "iat": float64(claims.IssuedAt.Unix()), "exp": float64(claims.Expiry.Unix()),
		"cnf": map[string]any{"jkt": key.Thumbprint()},
	}
	if diff := cmp.Diff(want, got.Body); diff != "" {
		t.Errorf("introspection (-want +got):\n%s", diff)
	}
	if got.Header.Get("Cache-Control") != "no-store" {
		t.Error("the answer may be cached")
	}

	forged := func(typ string, key *jwt.Key) string {
		raw, err := key.Sign(typ, &claims)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, tt := range map[string]struct {
		client, token string
	}{
		"another resource's server": {"rs2", token},
		"a client that is none":     {"web", token},
		"a refresh token":           {"rs", a.text("refresh_token")},
		"garbage":                   {"rs", "x.y.z"},
		"another signature":         {"rs", forged(jwt.TypeAccessToken, key)},
	} {
		got := send(d.server, "introspect", params("token", tt.token), basic(tt.client, secret))
		if diff := cmp.Diff(map[string]any{"active": false}, got.Body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, a := range map[string]*answer{
		"nobody":          send(d.server, "introspect", params("token", token)),
		"a public client": send(d.server, "introspect", params("token", token, "client_id", "public")),
		"a wrong secret":  send(d.server, "introspect", params("token", token), basic("rs", "x")),
	} {
		if a.brief() != oauth.InvalidClient {
			t.Errorf("%s: %d %s", name, a.Status, a.Raw)
		}
	}
	if a := send(d.server, "introspect", params(), basic("rs", secret)); a.brief() != oauth.InvalidRequest {
		t.Errorf("no token: %d %s", a.Status, a.Raw)
	}
	d.clock.Add(10*time.Minute + time.Second)
	if d.active(token) {
		t.Error("an expired token is active")
	}
}
