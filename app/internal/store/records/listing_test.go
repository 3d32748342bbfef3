package records_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Lists hold what is good and matches, with names, in pages; revoking hits the same.
func TestListing(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		ada, err := db.AddUser(t.Context(), "ada", "hash", epoch)
		if err != nil {
			t.Fatal(err)
		}
		fillLists(t, db, ada)
		for _, tt := range []struct {
			filter         records.Filter
			grants, agreed string // IDs, and clients
		}{
			{records.Filter{}, "ac ac2 ad bc", "c d c"},
			{records.Filter{Subject: ada}, "ac ac2 ad", "c d"},
			{records.Filter{Client: "c"}, "ac ac2 bc", "c c"},
			{records.Filter{Resource: "r2"}, "ac2", ""},
			{records.Filter{Subject: ada, Client: "c", Resource: "r"}, "ac", "c"},
			{records.Filter{Subject: "nobody"}, "", ""},
		} {
			for _, limit := range []int{1, 2, 10} {
				if got := grantIDs(t, db, tt.filter, limit); got != tt.grants {
					t.Errorf("grants of %+v by %d: %q, want %q", tt.filter, limit, got, tt.grants)
				}
			}
			consents, err := db.Consents(t.Context(), tt.filter, "", 10, epoch)
			if err != nil || len(consents) != len(strings.Fields(tt.agreed)) {
				t.Errorf("consents of %+v: %+v, %v", tt.filter, consents, err)
			}
			if tt.filter == (records.Filter{}) {
				continue
			}
			if n, err := db.RemoveMatching(t.Context(), tt.filter, epoch); err != nil || n != len(consents) {
				t.Errorf("forgot %d consents of %+v, %v", n, tt.filter, err)
			}
			if n, err := db.RevokeMatching(t.Context(), tt.filter, epoch); err != nil || n != len(strings.Fields(tt.grants)) {
				t.Errorf("revoked %d grants of %+v, %v", n, tt.filter, err)
			}
			if got := grantIDs(t, db, tt.filter, 10); got != "" {
				t.Errorf("%q of %+v is left", got, tt.filter)
			}
			clearLists(t, db)
			fillLists(t, db, ada)
		}
		if _, err := db.RevokeMatching(t.Context(), records.Filter{}, epoch); err == nil {
			t.Error("an empty filter revokes all grants")
		}
		if _, err := db.RemoveMatching(t.Context(), records.Filter{}, epoch); err == nil {
			t.Error("an empty filter forgets all consents")
		}
		sessions, err := db.Sessions(t.Context(), ada, "", 10, epoch)
		if err != nil || len(sessions) != 2 || sessions[0].Name != "ada" || sessions[0].ID != "s1" || sessions[0].Remote != "192.0.2.1" {
			t.Errorf("sessions: %+v, %v", sessions, err)
		}
		if rest, err := db.Sessions(t.Context(), "", "s1", 1, epoch); err != nil || len(rest) != 1 || rest[0].ID != "s2" {
			t.Errorf("sessions after the first: %+v, %v", rest, err)
		}
	})
}

// fillLists adds grants whose IDs are the first letter of the person and that of the client.
func fillLists(t *testing.T, db *records.DB, ada string) {
	t.Helper()
	ctx, later := t.Context(), epoch.Add(time.Hour)
	for _, g := range []issuer.Grant{
		{ID: "ac", Subject: ada, ClientID: "c", Resource: "r", Expires: later},
		{ID: "ac2", Subject: ada, ClientID: "c", Resource: "r2", Expires: later},
		{ID: "ad", Subject: ada, ClientID: "d", Resource: "r", Expires: later},
		{ID: "bc", Subject: "bob", ClientID: "c", Resource: "r", Expires: later},
		{ID: "expired", Subject: ada, ClientID: "c", Resource: "r", Expires: epoch},
	} {
		g.Created = epoch
		if err := db.AddGrant(ctx, &g); err != nil {
			t.Fatal(err)
		}
		if g.ID == "ac2" {
			continue
		}
		c := issuer.Consent{Subject: g.Subject, ClientID: g.ClientID, Resource: g.Resource, Created: epoch, Expires: g.Expires}
		if g.ID == "expired" {
			c.Resource = "expired"
		}
		if err := db.SetConsent(ctx, &c); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []issuer.Session{{ID: "s1", Expires: later}, {ID: "s2", Expires: later}, {ID: "s3", Expires: epoch}} {
		s.Person, s.Remote, s.Created = issuer.Person{Subject: ada}, "192.0.2.1", epoch
		if err := db.AddSession(ctx, &s); err != nil {
			t.Fatal(err)
		}
	}
}

// clearLists sweeps after everything has expired.
func clearLists(t *testing.T, db *records.DB) {
	t.Helper()
	if _, err := db.Sweep(t.Context(), epoch.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// grantIDs reads all pages of a list.
func grantIDs(t *testing.T, db *records.DB, f records.Filter, limit int) string {
	t.Helper()
	var ids []string
	last := ""
	for {
		page, err := db.Grants(t.Context(), f, last, limit, epoch)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range page {
			last = g.ID
			ids = append(ids, g.ID)
			if want := map[bool]string{true: "ada"}[g.Subject != "bob"]; g.Name != want {
				t.Errorf("grant %s is of %q, want %q", g.ID, g.Name, want)
			}
		}
		if len(page) < limit {
			return strings.Join(ids, " ")
		}
	}
}
