package records

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// ErrExists says that there is a user of this name, or a client of this ID, already.
var ErrExists = errors.New("there is one of this name")

// A User is a person with a password at this authorization server.
type User struct {
	Name string
	// Subject is the user's identifier for others. It is never reused,
	// also not that of a later user of the same name.
	Subject string
	Created time.Time
	// Disabled users cannot sign in.
	Disabled bool
	// Pending users were invited, and have not chosen a password yet.
	Pending bool
	// Invited is until when the link of the last invitation is good, which may be over; zero
	// without one that is open.
	Invited time.Time
}

// AddUser adds a user under the normal form of a name and returns the subject. hash is that of the
// password. A name that is taken is ErrExists, one that no user can have ErrName, and one that could be
// taken for that of another user an *AlikeError.
func (d *users) AddUser(ctx context.Context, name, hash string, now time.Time) (subject string, err error) {
	const doing = "add user"
	if hash == "" {
		return "", errors.New("add user: no hash")
	}
	normal, err := d.newName(ctx, name)
	if err != nil {
		return "", err
	}
	subject = oauth.NewSecret()
	n, err := d.db.Exec(ctx, doing, `INSERT INTO users (name, subject, created, hash) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		normal, subject, unix(now), hash)
	switch {
	case err != nil:
		return "", err
	case n == 0: // another process was first
		return "", d.wrap(doing, ErrExists)
	}
	return subject, nil
}

// stored is the name of the user that $1 and its normal form $2 name: one that was added before
// names had a normal form is found by the letters that it was added with.
const stored = `(SELECT name FROM users WHERE name = $1 OR name = $2 ORDER BY CASE WHEN name = $1 THEN 0 ELSE 1 END LIMIT 1)`

// User returns the hash of a user's password, the subject, and the stamp of a
// sign-in now; issuer.ErrNotFound if there is no such user or one that is pending, or, with the
// subject, one that is disabled. Letter case does not count.
func (d *users) User(ctx context.Context, name string) (hash, subject, stamp string, err error) {
	const doing = "read user"
	if !goodName(name) {
		return "", "", "", d.wrap(doing, issuer.ErrNotFound)
	}
	var signedOut, disabled int64
	err = d.db.Find(ctx, doing, `SELECT hash, subject, signed_out, disabled FROM users WHERE name = `+stored+` AND hash <> ''`,
		[]any{name, d.NormalName(name)}, &hash, &subject, &signedOut, &disabled)
	switch {
	case err != nil:
		return "", "", "", err
	case disabled == 1:
		return "", subject, "", d.wrap(doing, issuer.ErrNotFound)
	}
	return hash, subject, stampOf(hash, signedOut), nil
}

// stampOf is the stamp of a sign-in: another password has another, and so has a
// user who was signed out, so that nothing which began before goes on after it.
func stampOf(hash string, signedOut int64) string {
	if signedOut == 0 {
		return issuer.Hash(hash)
	}
	return joined(hash, strconv.FormatInt(signedOut, 10))
}

// Current implements issuer.Subjects.
func (d *users) Current(ctx context.Context, subject, stamp string) (bool, error) {
	var hash string
	var signedOut int64
	err := d.db.Find(ctx, "look for subject", `SELECT hash, signed_out FROM users WHERE subject = $1 AND disabled = 0 AND hash <> ''`, []any{subject},
		&hash, &signedOut)
	switch {
	case errors.Is(err, issuer.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return stamp == stampOf(hash, signedOut), nil
}

// SetPassword replaces the hash of a user's password, signs the user out as
// SignOut does, and withdraws an invitation. It returns the user, or issuer.ErrNotFound.
func (d *users) SetPassword(ctx context.Context, name, hash string) (*User, error) {
	if hash == "" {
		return nil, errors.New("set password: no hash")
	}
	return d.changeUser(ctx, "set password", endAllOf, `UPDATE users SET hash = $3`, name, hash)
}

// SignOut ends all that a user's sign-ins began: with Options.Subjects,
// browsers are signed in no more, and codes and what the user granted are void.
// Consents stay. It returns the user, or issuer.ErrNotFound.
func (d *users) SignOut(ctx context.Context, name string) (*User, error) {
	return d.changeUser(ctx, "sign user out", revokeOf, `UPDATE users SET signed_out = signed_out + 1`, name)
}

// DisableUser signs a user out as SignOut does, withdraws an invitation, and lets the user sign in
// no more. It returns the user, or issuer.ErrNotFound.
func (d *users) DisableUser(ctx context.Context, name string) (*User, error) {
	return d.changeUser(ctx, "disable user", endAllOf, `UPDATE users SET disabled = 1, signed_out = signed_out + 1`, name)
}

// EnableUser lets a user sign in again; what ended before stays so. It returns
// the user, or issuer.ErrNotFound.
func (d *users) EnableUser(ctx context.Context, name string) (*User, error) {
	return d.changeUser(ctx, "enable user", nil, `UPDATE users SET disabled = 0`, name)
}

// RemoveUser removes a user, signed out as by SignOut, withdraws an invitation, and forgets the
// consents. It returns the user, or issuer.ErrNotFound.
func (d *users) RemoveUser(ctx context.Context, name string) (*User, error) {
	return d.changeUser(ctx, "remove user", func(ctx context.Context, tx *sql.Tx, subject string) error {
		if err := endAllOf(ctx, tx, subject); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM memberships WHERE subject = $1`, subject); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM consents WHERE subject = $1`, subject)
		return err
	}, `DELETE FROM users`, name)
}

// changeUser changes the user of a name by the beginning of a statement, whose parameters are
// $3 and later, and does what follows from it, if that is not nil, in the same transaction.
func (d *users) changeUser(
	ctx context.Context, doing string, then func(ctx context.Context, tx *sql.Tx, subject string) error,
	statement, name string, args ...any,
) (*User, error) {
	if !goodName(name) {
		return nil, d.wrap(doing, issuer.ErrNotFound)
	}
	statement += ` WHERE name = ` + stored + ` RETURNING ` + userColumns
	args = append([]any{name, d.NormalName(name)}, args...)
	var u *User
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) (err error) {
		if u, err = scanUser(tx.QueryRowContext(ctx, statement, args...)); err != nil || then == nil {
			return err
		}
		return then(ctx, tx, u.Subject)
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// revokeOf revokes all that a user granted, and signs the user out of all browsers,
// within a transaction.
func revokeOf(ctx context.Context, tx *sql.Tx, subject string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE grants SET revoked = 1 WHERE subject = $1 AND revoked = 0`, subject); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE subject = $1`, subject)
	return err
}

// endAllOf does what revokeOf does, and withdraws an invitation.
func endAllOf(ctx context.Context, tx *sql.Tx, subject string) error {
	if err := revokeOf(ctx, tx, subject); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM invitations WHERE subject = $1`, subject)
	return err
}

