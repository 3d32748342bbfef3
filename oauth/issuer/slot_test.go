package issuer_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// twins are two servers on one store.
func twins(t *testing.T, change func(*issuer.Options)) (first, second *desk) {
	t.Helper()
	first = newDesk(t, nil, change)
	second = &desk{t: t, store: first.store, clock: first.clock, events: first.events, signer: first.signer}
	second.server = second.open(change)
	return first, second
}

// signerNow is the one key of a store that signs now.
func (d *desk) signerNow() *issuer.Key {
	d.t.Helper()
	keys, err := d.store.Keys(d.t.Context(), d.clock.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	signers := issuer.Signers(keys, d.clock.Now())
	if len(signers) != 1 {
		d.t.Fatalf("%d keys sign now, want one", len(signers))
	}
	return signers[0]
}

func quoted(id string) string { return `"` + id + `"` }

// machineToken is an access token of a client that acts for itself.
func (d *desk) machineToken() string {
	d.t.Helper()
	return d.want(params("grant_type", "client_credentials", "resource", mcpServer), basic("basic", secret)).text("access_token")
}

// A key that is replaced as planned signs on while its successor is published; what it signed
// is good until its end. A clock that steps back an hour brings it not back.
func TestPlannedRotation(t *testing.T) {
	t.Parallel()
	first, second := twins(t, nil)
	old := first.signedBy()
	planned := first.clock.Now().Add(issuer.KeyOverlap)
	if _, err := first.store.RetireKey(t.Context(), first.signerNow().ID, planned, first.clock.Now()); err != nil {
		t.Fatal(err)
	}
	first.clock.Add(2 * time.Second)
	ids := published(t, first.server)
	if len(ids) != 2 || !slices.Contains(ids, old) || !slices.Equal(ids, published(t, second.server)) {
		t.Fatalf("published: %q and %q, want %s and one more", ids, published(t, second.server), old)
	}
	next := ids[0]
	if next == old {
		next = ids[1]
	}
	first.clock.Add(issuer.KeyOverlap - 3*time.Second)
	if a, b := first.signedBy(), second.signedBy(); a != old || b != old {
		t.Errorf("before its time %s and %s sign, want %s", a, b, old)
	}
	last := first.machineToken()
	first.clock.Add(time.Second)
	if a, b := first.signedBy(), second.signedBy(); a != next || b != next {
		t.Errorf("after its time %s and %s sign, want %s", a, b, next)
	}
	first.clock.Add(10*time.Minute - 2*time.Second)
	if !first.active(last) || !second.active(last) {
		t.Error("the last token of the old key is not active")
	}
	first.clock.Add(-time.Hour)
	if a, b := first.signedBy(), second.signedBy(); a != next || b != next {
		t.Errorf("after the clock stepped back %s and %s sign, want %s", a, b, next)
	}
	first.clock.Add(2 * time.Hour)
	if _, err := first.store.Sweep(t.Context(), first.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if ids := published(t, first.server); !slices.Equal(ids, []string{next}) || second.signedBy() != next {
		t.Errorf("once the old key is swept %q are published and %s signs, want %s", ids, second.signedBy(), next)
	}
}

// Servers whose tokens end later than those of before make a key that is published for as long, and
// until it signs their tokens end as early as the old one: none is refused before its end.
func TestLongerTokens(t *testing.T) {
	t.Parallel()
	first, second := twins(t, nil)
	old := first.signedBy()
	first.server = first.open(func(o *issuer.Options) { o.AccessLifetime = 3 * time.Hour })
	tokens := map[string]time.Time{}
	rotated := false
	for range 60 {
		token := first.machineToken()
		id := quoted(first.claims(token).KeyID)
		expires := first.claims(token).Claims.Expiry
		tokens[token] = expires
		if rotated = rotated || id != old; rotated != (id != old) || second.signedBy() != id {
			t.Fatalf("%s and %s sign; of before is %s", id, second.signedBy(), old)
		}
		if long := expires.Sub(first.clock.Now()) > 2*time.Hour; long != rotated {
			t.Errorf("a token of %s ends in %v", id, expires.Sub(first.clock.Now()))
		}
		first.clock.Add(5 * time.Minute)
		for token, expires := range tokens {
			if good := first.clock.Now().Before(expires); first.active(token) != good || second.active(token) != good {
				t.Errorf("a token of %s that is good until %v: active is %v", first.claims(token).KeyID, expires, !good)
			}
		}
	}
	if !rotated || len(published(t, first.server)) != 1 {
		t.Errorf("the new key signs: %v; published: %q", rotated, published(t, first.server))
	}
}

// A key that is retired at once signs nothing more, and what it signed is good.
func TestRetireSigner(t *testing.T) {
	t.Parallel()
	first, second := twins(t, nil)
	old, token := first.signedBy(), first.machineToken()
	if _, err := first.store.RetireKey(t.Context(), first.signerNow().ID, first.clock.Now(), first.clock.Now()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []time.Duration{2 * time.Second, -time.Hour, 2 * time.Hour} {
		first.clock.Add(step)
		next := first.signedBy()
		if next == old || second.signedBy() != next {
			t.Errorf("after %v %s and %s sign; %s is retired", step, next, second.signedBy(), old)
		}
		if step < time.Hour && (!first.active(token) || !second.active(token)) {
			t.Errorf("after %v a token of the key is not active", step)
		}
	}
}

// A key that is revoked is gone in both servers two seconds later, with all that it signed, whatever
// the clock says then; and so is a successor that was not yet signing.
func TestRevokeKey(t *testing.T) {
	t.Parallel()
	for what, signs := range map[string]bool{"signer": true, "successor": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			first, second := twins(t, nil)
			signer, token := first.signedBy(), first.machineToken()
			revoked := signer
			if !signs {
				if _, err := first.store.RetireKey(t.Context(), first.signerNow().ID, first.clock.Now().Add(time.Hour), first.clock.Now()); err != nil {
					t.Fatal(err)
				}
				first.clock.Add(2 * time.Second)
				revoked = published(t, first.server)[0]
			}
			if _, err := first.store.RevokeKey(t.Context(), strings.Trim(revoked, `"`), first.clock.Now()); err != nil {
				t.Fatal(err)
			}
			for _, step := range []time.Duration{2 * time.Second, -time.Hour} {
				first.clock.Add(step)
				for _, d := range []*desk{first, second} {
					if d.active(token) == signs {
						t.Errorf("after %v a token of the signer is active: %v", step, !signs)
					}
					if got := d.signedBy(); (got == signer) == signs {
						t.Errorf("after %v %s signs", step, got)
					}
					if ids := published(t, d.server); slices.Contains(ids, revoked) {
						t.Errorf("after %v the key is published", step)
					}
				}
				if first.signedBy() != second.signedBy() {
					t.Error("two servers sign with two keys")
				}
			}
		})
	}
}

// However often keys are retired and revoked, there is one that signs, the same in both servers.
func TestKeysEndAgain(t *testing.T) {
	t.Parallel()
	first, second := twins(t, nil)
	seen := map[string]bool{}
	for i := range 30 {
		id := first.signedBy()
		if seen[id] || second.signedBy() != id {
			t.Fatalf("round %d: %s and %s sign", i, id, second.signedBy())
		}
		seen[id] = true
		var err error
		if now, key := first.clock.Now(), first.signerNow(); i%2 == 0 {
			_, err = first.store.RevokeKey(t.Context(), key.ID, now)
		} else {
			_, err = first.store.RetireKey(t.Context(), key.ID, now, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		first.clock.Add(20 * time.Minute)
		if _, err := first.store.Sweep(t.Context(), first.clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if got := published(t, second.server); len(got) != 1 {
		t.Errorf("%d keys are published in the end, want one", len(got))
	}
}

// A revocation takes the secrets away: nonces and successors of refresh tokens that can be computed
// from the old ones count no more, and clients go on with others.
func TestRevocationChangesSecrets(t *testing.T) {
	t.Parallel()
	first, second := twins(t, func(o *issuer.Options) { o.DPoPNonce, o.RefreshGrace = true, time.Minute })
	key := newKey(t)
	code := first.code("public")
	nonce := first.token(redeem("public", code), first.proof(key, "")).Header.Get("DPoP-Nonce")
	idle, busy := second.signIn("public"), first.signIn("public")
	next := first.want(refreshWith("public", busy.text("refresh_token")))
	if _, err := first.store.RevokeKey(t.Context(), first.signerNow().ID, first.clock.Now()); err != nil {
		t.Fatal(err)
	}
	first.clock.Add(2 * time.Second)
	a := second.token(redeem("public", code), first.proof(key, nonce))
	if a.brief() != oauth.UseDPoPNonce || a.Header.Get("DPoP-Nonce") == nonce {
		t.Errorf("the nonce of before: %d %s", a.Status, a.Raw)
	}
	if got := first.token(redeem("public", code), first.proof(key, a.Header.Get("DPoP-Nonce"))).brief(); got != "ok" {
		t.Errorf("the nonce of another server: %s", got)
	}
	for _, token := range []string{idle.text("refresh_token"), next.text("refresh_token")} {
		form := refreshWith("public", token)
		once := first.want(form).text("refresh_token")
		if again := second.want(form).text("refresh_token"); again != once {
			t.Error("two servers give two successors")
		}
	}
	// What the guide says that ends: a retry whose answer was lost before the revocation.
	lost := second.signIn("public")
	first.want(refreshWith("public", lost.text("refresh_token")))
	if _, err := first.store.RevokeKey(t.Context(), first.signerNow().ID, first.clock.Now()); err != nil {
		t.Fatal(err)
	}
	first.clock.Add(2 * time.Second)
	if got := first.token(refreshWith("public", lost.text("refresh_token"))).brief(); got != oauth.InvalidGrant {
		t.Errorf("a retry across the revocation: %s", got)
	}
}

// Signers knows keys by their slots, and nothing else signs.
func TestSigners(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000_000, 0)
	period := strconv.FormatInt(now.Unix()/3600, 10)
	key := func(slot string, change func(*issuer.Key)) *issuer.Key {
		k := &issuer.Key{ID: slot, Slot: slot, Algorithm: "ES256", Retires: now.Add(time.Hour), Expires: now.Add(2 * time.Hour)}
		if change != nil {
			change(k)
		}
		return k
	}
	state := func(s issuer.KeyState) func(*issuer.Key) { return func(k *issuer.Key) { k.State = s } }
	good := "ES256/3600/" + period
	for _, tt := range []struct {
		what string
		keys []*issuer.Key
		want []string
	}{
		{"none", nil, []string{}},
		{"the lowest, as numbers", []*issuer.Key{key(good+"/10", nil), key(good+"/9", nil)}, []string{good + "/9"}},
		{"active ones", []*issuer.Key{
			key(good, state(issuer.KeyRevoked)), key(good+"/1", state(issuer.KeyRetired)),
			key(good+"/2", func(k *issuer.Key) { k.Retires = now }), key(good+"/3", nil),
		}, []string{good + "/3"}},
		{"one of each algorithm and length", []*issuer.Key{
			key("RS256/3600/"+period, nil), key(good, nil), key("ES256/1000000000/1", nil),
		}, []string{"ES256/1000000000/1", good, "RS256/3600/" + period}},
		{"other periods", []*issuer.Key{key("ES256/3600/1", nil), key("ES256/3600/277778", nil)}, []string{}},
		{"no slots", []*issuer.Key{
			key("", nil), key("ES256", nil), key("ES256/0/0", nil), key("ES256/-1/-1000000000", nil), key(good+"/0", nil),
			key(good+"/-1", nil), key(good+"/1/2", nil), key(good+"/x", nil), key("ES256/3600/0"+period, nil),
			key(good+"/99999999999999999999", nil),
		}, []string{}},
		{"secrets", []*issuer.Key{key("secret/3600/"+period, func(k *issuer.Key) { k.Algorithm = issuer.SecretAlgorithm })}, []string{}},
	} {
		got := []string{}
		for _, k := range issuer.Signers(tt.keys, now) {
			got = append(got, k.ID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q sign, want %q", tt.what, got, tt.want)
		}
	}
}

// Proves: RFC 9110 section 13.1.2: who has the published keys is told so, until they change.
func TestKeysNotModified(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	get := func(method string, tags ...string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, deskIssuer+"/jwks", nil)
		r.Header["If-None-Match"] = tags
		d.server.ServeHTTP(w, r)
		return w
	}
	tag := get(http.MethodGet).Header().Get("ETag")
	if len(tag) < 10 {
		t.Fatalf("the entity tag is %q", tag)
	}
	for _, tt := range []struct {
		tags []string
		want int
	}{
		{[]string{tag}, http.StatusNotModified},
		{[]string{"W/" + tag}, http.StatusNotModified},
		{[]string{`"other", ` + tag}, http.StatusNotModified},
		{[]string{`"other"`, tag}, http.StatusNotModified},
		{[]string{"*"}, http.StatusNotModified},
		{[]string{`"other"`}, http.StatusOK},
		{[]string{strings.Trim(tag, `"`)}, http.StatusOK},
		{[]string{""}, http.StatusOK},
		{nil, http.StatusOK},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := get(method, tt.tags...)
			if w.Code != tt.want || w.Header().Get("ETag") != tag || w.Header().Get("Cache-Control") != "public, max-age=300" {
				t.Errorf("%s with %q: %d, want %d; %v", method, tt.tags, w.Code, tt.want, w.Header())
			}
			if tt.want == http.StatusNotModified && w.Body.Len() > 0 {
				t.Errorf("%s with %q: a body of %d bytes", method, tt.tags, w.Body.Len())
			}
		}
	}
	if _, err := d.store.RevokeKey(t.Context(), d.signerNow().ID, d.clock.Now()); err != nil {
		t.Fatal(err)
	}
	d.clock.Add(2 * time.Second)
	if w := get(http.MethodGet, tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("after the key was revoked: %d, tag %s", w.Code, w.Header().Get("ETag"))
	}
}
