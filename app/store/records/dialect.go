package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// A dialect is where the two databases differ. Both take $1 for the first
// value, ON CONFLICT and RETURNING.
type dialect struct {
	// bytes is the type of a column of bytes.
	bytes string
	// lock ends a SELECT whose row is to be changed: in SQLite the transaction
	// has the whole database from its beginning.
	lock string
	// alone is a statement after which a transaction is the only one of its
	// kind ($1, a number) until it ends; empty where that goes without saying.
	serialize string
}

// Kinds of transactions of which there is one at a time.
const (
	migrating   = 0x7061726c65790001
	registering = 0x7061726c65790002
)

// serialize waits until no other transaction of this kind runs.
func (d *DB) serialize(ctx context.Context, tx *sql.Tx, kind int64) error {
	if d.dialect.serialize == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, d.dialect.serialize, kind)
	return err
}

func openPostgres(dsn string, o Options) (*DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("URL of the database cannot be read") // its error may show a password
	}
	if config.RuntimeParams["synchronous_commit"] == "" {
		// A code that was consumed stays so if the machine loses power.
		config.RuntimeParams["synchronous_commit"] = "on"
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	if o.Connections < 1 {
		o.Connections = 16
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(o.Connections)
	db.SetMaxIdleConns(o.Connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return &DB{write: db, read: db, dialect: dialect{
		bytes: "BYTEA", lock: " FOR UPDATE", serialize: "SELECT pg_advisory_xact_lock($1)",
	}}, nil
}

func openSQLite(ctx context.Context, path string, o Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makeFile(path); err != nil {
		return nil, err
	}
	wait := "busy_timeout(" + strconv.FormatInt(o.Wait.Milliseconds(), 10) + ")"
	write, err := sql.Open("sqlite", fileURL(path, url.Values{
		// A reader that turns into a writer would have to begin anew.
		"_txlock": {"immediate"},
		// FULL, and what macOS calls full: with less a power cut could bring a
		// consumed code back.
		"_pragma": {wait, "journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)", "foreign_keys(1)"},
	}))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	// WAL is a property of the file, and must be set before the first read.
	if err := untilFree(ctx, o.Wait, write.PingContext); err != nil {
		return nil, errors.Join(plain(err), write.Close())
	}
	read, err := sql.Open("sqlite", fileURL(path, url.Values{"_pragma": {wait, "query_only(1)"}}))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	if o.Connections < 1 {
		o.Connections = 4
	}
	read.SetMaxOpenConns(o.Connections)
	read.SetMaxIdleConns(o.Connections)
	return &DB{write: write, read: read, dialect: dialect{bytes: "BLOB"}}, nil
}

// untilFree does what SQLite does not wait for by itself: the change to WAL is
// refused at once while another program writes to the file, or makes the same
// change.
func untilFree(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	last := time.Now().Add(wait)
	for {
		err := f(ctx)
		e, ok := errors.AsType[*sqlite.Error](err)
		if !ok || e.Code()&0xff != sqliteBusy || time.Now().After(last) {
			return err
		}
		pause := time.NewTimer(rand.N(20 * time.Millisecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// sqliteBusy is the primary result code of a locked file.
const sqliteBusy = 5

// fileURL is how SQLite is told a path, whatever characters are in it.
func fileURL(path string, q url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// makeFile makes the file, for its owner alone, before SQLite does with the
// permissions that files usually have. SQLite gives its other files the same.
func makeFile(path string) error {
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
		return fmt.Errorf("anybody can put files beside %s, which holds private keys; choose a folder of your own", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be read by others, and holds private keys; chmod 600 it", path)
	}
	return nil
}

// plain is an error without values in it: drivers put rows, parameters and
// connection strings into theirs.
func plain(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return issuer.ErrNotFound
	}
	for _, known := range []error{
		issuer.ErrNotFound, issuer.ErrFull, issuer.ErrConsumed, issuer.ErrReused, issuer.ErrRevoked, ErrExists,
		errUnreadable, errTaken, errNewer, context.Canceled, context.DeadlineExceeded, sql.ErrConnDone, sql.ErrTxDone,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return errors.New("PostgreSQL answers " + e.Code + meanings[e.Code])
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return errors.New("SQLite answers " + strconv.Itoa(e.Code()))
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e // it shows addresses alone
	}
	return fmt.Errorf("database fails (%T)", err)
}

// meanings are what an operator can do something about.
var meanings = map[string]string{
	"28000": ": this user may not come in",
	"28P01": ": user or password is wrong",
	"3D000": ": there is no such database",
	"3F000": ": there is no such schema; see search_path in the URL",
	"42501": ": this user may not do that",
	"53300": ": it has too many connections",
}

// lost says whether a transaction lost to another one, and may be tried again.
func lost(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01") // serialization, deadlock
}

var (
	errUnreadable = errors.New("what is stored cannot be read")
	errTaken      = errors.New("there already")
)
