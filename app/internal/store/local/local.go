// Package local keeps what a host must remember of a person's work in one SQLite file:
// sessions, pins, grants and the audit log. It implements host.Store.
//
// # What is kept
//
// What a method has returned from survives the end of the process at any moment (kill -9),
// and a power cut too: SQLite writes with synchronous=FULL, and on macOS with fullfsync. A
// drive that reports data as written before it is may lose the last transactions, whole
// ones, and never the file.
//
// Several processes may have the file open at once. Transactions are short, and one that
// finds the file locked tries again for 10 s.
//
// # The audit log
//
// Entries are only added: triggers refuse every UPDATE and DELETE. Each has the SHA-256 of
// itself and of the hash before it; see [DB.VerifyAudit] for what that finds, and what not.
package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/host"
)

// A DB is a host.Store in a file. It may be used by many goroutines at once, and several
// processes may have the file open.
type DB struct {
	db   *database.DB
	path string
	head headFile
	// audited says that this DB added entries to the audit log.
	audited atomic.Bool
}

var _ host.Store = (*DB)(nil)

// applicationID marks the files of this package; in ASCII it is "Prly".
const applicationID = 0x50726c79

// Open opens a file, and makes it if it is not there, with its folder: the file with mode
// 0600, the folder with 0700. Beside it stand PATH-wal and PATH-shm, which SQLite needs, and
// PATH.audit with the end of the audit log.
//
// A file that others can read is refused, and so is one of a newer version, of another
// program, or one that is damaged, cut off or empty although it had entries. It then stays
// as it is, and the error says what to do.
func Open(path string) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	head := headFile{path + ".audit"}
	if err := notEmptied(path, head); err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	db, err := database.Open(context.Background(), "sqlite:"+path, database.Options{
		Version: "version", Migrations: migrations, ApplicationID: applicationID, Holds: "conversations",
		NoRows: errNoRow,
		Known: []error{
			errNoRow, host.ErrNoSession, host.ErrHasForks, host.ErrConflict, host.ErrNoBlob, host.ErrNoGrant,
			ErrAuditChanged,
		},
	})
	d := &DB{db: db, path: path, head: head}
	if err != nil {
		return nil, d.advise(fmt.Errorf("open sessions: %w", err))
	}
	return d, nil
}

// errNoRow stands for a row that is not there, within this package.
var errNoRow = errors.New("nothing is stored")

// notEmptied refuses a file that is empty or not there although the audit log had entries.
func notEmptied(path string, head headFile) error {
	n, _, err := head.read() // first: entries are added after tables are made
	if err != nil || n == 0 {
		return nil //nolint:nilerr // it is not there, or VerifyAudit says what is wrong with it
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%s is empty or not there, but %s says that its audit log had %d entries; "+
		"restore the file from a copy, or move %s away to begin anew", path, head.path, n, head.path)
}

// advise adds to an error what can be done about the file.
func (d *DB) advise(err error) error {
	damage, ok := errors.AsType[*database.SQLiteError](err)
	_, newer := errors.AsType[*database.NewerError](err)
	switch {
	case ok && damage.Damaged(), errors.Is(err, database.ErrCutOff):
		return fmt.Errorf("%w: %s is cut off, damaged, or not a file of this program; "+
			"restore it from a copy, or move it and %s elsewhere to begin anew", err, d.path, d.head.path)
	case errors.Is(err, database.ErrForeign):
		return fmt.Errorf("%w; name another file", err)
	case errors.Is(err, database.ErrEmptied):
		return fmt.Errorf("%w; restore the file from a copy, or move %s-wal and %s elsewhere to begin anew", err, d.path, d.head.path)
	case newer:
		return fmt.Errorf("%w, or move %s and %s elsewhere to begin anew", err, d.path, d.head.path)
	}
	return err
}

// Close closes the file once all operations have ended.
func (d *DB) Close() error {
	var err error
	if d.audited.Load() {
		err = d.change(context.Background(), "note the end of the audit log", func(tx *sql.Tx) error {
			n, hash, err := lastEntry(context.Background(), tx)
			if err != nil {
				return err
			}
			return d.noteHead(context.Background(), tx, n, hash)
		})
	}
	return errors.Join(err, d.db.Close())
}

