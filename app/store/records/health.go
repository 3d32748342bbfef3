package records

import (
	"context"
	"errors"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// Ping reads one row, so that an error says whether the database works.
func (d *DB) Ping(ctx context.Context) error {
	var version int
	return d.db.Find(ctx, "ping", `SELECT max(version) FROM schema_version`, nil, &version)
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
