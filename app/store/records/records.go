// Package records keeps what an authorization server must remember, and its
// users, in SQL: SQLite in the process, or PostgreSQL for several processes.
package records

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

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
type DB struct {
	write, read *sql.DB
	dialect     dialect
}

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
	var options Options
	if o != nil {
		options = *o
	}
	options.Wait = cmp.Or(options.Wait, 10*time.Second)
	var d *DB
	var err error
	switch scheme, rest, _ := strings.Cut(dsn, ":"); scheme {
	case "":
		return nil, errors.New("open database: neither a path nor a URL")
	case "postgres", "postgresql":
		d, err = openPostgres(dsn, options)
	case "sqlite":
		d, err = openSQLite(ctx, rest, options)
	default:
		if strings.HasPrefix(rest, "//") {
			return nil, errors.New("open database: the URL must begin with postgres://") // it may hold a password
		}
		d, err = openSQLite(ctx, dsn, options)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := d.migrate(ctx); err != nil {
		_ = d.Close() // the first error says more
		return nil, fmt.Errorf("open database: %w", err)
	}
	return d, nil
}

// Close closes the database once its operations have ended.
func (d *DB) Close() error {
	err := d.write.Close()
	if d.read != d.write {
		err = errors.Join(err, d.read.Close())
	}
	if err != nil {
		return fmt.Errorf("close database: %w", plain(err))
	}
	return nil
}

// maxTries is how often a transaction is tried that lost to another one.
const maxTries = 8

// change runs f in a transaction, again if another transaction was in its way.
// If f returns an error nothing has changed.
func (d *DB) change(ctx context.Context, doing string, f func(*sql.Tx) error) error {
	for try := 1; ; try++ {
		err := d.once(ctx, f)
		if err == nil {
			return nil
		}
		if try == maxTries || !lost(err) {
			return fmt.Errorf("%s: %w", doing, plain(err))
		}
		pause := time.NewTimer(rand.N(time.Duration(try) * 10 * time.Millisecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%s: %w", doing, ctx.Err())
		}
	}
}

func (d *DB) once(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // f has failed; a transaction that is not committed is not there
		return err
	}
	return tx.Commit()
}

// exec runs one statement in a transaction and returns how many rows it changed.
func (d *DB) exec(ctx context.Context, doing, statement string, args ...any) (int, error) {
	var n int64
	err := d.change(ctx, doing, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return int(n), err
}

// find reads one row, or returns issuer.ErrNotFound.
func (d *DB) find(ctx context.Context, doing, statement string, args []any, into ...any) error {
	if err := d.read.QueryRowContext(ctx, statement, args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", doing, plain(err))
	}
	return nil
}

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
