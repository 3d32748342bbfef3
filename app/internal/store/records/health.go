package records

import (
	"context"
	"database/sql"
	"errors"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// Ping reads one row, so that an error says whether the database works. The first time, and after a
// change that failed since the disk was full or the database could only be read, it also writes.
func (d *DB) Ping(ctx context.Context) error {
	var version int
	if err := d.db.Find(ctx, "ping", `SELECT max(version) FROM schema_version`, nil, &version); err != nil {
		return err
	}
	return d.db.CheckWrites(ctx, "ping by writing", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO revoked_tokens (id, expires) VALUES ('ping', 0) ON CONFLICT (id) DO NOTHING`)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM revoked_tokens WHERE id = 'ping'`)
		}
		return err
	})
}

// SubjectName returns what a person is called: the name of the user, or the one with which a person of
// another provider signed in last; issuer.ErrNotFound if there is none.
func (d *DB) SubjectName(ctx context.Context, subject string) (string, error) {
	const doing = "read name"
	var name string
	err := d.db.Find(ctx, doing, `SELECT name FROM users WHERE subject = $1`, []any{subject}, &name)
	if !errors.Is(err, issuer.ErrNotFound) {
		return name, err
	}
	err = d.scanRow(ctx, doing, func(row scanner) error {
		s, err := scanSession(row)
		if err == nil {
			name = s.Person.Name
		}
		return err
	}, `SELECT `+sessionColumns+` FROM sessions WHERE subject = $1 ORDER BY created DESC LIMIT 1`, subject)
	if err == nil && name == "" {
		return "", d.wrap(doing, issuer.ErrNotFound)
	}
	return name, err
}
