package records

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// ErrDisabled says that a user who is disabled cannot be invited.
var ErrDisabled = errors.New("the user is disabled")

// Invite adds a user of a name, who cannot sign in until AcceptInvitation, and stores the hash of
// the secret that it wants. For a pending user, or with reset for any user, it takes the place of the
// invitation before. Without reset another user of the name is ErrExists; with it there must be
// one, or it is issuer.ErrNotFound. A disabled user is ErrDisabled.
func (d *users) Invite(ctx context.Context, name, hash string, reset bool, expires, now time.Time) (*User, error) {
	const doing = "invite user"
	if hash == "" {
		return nil, errors.New("invite user: no hash")
	}
	normal, err := d.newName(ctx, name)
	switch {
	case errors.Is(err, ErrExists):
	case reset:
		return nil, d.wrap(doing, issuer.ErrNotFound)
	case err != nil:
		return nil, err
	default:
		// Of two who add the user at once, one finds it there.
		if _, err := d.db.Exec(ctx, doing, `INSERT INTO users (name, subject, created, hash) VALUES ($1, $2, $3, '') ON CONFLICT DO NOTHING`,
			normal, oauth.NewSecret(), unix(now)); err != nil {
			return nil, err
		}
	}
	u := new(User)
	err = d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		found, err := scanUser(tx.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users WHERE name = `+stored+d.db.Dialect.Lock,
			name, d.NormalName(name)))
		switch {
		case err != nil:
			return err
		case found.Disabled:
			return ErrDisabled
		case !found.Pending && !reset:
			return ErrExists
		}
		u = found
		u.Invited = moment(unix(expires))
		_, err = tx.ExecContext(ctx, `INSERT INTO invitations (subject, hash, expires) VALUES ($1, $2, $3)
			ON CONFLICT (subject) DO UPDATE SET hash = excluded.hash, expires = excluded.expires`, u.Subject, hash, unix(expires))
		return err
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// invited are the user whose invitation has the hash $1, and when that expires.
const invited = ` FROM invitations JOIN users ON users.subject = invitations.subject AND disabled = 0 WHERE invitations.hash = $1`

// Invitation returns the name of the user who was invited with a secret that has this hash, and when
// the invitation expires, which may be over; issuer.ErrNotFound if there is no such invitation any more.
func (d *users) Invitation(ctx context.Context, hash string) (name string, expires time.Time, err error) {
	var until int64
	err = d.db.Find(ctx, "read invitation", `SELECT name, expires`+invited, []any{hash}, &name, &until)
	return name, moment(until), err
}

// AcceptInvitation gives the user of an invitation that has not expired a password, and signs the
// user out as SetPassword does. Of any number of callers one succeeds; the others get
// issuer.ErrNotFound.
func (d *users) AcceptInvitation(ctx context.Context, hash, password string, now time.Time) (subject string, err error) {
	if password == "" {
		return "", errors.New("accept invitation: no hash of a password")
	}
	err = d.db.Change(ctx, "accept invitation", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT users.subject`+invited+` AND expires > $2`+d.db.Dialect.Lock, hash, unix(now)).Scan(&subject)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE users SET hash = $1 WHERE subject = $2`, password, subject); err != nil {
			return err
		}
		return endAllOf(ctx, tx, subject)
	})
	if err != nil {
		return "", err
	}
	return subject, nil
}

// PasswordOf returns the name of the user with a subject and the hash of the password;
// issuer.ErrNotFound if there is no such user, or one that is disabled or pending.
func (d *users) PasswordOf(ctx context.Context, subject string) (name, hash string, err error) {
	err = d.db.Find(ctx, "read password", `SELECT name, hash FROM users WHERE subject = $1 AND disabled = 0 AND hash <> ''`,
		[]any{subject}, &name, &hash)
	return name, hash, err
}

// ChangePassword does what SetPassword does, of the user with a subject, whose hash must still be
// old: issuer.ErrNotFound if it is another by now, or the user may not sign in. It returns the stamp
// of a sign-in now.
func (d *users) ChangePassword(ctx context.Context, subject, old, hash string) (stamp string, err error) {
	if old == "" || hash == "" {
		return "", errors.New("change password: no hash")
	}
	err = d.db.Change(ctx, "change password", func(tx *sql.Tx) error {
		var signedOut int64
		err := tx.QueryRowContext(ctx, `UPDATE users SET hash = $1 WHERE subject = $2 AND hash = $3 AND disabled = 0 RETURNING signed_out`,
			hash, subject, old).Scan(&signedOut)
		if err != nil {
			return err
		}
		stamp = stampOf(hash, signedOut)
		return endAllOf(ctx, tx, subject)
	})
	if err != nil {
		return "", err
	}
	return stamp, nil
}
