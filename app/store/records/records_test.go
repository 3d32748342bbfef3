package records_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-mcp/parley/app/store/records"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
	"github.com/parley-mcp/parley/oauth/issuer/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(t testing.TB) issuer.Store { return open(t, newSQLite(t)) })
}

// PARLEY_TEST_POSTGRES names a database, such as
// postgres://127.0.0.1:5432/test?sslmode=disable.
func TestPostgres(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	storetest.Test(t, func(t testing.TB) issuer.Store { return open(t, newPostgres(t)) })
}

// With all connections there already, transactions truly run at once.
func TestWarmRace(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(testing.TB) string{"sqlite": newSQLite, "postgres": newPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, make(t))
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
	db, err := records.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newSQLite(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "state", "records ?#%.db")
}

func needPostgres(t testing.TB) {
	if os.Getenv("PARLEY_TEST_POSTGRES") == "" {
		t.Skip("PARLEY_TEST_POSTGRES names no database")
	}
}

// newPostgres makes a schema of its own, which goes with the test.
func newPostgres(t testing.TB) string {
	t.Helper()
	needPostgres(t)
	u, err := url.Parse(os.Getenv("PARLEY_TEST_POSTGRES"))
	if err != nil {
		t.Fatal(err)
	}
	schema := "parley_" + oauth.NewSecret()
	run := func(statement string) {
		t.Helper()
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, u.String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, statement+pgx.Identifier{schema}.Sanitize()+map[bool]string{true: " CASCADE"}[statement == "DROP SCHEMA "]); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE SCHEMA ")
	t.Cleanup(func() { run("DROP SCHEMA ") })
	own := *u
	q := own.Query()
	q.Set("search_path", `"`+schema+`"`)
	own.RawQuery = q.Encode()
	return own.String()
}
