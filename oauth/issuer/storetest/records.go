package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

func consent(subject, client, resource string) *issuer.Consent {
	return &issuer.Consent{
		Subject: subject, ClientID: client, Resource: resource, Scopes: []string{"b", "a"},
		Redirect: "https://client.example/cb", Created: start, Expires: at(time.Hour),
	}
}

func testConsents(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.Consent(ctx, "p", "c", "r", start)
	fail(t, "a consent that is not there", err, issuer.ErrNotFound)
	for _, who := range []string{"pcr", "pcs", "pdr", "qcr"} {
		succeed(t, "SetConsent", s.SetConsent(ctx, consent(who[:1], who[1:2], who[2:])))
	}
	got, err := s.Consent(ctx, "p", "c", "r", start)
	succeed(t, "Consent", err)
	equal(t, "Consent", got, consent("p", "c", "r"))
	_, err = s.Consent(ctx, "p", "c", "r", at(time.Hour+time.Second))
	fail(t, "an expired consent", err, issuer.ErrNotFound)

	wider := consent("p", "c", "r")
	wider.Scopes, wider.Expires = []string{"a", "b", "c"}, at(2*time.Hour)
	succeed(t, "SetConsent in place of the first", s.SetConsent(ctx, wider))
	got, err = s.Consent(ctx, "p", "c", "r", start)
	succeed(t, "Consent", err)
	equal(t, "the new consent", got, wider)

	left := func() string {
		var out []string
		for _, who := range []string{"pcr", "pcs", "pdr", "qcr"} {
			if _, err := s.Consent(ctx, who[:1], who[1:2], who[2:], start); err == nil {
				out = append(out, who)
			}
		}
		return strings.Join(out, " ")
	}
	succeed(t, "RemoveConsents", s.RemoveConsents(ctx, "p", "c"))
	equal(t, "left without those to a client", left(), "pdr qcr")
	succeed(t, "RemoveConsents", s.RemoveConsents(ctx, "p", ""))
	equal(t, "left without those of a person", left(), "qcr")
	succeed(t, "RemoveConsents of nobody", s.RemoveConsents(ctx, "p", ""))
}

func session(id, subject string) *issuer.Session {
	return &issuer.Session{
		ID: id, Issuer: "https://issuer.example", Remote: "192.0.2.1", Agent: "Mozilla/5.0 — ✓",
		Person:  issuer.Person{Subject: subject, Name: "Ada", AuthTime: start, Claims: []byte(`{"a":1}`), Stamp: "stamp", Groups: []string{"a, b", "c"}},
		Created: start, Used: start, Expires: at(time.Hour),
	}
}

func testSessions(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.Session(ctx, "a", start)
	fail(t, "a session that is not there", err, issuer.ErrNotFound)
	for _, id := range []string{"a", "b", "c"} {
		succeed(t, "AddSession", s.AddSession(ctx, session(id, "p")))
	}
	succeed(t, "AddSession of another person", s.AddSession(ctx, session("d", "q")))
	if err := s.AddSession(ctx, session("a", "q")); err == nil {
		t.Error("a session takes the place of another")
	}
	got, err := s.Session(ctx, "a", start)
	succeed(t, "Session", err)
	equal(t, "Session", got, session("a", "p"))
	_, err = s.Session(ctx, "a", at(time.Hour+time.Second))
	fail(t, "an expired session", err, issuer.ErrNotFound)

	succeed(t, "UseSession", s.UseSession(ctx, "a", at(2*time.Minute)))
	succeed(t, "UseSession, earlier", s.UseSession(ctx, "a", at(time.Minute)))
	succeed(t, "UseSession of none", s.UseSession(ctx, "none", start))
	got, err = s.Session(ctx, "a", start)
	succeed(t, "Session", err)
	equal(t, "its last use", got.Used, at(2*time.Minute))

	succeed(t, "RemoveSession", s.RemoveSession(ctx, "a"))
	succeed(t, "RemoveSession again", s.RemoveSession(ctx, "a"))
	_, err = s.Session(ctx, "a", start)
	fail(t, "a removed session", err, issuer.ErrNotFound)
	n, err := s.RemoveSessions(ctx, "p", "c", start)
	succeed(t, "RemoveSessions but one", err)
	equal(t, "sessions that were removed but one", n, 1)
	_, err = s.Session(ctx, "c", start)
	succeed(t, "the session that stays", err)
	n, err = s.RemoveSessions(ctx, "p", "", start)
	succeed(t, "RemoveSessions", err)
	equal(t, "sessions that were removed", n, 1)
	_, err = s.Session(ctx, "b", start)
	fail(t, "a session of a person whose sessions were removed", err, issuer.ErrNotFound)
	_, err = s.Session(ctx, "d", start)
	succeed(t, "the session of another person", err)
	n, err = s.RemoveSessions(ctx, "p", "", start)
	succeed(t, "RemoveSessions again", err)
	equal(t, "sessions that were removed", n, 0)
}

