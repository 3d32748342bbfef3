package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// A Dialect is where the two databases differ. Both take $1 for the first
// value, ON CONFLICT and RETURNING.
type Dialect struct {
	// Postgres says that it is PostgreSQL.
	Postgres bool
	// Lock ends a SELECT whose row is to be changed, Share one whose row is to stay as it is until the
	// transaction ends: in SQLite the transaction has the whole database from its beginning.
	Lock, Share string
	// types are what stands in migrations for those of this database.
	types *strings.Replacer
}

// migrating is the kind of transactions that change tables: see Serialize.
const migrating = 0x7061726c65790001

func openPostgres(dsn string, o *Options) (*DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("URL of the database cannot be read") // its error may show a password
	}
	if config.RuntimeParams["synchronous_commit"] == "" {
		// What was answered is there after the machine lost power.
		config.RuntimeParams["synchronous_commit"] = "on"
	}
	if config.RuntimeParams["idle_in_transaction_session_timeout"] == "" {
		// A process that is stopped in the middle of a transaction holds up others.
		config.RuntimeParams["idle_in_transaction_session_timeout"] = "10s"
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	connections := o.Connections
	if connections < 1 {
		connections = 16
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return &DB{Write: db, Read: db, config: config, Dialect: Dialect{
		Postgres: true, Lock: " FOR UPDATE", Share: " FOR SHARE",
		types: strings.NewReplacer(" BYTES ", " BYTEA ", " NUMBERED ", " BIGSERIAL PRIMARY KEY "),
	}}, nil
}

func openSQLite(ctx context.Context, path string, o *Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := notEmptied(path); err != nil {
		return nil, err
	}
	if err := makeFile(path, o.Holds); err != nil {
		return nil, err
	}
	if err := checkFile(ctx, path, o); err != nil {
		return nil, err
	}
	wait := "busy_timeout(" + strconv.FormatInt(o.Wait.Milliseconds(), 10) + ")"
	write, err := sql.Open("sqlite", fileURL(path, url.Values{
		// A reader that turns into a writer would have to begin anew.
		"_txlock": {"immediate"},
		// FULL, and what macOS calls full: with less a power cut could take back
		// what was answered.
		"_pragma": {"busy_timeout(2)", // see begin
			"journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)", "foreign_keys(1)"},
	}))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	// WAL is a property of the file, and must be set before the first read.
	if err := untilFree(ctx, o.Wait, write.PingContext); err != nil {
		return nil, errors.Join(o.plain(err), write.Close())
	}
	read, err := sql.Open("sqlite", fileURL(path, url.Values{"_pragma": {wait, "query_only(1)"}}))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	connections := o.Connections
	if connections < 1 {
		connections = 4
	}
	read.SetMaxOpenConns(connections)
	read.SetMaxIdleConns(connections)
	return &DB{Write: write, Read: read, path: path, turn: make(chan struct{}, 1), Dialect: Dialect{
		types: strings.NewReplacer(" BYTES ", " BLOB ", " NUMBERED ", " INTEGER PRIMARY KEY AUTOINCREMENT "),
	}}, nil
}

// untilFree does what SQLite does not wait for by itself, or not well: the change to WAL is
// refused at once while another program writes to the file, or makes the same change; see
// also begin. The pauses are short, since a file that is much used is free for short times.
func untilFree(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	last := time.Now().Add(wait)
	for {
		err := f(ctx)
		e, ok := errors.AsType[*sqlite.Error](err)
		if !ok || e.Code()&0xff != sqliteBusy || time.Now().After(last) {
			return err
		}
		pause := time.NewTimer(rand.N(2 * time.Millisecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// Primary result codes of SQLite.
const (
	sqliteBusy       = 5
	sqliteReadOnly   = 8
	sqliteIO         = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteNoDatabase = 26
)

// fileURL is how SQLite is told a path, whatever characters are in it.
func fileURL(path string, q url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// notEmptied refuses an empty file with a write-ahead log: SQLite would delete the log. A file
// that another process makes has its first page before its log, so the log is looked at first.
func notEmptied(path string) error {
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return nil //nolint:nilerr // makeFile finds what is wrong with the folder
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return fmt.Errorf("%s: %w", path, ErrEmptied)
	}
	return nil
}

// checkFile refuses a file of another program, and one that ends in the middle of a page,
// before anything is written to it.
func checkFile(ctx context.Context, path string, o *Options) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	if info.Size() == 0 || o.ApplicationID == 0 {
		return nil
	}
	db, err := sql.Open("sqlite", fileURL(path, url.Values{"mode": {"ro"}}))
	if err != nil {
		return err
	}
	var id, tables, page int64
	err = untilFree(ctx, o.Wait, func(ctx context.Context) error {
		return db.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema), page_size
			FROM pragma_application_id, pragma_page_size`).Scan(&id, &tables, &page)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return o.plain(err)
	}
	if tables > 0 && id != int64(o.ApplicationID) {
		return fmt.Errorf("%s: %w", path, ErrForeign)
	}
	return wholePages(path, page)
}

// wholePages refuses a file that ends in the middle of a page, unless its write-ahead log may
// have the page: SQLite would take the rest of the page for zeros.
func wholePages(path string, page int64) error {
	for range 2 { // another process may have been writing the page, and closed the file
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("look at file: %w", err)
		}
		log, err := os.Stat(path + "-wal")
		if info.Size()%page == 0 || err == nil && log.Size() > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", path, ErrCutOff)
}

// makeFile makes the file, for its owner alone, before SQLite does with the
// permissions that files usually have. SQLite gives its other files the same.
func makeFile(path, holds string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	// SQLite uses files next to the database if there are any: in a folder that
	// others may write to, they could be a stranger's, who reads what is in them.
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("look at folder: %w", err)
	}
	if runtime.GOOS != "windows" && folder.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("anybody can put files beside %s, which holds %s; choose a folder of your own", path, holds)
	}
	// A file that is there is not opened: to close it would end the locks that this process
	// has on it (fcntl).
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make file: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be read by others, and holds %s; chmod 600 it", path, holds)
	}
	return nil
}