// An ownError is an error of this package within a transaction. It keeps its text, while
// errors of the database lose theirs, which may show what is stored.
type ownError struct{ error }

func ownErrorf(format string, args ...any) error { return &ownError{fmt.Errorf(format, args...)} }

// change runs f in a transaction that writes; see database.DB.Change.
func (d *DB) change(ctx context.Context, doing string, f func(*sql.Tx) error) error {
	var own *ownError
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		err := f(tx)
		own, _ = errors.AsType[*ownError](err)
		return err
	})
	if own != nil {
		return fmt.Errorf("%s: %w", doing, own.error)
	}
	return d.advise(err)
}

// view runs f in a transaction that reads: all that it reads is of one moment.
func (d *DB) view(ctx context.Context, doing string, f func(*sql.Tx) error) error {
	tx, err := d.db.Read.BeginTx(ctx, nil)
	if err != nil {
		return d.advise(d.db.Plain(doing, err))
	}
	err = f(tx)
	_ = tx.Rollback() // nothing was written
	if own, ok := errors.AsType[*ownError](err); ok {
		return fmt.Errorf("%s: %w", doing, own.error)
	}
	if err != nil {
		return d.advise(d.db.Plain(doing, err))
	}
	return nil
}

// each calls f for each row of a query.
func each(ctx context.Context, tx *sql.Tx, f func(scan func(...any) error) error, query string, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// nanos is a time as it is stored: nanoseconds since 1970, 0 for none.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is what nanos stored.
func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// notNull is a value for a column that may be empty, but not NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// migrations bring the tables from one version to the next, in order. Those that were
// published never change. Times are nanoseconds since 1970, 0 for none.
var migrations = [][]string{{
	`PRAGMA application_id = ` + strconv.Itoa(applicationID),

	`CREATE TABLE session (id TEXT PRIMARY KEY, parent TEXT REFERENCES session (id), at INTEGER NOT NULL,
		title TEXT NOT NULL, created INTEGER NOT NULL) STRICT`,
	`CREATE INDEX session_parent ON session (parent)`,

	// body is JSON: see host.EncodeBody.
	`CREATE TABLE record (session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, n INTEGER NOT NULL,
		time INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (session, n)) STRICT`,
	`CREATE TRIGGER record_update BEFORE UPDATE ON record
		BEGIN SELECT RAISE(ABORT, 'records do not change'); END`,
	// REPLACE deletes without a trigger.
	`CREATE TRIGGER record_insert BEFORE INSERT ON record
		WHEN EXISTS (SELECT 1 FROM record WHERE session = NEW.session AND n = NEW.n)
		BEGIN SELECT RAISE(ABORT, 'records do not change'); END`,

	`CREATE TABLE blob (session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, name TEXT NOT NULL,
		data BLOB NOT NULL, PRIMARY KEY (session, name)) STRICT`,

	`CREATE TABLE pin (server TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, definition BLOB NOT NULL,
		time INTEGER NOT NULL, PRIMARY KEY (server, tool)) STRICT`,

	// data is a host.Grant as JSON; the times in the columns count.
	`CREATE TABLE grant_ (id TEXT PRIMARY KEY, created INTEGER NOT NULL, expires INTEGER NOT NULL,
		revoked INTEGER NOT NULL, data BLOB NOT NULL) STRICT`,
	`CREATE INDEX grant_created ON grant_ (created, id)`,

	`CREATE TABLE audit (n INTEGER PRIMARY KEY, time INTEGER NOT NULL, session TEXT NOT NULL, record INTEGER NOT NULL,
		event TEXT NOT NULL, kind TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, why TEXT NOT NULL,
		arguments TEXT NOT NULL, previous BLOB NOT NULL, hash BLOB NOT NULL) STRICT`,
	`CREATE TRIGGER audit_update BEFORE UPDATE ON audit
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TRIGGER audit_delete BEFORE DELETE ON audit
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	`CREATE TRIGGER audit_insert BEFORE INSERT ON audit
		WHEN NEW.n <> (SELECT coalesce(max(n), 0) + 1 FROM audit)
		BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END`,
	// head is the number and the hash of the last entry.
	`CREATE TABLE audit_head (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL, hash BLOB NOT NULL) STRICT`,
}}
