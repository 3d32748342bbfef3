package tasks_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/databasetest"
	store "github.com/parley-mcp/parley/app/internal/store/tasks"
	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/ext/tasks/storetest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(t testing.TB) storetest.Backend { return backend(databasetest.SQLite(t)) })
}

// PARLEY_TEST_POSTGRES names a database, such as
// postgres://127.0.0.1:5432/test?sslmode=disable.
func TestPostgres(t *testing.T) {
	t.Parallel()
	databasetest.NeedPostgres(t)
	// On a busy machine the next value of a transaction, 16 MiB, may come after the default of 10 s.
	const patient = "&idle_in_transaction_session_timeout=10min"
	storetest.Test(t, func(t testing.TB) storetest.Backend { return backend(databasetest.Postgres(t) + patient) })
}

// backend is a database with a clock that can be set.
func backend(dsn string) storetest.Backend {
	var ahead atomic.Int64
	return storetest.Backend{
		Open: func(t testing.TB) tasks.Store {
			db := open(t, dsn)
			store.SetAhead(db, &ahead)
			return db
		},
		Advance: func(d time.Duration) { ahead.Add(int64(d)) },
	}
}

func open(t testing.TB, dsn string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), dsn, &store.Options{Connections: databasetest.Connections})
	return databasetest.Opened(t, db, err)
}
