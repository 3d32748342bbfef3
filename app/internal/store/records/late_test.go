package records_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// What is granted at the moment at which a client, or a user, is disabled is not there once these are enabled
// again, nor is what is granted afterwards by those who read the client, or signed in, before.
func TestGrantWhileDisabled(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		ctx, db := t.Context(), open(t, dsn)
		made := &issuer.Client{ID: "c", Created: epoch}
		if err := db.CreateClient(ctx, made); err != nil {
			t.Fatal(err)
		}
		subject, err := db.AddUser(ctx, "ada", "hash", epoch)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 5 {
			c, err := db.Client(ctx, "c", epoch)
			if err != nil || c.Stamp == "" {
				t.Fatalf("the client is %+v, %v", c, err)
			}
			_, _, stamp, err := db.User(ctx, "ada")
			if err != nil {
				t.Fatal(err)
			}
			who := "client " + strconv.Itoa(round)
			testGrantWhile(t, db, &issuer.Grant{ID: who, ClientID: "c", ClientStamp: c.Stamp}, func() error {
				return db.DisableClient(ctx, "c", epoch)
			}, func() error { return db.EnableClient(ctx, "c", epoch) })
			if now, err := db.Client(ctx, "c", epoch); err != nil || now.Stamp == c.Stamp {
				t.Errorf("the client has its stamp again: %v", err)
			}
			who = "user " + strconv.Itoa(round)
			testGrantWhile(t, db, &issuer.Grant{ID: who, ClientID: "d", Subject: subject, Stamp: stamp}, func() error {
				_, err := db.DisableUser(ctx, "ada")
				return err
			}, func() error {
				_, err := db.EnableUser(ctx, "ada")
				return err
			})
		}
	})
}

// testGrantWhile adds grants like one while disable runs, and after enable.
func testGrantWhile(t *testing.T, db *records.DB, like *issuer.Grant, disable, enable func() error) {
	t.Helper()
	const callers = 16
	add := func(i int) error {
		g := *like
		g.ID, g.Created, g.Expires = like.ID+" "+strconv.Itoa(i), epoch, epoch.Add(time.Hour)
		return db.AddGrant(t.Context(), &g)
	}
	if err := add(callers); err != nil {
		t.Fatalf("%s: before it is disabled: %v", like.ID, err)
	}
	var calls sync.WaitGroup
	for i := range callers {
		calls.Go(func() {
			if i == callers/2 {
				if err := disable(); err != nil {
					t.Errorf("%s: disable: %v", like.ID, err)
				}
			}
			if err := add(i); err != nil && !errors.Is(err, issuer.ErrRevoked) {
				t.Errorf("%s: grant: %v", like.ID, err)
			}
		})
	}
	calls.Wait()
	if err := add(callers + 1); !errors.Is(err, issuer.ErrRevoked) {
		t.Errorf("%s: while it is disabled: %v", like.ID, err)
	}
	if err := enable(); err != nil {
		t.Fatal(err)
	}
	if err := add(callers + 2); !errors.Is(err, issuer.ErrRevoked) {
		t.Errorf("%s: by what was read before it was disabled: %v", like.ID, err)
	}
	good, err := db.Grants(t.Context(), records.Filter{Client: like.ClientID}, "", callers, epoch)
	if err != nil || len(good) != 0 {
		t.Errorf("%s: %d grants are good, %v", like.ID, len(good), err)
	}
}
