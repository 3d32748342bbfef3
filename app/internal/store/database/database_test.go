package database_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/app/internal/store/databasetest"
)

var options = database.Options{
	Version:    "version",
	Migrations: [][]string{{`CREATE TABLE t (id NUMBERED NOT NULL, data BYTES NOT NULL)`}, {`INSERT INTO t (data) VALUES ('x')`}},
	Holds:      "nothing", NoRows: errors.New("no rows"),
}

// A migration is made once, however often the database is opened, and a transaction that
// fails changes nothing.
func TestChange(t *testing.T) {
	t.Parallel()
	databasetest.Each(t, func(t *testing.T, dsn string) {
		var db *database.DB
		for range 2 {
			opened, err := database.Open(t.Context(), dsn, options)
			db = databasetest.Opened(t, opened, err)
		}
		known := errors.New("known")
		with := options
		with.Known = []error{known}
		opened, err := database.Open(t.Context(), dsn, with)
		other := databasetest.Opened(t, opened, err)
		err = other.Change(t.Context(), "count", func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `UPDATE t SET data = $1`, []byte("changed"))
			return errors.Join(err, known)
		})
		if !errors.Is(err, known) || err.Error() != "count: known" {
			t.Errorf("error %v", err)
		}
		var data []byte
		if err := db.Find(t.Context(), "look", `SELECT data FROM t`, nil, &data); err != nil || string(data) != "x" {
			t.Errorf("%q, error %v", data, err)
		}
		if err := db.Find(t.Context(), "look", `SELECT data FROM t WHERE id = 7`, nil, &data); !errors.Is(err, options.NoRows) {
			t.Errorf("error %v", err)
		}
	})
}

// A process that is stopped in the middle of a transaction holds what it has locked for a
// bounded time.
func TestPostgresStoppedTransaction(t *testing.T) {
	t.Parallel()
	dsn := databasetest.Postgres(t)
	opened, err := database.Open(t.Context(), dsn, options)
	db := databasetest.Opened(t, opened, err)
	var limit string
	if err := db.Find(t.Context(), "look", `SHOW idle_in_transaction_session_timeout`, nil, &limit); err != nil || limit != "10s" {
		t.Errorf("transactions may be idle for %q, error %v", limit, err)
	}
	opened, err = database.Open(t.Context(), dsn+"&idle_in_transaction_session_timeout=50ms", options)
	stopped := databasetest.Opened(t, opened, err)
	err = stopped.Change(t.Context(), "stop", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(t.Context(), `UPDATE t SET data = 'lost'`); err != nil {
			return err
		}
		if _, err := db.Exec(t.Context(), "change", `UPDATE t SET data = 'kept' WHERE data = 'x'`); err != nil {
			t.Errorf("the other process: %v", err)
		}
		_, err := tx.ExecContext(context.WithoutCancel(t.Context()), `SELECT 1`)
		return err
	})
	if err == nil || !strings.HasPrefix(err.Error(), "stop: ") || strings.Contains(err.Error(), "fails") {
		t.Errorf("the stopped process: error %v", err)
	}
	var data []byte
	if err := db.Find(t.Context(), "look", `SELECT data FROM t`, nil, &data); err != nil || string(data) != "kept" {
		t.Errorf("%q, error %v", data, err)
	}
}
