package records_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	"github.com/parley-mcp/parley/app/internal/store/records"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/issuer/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(t testing.TB) issuer.Store { return open(t, databasetest.SQLite(t)) })
}

// PARLEY_TEST_POSTGRES names a database, such as
// postgres://127.0.0.1:5432/test?sslmode=disable.
func TestPostgres(t *testing.T) {
	t.Parallel()
	databasetest.NeedPostgres(t)
	storetest.Test(t, func(t testing.TB) issuer.Store { return open(t, databasetest.Postgres(t)) })
}

// With all connections there already, transactions truly run at once.
func TestWarmRace(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := open(t, dsn)
		for round := range 10 {
			id := strconv.Itoa(round)
			if err := errors.Join(
				db.AddGrant(t.Context(), &issuer.Grant{ID: id, ClientID: "c", Created: epoch, Expires: epoch.Add(time.Hour)}),
				db.AddGrant(t.Context(), &issuer.Grant{ID: "code " + id, ClientID: "c", Created: epoch, Expires: epoch.Add(time.Hour)}),
				db.AddCode(t.Context(), id, &issuer.Code{Grant: "code " + id, ClientID: "c", Expires: epoch.Add(time.Minute)}),
				db.AddRefresh(t.Context(), id, newRefresh(id)),
				db.SetRecord(t.Context(), "k", id, nil, epoch.Add(time.Minute)),
			); err != nil {
				t.Fatal(err)
			}
			for what, take := range map[string]func(i int) error{
				"record": func(int) error { _, err := db.TakeRecord(t.Context(), "k", id, epoch); return err },
				"code":   func(int) error { _, err := db.ConsumeCode(t.Context(), id, epoch); return err },
				"refresh": func(i int) error {
					return db.RotateRefresh(t.Context(), id, id+" "+strconv.Itoa(i), newRefresh(id), 0, epoch)
				},
			} {
				if n := winners(take); n != 1 {
					t.Errorf("%d callers got the one %s", n, what)
				}
			}
		}
	})
}

// winners is how many of several callers at once got no error.
func winners(f func(i int) error) int {
	var n atomic.Int32
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range 16 {
		wg.Go(func() {
			<-gate
			if f(i) == nil {
				n.Add(1)
			}
		})
	}
	close(gate)
	wg.Wait()
	return int(n.Load())
}

func open(t testing.TB, dsn string) *records.DB {
	t.Helper()
	db, err := records.Open(t.Context(), dsn, &records.Options{Connections: databasetest.Connections})
	return databasetest.Opened(t, db, err)
}
