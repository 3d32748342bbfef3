package records

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// RevokeToken implements issuer.Store.
func (d *DB) RevokeToken(ctx context.Context, id string, expires time.Time) error {
	_, err := d.db.Exec(ctx, "revoke token", `INSERT INTO revoked_tokens (id, expires) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET expires = excluded.expires`, id, unix(expires))
	return err
}

// TokenRevoked implements issuer.Store.
func (d *DB) TokenRevoked(ctx context.Context, id, grant string, now time.Time) (bool, error) {
	const doing = "look for revoked token"
	var revoked, live int
	err := d.db.Find(ctx, doing, `SELECT (SELECT count(*) FROM revoked_tokens WHERE id = $1 AND expires > $3),
		(SELECT count(*) FROM grants WHERE id = $2 AND expires > $3 AND revoked = 0)`, []any{id, grant, unix(now)}, &revoked, &live)
	if err != nil {
		return false, err
	}
	return revoked > 0 || grant != "" && live == 0, nil
}

// joined is one text for several, which no others have.
func joined(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&b, "%d:%s", len(part), part)
	}
	return issuer.Hash(b.String())
}

// UseID implements issuer.Store.
func (d *DB) UseID(ctx context.Context, iss, id string, expires, now time.Time) (bool, error) {
	n, err := d.db.Exec(ctx, "note use of id", `INSERT INTO used_ids (key, expires) VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET expires = excluded.expires WHERE used_ids.expires <= $3`,
		joined(iss, id), unix(expires), unix(now))
	return n == 1, err
}

type consentData struct {
	Scopes   []string `json:"scopes,omitzero"`
	Redirect string   `json:"redirect,omitzero"`
	Created  int64    `json:"created,omitzero"`
}

// SetConsent implements issuer.Store.
func (d *DB) SetConsent(ctx context.Context, c *issuer.Consent) error {
	const doing = "set consent"
	data, err := encode(&consentData{Scopes: c.Scopes, Redirect: c.Redirect, Created: unix(c.Created)})
	if err != nil {
		return d.wrap(doing, err)
	}
	_, err = d.db.Exec(ctx, doing, `INSERT INTO consents (key, subject, client_id, expires, data) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (key) DO UPDATE SET expires = excluded.expires, data = excluded.data`,
		joined(c.Subject, c.ClientID, c.Resource), c.Subject, c.ClientID, unix(c.Expires), data)
	return err
}

// Consent implements issuer.Store.
func (d *DB) Consent(ctx context.Context, subject, client, resource string, now time.Time) (*issuer.Consent, error) {
	const doing = "read consent"
	var expires int64
	var data string
	err := d.db.Find(ctx, doing, `SELECT expires, data FROM consents WHERE key = $1 AND expires > $2`,
		[]any{joined(subject, client, resource), unix(now)}, &expires, &data)
	if err != nil {
		return nil, err
	}
	var rest consentData
	if err := decode(data, &rest); err != nil {
		return nil, d.wrap(doing, err)
	}
	return &issuer.Consent{
		Subject: subject, ClientID: client, Resource: resource, Scopes: rest.Scopes, Redirect: rest.Redirect,
		Created: moment(rest.Created), Expires: moment(expires),
	}, nil
}

// RemoveConsents implements issuer.Store.
func (d *DB) RemoveConsents(ctx context.Context, subject, client string) error {
	_, err := d.db.Exec(ctx, "remove consents", `DELETE FROM consents WHERE subject = $1 AND ($2 = '' OR client_id = $2)`, subject, client)
	return err
}

// SetRecord implements issuer.Store.
func (d *DB) SetRecord(ctx context.Context, kind, hash string, data []byte, expires time.Time) error {
	if data == nil {
		data = []byte{} // which is not NULL
	}
	_, err := d.db.Exec(ctx, "set record", `INSERT INTO records (kind, hash, expires, data) VALUES ($1, $2, $3, $4)
		ON CONFLICT (kind, hash) DO UPDATE SET expires = excluded.expires, data = excluded.data`, kind, hash, unix(expires), data)
	return err
}

// Record implements issuer.Store.
func (d *DB) Record(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	var data []byte
	err := d.db.Find(ctx, "read record", `SELECT data FROM records WHERE kind = $1 AND hash = $2 AND expires > $3`,
		[]any{kind, hash, unix(now)}, &data)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// TakeRecord implements issuer.Store.
func (d *DB) TakeRecord(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	var data []byte
	err := d.db.Change(ctx, "take record", func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `DELETE FROM records WHERE kind = $1 AND hash = $2 AND expires > $3 RETURNING data`,
			kind, hash, unix(now)).Scan(&data)
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

type keyData struct {
	Algorithm string `json:"algorithm"`
	Private   []byte `json:"private"`
}

const keyColumns = `slot, id, created, retires, expires, data`

// AddKey implements issuer.Store.
func (d *DB) AddKey(ctx context.Context, k *issuer.Key, now time.Time) (*issuer.Key, error) {
	const doing = "add key"
	data, err := encode(&keyData{Algorithm: k.Algorithm, Private: k.Private})
	if err != nil {
		return nil, d.wrap(doing, err)
	}
	var stored *issuer.Key
	err = d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO keys (`+keyColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (slot) DO UPDATE SET id = excluded.id, created = excluded.created, retires = excluded.retires,
			expires = excluded.expires, data = excluded.data WHERE keys.expires <= $7`,
			k.Slot, k.ID, unix(k.Created), unix(k.Retires), unix(k.Expires), data, unix(now))
		if err != nil {
			return err
		}
		stored, err = scanKey(tx.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE slot = $1`, k.Slot))
		return err
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

func scanKey(row interface{ Scan(into ...any) error }) (*issuer.Key, error) {
	var k issuer.Key
	var created, retires, expires int64
	var data string
	if err := row.Scan(&k.Slot, &k.ID, &created, &retires, &expires, &data); err != nil {
		return nil, err
	}
	var rest keyData
	if err := decode(data, &rest); err != nil {
		return nil, err
	}
	k.Algorithm, k.Private = rest.Algorithm, bytes.Clone(rest.Private)
	k.Created, k.Retires, k.Expires = moment(created), moment(retires), moment(expires)
	return &k, nil
}

// Keys implements issuer.Store.
func (d *DB) Keys(ctx context.Context, now time.Time) (keys []*issuer.Key, err error) {
	const doing = "read keys"
	rows, err := d.db.Read.QueryContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE expires > $1 ORDER BY created, slot`, unix(now))
	if err != nil {
		return nil, d.wrap(doing, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return nil, d.wrap(doing, err)
		}
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return nil, d.wrap(doing, err)
	}
	return keys, nil
}
