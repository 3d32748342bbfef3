package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

func name(prefix string, i int) string { return prefix + strconv.Itoa(i) }

func grant(id, subject, client string) *issuer.Grant {
	return &issuer.Grant{
		ID: id, ClientID: client, Subject: subject, Scopes: []string{"b", "a"},
		Resource: "https://api.example/mcp", Key: "thumbprint",
		AuthTime: at(-time.Minute), Stamp: "stamp", Groups: []string{"a, b", "c"}, Created: start, Expires: at(24 * time.Hour),
		Claims: []byte(`{"email":"p@example.com"}`),
	}
}

func code(grant string) *issuer.Code {
	return &issuer.Code{
		Grant: grant, ClientID: "c", RedirectURI: "https://client.example/cb?a=b", Challenge: "challenge",
		Resource: "https://api.example/mcp", Key: "thumbprint", Nonce: "nonce", Expires: at(time.Minute),
	}
}

func refresh(grant string) *issuer.Refresh {
	return &issuer.Refresh{Grant: grant, ClientID: "c", Key: "thumbprint", Created: start, Expires: at(time.Hour)}
}

// add stores a grant, with a refresh token at hash if it is not empty.
func add(t *testing.T, s issuer.Store, id, hash string) {
	t.Helper()
	succeed(t, "AddGrant", s.AddGrant(t.Context(), grant(id, "p", "c")))
	if hash != "" {
		succeed(t, "AddRefresh", s.AddRefresh(t.Context(), hash, refresh(id)))
	}
}

func testGrants(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.Grant(ctx, "g", start)
	fail(t, "a grant that is not there", err, issuer.ErrNotFound)
	for _, want := range []*issuer.Grant{
		grant("g", "p", "c"),
		{ID: "bare", ClientID: "c", Expires: at(time.Hour), Created: start},
	} {
		succeed(t, "AddGrant", s.AddGrant(ctx, want))
		got, err := s.Grant(ctx, want.ID, start)
		succeed(t, "Grant", err)
		equal(t, "Grant", normal(got), normal(want))
	}
	_, err = s.Grant(ctx, "g", at(24*time.Hour+time.Second))
	fail(t, "an expired grant", err, issuer.ErrNotFound)

	succeed(t, "RevokeGrant", s.RevokeGrant(ctx, "g", at(time.Second)))
	succeed(t, "RevokeGrant again", s.RevokeGrant(ctx, "g", at(2*time.Second)))
	succeed(t, "RevokeGrant of none", s.RevokeGrant(ctx, "none", start))
	got, err := s.Grant(ctx, "g", at(time.Minute))
	fail(t, "a revoked grant", err, issuer.ErrRevoked)
	if got == nil {
		t.Fatal("a revoked grant comes without the grant")
	}
	equal(t, "a revoked grant", got, grant("g", "p", "c"))
	_, err = s.Grant(ctx, "bare", start)
	succeed(t, "another grant", err)
}

// normal makes an empty list nil: which of them comes back is the store's.
func normal(g *issuer.Grant) *issuer.Grant {
	out := *g
	if len(out.Scopes) == 0 {
		out.Scopes = nil
	}
	if len(out.Claims) == 0 {
		out.Claims = nil
	}
	return &out
}

func testRevokeGrants(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	for _, who := range []string{"pc", "pd", "qc", "qd", "rc"} {
		succeed(t, "AddGrant", s.AddGrant(ctx, grant(who, who[:1], who[1:])))
	}
	_, err := s.RevokeGrants(ctx, "", "", start)
	if err == nil {
		t.Error("RevokeGrants of everybody succeeds")
	}
	for _, step := range []struct {
		subject, client string
		count           int
		left            string
	}{
		{"p", "c", 1, "pd qc qd rc"},
		{"p", "c", 0, "pd qc qd rc"},
		{"q", "", 2, "pd rc"},
		{"", "c", 1, "pd"},
		{"none", "", 0, "pd"},
		{"", "d", 1, ""},
	} {
		n, err := s.RevokeGrants(ctx, step.subject, step.client, start)
		succeed(t, "RevokeGrants", err)
		equal(t, "RevokeGrants "+step.subject+","+step.client, n, step.count)
		left := ""
		for _, who := range []string{"pc", "pd", "qc", "qd", "rc"} {
			if _, err := s.Grant(ctx, who, start); err == nil {
				left += " " + who
			}
		}
		if left != "" {
			left = left[1:]
		}
		equal(t, "grants left", left, step.left)
	}
}

