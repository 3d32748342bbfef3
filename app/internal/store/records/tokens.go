package records

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// RevokeToken implements issuer.Store.
func (d *grants) RevokeToken(ctx context.Context, id string, expires time.Time) error {
	_, err := d.db.Exec(ctx, "revoke token", `INSERT INTO revoked_tokens (id, expires) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET expires = excluded.expires`, id, unix(expires))
	return err
}

// TokenRevoked implements issuer.Store.
func (d *grants) TokenRevoked(ctx context.Context, id, grant string, now time.Time) (bool, error) {
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
func (d *grants) UseID(ctx context.Context, iss, id string, expires, now time.Time) (bool, error) {
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
func (d *grants) SetConsent(ctx context.Context, c *issuer.Consent) error {
	const doing = "set consent"
	data, err := encode(&consentData{Scopes: c.Scopes, Redirect: c.Redirect, Created: unix(c.Created)})
	if err != nil {
		return d.wrap(doing, err)
	}
	_, err = d.db.Exec(ctx, doing, `INSERT INTO consents (key, subject, client_id, resource, expires, data) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (key) DO UPDATE SET expires = excluded.expires, data = excluded.data`,
		joined(c.Subject, c.ClientID, c.Resource), c.Subject, c.ClientID, c.Resource, unix(c.Expires), data)
	return err
}

// Consent implements issuer.Store.
func (d *grants) Consent(ctx context.Context, subject, client, resource string, now time.Time) (*issuer.Consent, error) {
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
func (d *grants) RemoveConsents(ctx context.Context, subject, client string) error {
	_, err := d.db.Exec(ctx, "remove consents", `DELETE FROM consents WHERE subject = $1 AND ($2 = '' OR client_id = $2)`, subject, client)
	return err
}

// SetRecord implements issuer.Store.
func (d *grants) SetRecord(ctx context.Context, kind, hash string, data []byte, expires time.Time) error {
	if data == nil {
		data = []byte{} // which is not NULL
	}
	return d.changeSealed(ctx, "set record", func(tx *sql.Tx, sealed sealer) error {
		data, err := sealed(data, recordPlace(kind, hash)...)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO records (kind, hash, expires, data) VALUES ($1, $2, $3, $4)
				ON CONFLICT (kind, hash) DO UPDATE SET expires = excluded.expires, data = excluded.data`, kind, hash, unix(expires), data)
		}
		return err
	})
}

// Record implements issuer.Store.
func (d *grants) Record(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	const doing = "read record"
	var data []byte
	err := d.db.Find(ctx, doing, `SELECT data FROM records WHERE kind = $1 AND hash = $2 AND expires > $3`,
		[]any{kind, hash, unix(now)}, &data)
	if err != nil {
		return nil, err
	}
	return d.openRecord(ctx, doing, kind, hash, data)
}

func (d *grants) openRecord(ctx context.Context, doing, kind, hash string, data []byte) ([]byte, error) {
	clear, err := d.open(ctx, data, recordPlace(kind, hash)...)
	if err != nil {
		return nil, d.wrap(doing, err)
	}
	return clear, nil
}

// TakeRecord implements issuer.Store.
func (d *grants) TakeRecord(ctx context.Context, kind, hash string, now time.Time) ([]byte, error) {
	const doing = "take record"
	var data []byte
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `DELETE FROM records WHERE kind = $1 AND hash = $2 AND expires > $3 RETURNING data`,
			kind, hash, unix(now)).Scan(&data)
	})
	if err != nil {
		return nil, err
	}
	return d.openRecord(ctx, doing, kind, hash, data)
}
