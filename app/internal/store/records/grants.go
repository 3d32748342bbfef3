package records

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

type grantData struct {
	Scopes   []string `json:"scopes,omitzero"`
	Key      string   `json:"key,omitzero"`
	AuthTime int64    `json:"auth_time,omitzero"`
	Claims   []byte   `json:"claims,omitzero"`
	Stamp    string   `json:"stamp,omitzero"`
	Groups   []string `json:"groups,omitzero"`
	Asserted bool     `json:"asserted,omitzero"`
	// ClientStamp is the stamp of the client when the grant was made.
	ClientStamp string `json:"client_stamp,omitzero"`
}

// AddGrant implements issuer.Store.
func (d *grants) AddGrant(ctx context.Context, g *issuer.Grant) error {
	const doing = "add grant"
	data, err := encode(&grantData{
		Scopes: g.Scopes, Key: g.Key, AuthTime: unix(g.AuthTime), Claims: g.Claims, Stamp: g.Stamp, Groups: g.Groups,
		Asserted: g.Asserted, ClientStamp: g.ClientStamp,
	})
	if err != nil {
		return d.wrap(doing, err)
	}
	return d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		if err := d.mayGrant(ctx, tx, g); err != nil {
			return err
		}
		return insert(ctx, tx, `INSERT INTO grants (id, client_id, subject, resource, revoked, created, expires, data)
			VALUES ($1, $2, $3, $4, 0, $5, $6, $7) ON CONFLICT DO NOTHING`,
			g.ID, g.ClientID, g.Subject, g.Resource, unix(g.Created), unix(g.Expires), data)
	})
}

// mayGrant says whether client and user of a grant are as they were when it was made, or issuer.ErrRevoked.
// Their rows are held until the transaction ends: what disables one of them then finds the grant. There is no
// user of another provider, nor one who was removed, whose subject nobody gets again.
func (d *grants) mayGrant(ctx context.Context, tx *sql.Tx, g *issuer.Grant) error {
	if g.ClientStamp != "" {
		var stamp string
		err := tx.QueryRowContext(ctx, `SELECT stamp FROM clients WHERE id = $1`+d.db.Dialect.Share, g.ClientID).Scan(&stamp)
		if errors.Is(err, sql.ErrNoRows) || err == nil && stamp != g.ClientStamp {
			return issuer.ErrRevoked
		}
		if err != nil {
			return err
		}
	}
	var hash string
	var signedOut, disabled int64
	err := tx.QueryRowContext(ctx, `SELECT hash, signed_out, disabled FROM users WHERE subject = $1`+d.db.Dialect.Share, g.Subject).
		Scan(&hash, &signedOut, &disabled)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case disabled == 1, g.Stamp != "" && g.Stamp != stampOf(hash, signedOut):
		return issuer.ErrRevoked
	}
	return nil
}

// add runs insert in a transaction.
func (d *grants) add(ctx context.Context, doing, statement string, args ...any) error {
	return d.db.Change(ctx, doing, func(tx *sql.Tx) error { return insert(ctx, tx, statement, args...) })
}

// insert runs an INSERT that does nothing if the row is there, which is errTaken.
func insert(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = errTaken
	}
	return err
}

const grantColumns = `grants.id, client_id, grants.subject, resource, revoked, grants.created, expires, data`

// scanGrant reads grantColumns, and whether the grant was revoked.
func scanGrant(row scanner, more ...any) (g *issuer.Grant, revoked bool, err error) {
	g = new(issuer.Grant)
	var is, created, expires int64
	var data string
	into := []any{&g.ID, &g.ClientID, &g.Subject, &g.Resource, &is, &created, &expires, &data}
	if err := row.Scan(append(into, more...)...); err != nil {
		return nil, false, err
	}
	var rest grantData
	if err := decode(data, &rest); err != nil {
		return nil, false, err
	}
	g.Scopes, g.Key, g.Claims, g.Stamp, g.Groups = rest.Scopes, rest.Key, rest.Claims, rest.Stamp, rest.Groups
	g.Asserted, g.ClientStamp = rest.Asserted, rest.ClientStamp
	g.AuthTime, g.Created, g.Expires = moment(rest.AuthTime), moment(created), moment(expires)
	return g, is == 1, nil
}

// Grant implements issuer.Store.
func (d *grants) Grant(ctx context.Context, id string, now time.Time) (*issuer.Grant, error) {
	const doing = "read grant"
	var g *issuer.Grant
	revoked := false
	err := d.scanRow(ctx, doing, func(row scanner) (err error) {
		g, revoked, err = scanGrant(row)
		return err
	}, `SELECT `+grantColumns+` FROM grants WHERE id = $1 AND expires > $2`, id, unix(now))
	switch {
	case err != nil:
		return nil, err
	case revoked:
		return g, d.wrap(doing, issuer.ErrRevoked)
	}
	return g, nil
}

