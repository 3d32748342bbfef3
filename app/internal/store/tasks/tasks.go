// Package tasks keeps the tasks of servers in SQL, so that they survive the process:
// SQLite for processes of one machine, or PostgreSQL for several machines.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/ext/tasks"
)

// Options adjust a DB. The zero value, and nil, are good for most.
type Options struct {
	// Connections is how many connections PostgreSQL gets, beside one for each call of
	// Watch, or how many read SQLite in addition to the one that writes. Default 16, or 4.
	Connections int
	// Wait is how long SQLite waits for another process that writes.
	// Default 10 s.
	Wait time.Duration
}

// A DB is a tasks.Store. All that was answered is on the disk. Its clock is that of the
// database, to the microsecond, or of the machine to the millisecond for SQLite. Its
// errors contain neither values nor passwords. It may be used by many goroutines at once,
// and any number of processes may have the same database open.
type DB struct {
	db *database.DB
	// clock is the time in the database's SQL, and channel what PostgreSQL notifies.
	clock, channel string
	// ahead is added to the clock by tests.
	ahead *atomic.Int64
	// silence is how long the connection of Watch is silent before it is tested, and
	// answer how long that may take.
	silence, answer time.Duration

	mu       sync.Mutex
	watchers map[chan struct{}]struct{} // of SQLite, in this process
}

var _ tasks.Store = (*DB)(nil)

// Open opens a database, makes its tables or brings them up to date. dsn is the path of
// an SQLite file, also as "sqlite:PATH", or the URL of a PostgreSQL database,
// "postgres://…". A new file, which holds what clients have sent, is readable by its owner
// alone, and so is its folder if that is new too; an existing file that others can read is
// refused. Options may be nil.
func Open(ctx context.Context, dsn string, o *Options) (*DB, error) {
	options := database.Options{
		Version: "tasks_version", Migrations: migrations, Holds: "what clients have sent",
		NoRows: tasks.ErrUnknown, Known: []error{tasks.ErrUnknown, tasks.ErrLost, errFull, errValue},
	}
	if o != nil {
		options.Connections, options.Wait = o.Connections, o.Wait
	}
	db, err := database.Open(ctx, dsn, options)
	if err != nil {
		return nil, err
	}
	d := &DB{db: db, silence: 30 * time.Second, answer: 10 * time.Second, watchers: map[chan struct{}]struct{}{}}
	if !db.Dialect.Postgres {
		d.clock = "(CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)"
		return d, nil
	}
	// That of the statement: an index is not used for a time that changes meanwhile.
	d.clock = "(floor(extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"
	err = db.Find(ctx, "open database", `SELECT 'parley_tasks_' || md5(current_schema())`, nil, &d.channel)
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, err
	}
	return d, nil
}

// Close closes the database once its operations have ended. Calls of Watch end when their
// contexts do.
func (d *DB) Close() error { return d.db.Close() }

// Durable implements tasks.Store.
func (d *DB) Durable() bool { return true }

// sql is a statement in which NOW stands for the time.
func (d *DB) sql(statement string) string {
	now := d.clock
	if d.ahead != nil {
		now = fmt.Sprintf("(%s + %d)", d.clock, time.Duration(d.ahead.Load()).Microseconds())
	}
	return strings.ReplaceAll(statement, "NOW", now)
}

// plain is an error as tasks.Store wants it: those with a meaning are not wrapped.
func plain(err error) error {
	for _, known := range []error{tasks.ErrUnknown, tasks.ErrLost} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

var (
	errFull  = errors.New("no more tasks can be kept")
	errValue = errors.New("value cannot be stored")
)
