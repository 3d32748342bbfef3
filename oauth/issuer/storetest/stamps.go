package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// unstamped is a client without the stamp that a store gave it.
func unstamped(t *testing.T, c *issuer.Client) *issuer.Client {
	t.Helper()
	if c.Stamp == "" {
		t.Error("a client that is stored has no stamp")
	}
	out := *c
	out.Stamp = ""
	return &out
}

// stamped is a grant to a client as it is in a store.
func stamped(id string, c *issuer.Client) *issuer.Grant {
	g := grant(id, "p", c.ID)
	g.ClientStamp = c.Stamp
	return g
}

// testStamps proves that a client which was disabled or removed is given nothing by those who read it
// before, also once it is enabled, or there again.
func testStamps(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	put := func(disabled bool) *issuer.Client {
		t.Helper()
		c := staticClient()
		c.Disabled = disabled
		c, err := s.AddClient(ctx, c, 0)
		succeed(t, "AddClient", err)
		read, err := s.Client(ctx, c.ID, start)
		succeed(t, "Client", err)
		equal(t, "the stamp that is read", read.Stamp, c.Stamp)
		return c
	}
	refused := func(what string, c *issuer.Client) {
		t.Helper()
		fail(t, "AddGrant to "+what, s.AddGrant(ctx, stamped("refused", c)), issuer.ErrRevoked)
		_, err := s.Grant(ctx, "refused", start)
		fail(t, "the grant to "+what, err, issuer.ErrNotFound)
	}
	first := put(false)
	want := stamped("g", first)
	want.Asserted = true
	succeed(t, "AddGrant", s.AddGrant(ctx, want))
	got, err := s.Grant(ctx, "g", start)
	succeed(t, "Grant", err)
	equal(t, "Grant", got, want)
	equal(t, "the stamp of a client that was replaced", put(false).Stamp, first.Stamp)

	off := put(true)
	refused("a client that is disabled", first)
	on := put(false)
	equal(t, "the stamp of a client that was enabled", on.Stamp, off.Stamp)
	refused("a client that was disabled meanwhile", first)
	succeed(t, "AddGrant to a client that was enabled", s.AddGrant(ctx, stamped("h", on)))

	succeed(t, "RemoveClient", s.RemoveClient(ctx, first.ID, start))
	refused("a client that was removed", on)
	again := put(false)
	for _, c := range []*issuer.Client{first, on} {
		refused("a client that was removed and is there again", c)
	}
	succeed(t, "AddGrant to a client that is there again", s.AddGrant(ctx, stamped("i", again)))

	dynamic, err := s.AddClient(ctx, dynamicClient("d", "same"), 0)
	succeed(t, "AddClient", err)
	same, err := s.AddClient(ctx, dynamicClient("e", "same"), 0)
	succeed(t, "AddClient", err)
	equal(t, "the stamp of the same registration", same.Stamp, dynamic.Stamp)
	succeed(t, "AddGrant to a dynamic client", s.AddGrant(ctx, stamped("j", same)))
}

// testStampRace proves that no grant is good which was given while its client was removed.
func testStampRace(t *testing.T, s issuer.Store) {
	ctx := t.Context()
	const rounds = 8
	for round := range rounds {
		c, err := s.AddClient(ctx, staticClient(), 0)
		succeed(t, "AddClient", err)
		id := func(i int) string { return name(name("g", round)+" ", i) }
		var removing sync.WaitGroup
		errs := race(func(i int) error {
			if i == racers/2 {
				removing.Go(func() {
					if err := s.RemoveClient(ctx, c.ID, start); err != nil {
						t.Errorf("RemoveClient: %v", err)
					}
				})
			}
			return s.AddGrant(ctx, stamped(id(i), c))
		})
		removing.Wait()
		equal(t, "grants that were given or refused", count(errs, nil)+count(errs, issuer.ErrRevoked), racers)
		_, err = s.AddClient(ctx, staticClient(), 0)
		succeed(t, "AddClient again", err)
		for i := range racers {
			if _, err := s.Grant(ctx, id(i), start); !errors.Is(err, issuer.ErrRevoked) && !errors.Is(err, issuer.ErrNotFound) {
				t.Fatalf("a grant to the client before: %v", err)
			}
		}
		succeed(t, "RemoveClient", s.RemoveClient(ctx, c.ID, start))
	}
}