func testCodes(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.ConsumeCode(ctx, "none", start)
	fail(t, "a code that is not there", err, issuer.ErrNotFound)

	add(t, s, "g", "")
	succeed(t, "AddCode", s.AddCode(ctx, "h", code("g")))
	got, err := s.ConsumeCode(ctx, "h", at(time.Second))
	succeed(t, "ConsumeCode", err)
	equal(t, "ConsumeCode", got, code("g"))
	_, err = s.Grant(ctx, "g", start)
	succeed(t, "the grant after the first use", err)

	got, err = s.ConsumeCode(ctx, "h", at(2*time.Second))
	fail(t, "the second use", err, issuer.ErrConsumed)
	if got == nil {
		t.Fatal("ErrConsumed comes without the code")
	}
	equal(t, "the second use", got, code("g"))
	_, err = s.Grant(ctx, "g", start)
	fail(t, "the grant after the second use", err, issuer.ErrRevoked)
	_, err = s.ConsumeCode(ctx, "h", at(3*time.Second))
	fail(t, "the third use", err, issuer.ErrConsumed)

	add(t, s, "late", "")
	succeed(t, "AddCode", s.AddCode(ctx, "late", code("late")))
	_, err = s.ConsumeCode(ctx, "late", at(time.Minute+time.Second))
	fail(t, "an expired code", err, issuer.ErrNotFound)

	add(t, s, "revoked", "")
	succeed(t, "AddCode", s.AddCode(ctx, "revoked", code("revoked")))
	succeed(t, "RevokeGrant", s.RevokeGrant(ctx, "revoked", start))
	_, err = s.ConsumeCode(ctx, "revoked", start)
	fail(t, "a code of a revoked grant", err, issuer.ErrNotFound)
}

func testCodeRace(t *testing.T, s issuer.Store) {
	add(t, s, "g", "")
	succeed(t, "AddCode", s.AddCode(t.Context(), "h", code("g")))
	errs := race(func(int) error {
		_, err := s.ConsumeCode(t.Context(), "h", start)
		return err
	})
	equal(t, "callers that got the code", count(errs, nil), 1)
	equal(t, "callers that came too late", count(errs, issuer.ErrConsumed), racers-1)
	_, err := s.Grant(t.Context(), "g", start)
	fail(t, "the grant", err, issuer.ErrRevoked)
}

func testTokens(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	add(t, s, "g", "")
	revoked := func(id, grant string, now time.Time) bool {
		t.Helper()
		got, err := s.TokenRevoked(ctx, id, grant, now)
		succeed(t, "TokenRevoked", err)
		return got
	}
	equal(t, "a token of a grant", revoked("t", "g", start), false)
	equal(t, "a token of none", revoked("t", "", start), false)
	equal(t, "a token of an unknown grant", revoked("t", "unknown", start), true)
	equal(t, "a token of an expired grant", revoked("t", "g", at(25*time.Hour)), true)

	succeed(t, "RevokeToken", s.RevokeToken(ctx, "t", at(time.Minute)))
	succeed(t, "RevokeToken again", s.RevokeToken(ctx, "t", at(time.Minute)))
	equal(t, "a revoked token", revoked("t", "g", start), true)
	equal(t, "a revoked token of no grant", revoked("t", "", start), true)
	equal(t, "another token", revoked("u", "g", start), false)
	equal(t, "a revoked token that has expired", revoked("t", "g", at(time.Minute+time.Second)), false)

	succeed(t, "RevokeGrant", s.RevokeGrant(ctx, "g", start))
	equal(t, "a token of a revoked grant", revoked("u", "g", start), true)
}

func testIDs(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	for _, step := range []struct {
		issuer, id string
		now        time.Time
		first      bool
	}{
		{"i", "1", start, true},
		{"i", "1", start, false},
		{"i", "1", at(59 * time.Second), false},
		{"i", "2", start, true},
		{"j", "1", start, true},
		{"", "i1", start, true},
		{"i1", "", start, true},
		{"i", "1", at(2 * time.Minute), true},
		{"i", "1", at(2 * time.Minute), false},
	} {
		first, err := s.UseID(ctx, step.issuer, step.id, step.now.Add(time.Minute), step.now)
		succeed(t, "UseID", err)
		equal(t, "UseID "+step.issuer+" "+step.id, first, step.first)
	}
}

func testIDRace(t *testing.T, s issuer.Store) {
	// Once for a fresh id, once for one that has expired but is not swept.
	for _, now := range []time.Time{start, at(time.Hour)} {
		firsts := 0
		for _, first := range race(func(int) bool {
			first, err := s.UseID(t.Context(), "i", "1", now.Add(time.Minute), now)
			if err != nil {
				t.Errorf("UseID: %v", err)
			}
			return first
		}) {
			if first {
				firsts++
			}
		}
		equal(t, "first uses", firsts, 1)
	}
}
