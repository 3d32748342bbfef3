package records

import (
	"context"
	"database/sql"
	"errors"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// ErrExists says that there is a user of this name already.
var ErrExists = errors.New("there is a user of this name")

// A User is a person with a password at this authorization server.
type User struct {
	Name string
	// Subject is the user's identifier for others. It is never reused,
	// also not that of a later user of the same name.
	Subject string
	Created time.Time
}

// AddUser adds a user and returns the subject. name has 1 to 255 bytes and
// none that cannot be seen, hash is that of the password. A name that is taken
// is ErrExists.
func (d *DB) AddUser(ctx context.Context, name, hash string, now time.Time) (subject string, err error) {
	const doing = "add user"
	if !goodName(name) || hash == "" {
		return "", errors.New("add user: the name must have 1 to 255 bytes that can be seen, and the password a hash")
	}
	subject = oauth.NewSecret()
	n, err := d.db.Exec(ctx, doing, `INSERT INTO users (name, subject, created, hash) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		name, subject, unix(now), hash)
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "", d.wrap(doing, ErrExists)
	}
	return subject, nil
}

func goodName(name string) bool {
	if name == "" || len(name) > 255 || !utf8.ValidString(name) {
		return false
	}
	for _, c := range name {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// User returns the hash of a user's password and the subject, or
// issuer.ErrNotFound. Letter case counts.
func (d *DB) User(ctx context.Context, name string) (hash, subject string, err error) {
	const doing = "read user"
	if !goodName(name) {
		return "", "", d.wrap(doing, issuer.ErrNotFound)
	}
	err = d.db.Find(ctx, doing, `SELECT hash, subject FROM users WHERE name = $1`, []any{name}, &hash, &subject)
	return hash, subject, err
}

// Current implements issuer.Subjects. The stamp of a user is the hash
// ([issuer.Hash]) of the password's hash, so that a sign-in with
// another password has none that is current.
func (d *DB) Current(ctx context.Context, subject, stamp string) (bool, error) {
	var hash string
	err := d.db.Find(ctx, "look for subject", `SELECT hash FROM users WHERE subject = $1`, []any{subject}, &hash)
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return stamp == issuer.Hash(hash), nil
}

// SetPassword replaces the hash of a user's password, or returns
// issuer.ErrNotFound. It revokes all that the user granted; consents stay. With
// Options.Subjects, browsers that are signed in are so no more.
func (d *DB) SetPassword(ctx context.Context, name, hash string) error {
	if hash == "" {
		return errors.New("set password: no hash")
	}
	return d.db.Change(ctx, "set password", func(tx *sql.Tx) error {
		var subject string
		err := tx.QueryRowContext(ctx, `UPDATE users SET hash = $1 WHERE name = $2 RETURNING subject`, hash, name).Scan(&subject)
		if err != nil {
			return err
		}
		return revokeOf(ctx, tx, subject)
	})
}

// revokeOf revokes all that a user granted within a transaction.
func revokeOf(ctx context.Context, tx *sql.Tx, subject string) error {
	_, err := tx.ExecContext(ctx, `UPDATE grants SET revoked = 1 WHERE subject = $1 AND revoked = 0`, subject)
	return err
}

// RemoveUser removes a user, revokes all that the user granted and forgets the
// consents. One that is not there is issuer.ErrNotFound. With Options.Subjects,
// browsers that are signed in are so no more.
func (d *DB) RemoveUser(ctx context.Context, name string) error {
	return d.db.Change(ctx, "remove user", func(tx *sql.Tx) error {
		var subject string
		if err := tx.QueryRowContext(ctx, `DELETE FROM users WHERE name = $1 RETURNING subject`, name).Scan(&subject); err != nil {
			return err
		}
		if err := revokeOf(ctx, tx, subject); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM consents WHERE subject = $1`, subject)
		return err
	})
}

// ListUsers returns all users, by name.
func (d *DB) ListUsers(ctx context.Context) (users []User, err error) {
	const doing = "list users"
	rows, err := d.db.Read.QueryContext(ctx, `SELECT name, subject, created FROM users ORDER BY name`)
	if err != nil {
		return nil, d.wrap(doing, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var u User
		var created int64
		if err := rows.Scan(&u.Name, &u.Subject, &created); err != nil {
			return nil, d.wrap(doing, err)
		}
		u.Created = moment(created)
		users = append(users, u)
	}
	if err := rows.Err(); err != nil {
		return nil, d.wrap(doing, err)
	}
	return users, nil
}
