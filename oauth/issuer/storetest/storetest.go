// Package storetest holds implementations of issuer.Store to their contract:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t testing.TB) issuer.Store { return openStore(t) })
//	}
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// racers is how many callers try the same thing at once.
const racers = 64

// start is the time at which every test begins; stores are told the time and
// read no clock.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// at is the time this long after start.
func at(d time.Duration) time.Time { return start.Add(d) }

// Test holds a store to the contract of [issuer.Store], races included. open
// returns an empty store, and closes it with t.Cleanup; the tests run side by
// side.
func Test(t *testing.T, open func(t testing.TB) issuer.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, issuer.Store){
		"clients":             testClients,
		"client digests":      testDigests,
		"client digests race": testDigestRace,
		"clients are limited": testFull,
		"clients make room":   testMakeRoom,
		"clients are removed": testRemoveClient,
		"grants":              testGrants,
		"grants are revoked":  testRevokeGrants,
		"stamps":              testStamps,
		"stamps race":         testStampRace,
		"codes":               testCodes,
		"codes race":          testCodeRace,
		"refresh":             testRefresh,
		"refresh is reused":   testReuse,
		"refresh expires":     testRefreshExpiry,
		"refresh races":       testRefreshRace,
		"refresh grace":       testGrace,
		"grace races":         testGraceRace,
		"tokens":              testTokens,
		"ids":                 testIDs,
		"ids race":            testIDRace,
		"consents":            testConsents,
		"sessions":            testSessions,
		"lists of a person":   testLists,
		"records":             testRecords,
		"records race":        testRecordRace,
		"keys":                testKeys,
		"keys race":           testKeyRace,
		"keys are retired":    testRetireKey,
		"keys are revoked":    testRevokeKey,
		"sweep":               testSweep,
		"values are copies":   testCopies,
		"odd strings":         testStrings,
		"contexts end":        testContext,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// race calls f from many goroutines at once and returns what they returned.
func race[T any](f func(i int) T) []T {
	out := make([]T, racers)
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range racers {
		wg.Go(func() {
			<-gate
			out[i] = f(i)
		})
	}
	close(gate)
	wg.Wait()
	return out
}

// count is how many of errs are want.
func count(errs []error, want error) int {
	n := 0
	for _, err := range errs {
		if errors.Is(err, want) {
			n++
		}
	}
	return n
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %s, want %s", what, show(got), show(want))
	}
}

// show writes what a pointer leads to, not where it is.
func show(v any) string {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		v = p.Elem().Interface()
	}
	return fmt.Sprintf("%+v", v)
}

