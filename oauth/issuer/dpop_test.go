package issuer_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/internal/jwt"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// proof adds a good DPoP proof.
func (d *desk) proof(key *jwt.Key, nonce string) extra {
	d.t.Helper()
	return d.proofOf(key, http.MethodPost, deskIssuer+"/token", nonce, d.clock.Now())
}

func (d *desk) proofOf(key *jwt.Key, method, url, nonce string, now time.Time) extra {
	d.t.Helper()
	proof, err := key.NewProof(method, url, nonce, "", now)
	if err != nil {
		d.t.Fatal(err)
	}
	return header("DPoP", proof)
}

// Proves: RFC 9449 sections 5 and 6: bound tokens, each proof once.
func TestDPoP(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	key := newKey(t)
	proof := d.proof(key, "")
	a := d.want(redeem("public", d.code("public")), proof)
	if a.text("token_type") != "DPoP" {
		t.Errorf("answer %s", a.Raw)
	}
	if got := d.claims(a.text("access_token")).Claims.JKT; got != key.Thumbprint() {
		t.Errorf("cnf.jkt is %q", got)
	}
	now := d.clock.Now()
	for name, tt := range map[string]struct {
		extras []extra
		want   string
	}{
		"replayed":         {[]extra{proof}, oauth.InvalidDPoPProof},
		"two":              {[]extra{d.proof(key, ""), d.proof(key, "")}, oauth.InvalidDPoPProof},
		"no proof at all":  {[]extra{header("DPoP", "x")}, oauth.InvalidDPoPProof},
		"another method":   {[]extra{d.proofOf(key, http.MethodGet, deskIssuer+"/token", "", now)}, oauth.InvalidDPoPProof},
		"another endpoint": {[]extra{d.proofOf(key, http.MethodPost, mcpServer, "", now)}, oauth.InvalidDPoPProof},
		"old":              {[]extra{d.proofOf(key, http.MethodPost, deskIssuer+"/token", "", now.Add(-6*time.Minute))}, oauth.InvalidDPoPProof},
		"good":             {[]extra{d.proof(key, "")}, "ok"},
	} {
		if got := d.token(redeem("public", d.code("public")), tt.extras...).brief(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	// Confidential clients prove who they are, and may change their key.
	a = d.want(redeem("web", d.code("web")), basic("web", secret), d.proof(key, ""))
	a = d.want(refreshWith("web", a.text("refresh_token")), basic("web", secret), d.proof(newKey(t), ""))
	if a.text("token_type") != "DPoP" {
		t.Errorf("answer %s", a.Raw)
	}
}

func TestDPoPIsRequired(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, func(o *issuer.Options) { o.Resources[0].DPoP = true })
	machine := params("grant_type", oauth.GrantClientCredentials, "resource", mcpServer)
	for name, form := range map[string]func() *answer{
		"code":        func() *answer { return d.token(redeem("public", d.code("public"))) },
		"credentials": func() *answer { return d.token(machine, basic("basic", secret)) },
	} {
		if got := form().brief(); got != oauth.InvalidDPoPProof {
			t.Errorf("%s without proof: %s", name, got)
		}
	}
	if got := d.token(machine, basic("basic", secret), d.proof(newKey(t), "")).brief(); got != "ok" {
		t.Errorf("with a proof: %s", got)
	}
	d = newDesk(t, nil, func(o *issuer.Options) { o.Clients[0].Metadata.DPoPBoundAccessTokens = true })
	if got := d.token(redeem("public", d.code("public"))).brief(); got != oauth.InvalidDPoPProof {
		t.Errorf("a client that wants bound tokens alone: %s", got)
	}
}

// Proves: RFC 9449 section 8: nonces that every process knows, for a while.
func TestDPoPNonce(t *testing.T) {
	t.Parallel()
	nonces := func(o *issuer.Options) { o.DPoPNonce = true }
	d := newDesk(t, nil, nonces)
	key := newKey(t)
	code := d.code("public")
	a := d.token(redeem("public", code), d.proof(key, ""))
	nonce := a.Header.Get("DPoP-Nonce")
	if a.brief() != oauth.UseDPoPNonce || a.Status != http.StatusBadRequest || nonce == "" {
		t.Fatalf("answer %d %s, nonce %q", a.Status, a.Raw, nonce)
	}
	if got := d.token(redeem("public", code), d.proof(key, nonce+"x")).brief(); got != oauth.UseDPoPNonce {
		t.Errorf("another nonce: %s", got)
	}
	d.server = d.open(nonces)
	if a = d.token(redeem("public", code), d.proof(key, nonce)); a.brief() != "ok" {
		t.Fatalf("the nonce, and the code that was not touched: %d %s", a.Status, a.Raw)
	}
	if a.Header.Get("DPoP-Nonce") == "" {
		t.Error("no nonce for the next proof")
	}
	d.clock.Add(2 * time.Minute)
	if got := d.token(redeem("public", d.code("public")), d.proof(key, nonce)).brief(); got != "ok" {
		t.Errorf("the nonce of before: %s", got)
	}
	d.clock.Add(2 * time.Minute)
	if got := d.token(redeem("public", d.code("public")), d.proof(key, nonce)).brief(); got != oauth.UseDPoPNonce {
		t.Errorf("an old nonce: %s", got)
	}
	if got := d.token(redeem("public", d.code("public"))).brief(); got != "ok" {
		t.Errorf("no proof at all: %s", got)
	}
}
