// Package database opens SQLite and PostgreSQL for stores, with tables that are brought up
// to date, transactions that are tried again, and errors that show no values.
package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Options say what a store needs.
type Options struct {
	// Connections is how many connections PostgreSQL gets, or how many read
	// SQLite in addition to the one that writes. Default 16, or 4.
	Connections int
	// Wait is how long SQLite waits for another process that writes.
	// Default 10 s.
	Wait time.Duration

	// Version is the name of the table that has the version of the others.
	Version string
	// Migrations bring the tables from one version to the next, in order. BYTES
	// stands for the type of bytes, NUMBERED for a primary key that counts.
	Migrations [][]string
	// ApplicationID marks SQLite files as those of this store: the first of Migrations must
	// set it ("PRAGMA application_id = ..."). A file that has tables but another id is
	// [ErrForeign], and stays as it is. Default: files are not looked at.
	ApplicationID int32
	// Holds names the secrets in the tables.
	Holds string
	// NoRows is the error for a row that is not there, and Known are others of
	// the store: both hold no values.
	NoRows error
	Known  []error
	// Observe is told of each operation by its name, one of a fixed set: it returns the context of the
	// operation, and what is called with its error once it has ended. Default: nobody is told.
	Observe func(ctx context.Context, operation string) (context.Context, func(error))
}

// A DB is an open database. It may be used by many goroutines at once, and any
// number of processes may have the same database open.
type DB struct {
	// Write is for transactions that write, Read for single statements that do not.
	Write, Read *sql.DB
	// Dialect says how to speak to it.
	Dialect Dialect

	options Options
	config  *pgx.ConnConfig // of PostgreSQL
	path    string          // of SQLite
	// turn is held by the transaction that writes SQLite. Others get it in the order in
	// which they came, so that none waits for much longer than the rest.
	turn chan struct{}
	// doubt says that the database may not take changes: none was made yet by CheckWrites, or one
	// failed since then.
	doubt atomic.Bool
}

