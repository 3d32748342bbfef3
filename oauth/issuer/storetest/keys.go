package storetest

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// addKeys stores keys, whose IDs are those of their slots; those of "secret" are secrets. Each signs
// for an hour and verifies for another.
func addKeys(t *testing.T, s issuer.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		k := key(id, id, start)
		if id == "secret" {
			k.Algorithm = issuer.SecretAlgorithm
		}
		_, err := s.AddKey(t.Context(), k, start)
		succeed(t, "AddKey", err)
	}
}

// stored is the key with an ID, or nil.
func stored(t *testing.T, s issuer.Store, id string, now time.Time) *issuer.Key {
	t.Helper()
	keys, err := s.Keys(t.Context(), now)
	succeed(t, "Keys", err)
	for _, k := range keys {
		if k.ID == id {
			return k
		}
	}
	return nil
}

func testRetireKey(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	addKeys(t, s, "a", "b", "secret")
	_, err := s.RetireKey(ctx, "none", start, start)
	fail(t, "RetireKey of none", err, issuer.ErrNotFound)
	_, err = s.RetireKey(ctx, "secret", start, start)
	fail(t, "RetireKey of a secret", err, issuer.ErrNotFound)
	_, err = s.RetireKey(ctx, "a", at(3*time.Hour), at(2*time.Hour))
	fail(t, "RetireKey of one that has expired", err, issuer.ErrNotFound)

	want := key("a", "a", start)
	for _, step := range []struct {
		what      string
		from, now time.Duration
		retires   time.Duration
		state     issuer.KeyState
	}{
		{"later than it would have", 90 * time.Minute, 0, time.Hour, issuer.KeyActive},
		{"planned", 30 * time.Minute, 0, 30 * time.Minute, issuer.KeyActive},
		{"planned again, later", 40 * time.Minute, time.Minute, 30 * time.Minute, issuer.KeyActive},
		{"planned again, earlier", 20 * time.Minute, time.Minute, 20 * time.Minute, issuer.KeyActive},
		{"at once", 10 * time.Minute, 10 * time.Minute, 10 * time.Minute, issuer.KeyRetired},
		{"again", 15 * time.Minute, 15 * time.Minute, 10 * time.Minute, issuer.KeyRetired},
		{"planned, of one that is retired", 20 * time.Minute, 16 * time.Minute, 10 * time.Minute, issuer.KeyRetired},
	} {
		got, err := s.RetireKey(ctx, "a", at(step.from), at(step.now))
		succeed(t, "RetireKey "+step.what, err)
		want.Retires, want.Expires, want.State = at(step.retires), at(step.retires+time.Hour), step.state
		equal(t, "RetireKey "+step.what, got, want)
		equal(t, "the key after it: "+step.what, stored(t, s, "a", at(step.now)), want)
	}
	equal(t, "another key", stored(t, s, "b", start), key("b", "b", start))
	got, err := s.AddKey(ctx, key("c", "a", start), at(time.Hour))
	succeed(t, "AddKey to the slot of one that is retired", err)
	equal(t, "the key in the slot", got.ID, "a")
}

func testRevokeKey(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	addKeys(t, s, "a", "b", "secret")
	_, err := s.RevokeKey(ctx, "none", start)
	fail(t, "RevokeKey of none", err, issuer.ErrNotFound)
	_, err = s.RevokeKey(ctx, "secret", start)
	fail(t, "RevokeKey of a secret", err, issuer.ErrNotFound)
	if stored(t, s, "secret", start) == nil {
		t.Fatal("a secret is gone although no key was revoked")
	}

	want := key("a", "a", start)
	want.State, want.Private, want.Retires = issuer.KeyRevoked, nil, at(time.Minute)
	bare := func(k *issuer.Key) *issuer.Key {
		if k != nil && len(k.Private) == 0 {
			k.Private = nil
		}
		return k
	}
	for _, err := range race(func(int) error {
		_, err := s.RevokeKey(ctx, "a", at(time.Minute))
		return err
	}) {
		succeed(t, "RevokeKey, many at once", err)
	}
	equal(t, "the key", bare(stored(t, s, "a", at(time.Minute))), want)
	equal(t, "another key", stored(t, s, "b", at(time.Minute)), key("b", "b", start))
	if stored(t, s, "secret", at(time.Minute)) != nil {
		t.Error("a secret stays although a key was revoked")
	}

	addKeys(t, s, "secret")
	got, err := s.RevokeKey(ctx, "a", at(2*time.Minute))
	succeed(t, "RevokeKey again", err)
	equal(t, "RevokeKey again", bare(got), want)
	if stored(t, s, "secret", at(2*time.Minute)) == nil {
		t.Error("a new secret is gone although nothing was revoked")
	}
	got, err = s.RetireKey(ctx, "a", at(2*time.Minute), at(2*time.Minute))
	fail(t, "RetireKey of one that was revoked", err, issuer.ErrRevoked)
	equal(t, "RetireKey of one that was revoked", bare(got), want)
	got, err = s.AddKey(ctx, key("c", "a", start), at(time.Hour))
	succeed(t, "AddKey to the slot of one that was revoked", err)
	equal(t, "the key in the slot", bare(got), want)

	_, err = s.RetireKey(ctx, "b", at(time.Minute), at(time.Minute))
	succeed(t, "RetireKey", err)
	got, err = s.RevokeKey(ctx, "b", at(3*time.Minute))
	succeed(t, "RevokeKey of one that is retired", err)
	equal(t, "its time", got.Retires, at(time.Minute))
	equal(t, "its state", got.State, issuer.KeyRevoked)
}
