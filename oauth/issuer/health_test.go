package issuer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// SigningKey is the key that signs tokens now, and says when there is none.
func TestSigningKey(t *testing.T) {
	t.Parallel()
	store := &swappedStore{issuer.NewMemory()}
	d := newDesk(t, store, nil)
	now := d.clock.Now()
	first, err := d.server.SigningKey(t.Context())
	if err != nil || first.Algorithm != "ES256" || !first.Created.Equal(now) {
		t.Fatal(first, err)
	}
	if signed := d.signedBy(); signed != `"`+first.ID+`"` {
		t.Errorf("%s signs, not %q", signed, first.ID)
	}
	d.clock.Add(31 * 24 * time.Hour)
	next, err := d.server.SigningKey(t.Context())
	if err != nil || next.ID == first.ID || !next.Created.After(now) {
		t.Errorf("a month later: %+v, %v", next, err)
	}
	store.Store = &broken{store.Store}
	d.clock.Add(31 * 24 * time.Hour)
	if key, err := d.server.SigningKey(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("without a store: %+v, %v", key, err)
	}
}
