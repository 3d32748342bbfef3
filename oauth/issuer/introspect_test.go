package issuer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
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

// Whoever is no client any more has no token any more, at once.
func TestTokenOfNobody(t *testing.T) {
	t.Parallel()
	d, p := newPlatform(t)
	asks := func(server *issuer.Server, token string) any {
		return send(server, "introspect", params("token", token), basic("rs", secret)).Body["active"]
	}
	without := func(id string) *issuer.Server {
		return d.open(func(o *issuer.Options) {
			o.Clients = slices.DeleteFunc(o.Clients, func(c issuer.StaticClient) bool { return c.ID == id })
		})
	}
	static := d.signIn("public").text("access_token")
	if asks(d.server, static) != true || asks(without("web"), static) != true || asks(without("public"), static) != false {
		t.Error("a client of the configuration and its tokens part")
	}
	workload := d.want(p.grant(nil)).text("access_token")
	if asks(d.server, workload) != true || asks(without("web"), workload) != false { // d.open trusts no platform
		t.Error("a platform and the tokens of its workloads part")
	}
	dynamic := &issuer.Client{
		ID: "dynamic", Dynamic: true, Digest: "d", Created: d.clock.Now(), Expires: d.clock.Now().Add(time.Hour),
		Metadata: oauth.ClientMetadata{TokenEndpointAuthMethod: oauth.AuthNone},
	}
	if _, err := d.store.AddClient(t.Context(), dynamic, 0); err != nil {
		t.Fatal(err)
	}
	token := d.signIn("dynamic").text("access_token")
	if !d.active(token) {
		t.Error("a token of a dynamic client is not active")
	}
	if err := d.store.RemoveClient(t.Context(), "dynamic", d.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if d.active(token) {
		t.Error("a token of a client that was removed is active")
	}
}

// What the configuration takes away is not in what resource servers are told of a token: a scope, or
// the resource of a client.
func TestTokenOfWhatIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	wide := d.want(redeem("public", d.code("public", func(g *issuer.Grant, _ *issuer.Code) { g.Scopes = []string{"read", "write"} })))
	told := func(change func(*issuer.Options)) *answer {
		return send(d.open(change), "introspect", params("token", wide.text("access_token")), basic("rs", secret))
	}
	if a := told(nil); a.text("scope") != "read write" {
		t.Errorf("as it was: %s", a.Raw)
	}
	if a := told(func(o *issuer.Options) { o.Resources[0].Scopes = o.Resources[0].Scopes[:1] }); a.Body["active"] != true || a.text("scope") != "read" {
		t.Errorf("without the scope write: %s", a.Raw)
	}
	if a := told(func(o *issuer.Options) { o.Clients[0].Scopes = []string{"write"} }); a.text("scope") != "write" {
		t.Errorf("for a client that may write alone: %s", a.Raw)
	}
	if a := told(func(o *issuer.Options) { o.Clients[0].Resources = []string{otherServer} }); a.Body["active"] != false {
		t.Errorf("for a client that may not have the resource: %s", a.Raw)
	}
}
