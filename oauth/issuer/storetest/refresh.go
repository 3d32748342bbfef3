package storetest

import (
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// successor is what replaces refresh(grant) at this time.
func successor(grant string, now time.Time) *issuer.Refresh {
	r := refresh(grant)
	r.Created, r.Expires = now, now.Add(time.Hour)
	return r
}

func rotate(t *testing.T, s issuer.Store, old, hash string, grace time.Duration, now time.Time) error {
	t.Helper()
	return s.RotateRefresh(t.Context(), old, hash, successor("g", now), grace, now)
}

func testRefresh(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.Refresh(ctx, "none", start)
	fail(t, "a refresh token that is not there", err, issuer.ErrNotFound)
	fail(t, "RotateRefresh of none", rotate(t, s, "none", "x", 0, start), issuer.ErrNotFound)

	add(t, s, "g", "1")
	got, err := s.Refresh(ctx, "1", at(time.Minute))
	succeed(t, "Refresh", err)
	equal(t, "Refresh", got, refresh("g"))

	now := at(10 * time.Minute)
	succeed(t, "RotateRefresh", rotate(t, s, "1", "2", 0, now))
	got, err = s.Refresh(ctx, "2", now)
	succeed(t, "Refresh", err)
	equal(t, "the successor", got, successor("g", now))
	got, err = s.Refresh(ctx, "1", now)
	succeed(t, "Refresh of a rotated token", err)
	want := refresh("g")
	want.Rotated = now
	equal(t, "a rotated token", got, want)
	succeed(t, "RotateRefresh of the successor", rotate(t, s, "2", "3", 0, at(time.Hour)))

	succeed(t, "RevokeGrant", s.RevokeGrant(ctx, "g", at(time.Hour)))
	fail(t, "RotateRefresh of a revoked family", rotate(t, s, "3", "4", 0, at(time.Hour)), issuer.ErrRevoked)
	_, err = s.Refresh(ctx, "4", at(time.Hour))
	fail(t, "the successor that was refused", err, issuer.ErrNotFound)
}

func testReuse(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	add(t, s, "g", "1")
	add(t, s, "other", "other")
	succeed(t, "RotateRefresh", rotate(t, s, "1", "2", 0, start))
	succeed(t, "RotateRefresh", rotate(t, s, "2", "3", 0, start))
	fail(t, "reuse", rotate(t, s, "1", "4", 0, start), issuer.ErrReused)
	_, err := s.Grant(ctx, "g", start)
	fail(t, "the grant after reuse", err, issuer.ErrRevoked)
	fail(t, "the current token after reuse", rotate(t, s, "3", "5", 0, start), issuer.ErrRevoked)
	fail(t, "reuse once more", rotate(t, s, "1", "6", 0, start), issuer.ErrReused)
	_, err = s.Grant(ctx, "other", start)
	succeed(t, "another family", err)

	// A token may be stored just after its family was revoked: it is worth nothing.
	succeed(t, "AddRefresh to a revoked family", s.AddRefresh(ctx, "late", refresh("g")))
	fail(t, "RotateRefresh of that", rotate(t, s, "late", "later", 0, start), issuer.ErrRevoked)
}

func testRefreshExpiry(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	add(t, s, "g", "1")
	_, err := s.Refresh(ctx, "1", at(time.Hour+time.Second))
	fail(t, "an expired token", err, issuer.ErrNotFound)
	fail(t, "RotateRefresh of an expired token", rotate(t, s, "1", "2", 0, at(time.Hour+time.Second)), issuer.ErrNotFound)

	// A rotated token outlives its own expiry, so that reuse is seen.
	succeed(t, "RotateRefresh", rotate(t, s, "1", "2", 0, at(30*time.Minute)))
	_, err = s.Sweep(ctx, at(80*time.Minute))
	succeed(t, "Sweep", err)
	got, err := s.Refresh(ctx, "1", at(80*time.Minute))
	succeed(t, "Refresh of a token that was rotated", err)
	equal(t, "when it was rotated", got.Rotated, at(30*time.Minute))
	fail(t, "late reuse", rotate(t, s, "1", "3", 0, at(80*time.Minute)), issuer.ErrReused)
	_, err = s.Refresh(ctx, "1", at(25*time.Hour))
	fail(t, "a rotated token of an expired family", err, issuer.ErrNotFound)
	fail(t, "RotateRefresh in an expired family", rotate(t, s, "1", "4", 0, at(25*time.Hour)), issuer.ErrNotFound)
}

func testRefreshRace(t *testing.T, s issuer.Store) {
	add(t, s, "g", "1")
	errs := race(func(i int) error { return rotate(t, s, "1", name("next", i), 0, start) })
	equal(t, "callers that rotated", count(errs, nil), 1)
	equal(t, "callers that came too late", count(errs, issuer.ErrReused), racers-1)
	_, err := s.Grant(t.Context(), "g", start)
	fail(t, "the grant", err, issuer.ErrRevoked)
	for i, err := range errs {
		_, found := s.Refresh(t.Context(), name("next", i), start)
		if err != nil {
			fail(t, "a successor that was refused", found, issuer.ErrNotFound)
		} else {
			succeed(t, "the successor", found)
		}
	}
}

func testGrace(t *testing.T, s issuer.Store) {
	const grace = 10 * time.Second
	ctx := t.Context()
	add(t, s, "g", "1")
	succeed(t, "RotateRefresh", rotate(t, s, "1", "2", grace, start))
	succeed(t, "once more within the grace", rotate(t, s, "1", "2", grace, at(5*time.Second)))
	got, err := s.Refresh(ctx, "2", at(5*time.Second))
	succeed(t, "Refresh", err)
	equal(t, "the successor is as it was", got, successor("g", start))
	old, err := s.Refresh(ctx, "1", at(5*time.Second))
	succeed(t, "Refresh", err)
	equal(t, "when it was rotated", old.Rotated, start)
	succeed(t, "RotateRefresh of the successor", rotate(t, s, "2", "3", grace, at(6*time.Second)))
	fail(t, "after the grace", rotate(t, s, "1", "2", grace, at(11*time.Second)), issuer.ErrReused)
	fail(t, "the current token", rotate(t, s, "3", "4", grace, at(11*time.Second)), issuer.ErrRevoked)
	fail(t, "within the grace of a revoked family", rotate(t, s, "2", "3", grace, at(12*time.Second)), issuer.ErrRevoked)

	succeed(t, "AddGrant", s.AddGrant(ctx, grant("h", "p", "c")))
	succeed(t, "AddRefresh", s.AddRefresh(ctx, "h1", refresh("h")))
	again := func(hash string, grace time.Duration) error {
		return s.RotateRefresh(ctx, "h1", hash, successor("h", start), grace, start)
	}
	succeed(t, "RotateRefresh", again("h2", grace))
	fail(t, "within the grace to another successor", again("h3", grace), issuer.ErrReused)
	_, err = s.Grant(ctx, "h", start)
	fail(t, "the grant", err, issuer.ErrRevoked)

	// A client that has used the successor has had the answer: the token comes from another one.
	succeed(t, "AddGrant", s.AddGrant(ctx, grant("j", "p", "c")))
	succeed(t, "AddRefresh", s.AddRefresh(ctx, "j1", refresh("j")))
	next := func(old, hash string) error {
		return s.RotateRefresh(ctx, old, hash, successor("j", start), grace, start)
	}
	succeed(t, "RotateRefresh", next("j1", "j2"))
	succeed(t, "RotateRefresh of the successor", next("j2", "j3"))
	fail(t, "within the grace, after the use of the successor", next("j1", "j2"), issuer.ErrReused)
	fail(t, "the current token", next("j3", "j4"), issuer.ErrRevoked)

	add(t, s, "i", "i1")
	succeed(t, "RotateRefresh", s.RotateRefresh(ctx, "i1", "i2", successor("i", start), 0, start))
	fail(t, "no grace", s.RotateRefresh(ctx, "i1", "i2", successor("i", start), 0, start), issuer.ErrReused)
}

func testGraceRace(t *testing.T, s issuer.Store) {
	add(t, s, "g", "1")
	errs := race(func(int) error { return rotate(t, s, "1", "2", time.Minute, start) })
	equal(t, "callers that got the one successor", count(errs, nil), racers)
	_, err := s.Grant(t.Context(), "g", start)
	succeed(t, "the grant", err)
	_, err = s.Refresh(t.Context(), "2", start)
	succeed(t, "the successor", err)
}