func succeed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func fail(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

func staticClient() *issuer.Client {
	return &issuer.Client{
		ID: "static", SecretHash: issuer.Hash("secret"), Created: start,
		Metadata: oauth.ClientMetadata{
			ClientName:              "Ein Klient — 客户",
			RedirectURIs:            []string{"https://client.example/cb", "http://127.0.0.1/cb"},
			GrantTypes:              []string{oauth.GrantAuthorizationCode, oauth.GrantRefreshToken},
			ResponseTypes:           []string{"code"},
			TokenEndpointAuthMethod: oauth.AuthPrivateKeyJWT,
			Contacts:                []string{"a@client.example"},
			JWKS:                    []byte(`{"keys":[]}`),
			ApplicationType:         "web",
			DPoPBoundAccessTokens:   true,
		},
		Resources: []string{"https://mcp.example/mcp"}, Scopes: []string{"read"}, Subject: "robot",
		AccessLifetime: time.Minute, RefreshLifetime: time.Hour,
	}
}

func dynamicClient(id, digest string) *issuer.Client {
	return &issuer.Client{
		ID: id, Dynamic: true, Digest: digest, Created: start, Expires: at(time.Hour),
		Metadata: oauth.ClientMetadata{
			ClientName:   "client " + digest,
			RedirectURIs: []string{"http://127.0.0.1/cb"},
		},
	}
}

func testClients(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.Client(ctx, "static", start)
	fail(t, "a client that is not there", err, issuer.ErrNotFound)

	want := staticClient()
	got, err := s.AddClient(ctx, want, 0)
	succeed(t, "AddClient", err)
	equal(t, "AddClient", unstamped(t, got), want)
	got, err = s.Client(ctx, "static", at(100*365*24*time.Hour))
	succeed(t, "Client", err)
	equal(t, "Client, which never expires", unstamped(t, got), want)

	want.Metadata.ClientName, want.SecretHash, want.Disabled = "renamed", "", true
	_, err = s.AddClient(ctx, want, 1)
	succeed(t, "AddClient in place of the first", err)
	got, err = s.Client(ctx, "static", start)
	succeed(t, "Client", err)
	equal(t, "Client after it was replaced", unstamped(t, got), want)
	succeed(t, "UseClient of one that never expires", s.UseClient(ctx, "static", at(time.Minute)))
	_, err = s.Client(ctx, "static", at(time.Hour))
	succeed(t, "a client that never expires, after use", err)

	dynamic := dynamicClient("dynamic", "d")
	_, err = s.AddClient(ctx, dynamic, 1)
	succeed(t, "AddClient", err)
	got, err = s.Client(ctx, "dynamic", at(time.Hour-time.Second))
	succeed(t, "Client", err)
	equal(t, "dynamic client", unstamped(t, got), dynamic)
	_, err = s.Client(ctx, "dynamic", at(time.Hour+time.Second))
	fail(t, "an expired client", err, issuer.ErrNotFound)

	succeed(t, "UseClient", s.UseClient(ctx, "dynamic", at(3*time.Hour)))
	succeed(t, "UseClient, earlier", s.UseClient(ctx, "dynamic", at(2*time.Hour)))
	succeed(t, "UseClient of none", s.UseClient(ctx, "none", at(2*time.Hour)))
	got, err = s.Client(ctx, "dynamic", at(2*time.Hour+time.Minute))
	succeed(t, "a client that was used", err)
	equal(t, "expiry after use", got.Expires, at(3*time.Hour))
}

func testDigests(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	add := func(id, digest string, created time.Time) string {
		c := dynamicClient(id, digest)
		c.Created, c.Expires = created, created.Add(time.Hour)
		got, err := s.AddClient(ctx, c, 2)
		succeed(t, "AddClient "+id, err)
		return got.ID
	}
	equal(t, "first", add("a", "same", start), "a")
	equal(t, "the same again", add("b", "same", at(time.Minute)), "a")
	_, err := s.Client(ctx, "b", at(time.Minute))
	fail(t, "the client that was not stored", err, issuer.ErrNotFound)
	equal(t, "another digest", add("c", "other", at(time.Minute)), "c")
	equal(t, "the same while there is no room for more", add("d", "same", at(time.Minute)), "a")
	equal(t, "the same after the first expired", add("e", "same", at(2*time.Hour)), "e")
	equal(t, "no digest is no digest", add("f", "", at(4*time.Hour)), "f")
	equal(t, "no digest is no digest", add("g", "", at(4*time.Hour)), "g")
}

func testDigestRace(t *testing.T, s issuer.Store) {
	ids := race(func(i int) string {
		c, err := s.AddClient(context.WithoutCancel(t.Context()), dynamicClient(name("c", i), "same"), 1)
		if err != nil {
			return err.Error()
		}
		return c.ID
	})
	for _, id := range ids {
		if id != ids[0] || !strings.HasPrefix(id, "c") {
			t.Fatalf("the same registration gave %q and %q", ids[0], id)
		}
	}
	_, err := s.Client(t.Context(), ids[0], start)
	succeed(t, "the one client", err)
}

func testFull(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.AddClient(ctx, staticClient(), 3)
	succeed(t, "AddClient", err)
	errs := race(func(i int) error {
		c := dynamicClient(name("c", i), name("d", i))
		c.Expires = time.Time{} // so that it makes no room
		_, err := s.AddClient(ctx, c, 3)
		return err
	})
	equal(t, "clients that found room", count(errs, nil), 3)
	equal(t, "clients that did not", count(errs, issuer.ErrFull), racers-3)
}

// testMakeRoom proves which clients make room for another, and that those with a good grant do not.
func testMakeRoom(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	for i, id := range []string{"granted", "used", "revoked", "unused", "disabled"} {
		c := dynamicClient(id, id)
		c.Disabled = id == "disabled"
		_, err := s.AddClient(ctx, c, 5)
		succeed(t, "AddClient", err)
		if id == "granted" || id == "revoked" {
			succeed(t, "AddGrant", s.AddGrant(ctx, grant(name("g", i), "p", id)))
		}
	}
	succeed(t, "UseClient", s.UseClient(ctx, "used", at(3*time.Hour)))
	succeed(t, "RevokeGrant", s.RevokeGrant(ctx, name("g", 2), start))
	succeed(t, "SetConsent", s.SetConsent(ctx, consent("p", "unused", "r")))
	succeed(t, "SetConsent", s.SetConsent(ctx, consent("p", "granted", "r")))
	for i, gone := range []string{"revoked", "unused"} {
		id := name("new", i)
		c := dynamicClient(id, id)
		c.Created, c.Expires = at(time.Minute), at(2*time.Hour)
		_, err := s.AddClient(ctx, c, 5)
		succeed(t, "AddClient to a full store", err)
		_, err = s.Client(ctx, gone, at(time.Minute))
		fail(t, "the client that made room: "+gone, err, issuer.ErrNotFound)
		for _, stays := range []string{"granted", "used", "disabled", id} {
			_, err = s.Client(ctx, stays, at(time.Minute))
			succeed(t, "a client that stays: "+stays, err)
		}
	}
	_, err := s.Consent(ctx, "p", "unused", "r", start)
	fail(t, "Consent to the client that made room", err, issuer.ErrNotFound)
	_, err = s.Consent(ctx, "p", "granted", "r", start)
	succeed(t, "Consent to another client", err)
	_, err = s.AddClient(ctx, dynamicClient("late", "late"), 1)
	fail(t, "AddClient with a limit that only clients with grants could meet", err, issuer.ErrFull)
	_, err = s.Client(ctx, "used", start)
	succeed(t, "a client beside one that found no room", err)
}

func testRemoveClient(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	_, err := s.AddClient(ctx, staticClient(), 0)
	succeed(t, "AddClient", err)
	succeed(t, "AddGrant", s.AddGrant(ctx, grant("g", "p", "static")))
	succeed(t, "AddGrant", s.AddGrant(ctx, grant("other", "p", "another")))
	succeed(t, "SetConsent", s.SetConsent(ctx, consent("p", "static", "r")))
	succeed(t, "SetConsent", s.SetConsent(ctx, consent("p", "another", "r")))
	succeed(t, "RemoveClient", s.RemoveClient(ctx, "static", start))
	succeed(t, "RemoveClient again", s.RemoveClient(ctx, "static", start))
	_, err = s.Client(ctx, "static", start)
	fail(t, "Client", err, issuer.ErrNotFound)
	_, err = s.Grant(ctx, "g", start)
	fail(t, "Grant of the removed client", err, issuer.ErrRevoked)
	_, err = s.Grant(ctx, "other", start)
	succeed(t, "Grant of another client", err)
	_, err = s.Consent(ctx, "p", "static", "r", start)
	fail(t, "Consent to the removed client", err, issuer.ErrNotFound)
	_, err = s.Consent(ctx, "p", "another", "r", start)
	succeed(t, "Consent to another client", err)
}