func testRecords(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	data := []byte("\x00\xff data")
	succeed(t, "SetRecord", s.SetRecord(ctx, "k", "h", data, at(time.Minute)))
	for range 2 {
		got, err := s.Record(ctx, "k", "h", start)
		succeed(t, "Record", err)
		equal(t, "Record", got, data)
	}
	for _, other := range [][2]string{{"k", "x"}, {"x", "h"}, {"", "kh"}} {
		_, err := s.Record(ctx, other[0], other[1], start)
		fail(t, "Record of another kind or hash", err, issuer.ErrNotFound)
		_, err = s.TakeRecord(ctx, other[0], other[1], start)
		fail(t, "TakeRecord of another kind or hash", err, issuer.ErrNotFound)
	}
	succeed(t, "SetRecord in place", s.SetRecord(ctx, "k", "h", []byte("new"), at(time.Hour)))
	_, err := s.TakeRecord(ctx, "k", "h", at(time.Hour+time.Second))
	fail(t, "TakeRecord of an expired one", err, issuer.ErrNotFound)
	got, err := s.TakeRecord(ctx, "k", "h", at(2*time.Minute))
	succeed(t, "TakeRecord", err)
	equal(t, "TakeRecord", got, []byte("new"))
	_, err = s.TakeRecord(ctx, "k", "h", start)
	fail(t, "TakeRecord again", err, issuer.ErrNotFound)
	_, err = s.Record(ctx, "k", "h", start)
	fail(t, "Record after it was taken", err, issuer.ErrNotFound)

	succeed(t, "SetRecord", s.SetRecord(ctx, "k", "late", data, at(time.Minute)))
	_, err = s.Record(ctx, "k", "late", at(time.Minute+time.Second))
	fail(t, "an expired record", err, issuer.ErrNotFound)
}

func testRecordRace(t *testing.T, s issuer.Store) {
	succeed(t, "SetRecord", s.SetRecord(t.Context(), "k", "h", []byte("data"), at(time.Minute)))
	errs := race(func(int) error {
		_, err := s.TakeRecord(t.Context(), "k", "h", start)
		return err
	})
	equal(t, "callers that got the record", count(errs, nil), 1)
	equal(t, "callers that did not", count(errs, issuer.ErrNotFound), racers-1)
}

func key(id, slot string, created time.Time) *issuer.Key {
	return &issuer.Key{
		ID: id, Slot: slot, Algorithm: "ES256", Private: []byte(`{"kty":"EC"}`),
		Created: created, Retires: created.Add(time.Hour), Expires: created.Add(2 * time.Hour),
	}
}

func testKeys(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	list := func(now time.Time) string {
		t.Helper()
		keys, err := s.Keys(ctx, now)
		succeed(t, "Keys", err)
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		return strings.Join(ids, " ")
	}
	equal(t, "no keys", list(start), "")
	for i, slot := range []string{"z", "y", "x"} {
		created := at(time.Duration(i) * time.Minute)
		got, err := s.AddKey(ctx, key("of "+slot, slot, created), created)
		succeed(t, "AddKey", err)
		equal(t, "AddKey", got, key("of "+slot, slot, created))
	}
	got, err := s.AddKey(ctx, key("second", "z", at(time.Minute)), at(time.Minute))
	succeed(t, "AddKey to a full slot", err)
	equal(t, "the key in the slot", got, key("of z", "z", start))
	equal(t, "keys, oldest first", list(at(3*time.Minute)), "of z of y of x")
	equal(t, "keys that have not expired", list(at(2*time.Hour+90*time.Second)), "of x")
	got, err = s.AddKey(ctx, key("third", "z", at(3*time.Hour)), at(3*time.Hour))
	succeed(t, "AddKey to a slot whose key has expired", err)
	equal(t, "the key in the slot", got.ID, "third")
	equal(t, "keys", list(at(3*time.Hour)), "third")
}

func testKeyRace(t *testing.T, s issuer.Store) {
	ids := race(func(i int) string {
		k, err := s.AddKey(t.Context(), key(name("key", i), "slot", start), start)
		if err != nil {
			return err.Error()
		}
		return k.ID
	})
	keys, err := s.Keys(t.Context(), start)
	succeed(t, "Keys", err)
	if len(keys) != 1 {
		t.Fatalf("%d keys in one slot", len(keys))
	}
	for _, id := range ids {
		equal(t, "AddKey", id, keys[0].ID)
	}
}

