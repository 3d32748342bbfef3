package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Errors of backups, for errors.Is.
var (
	// ErrNoFile says that the database is PostgreSQL, which has programs of its own for that.
	ErrNoFile = errors.New("PostgreSQL is saved by pg_dump and restored by pg_restore, not by this program")
	// ErrExists says that there is a file already where one is to be made.
	ErrExists = errors.New("there is a file of this name already")
	// ErrNoTables says that a database holds no tables of this program.
	ErrNoTables = errors.New("there are no tables of this program in it")
)

// Tables say which version the tables of a database have.
type Tables struct {
	// Version is that of the database, 0 for one without tables, Newest the one that this
	// program makes.
	Version, Newest int
	// Statements are what Open would execute to bring the tables up to date.
	Statements []string
}

// Inspect reads the version of the tables of a database, and changes nothing. The error is a
// *NewerError if a newer version of this program made them.
func Inspect(ctx context.Context, dsn string, options Options) (t *Tables, err error) {
	path, postgres, err := parseDSN(dsn)
	var db *sql.DB
	switch {
	case err != nil:
	case postgres:
		var d *DB
		if d, err = openPostgres(dsn, &options); err == nil {
			db = d.Write
		}
	default:
		db, err = readOnly(path)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	version, err := options.tablesOf(ctx, db, postgres)
	if err != nil {
		return nil, fmt.Errorf("inspect database: %w", err)
	}
	t = &Tables{Version: version, Newest: len(options.Migrations)}
	for _, migration := range options.Migrations[version:] {
		t.Statements = append(t.Statements, migration...)
	}
	return t, nil
}

// readOnly opens an SQLite file to read it.
func readOnly(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := notEmptied(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look at file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return sql.Open("sqlite", fileURL(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)", "query_only(1)"}}))
}

// tablesOf reads the version of the tables, 0 if there are none.
func (o *Options) tablesOf(ctx context.Context, db *sql.DB, postgres bool) (version int, err error) {
	exists := `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1`
	if postgres {
		exists = `SELECT count(*) FROM (SELECT to_regclass($1) AS found) AS f WHERE found IS NOT NULL`
	}
	var tables int
	if err := db.QueryRowContext(ctx, exists, o.Version).Scan(&tables); err != nil {
		return 0, o.plain(err)
	}
	if tables == 0 {
		return 0, nil
	}
	err = db.QueryRowContext(ctx, `SELECT version FROM `+o.Version).Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, o.plain(err)
	case version < 0 || version > len(o.Migrations):
		return 0, &NewerError{version, len(o.Migrations)}
	}
	return version, nil
}

// Backup writes a copy of an SQLite database, as it is at one moment, to a new file that is
// readable by its owner alone; others may read and write meanwhile. The copy is checked before
// the file gets its name. [ErrNoFile] for PostgreSQL, [ErrExists] if there is such a file.
func (d *DB) Backup(ctx context.Context, file string) error {
	if d.Dialect.Postgres {
		return fmt.Errorf("back up: %w", ErrNoFile)
	}
	err := making(file, d.options.Holds, func(part string) error {
		if err := d.copyTo(ctx, part); err != nil {
			return d.options.plain(err)
		}
		_, err := d.options.check(ctx, part)
		return err
	})
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return nil
}

// copyTo copies an SQLite database to an empty file. It has a connection of its own, since those
// for reading must not write, also to other files.
func (d *DB) copyTo(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", fileURL(d.path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(10000)"}}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, file)
	return err
}

// Restore checks a file that Backup wrote, and copies it to where the database is to be; the
// tables are brought up to date when it is opened. [ErrExists] if there is a database already,
// [ErrNoTables] if the file is none of this program.
func Restore(ctx context.Context, backup, dsn string, options Options) error {
	path, postgres, err := parseDSN(dsn)
	if postgres {
		err = ErrNoFile
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if version, err := options.check(ctx, backup); err != nil {
		return fmt.Errorf("restore: %s: %w", backup, err)
	} else if version == 0 {
		return fmt.Errorf("restore: %s: %w", backup, ErrNoTables)
	}
	for _, beside := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + beside); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("restore: %s: %w", path+beside, ErrExists)
		}
	}
	err = making(path, options.Holds, func(part string) error {
		if err := copyFile(backup, part); err != nil {
			return err
		}
		_, err := options.check(ctx, part)
		return err
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// check looks for damage in a file that nobody else uses, and returns the version of its tables.
func (o *Options) check(ctx context.Context, file string) (version int, err error) {
	db, err := readOnly(file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found); err != nil {
		return 0, o.plain(err)
	}
	if found != "ok" { // what is found may show values
		return 0, &SQLiteError{sqliteCorrupt}
	}
	return o.tablesOf(ctx, db, false)
}

// making makes a new file: write fills a part beside it, which is on the disk before it gets
// the name. After an error there is neither.
func making(file, holds string, write func(part string) error) (err error) {
	file, err = filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s: %w", file, ErrExists))
	}
	part := fmt.Sprintf("%s.%d.part", file, time.Now().UnixNano())
	if err := makeFile(part, holds); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if err := write(part); err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, file)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from) // the operator names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Compact rewrites an SQLite file without what was deleted and replaced, of which the text stays in
// the file otherwise, and empties the write-ahead log unless others read it for all the time that
// is waited. Others may read meanwhile. In PostgreSQL, which needs VACUUM FULL for that, it does
// nothing.
func (d *DB) Compact(ctx context.Context) (err error) {
	if d.Dialect.Postgres {
		return nil
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return fmt.Errorf("compact: %w", ctx.Err())
	}
	err = untilFree(ctx, d.options.Wait, func(ctx context.Context) error {
		_, err := d.Write.ExecContext(ctx, `VACUUM`)
		return err
	})
	for last := time.Now().Add(d.options.Wait); err == nil; {
		var busy, pages, written int
		err = d.Write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &written)
		if busy == 0 || time.Now().After(last) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("compact: %w", d.options.plain(err))
	}
	return nil
}
