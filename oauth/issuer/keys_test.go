package issuer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/internal/wire"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// published are the ids of the keys that a server publishes.
func published(t *testing.T, server http.Handler) []string {
	t.Helper()
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, deskIssuer+"/jwks", nil))
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "public, max-age=300" {
		t.Fatalf("keys: %d, Cache-Control %q", w.Code, w.Header().Get("Cache-Control"))
	}
	var set struct {
		Keys []map[string]wire.RawValue `json:"keys"`
	}
	if err := wire.Decode(w.Body.Bytes(), &set); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, key := range set.Keys {
		for _, private := range []string{"d", "p", "q", "k"} {
			if key[private] != nil {
				t.Fatalf("a private key is published")
			}
		}
		ids = append(ids, string(key["kid"]))
	}
	return ids
}

// signedBy is the id of the key that signs now.
func (d *desk) signedBy() string {
	d.t.Helper()
	a := d.want(params("grant_type", "client_credentials", "resource", mcpServer), basic("basic", secret))
	return `"` + d.claims(a.text("access_token")).KeyID + `"`
}

// A swapped store is another one from one moment to the next.
type swappedStore struct{ issuer.Store }

// What happens to the keys in the store, by another process, holds here within a minute, also in a
// server that nobody runs; a new key is known at once.
func TestUnplannedKeyChange(t *testing.T) {
	t.Parallel()
	store := &swappedStore{issuer.NewMemory()}
	d := newDesk(t, store, nil)
	old := d.signedBy()
	twin := &desk{t: t, store: issuer.NewMemory(), clock: d.clock, events: d.events, signer: d.signer}
	twin.server = twin.open(nil)
	fresh := twin.signIn("public").text("access_token")
	d.clock.Add(time.Second)
	store.Store = twin.store
	if !d.active(fresh) {
		t.Error("a token of a key that another process has just made is not active")
	}
	store.Store = issuer.NewMemory()
	d.clock.Add(time.Minute)
	if got := d.signedBy(); got == old || got == twin.signedBy() {
		t.Error("a key that is gone from the store still signs")
	}
	if d.active(fresh) {
		t.Error("a token of a key that is gone is active")
	}
}

// A key is published before it signs, longer than anybody caches the set, and
// after it signed last, longer than its tokens live. Two processes always
// agree.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	hourly := func(o *issuer.Options) { o.KeyLifetime = 4 * time.Hour }
	d := newDesk(t, nil, hourly)
	twin := &desk{t: t, store: d.store, clock: d.clock, events: d.events, signer: d.signer}
	twin.server = twin.open(hourly)

	since := map[string]time.Time{} // first published
	last := map[string]time.Time{}  // last signed
	signers := map[string]bool{}
	for range 24 * 12 { // a day, in steps of 5 minutes
		d.clock.Add(5 * time.Minute)
		now := d.clock.Now()
		for _, id := range published(t, d.server) {
			if since[id].IsZero() {
				since[id] = now
			}
		}
		id := d.signedBy()
		if other := twin.signedBy(); other != id {
			t.Fatalf("at %v two processes sign with %s and %s", now, id, other)
		}
		if len(signers) > 0 && !signers[id] && now.Sub(since[id]) < 10*time.Minute {
			t.Errorf("key %s signs %v after it was published", id, now.Sub(since[id]))
		}
		signers[id], last[id] = true, now
		for id, signed := range last {
			if now.Sub(signed) <= 10*time.Minute && !slices.Contains(published(t, twin.server), id) {
				t.Errorf("key %s is gone %v after it signed", id, now.Sub(signed))
			}
		}
	}
	if len(signers) < 6 || len(signers) > 7 {
		t.Errorf("%d keys signed in a day", len(signers))
	}
	if got := published(t, d.server); len(got) > 3 {
		t.Errorf("%d keys are published", len(got))
	}
}

func TestSigningAlgorithm(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	old := d.signIn("public").text("access_token")
	for _, algorithm := range []string{"EdDSA", "RS256", "ES256"} {
		d.server = d.open(func(o *issuer.Options) { o.SigningAlgorithm = algorithm })
		token := d.claims(d.signIn("public").text("access_token"))
		if token.Algorithm != algorithm {
			t.Errorf("a token is signed with %s, want %s", token.Algorithm, algorithm)
		}
		if !d.active(old) {
			t.Errorf("a token of before is not active under %s", algorithm)
		}
	}
	if got := len(published(t, d.server)); got != 3 {
		t.Errorf("%d keys are published, want one for each algorithm", got)
	}
}

// However many processes start at once on a fresh store, there is one key.
func TestKeyRace(t *testing.T) {
	t.Parallel()
	d := newDesk(t, slowly(), nil)
	servers := make([]*issuer.Server, 16)
	for i := range servers {
		servers[i] = d.open(nil)
	}
	ids := make([][]string, len(servers))
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() { ids[i] = published(t, server) })
	}
	wg.Wait()
	for _, got := range ids {
		if len(got) != 1 || got[0] != ids[0][0] {
			t.Fatalf("keys %q and %q", ids[0], got)
		}
	}
}

// A token of a process whose key another one has not seen yet is good there.
func TestKeyOfAnotherProcess(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	published(t, d.server)
	twin := &desk{t: t, store: d.store, clock: d.clock, events: d.events, signer: d.signer}
	twin.server = twin.open(func(o *issuer.Options) { o.SigningAlgorithm = "EdDSA" })
	d.clock.Add(10 * time.Second)
	if !d.active(twin.signIn("public").text("access_token")) {
		t.Error("the token is not active")
	}
}

// What is wrong with the store is no fault of the client, and it says nothing.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil, nil)
	code := d.code("public")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failing := &broken{Store: d.store}
	d.store = failing
	d.server = d.open(nil)
	a := d.token(redeem("public", code), func(r *http.Request) { *r = *r.WithContext(ended) })
	if a.Status != http.StatusInternalServerError || a.text("error") != "server_error" || a.text("error_description") != "try again later" {
		t.Errorf("answer %d %s", a.Status, a.Raw)
	}
	for _, endpoint := range []string{"introspect", "revoke"} {
		if a := send(d.server, endpoint, params("token", "x"), basic("rs", secret)); a.Status != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", endpoint, a.Status, a.Raw)
		}
	}
}

// broken is a store that has lost its keys and refresh tokens.
type broken struct{ issuer.Store }

func (b *broken) Keys(context.Context, time.Time) ([]*issuer.Key, error) {
	return nil, errLost
}

func (b *broken) Refresh(context.Context, string, time.Time) (*issuer.Refresh, error) {
	return nil, errLost
}

var errLost = &lostError{}

type lostError struct{}

func (*lostError) Error() string { return "connection to db-7.internal lost" }
