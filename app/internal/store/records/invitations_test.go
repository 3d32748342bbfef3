package records_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// An invited user is there and cannot sign in, until an invitation that is open is accepted, once.
func TestInvitations(t *testing.T) {
	t.Parallel()
	for name, make := range databasetest.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := open(t, make(t)), t.Context()
			day := 24 * time.Hour
			u, err := db.Invite(ctx, "Ada", "i1", false, epoch.Add(day), epoch)
			if err != nil || u.Name != "ada" || !u.Pending || !u.Invited.Equal(epoch.Add(day)) {
				t.Fatalf("invited %+v, %v", u, err)
			}
			if _, _, _, err := db.User(ctx, "ada"); !errors.Is(err, issuer.ErrNotFound) {
				t.Errorf("a pending user can sign in: %v", err)
			}
			for _, stamp := range []string{"", issuer.Hash("")} {
				if ok, err := db.Current(ctx, u.Subject, stamp); ok || err != nil {
					t.Errorf("a pending user is current: %v, %v", ok, err)
				}
			}
			if _, err := db.AddUser(ctx, "ada", "hash", epoch); !errors.Is(err, records.ErrExists) {
				t.Errorf("the name is free: %v", err)
			}
			if _, err := db.Invite(ctx, "аda", "i0", false, epoch.Add(day), epoch); err == nil {
				t.Error("a name that looks like that of a pending user is invited")
			}

			// Another invitation takes the place of the first.
			if again, err := db.Invite(ctx, "ADA", "i2", false, epoch.Add(2*day), epoch); err != nil || again.Subject != u.Subject {
				t.Fatalf("invited again: %+v, %v", again, err)
			}
			if _, _, err := db.Invitation(ctx, "i1"); !errors.Is(err, issuer.ErrNotFound) {
				t.Errorf("the first invitation: %v", err)
			}
			if name, until, err := db.Invitation(ctx, "i2"); name != "ada" || !until.Equal(epoch.Add(2*day)) || err != nil {
				t.Errorf("the second invitation: %q until %v, %v", name, until, err)
			}
			if _, err := db.AcceptInvitation(ctx, "i2", "hash", epoch.Add(2*day)); !errors.Is(err, issuer.ErrNotFound) {
				t.Errorf("an invitation that has expired is accepted: %v", err)
			}

			// Of many at once one succeeds, with its password.
			errs := make32(func(i int) error {
				_, err := db.AcceptInvitation(ctx, "i2", fmt.Sprint("hash", i), epoch)
				return err
			})
			won := -1
			for i, err := range errs {
				switch {
				case err == nil && won < 0:
					won = i
				case err == nil:
					t.Errorf("%d and %d both accepted", won, i)
				case !errors.Is(err, issuer.ErrNotFound):
					t.Errorf("caller %d: %v", i, err)
				}
			}
			hash, subject, _, err := db.User(ctx, "ada")
			if err != nil || hash != fmt.Sprint("hash", won) || subject != u.Subject {
				t.Errorf("the user after it: %q %q %v, %d won", hash, subject, err, won)
			}
			if found, err := db.FindUser(ctx, "ada"); err != nil || found.Pending || !found.Invited.IsZero() {
				t.Errorf("the user is %+v, %v", found, err)
			}
			testResets(t, db, subject)
		})
	}
}

// make32 calls f from 32 goroutines at once.
func make32(f func(i int) error) []error {
	errs := make([]error, 32)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

// A user with a password is invited only to reset it; what ends or replaces the user's password
// withdraws the invitation.
func testResets(t *testing.T, db *records.DB, subject string) {
	t.Helper()
	ctx, until := t.Context(), epoch.Add(time.Hour)
	if _, err := db.Invite(ctx, "ada", "r0", false, until, epoch); !errors.Is(err, records.ErrExists) {
		t.Errorf("a user with a password is invited: %v", err)
	}
	if _, err := db.Invite(ctx, "nobody", "r0", true, until, epoch); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("a password of nobody is reset: %v", err)
	}
	invite := func(hash string) {
		t.Helper()
		if u, err := db.Invite(ctx, "ada", hash, true, until, epoch); err != nil || u.Pending {
			t.Fatalf("reset: %+v, %v", u, err)
		}
	}
	gone := func(what, hash string) {
		t.Helper()
		if _, err := db.AcceptInvitation(ctx, hash, "stolen", epoch); !errors.Is(err, issuer.ErrNotFound) {
			t.Errorf("after the %s the invitation is there: %v", what, err)
		}
	}
	invite("r1")
	if _, _, _, err := db.User(ctx, "ada"); err != nil {
		t.Errorf("the old password is void before the new one is chosen: %v", err)
	}
	addSession := func(id string) {
		t.Helper()
		if err := db.AddSession(ctx, &issuer.Session{ID: id, Person: issuer.Person{Subject: subject}, Created: epoch, Used: epoch, Expires: until}); err != nil {
			t.Fatal(err)
		}
	}
	addSession("s1")
	if _, err := db.AcceptInvitation(ctx, "r1", "h1", epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Session(ctx, "s1", epoch); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("a session outlives the reset: %v", err)
	}

	invite("r2")
	if _, err := db.SetPassword(ctx, "ada", "h2"); err != nil {
		t.Fatal(err)
	}
	gone("operator's new password", "r2")

	invite("r3")
	addSession("s3")
	name, hash, err := db.PasswordOf(ctx, subject)
	if name != "ada" || hash != "h2" || err != nil {
		t.Errorf("the password is %q %q %v", name, hash, err)
	}
	if _, err := db.ChangePassword(ctx, subject, "h1", "h3"); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("a password is changed that is not the old one: %v", err)
	}
	stamp, err := db.ChangePassword(ctx, subject, "h2", "h3")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := db.Current(ctx, subject, stamp); !ok || err != nil {
		t.Errorf("the stamp after the change is not current: %v", err)
	}
	if _, err := db.Session(ctx, "s3", epoch); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("a session outlives the change: %v", err)
	}
	gone("user's new password", "r3")

	invite("r4")
	if _, err := db.DisableUser(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Invite(ctx, "ada", "r5", true, until, epoch); !errors.Is(err, records.ErrDisabled) {
		t.Errorf("a disabled user is invited: %v", err)
	}
	if _, _, err := db.PasswordOf(ctx, subject); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("the password of a disabled user: %v", err)
	}
	if _, err := db.ChangePassword(ctx, subject, "h3", "h4"); !errors.Is(err, issuer.ErrNotFound) {
		t.Errorf("the password of a disabled user is changed: %v", err)
	}
	if _, err := db.EnableUser(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	gone("user was disabled", "r4")

	invite("r6")
	if _, err := db.RemoveUser(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.AddUser(ctx, "ada", "h5", epoch); err != nil {
		t.Fatal(err)
	}
	gone("user was removed", "r6")
	for _, empty := range []func() error{
		func() error { _, err := db.Invite(ctx, "x", "", false, until, epoch); return err },
		func() error { _, err := db.AcceptInvitation(ctx, "x", "", epoch); return err },
		func() error { _, err := db.ChangePassword(ctx, subject, "", "h"); return err },
	} {
		if err := empty(); err == nil || !strings.Contains(err.Error(), "no hash") {
			t.Errorf("nothing is a hash: %v", err)
		}
	}
}