// RevokeGrant implements issuer.Store.
func (d *grants) RevokeGrant(ctx context.Context, id string, _ time.Time) error {
	_, err := d.db.Exec(ctx, "revoke grant", `UPDATE grants SET revoked = 1 WHERE id = $1 AND revoked = 0`, id)
	return err
}

// RevokeGrants implements issuer.Store.
func (d *grants) RevokeGrants(ctx context.Context, subject, client string, now time.Time) (int, error) {
	return d.RevokeMatching(ctx, Filter{Subject: subject, Client: client}, now)
}

// revoke revokes a family within a transaction.
func revoke(ctx context.Context, tx *sql.Tx, grant string) error {
	_, err := tx.ExecContext(ctx, `UPDATE grants SET revoked = 1 WHERE id = $1`, grant)
	return err
}

// family reads whether a grant is revoked, and holds it until the transaction
// ends, so that it is not revoked meanwhile. One that is absent or has expired
// is sql.ErrNoRows.
func (d *grants) family(ctx context.Context, tx *sql.Tx, grant string, now time.Time) (revoked bool, err error) {
	var is int64
	err = tx.QueryRowContext(ctx, `SELECT revoked FROM grants WHERE id = $1 AND expires > $2`+d.db.Dialect.Lock, grant, unix(now)).Scan(&is)
	return is == 1, err
}

type codeData struct {
	ClientID    string `json:"client_id,omitzero"`
	RedirectURI string `json:"redirect_uri,omitzero"`
	Challenge   string `json:"challenge,omitzero"`
	Resource    string `json:"resource,omitzero"`
	Key         string `json:"key,omitzero"`
	Nonce       string `json:"nonce,omitzero"`
}

// AddCode implements issuer.Store.
func (d *grants) AddCode(ctx context.Context, hash string, c *issuer.Code) error {
	const doing = "add code"
	data, err := encode(&codeData{
		ClientID: c.ClientID, RedirectURI: c.RedirectURI, Challenge: c.Challenge, Resource: c.Resource, Key: c.Key, Nonce: c.Nonce,
	})
	if err != nil {
		return d.wrap(doing, err)
	}
	return d.add(ctx, doing, `INSERT INTO codes (hash, grant_id, taken, expires, data) VALUES ($1, $2, 0, $3, $4) ON CONFLICT DO NOTHING`,
		hash, c.Grant, unix(c.Expires), data)
}

// ConsumeCode implements issuer.Store. The row is held from the first look at
// it, so that of several callers one finds it not taken.
func (d *grants) ConsumeCode(ctx context.Context, hash string, now time.Time) (*issuer.Code, error) {
	const doing = "consume code"
	var c *issuer.Code
	var outcome error
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		var err error
		var taken bool
		if c, taken, err = d.code(ctx, tx, hash, now); err != nil {
			return err
		}
		if taken {
			outcome = issuer.ErrConsumed
			return revoke(ctx, tx, c.Grant)
		}
		revoked, err := d.family(ctx, tx, c.Grant, now)
		if err != nil {
			return err
		}
		if revoked {
			return issuer.ErrNotFound
		}
		outcome = nil
		_, err = tx.ExecContext(ctx, `UPDATE codes SET taken = 1 WHERE hash = $1`, hash)
		return err
	})
	if err != nil {
		return nil, err
	}
	if outcome != nil {
		return c, d.wrap(doing, outcome)
	}
	return c, nil
}

func (d *grants) code(ctx context.Context, tx *sql.Tx, hash string, now time.Time) (c *issuer.Code, taken bool, err error) {
	c = new(issuer.Code)
	var is, expires int64
	var data string
	err = tx.QueryRowContext(ctx, `SELECT grant_id, taken, expires, data FROM codes WHERE hash = $1 AND expires > $2`+d.db.Dialect.Lock,
		hash, unix(now)).Scan(&c.Grant, &is, &expires, &data)
	if err != nil {
		return nil, false, err
	}
	var rest codeData
	if err := decode(data, &rest); err != nil {
		return nil, false, err
	}
	c.ClientID, c.RedirectURI, c.Challenge = rest.ClientID, rest.RedirectURI, rest.Challenge
	c.Resource, c.Key, c.Nonce = rest.Resource, rest.Key, rest.Nonce
	c.Expires = moment(expires)
	return c, is == 1, nil
}