// Open opens a database, makes its tables or brings them up to date. dsn is
// the path of an SQLite file, also as "sqlite:PATH", or the URL of a
// PostgreSQL database, "postgres://…". A new file is readable by its owner
// alone, and so is its folder if that is new too; an existing file that others
// can read is refused.
func Open(ctx context.Context, dsn string, options Options) (*DB, error) {
	options.Wait = cmp.Or(options.Wait, 10*time.Second)
	var d *DB
	path, postgres, err := parseDSN(dsn)
	switch {
	case err != nil:
	case postgres:
		d, err = openPostgres(dsn, &options)
	default:
		d, err = openSQLite(ctx, path, &options)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d.options = options
	d.doubt.Store(true)
	if err := d.migrate(ctx); err != nil {
		_ = d.Close() // the first error says more
		return nil, fmt.Errorf("open database: %w", err)
	}
	return d, nil
}

// Missing is the path of the SQLite file that a dsn names, if it is not there: [Open] would make it.
// It is empty if the file is there, and for PostgreSQL.
func Missing(dsn string) (path string, err error) {
	path, postgres, err := parseDSN(dsn)
	if err != nil || postgres {
		return "", err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return "", nil // what else may be wrong Open says
}

// parseDSN says whether a dsn is the URL of a PostgreSQL database, or else the path of an SQLite file.
func parseDSN(dsn string) (path string, postgres bool, err error) {
	switch scheme, rest, _ := strings.Cut(dsn, ":"); scheme {
	case "":
		return "", false, errors.New("neither a path nor a URL")
	case "postgres", "postgresql":
		return "", true, nil
	case "sqlite":
		return rest, false, nil
	default:
		if strings.HasPrefix(rest, "//") {
			return "", false, errors.New("the URL must begin with postgres://") // it may hold a password
		}
		return dsn, false, nil
	}
}

// Close closes the database once its operations have ended.
func (d *DB) Close() error {
	err := d.Write.Close()
	if d.Read != d.Write {
		err = errors.Join(err, d.Read.Close())
	}
	if err != nil {
		return fmt.Errorf("close database: %w", d.options.plain(err))
	}
	return nil
}

// Observe tells Options.Observe of an operation. The errors of the store are answers, and told as
// none.
func (d *DB) Observe(ctx context.Context, operation string) (context.Context, func(error)) {
	if d.options.Observe == nil {
		return ctx, func(error) {}
	}
	ctx, ended := d.options.Observe(ctx, operation)
	return ctx, func(err error) {
		if d.options.isAnswer(err) {
			err = nil
		}
		ended(err)
	}
}

// isAnswer says whether an error is one of the store.
func (o *Options) isAnswer(err error) bool {
	return errors.Is(err, sql.ErrNoRows) || o.NoRows != nil && errors.Is(err, o.NoRows) ||
		slices.ContainsFunc(o.Known, func(known error) bool { return errors.Is(err, known) })
}

// maxTries is how often a transaction is tried that lost to another one.
const maxTries = 8

// Change runs f in a transaction, again if another transaction was in its way.
// If f returns an error nothing has changed.
func (d *DB) Change(ctx context.Context, doing string, f func(*sql.Tx) error) (err error) {
	ctx, ended := d.Observe(ctx, doing)
	defer func() { ended(err) }()
	for try := 1; ; try++ {
		err := d.once(ctx, f)
		if err == nil {
			return nil
		}
		if cannotWrite(err) {
			d.doubt.Store(true)
		}
		if try == maxTries || !lost(err) {
			return fmt.Errorf("%s: %w", doing, d.options.plain(err))
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

// CheckWrites runs f, which writes and takes back what it wrote, when the database is opened and after
// changes that failed since it was full or could only be read. Otherwise it does nothing, so that it can
// be asked often. Its error says that changes fail.
func (d *DB) CheckWrites(ctx context.Context, doing string, f func(*sql.Tx) error) error {
	if !d.doubt.Swap(false) { // a change that fails meanwhile sets it again
		return nil
	}
	err := d.Change(ctx, doing, f)
	if err != nil {
		d.doubt.Store(true)
	}
	return err
}

func (d *DB) once(ctx context.Context, f func(*sql.Tx) error) error {
	if d.turn != nil {
		select {
		case d.turn <- struct{}{}:
			defer func() { <-d.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	tx, err := d.begin(ctx)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // f has failed; a transaction that is not committed is not there
		return err
	}
	return tx.Commit()
}

// begin begins a transaction. What SQLite does by itself is to look ten times a second
// whether another process still writes: where that writes much it is found writing for long.
func (d *DB) begin(ctx context.Context) (tx *sql.Tx, err error) {
	if d.Dialect.Postgres {
		return d.Write.BeginTx(ctx, nil)
	}
	err = untilFree(ctx, d.options.Wait, func(ctx context.Context) (err error) {
		tx, err = d.Write.BeginTx(ctx, nil)
		return err
	})
	return tx, err
}

// Exec runs one statement in a transaction and returns how many rows it changed.
func (d *DB) Exec(ctx context.Context, doing, statement string, args ...any) (int, error) {
	var n int64
	err := d.Change(ctx, doing, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return int(n), err
}

// Find reads one row, or returns Options.NoRows.
func (d *DB) Find(ctx context.Context, doing, statement string, args []any, into ...any) (err error) {
	ctx, ended := d.Observe(ctx, doing)
	defer func() { ended(err) }()
	if err := d.Read.QueryRowContext(ctx, statement, args...).Scan(into...); err != nil {
		return fmt.Errorf("%s: %w", doing, d.options.plain(err))
	}
	return nil
}

// Plain is an error that names what was being done and shows no values.
func (d *DB) Plain(doing string, err error) error {
	return fmt.Errorf("%s: %w", doing, d.options.plain(err))
}

// Serialize waits until no other transaction of this kind runs, in any process.
func (d *DB) Serialize(ctx context.Context, tx *sql.Tx, kind int64) error {
	if !d.Dialect.Postgres {
		return nil // there is one writer
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", kind)
	return err
}

// Connect makes a connection to PostgreSQL beside those of Write and Read.
func (d *DB) Connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, d.config.Copy())
}

// plain is an error without values in it: drivers put rows, parameters and
// connection strings into theirs.
func (o *Options) plain(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return o.NoRows
	}
	for _, known := range slices.Concat(o.Known, usual) {
		if errors.Is(err, known) {
			return known
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return errors.New("PostgreSQL answers " + e.Code + meanings[e.Code])
	}
	if e, ok := errors.AsType[*NewerError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return &SQLiteError{e.Code()}
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e // it shows addresses alone
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e // it shows the host alone
	}
	if pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection to the database was lost; try again")
	}
	return fmt.Errorf("database fails (%T)", err)
}
