// Package records keeps what an authorization server must remember, and its
// users, in SQL: SQLite in the process, or PostgreSQL for several processes.
package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/app/internal/store/seal"
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
	// Observe is told of each operation by its name, such as "read client", one of a fixed set: it
	// returns the context of the operation, and what is called with its error once it has ended.
	// Default: nobody is told.
	Observe func(ctx context.Context, operation string) (context.Context, func(error))
	// SecretsKey wraps the key that seals the secrets which are read back: private keys, and what
	// waits for a person. With it Open seals those that are there, and from then on the database
	// can be served with it alone. Default: none; then they are in clear, or cannot be read.
	SecretsKey seal.Wrapper
}

// A DB is an issuer.Store, and the users of an authorization server. Once a method has returned, its change
// is on the disk. Errors never contain values. A DB is safe for concurrent use, and any number of processes
// can have the same database open.
type DB struct {
	*base
	clients
	grants
	users
}

// A base is the database with the keys that seal values in it. The other parts of a DB embed it.
type base struct {
	db    *database.DB
	vault vault
	pause func(context.Context, time.Duration) error // sleep, or a test's replacement
}

// The parts of a DB, by the tables that they read and write.
type (
	clients struct{ *base } // clients and resources
	grants  struct{ *base } // grants, codes, tokens, sessions, consents and keys
	users   struct{ *base } // users, groups, names and invitations
)

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
	db, err := database.Open(ctx, dsn, databaseOptions(o))
	if err != nil {
		return nil, err
	}
	d := &base{db: db, vault: vault{keys: make(map[int64]*seal.DataKey)}, pause: sleep}
	if o != nil && o.SecretsKey != nil {
		d.vault.open, d.vault.wrapper = true, o.SecretsKey
		if err := d.unlock(ctx); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &DB{base: d, clients: clients{d}, grants: grants{d}, users: users{d}}, nil
}

// databaseOptions are those of the tables here. o may be nil.
func databaseOptions(o *Options) database.Options {
	options := database.Options{
		Version: "schema_version", Migrations: migrations, Holds: "private keys", NoRows: issuer.ErrNotFound,
		Known: []error{
			issuer.ErrNotFound, issuer.ErrFull, issuer.ErrConsumed, issuer.ErrReused, issuer.ErrRevoked,
			ErrExists, ErrNoSecret, ErrTooMany, ErrManyGroups, ErrDisabled, errTaken, ErrSealed, errLooksSealed,
		},
	}
	if o != nil {
		options.Connections, options.Wait, options.Observe = o.Connections, o.Wait, o.Observe
	}
	return options
}

// Close closes the database once its operations have ended.
func (d *base) Close() error { return d.db.Close() }

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

// A scanner is a row.
type scanner interface{ Scan(into ...any) error }

// list reads all rows of a statement.
func list[T any](ctx context.Context, d *base, doing string, scan func(scanner) (*T, error), statement string, args ...any) (all []*T, err error) {
	err = d.eachRow(ctx, doing, func(row scanner) error {
		v, err := scan(row)
		if err == nil {
			all = append(all, v)
		}
		return err
	}, statement, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// scanRow calls scan with the row of a statement. Its errors are wrapped.
func (d *base) scanRow(ctx context.Context, doing string, scan func(scanner) error, statement string, args ...any) error {
	ctx, ended := d.db.Observe(ctx, doing)
	err := scan(d.db.Read.QueryRowContext(ctx, statement, args...))
	ended(err)
	if err != nil {
		return d.wrap(doing, err)
	}
	return nil
}

// eachRow calls scan with each row of a statement, until it returns an error.
func (d *base) eachRow(ctx context.Context, doing string, scan func(scanner) error, statement string, args ...any) (err error) {
	ctx, ended := d.db.Observe(ctx, doing)
	defer func() { ended(err) }()
	rows, err := d.db.Read.QueryContext(ctx, statement, args...)
	if err != nil {
		return d.wrap(doing, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return d.wrap(doing, err)
		}
	}
	if err := rows.Err(); err != nil {
		return d.wrap(doing, err)
	}
	return nil
}

// wrap says what was being done, without values.
func (d *base) wrap(doing string, err error) error {
	if errors.As(err, new(*SealError)) || errors.Is(err, ErrUnsealed) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return d.db.Plain(doing, err)
}
