package records

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

type keyData struct {
	Algorithm string `json:"algorithm"`
	Private   []byte `json:"private"`
}

const keyColumns = `slot, id, state, created, retires, expires, data`

// AddKey implements issuer.Store.
func (d *grants) AddKey(ctx context.Context, k *issuer.Key, now time.Time) (*issuer.Key, error) {
	const doing = "add key"
	var stored *issuer.Key
	err := d.changeSealed(ctx, doing, func(tx *sql.Tx, sealed sealer) error {
		data, err := encodeKey(k, sealed)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO keys (`+keyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (slot) DO UPDATE SET id = excluded.id, state = excluded.state,
			created = excluded.created, retires = excluded.retires, expires = excluded.expires, data = excluded.data
			WHERE keys.expires <= $8`,
			k.Slot, k.ID, string(k.State), unix(k.Created), unix(k.Retires), unix(k.Expires), data, unix(now))
		if err != nil {
			return err
		}
		stored, err = scanKey(tx.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE slot = $1`, k.Slot))
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := d.openKeys(ctx, doing, stored); err != nil {
		return nil, err
	}
	return stored, nil
}

func scanKey(row scanner) (*issuer.Key, error) {
	var k issuer.Key
	var created, retires, expires int64
	var data string
	if err := row.Scan(&k.Slot, &k.ID, &k.State, &created, &retires, &expires, &data); err != nil {
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
func (d *grants) Keys(ctx context.Context, now time.Time) ([]*issuer.Key, error) {
	stored, err := d.storedKeys(ctx, now)
	if err == nil {
		err = d.openKeys(ctx, "read keys", stored...)
	}
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// KeyList returns what Keys does, without the private parts, for which no key is needed.
func (d *grants) KeyList(ctx context.Context, now time.Time) ([]*issuer.Key, error) {
	stored, err := d.storedKeys(ctx, now)
	for _, k := range stored {
		k.Private = nil
	}
	return stored, err
}

func (d *grants) storedKeys(ctx context.Context, now time.Time) ([]*issuer.Key, error) {
	return list(ctx, d.base, "read keys", scanKey, `SELECT `+keyColumns+` FROM keys WHERE expires > $1 ORDER BY created, slot`, unix(now))
}

const (
	algorithm = `JSON(data) ->> 'algorithm'`
	// signingKey is the condition for the signing key of an ID that has not expired: $1 is the ID, and $2
	// the time.
	signingKey = `id = $1 AND expires > $2 AND ` + algorithm + ` <> '` + issuer.SecretAlgorithm + `'`
)

// RetireKey implements issuer.Store.
func (d *grants) RetireKey(ctx context.Context, id string, from, now time.Time) (*issuer.Key, error) {
	const doing = "retire key"
	var key *issuer.Key
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) (err error) {
		key, err = scanKey(tx.QueryRowContext(ctx, `UPDATE keys SET
			expires = CASE WHEN retires > $3 THEN expires - (retires - $3) ELSE expires END,
			retires = CASE WHEN retires > $3 THEN $3 ELSE retires END,
			state = CASE WHEN $3 <= $2 THEN '`+string(issuer.KeyRetired)+`' ELSE state END
			WHERE `+signingKey+` AND state <> '`+string(issuer.KeyRevoked)+`' RETURNING `+keyColumns, id, unix(now), unix(from)))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		key, err = findKey(ctx, tx, id, now)
		if err == nil {
			err = issuer.ErrRevoked
		}
		return err
	})
	if err != nil && !errors.Is(err, issuer.ErrRevoked) {
		return nil, err
	}
	if opening := d.showKey(ctx, doing, key); opening != nil {
		return nil, opening
	}
	return key, err
}

// RevokeKey implements issuer.Store.
func (d *grants) RevokeKey(ctx context.Context, id string, now time.Time) (*issuer.Key, error) {
	const doing = "revoke key"
	var key *issuer.Key
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) (err error) {
		if key, err = findKey(ctx, tx, id, now); err != nil || key.State == issuer.KeyRevoked {
			return err
		}
		data, err := encode(&keyData{Algorithm: key.Algorithm})
		if err != nil {
			return err
		}
		key, err = scanKey(tx.QueryRowContext(ctx, `UPDATE keys SET state = '`+string(issuer.KeyRevoked)+`', data = $3,
			retires = CASE WHEN retires > $2 THEN $2 ELSE retires END
			WHERE `+signingKey+` RETURNING `+keyColumns, id, unix(now), data))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM keys WHERE `+algorithm+` = '`+issuer.SecretAlgorithm+`'`)
		return err
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}

// findKey reads a signing key.
func findKey(ctx context.Context, tx *sql.Tx, id string, now time.Time) (*issuer.Key, error) {
	return scanKey(tx.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE `+signingKey, id, unix(now)))
}