func testSweep(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	const hour = time.Hour
	_, err := s.AddClient(ctx, staticClient(), 0)
	succeed(t, "AddClient", err)
	_, err = s.AddClient(ctx, dynamicClient("dynamic", "d"), 0)
	succeed(t, "AddClient", err)
	add(t, s, "g", "1")
	succeed(t, "AddCode", s.AddCode(ctx, "h", code("g")))
	succeed(t, "RotateRefresh", rotate(t, s, "1", "2", 0, start))
	succeed(t, "RevokeToken", s.RevokeToken(ctx, "t", at(hour)))
	_, err = s.UseID(ctx, "i", "1", at(hour), start)
	succeed(t, "UseID", err)
	succeed(t, "SetConsent", s.SetConsent(ctx, consent("p", "c", "r")))
	succeed(t, "SetRecord", s.SetRecord(ctx, "k", "h", nil, at(hour)))
	_, err = s.AddKey(ctx, key("k", "slot", start), start)
	succeed(t, "AddKey", err)

	for _, step := range []struct {
		what string
		now  time.Time
		gone int
	}{
		{"nothing has expired", start, 0},
		{"the code", at(2 * time.Minute), 1},
		{"client, current refresh token, revoked token, id, consent, record", at(hour + time.Minute), 6},
		{"the key", at(3 * hour), 1},
		{"the grant and the rotated refresh token", at(25 * hour), 2},
		{"what never expires", at(1000 * hour), 0},
	} {
		gone := 0
		for range 100 { // in portions
			n, err := s.Sweep(ctx, step.now)
			succeed(t, "Sweep", err)
			if n == 0 {
				break
			}
			gone += n
		}
		equal(t, "records swept: "+step.what, gone, step.gone)
	}
	_, err = s.Client(ctx, "static", at(1000*hour))
	succeed(t, "the static client", err)
}

// testCopies proves that callers cannot change what is stored through what was
// passed in or handed out.
func testCopies(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	c, g := staticClient(), grant("g", "p", "c")
	out, err := s.AddClient(ctx, c, 0)
	succeed(t, "AddClient", err)
	succeed(t, "AddGrant", s.AddGrant(ctx, g))
	data := []byte("data")
	succeed(t, "SetRecord", s.SetRecord(ctx, "k", "h", data, at(time.Minute)))
	c.Metadata.RedirectURIs[0], out.Metadata.RedirectURIs[0] = "https://evil.example", "https://evil.example"
	g.Scopes[0], data[0] = "admin", 'X'
	for range 2 {
		gotClient, err := s.Client(ctx, "static", start)
		succeed(t, "Client", err)
		equal(t, "Client", unstamped(t, gotClient), staticClient())
		gotGrant, err := s.Grant(ctx, "g", start)
		succeed(t, "Grant", err)
		equal(t, "Grant", gotGrant, grant("g", "p", "c"))
		gotData, err := s.Record(ctx, "k", "h", start)
		succeed(t, "Record", err)
		equal(t, "Record", string(gotData), "data")
		gotClient.Metadata.RedirectURIs[0] = "https://evil.example"
		gotGrant.Scopes[0], gotGrant.Claims[0], gotData[0] = "admin", 'X', 'X'
	}
}

// testStrings proves that names are values: nothing in them is read as part
// of a query or of a pattern, and letter case counts.
func testStrings(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	odd := []string{"%", "_", "*", "a", "A", "ä", "'; DROP TABLE grants; --", `"`, `\`, "a b", strings.Repeat("x", 500)}
	for _, id := range odd {
		succeed(t, "AddGrant", s.AddGrant(ctx, grant(id, id, id)))
		succeed(t, "SetRecord", s.SetRecord(ctx, id, id, []byte(id), at(time.Minute)))
	}
	for _, id := range odd {
		got, err := s.Grant(ctx, id, start)
		succeed(t, "Grant", err)
		equal(t, "Grant", got, grant(id, id, id))
		data, err := s.TakeRecord(ctx, id, id, start)
		succeed(t, "TakeRecord", err)
		equal(t, "TakeRecord", string(data), id)
	}
	for i, id := range odd {
		n, err := s.RevokeGrants(ctx, id, "", start)
		succeed(t, "RevokeGrants", err)
		equal(t, "grants revoked", n, 1)
		for _, later := range odd[i+1:] {
			_, err := s.Grant(ctx, later, start)
			succeed(t, "a grant of another person", err)
		}
	}
}

// testContext proves that a store either does what it is asked or says that
// the context has ended, and hands out nothing twice either way.
func testContext(t *testing.T, s issuer.Store) {
	succeed(t, "SetRecord", s.SetRecord(t.Context(), "k", "h", []byte("data"), at(time.Minute)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, first := s.TakeRecord(ended, "k", "h", start)
	if first != nil && !errors.Is(first, context.Canceled) {
		t.Errorf("TakeRecord with a context that has ended: %v", first)
	}
	_, second := s.TakeRecord(t.Context(), "k", "h", start)
	if first == nil {
		fail(t, "TakeRecord of what was taken", second, issuer.ErrNotFound)
	} else {
		succeed(t, "TakeRecord after the first was cancelled", second)
	}
}
