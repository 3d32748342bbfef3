package records

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

type refreshData struct {
	ClientID string `json:"client_id,omitzero"`
	Key      string `json:"key,omitzero"`
}

// AddRefresh implements issuer.Store.
func (d *grants) AddRefresh(ctx context.Context, hash string, r *issuer.Refresh) error {
	return d.db.Change(ctx, "add refresh token", func(tx *sql.Tx) error {
		return insertRefresh(ctx, tx, hash, r)
	})
}

// insertRefresh stores a current token. One without a grant is as good as absent.
func insertRefresh(ctx context.Context, tx *sql.Tx, hash string, r *issuer.Refresh) error {
	var family int64
	err := tx.QueryRowContext(ctx, `SELECT expires FROM grants WHERE id = $1`, r.Grant).Scan(&family)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	data, err := encode(&refreshData{ClientID: r.ClientID, Key: r.Key})
	if err != nil {
		return err
	}
	return insert(ctx, tx, `INSERT INTO refresh_tokens
		(hash, grant_id, successor, created, expires, rotated, family, gone, data)
		VALUES ($1, $2, '', $3, $4, 0, $5, $6, $7) ON CONFLICT DO NOTHING`,
		hash, r.Grant, unix(r.Created), unix(r.Expires), family, min(family, unix(r.Expires)), data)
}

// Refresh implements issuer.Store.
func (d *grants) Refresh(ctx context.Context, hash string, now time.Time) (*issuer.Refresh, error) {
	const doing = "read refresh token"
	var r issuer.Refresh
	var created, expires, rotated int64
	var data string
	err := d.db.Find(ctx, doing, `SELECT grant_id, created, expires, rotated, data FROM refresh_tokens WHERE hash = $1 AND gone > $2`,
		[]any{hash, unix(now)}, &r.Grant, &created, &expires, &rotated, &data)
	if err != nil {
		return nil, err
	}
	var rest refreshData
	if err := decode(data, &rest); err != nil {
		return nil, d.wrap(doing, err)
	}
	r.ClientID, r.Key = rest.ClientID, rest.Key
	r.Created, r.Expires, r.Rotated = moment(created), moment(expires), moment(rotated)
	return &r, nil
}

// RotateRefresh implements issuer.Store. The token's row is held first, then
// that of its grant, as ConsumeCode does, so that there is no deadlock.
func (d *grants) RotateRefresh(ctx context.Context, old, hash string, next *issuer.Refresh, grace time.Duration, now time.Time) error {
	const doing = "rotate refresh token"
	reused := false
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		reused = false
		var grant, successor string
		var rotated int64
		err := tx.QueryRowContext(ctx, `SELECT grant_id, successor, rotated FROM refresh_tokens WHERE hash = $1 AND gone > $2`+d.db.Dialect.Lock,
			old, unix(now)).Scan(&grant, &successor, &rotated)
		if err != nil {
			return err
		}
		revoked, err := d.family(ctx, tx, grant, now)
		if err != nil {
			return err
		}
		again := rotated != 0
		if again {
			reused = hash != successor || !now.Before(moment(rotated).Add(grace))
			if !reused {
				reused, err = isSpent(ctx, tx, successor, now)
			}
			if err != nil {
				return err
			}
		}
		if reused {
			return revoke(ctx, tx, grant)
		}
		if revoked {
			return issuer.ErrRevoked
		}
		if again {
			return nil // once more, within the grace
		}
		if _, err := tx.ExecContext(ctx, `UPDATE refresh_tokens SET rotated = $1, successor = $2, gone = family WHERE hash = $3`,
			unix(now), hash, old); err != nil {
			return err
		}
		return insertRefresh(ctx, tx, hash, next)
	})
	if err == nil && reused {
		err = d.wrap(doing, issuer.ErrReused)
	}
	return err
}

// isSpent says whether a refresh token was rotated, or is gone. The row of its grant is held.
func isSpent(ctx context.Context, tx *sql.Tx, hash string, now time.Time) (bool, error) {
	var rotated int64
	err := tx.QueryRowContext(ctx, `SELECT rotated FROM refresh_tokens WHERE hash = $1 AND gone > $2`, hash, unix(now)).Scan(&rotated)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return rotated != 0, err
}
