package records_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// A scope that goes is taken out of each grant, of however many, and its consents go; other resources
// keep theirs.
func TestDropScopes(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		opened, err := records.Open(t.Context(), dsn, nil)
		db := databasetest.Opened(t, opened, err)
		ctx, until := t.Context(), epoch.Add(time.Hour)
		const uri, other = "https://a.example/", "https://b.example/"
		if err := db.CreateResource(ctx, &issuer.Resource{URI: uri, Scopes: []issuer.Scope{{Name: "read"}, {Name: "write", Implies: []string{"read"}}}}, epoch); err != nil {
			t.Fatal(err)
		}
		const grants = 1203
		for i := range grants {
			g := &issuer.Grant{ID: "g" + strconv.Itoa(i), ClientID: "c", Subject: "p", Scopes: []string{"read", "write"}, Resource: uri, Created: epoch, Expires: until}
			if i == 0 {
				g.Resource = other
			}
			if err := db.AddGrant(ctx, g); err != nil {
				t.Fatal(err)
			}
		}
		for client, scopes := range map[string][]string{"c": {"read", "write"}, "d": {"read"}} {
			if err := db.SetConsent(ctx, &issuer.Consent{Subject: "p", ClientID: client, Resource: uri, Scopes: scopes, Created: epoch, Expires: until}); err != nil {
				t.Fatal(err)
			}
		}
		refused := errors.New("no")
		if err := db.ChangeResource(ctx, uri, epoch, func(r *issuer.Resource) error { r.Scopes = nil; return refused }); !errors.Is(err, refused) {
			t.Errorf("a change that is refused: %v", err)
		}
		if err := db.ChangeResource(ctx, uri, epoch, func(r *issuer.Resource) error { r.Scopes = r.Scopes[:1]; return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range grants {
			g, err := db.Grant(ctx, "g"+strconv.Itoa(i), epoch)
			want := []string{"read"}
			if i == 0 {
				want = []string{"read", "write"}
			}
			if err != nil || !slices.Equal(g.Scopes, want) {
				t.Fatalf("grant %d: %+v, %v", i, g, err)
			}
		}
		if _, err := db.Consent(ctx, "p", "c", uri, epoch); !errors.Is(err, issuer.ErrNotFound) {
			t.Errorf("the consent with the scope: %v", err)
		}
		if _, err := db.Consent(ctx, "p", "d", uri, epoch); err != nil {
			t.Errorf("the consent without the scope: %v", err)
		}
		if r, err := db.Resource(ctx, uri); err != nil || len(r.Scopes) != 1 {
			t.Errorf("the resource is %+v, %v", r, err)
		}
	})
}

// Groups of a sign-in at another provider stand for those before, also for what was granted before.
func TestGroupsNow(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		opened, err := records.Open(t.Context(), dsn, nil)
		db := databasetest.Opened(t, opened, err)
		now := func(want ...string) {
			t.Helper()
			got, err := db.GroupsNow(t.Context(), "there|7", []string{"of the grant"})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("the groups are %q, %v, want %q", got, err, want)
			}
		}
		now("of the grant")
		for _, groups := range [][]string{{"editors", "a, b"}, {"a, b"}, nil} {
			if err := db.SetLoginGroups(t.Context(), "there|7", groups); err != nil {
				t.Fatal(err)
			}
			now(groups...)
		}
		if _, err := db.AddToGroup(t.Context(), "own", "there|7"); err != nil {
			t.Fatal(err)
		}
		now("own")
		_, err = db.AddToGroup(t.Context(), "another", "there|7")
		if err := errors.Join(err, db.SetLoginGroups(t.Context(), "there|7", []string{"editors", "a, b"})); err != nil {
			t.Fatal(err)
		}
		now("editors", "a, b", "another", "own")
	})
}

// There are so many resources, and no more.
func TestTooManyResources(t *testing.T) {
	t.Parallel()
	opened, err := records.Open(t.Context(), databasetest.All["sqlite"](t), nil)
	db := databasetest.Opened(t, opened, err)
	for i := range records.MaxResources + 1 {
		err := db.CreateResource(t.Context(), &issuer.Resource{URI: "https://a.example/" + strconv.Itoa(i)}, epoch)
		if i < records.MaxResources && err != nil || i == records.MaxResources && !errors.Is(err, records.ErrTooMany) {
			t.Fatalf("resource %d: %v", i, err)
		}
	}
	if all, err := db.Resources(t.Context()); err != nil || len(all) != records.MaxResources {
		t.Errorf("%d resources, %v", len(all), err)
	}
}