// FindUser returns a user, also one that is disabled or pending, or issuer.ErrNotFound. Letter case does
// not count.
func (d *users) FindUser(ctx context.Context, name string) (*User, error) {
	const doing = "find user"
	if !goodName(name) {
		return nil, d.wrap(doing, issuer.ErrNotFound)
	}
	var u *User
	err := d.scanRow(ctx, doing, func(row scanner) (err error) {
		u, err = scanUser(row)
		return err
	}, `SELECT `+userColumns+` FROM users WHERE name = `+stored, name, d.NormalName(name))
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Users returns the users whose names come after a name, by name, and at most limit.
func (d *users) Users(ctx context.Context, after string, limit int) ([]*User, error) {
	return list(ctx, d.base, "list users", scanUser, `SELECT `+userColumns+` FROM users WHERE name > $1 ORDER BY name LIMIT $2`, after, limit)
}

const userColumns = `name, subject, created, disabled, CASE WHEN hash = '' THEN 1 ELSE 0 END,
	coalesce((SELECT expires FROM invitations WHERE invitations.subject = users.subject), 0)`

func scanUser(row scanner) (*User, error) {
	var u User
	var created, disabled, pending, invited int64
	if err := row.Scan(&u.Name, &u.Subject, &created, &disabled, &pending, &invited); err != nil {
		return nil, err
	}
	u.Created, u.Disabled, u.Pending, u.Invited = moment(created), disabled == 1, pending == 1, moment(invited)
	return &u, nil
}
