// Package records keeps what an authorization server must remember, and its
// users, in SQL: SQLite in the process, or PostgreSQL for several processes.
package records

import (
	"context"
	"errors"
	"time"

	"github.com/parley-mcp/parley/app/store/database"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// Options adjust a DB. The zero value, and nil, are good for most.
type Options struct {
	// Connections is how many connections PostgreSQL gets, or how many read
	// SQLite in addition to the one that writes. Default 16, or 4.
	Connections int
	// Wait is how long SQLite waits for another process that writes.
	// Default 10 s.
	Wait time.Duration
}

// A DB is an issuer.Store, and the users of an authorization server. All that
// was answered is on the disk. Its errors never contain values. It may be used
// by many goroutines at once, and any number of processes may have the same
// database open.
type DB struct{ db *database.DB }

var (
	_ issuer.Store    = (*DB)(nil)
	_ issuer.Subjects = (*DB)(nil)
)

// Open opens a database, makes its tables or brings them up to date. dsn is
// the path of an SQLite file, also as "sqlite:PATH", or the URL of a
// PostgreSQL database, "postgres://…". A new file, which holds private keys,
// is readable by its owner alone, and so is its folder if that is new too; an
// existing file that others can read is refused. Options may be nil.
func Open(ctx context.Context, dsn string, o *Options) (*DB, error) {
	options := database.Options{
		Version: "schema_version", Migrations: migrations, Holds: "private keys", NoRows: issuer.ErrNotFound,
		Known: []error{
			issuer.ErrNotFound, issuer.ErrFull, issuer.ErrConsumed, issuer.ErrReused, issuer.ErrRevoked, ErrExists, errTaken,
		},
	}
	if o != nil {
		options.Connections, options.Wait = o.Connections, o.Wait
	}
	db, err := database.Open(ctx, dsn, options)
	if err != nil {
		return nil, err
	}
	return &DB{db: db}, nil
}

// Close closes the database once its operations have ended.
func (d *DB) Close() error { return d.db.Close() }

// registering is the kind of transactions that add dynamic clients.
const registering = 0x7061726c65790002

var errTaken = errors.New("there already")

// unix is a time as it is stored: whole seconds, 0 for none.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// moment is what unix stored.
func moment(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
