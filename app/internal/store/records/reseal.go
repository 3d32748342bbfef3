package records

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/seal"
)

// unlock makes a database ready that was opened with a key. The first time it makes a data key and
// seals all secrets that are there. That can be interrupted anywhere: until all is sealed, the next
// one does it again.
func (d *base) unlock(ctx context.Context) error {
	current, done, err := d.sealing(ctx)
	if err != nil {
		return err
	}
	if current == 0 {
		if err := d.firstKey(ctx); err != nil {
			return err
		}
	}
	if err := d.loadKeys(ctx); err != nil || done {
		return err
	}
	if err := d.sealAll(ctx, func(value []byte, place ...string) ([]byte, error) {
		if !seal.IsSealed(string(value)) {
			return value, nil
		}
		return d.open(ctx, value, place...)
	}); err != nil {
		return err
	}
	if err := d.db.Compact(ctx); err != nil { // what was in clear is in the file no more
		return err
	}
	_, err = d.db.Exec(ctx, "seal secrets", `UPDATE sealing SET done = 1`)
	return err
}

// firstKey makes the data key, unless another process does. From then on no secret is written in clear.
func (d *base) firstKey(ctx context.Context) error {
	key := seal.NewDataKey(1)
	wrapped, err := key.Wrap(ctx, d.vault.wrapper) // nobody else has d yet
	if err != nil {
		return err
	}
	return d.db.Change(ctx, "make data key", func(tx *sql.Tx) error {
		var current int64
		if err := tx.QueryRowContext(ctx, `SELECT current FROM sealing`+d.db.Dialect.Lock).Scan(&current); err != nil || current != 0 {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO data_keys (id, created, wrapped, bridge) VALUES (1, $1, $2, '')`, time.Now().Unix(), wrapped)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE sealing SET current = 1`)
		}
		return err
	})
}

// sealAll seals each secret of the tables by the key that seals now, in portions. open says what is
// in a value. Rows that others write meanwhile are sealed by them.
func (d *base) sealAll(ctx context.Context, open sealer) error {
	for _, table := range []func(context.Context, sealer, [2]string) ([2]string, int, error){d.sealKeys, d.sealRecords} {
		var last [2]string
		for n := portion; n == portion; {
			var err error
			if last, n, err = table(ctx, open, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// A secretRow is a row with what names it, and the value.
type secretRow struct {
	key  [2]string
	data []byte
}

// resealRows reads rows by a statement and has each changed, in one transaction. It returns the
// last one, and how many there were.
func (d *base) resealRows(
	ctx context.Context, last [2]string, statement string, args []any, change func(*sql.Tx, *secretRow, sealer) error,
) ([2]string, int, error) {
	const doing = "seal secrets"
	end, n := last, 0
	var refused error
	err := d.changeSealed(ctx, doing, func(tx *sql.Tx, sealed sealer) error {
		end, refused = last, nil
		rows, err := readSecrets(ctx, tx, statement+d.db.Dialect.Lock, args)
		if n = len(rows); err != nil {
			return err
		}
		for _, r := range rows {
			end = r.key
			if err := change(tx, r, sealed); err != nil {
				refused = err
				return err
			}
		}
		return nil
	})
	if refused != nil {
		err = d.wrap(doing, refused)
	}
	return end, n, err
}

func readSecrets(ctx context.Context, tx *sql.Tx, statement string, args []any) (all []*secretRow, err error) {
	rows, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		r := new(secretRow)
		if err := rows.Scan(&r.key[0], &r.key[1], &r.data); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func (d *base) sealKeys(ctx context.Context, open sealer, last [2]string) ([2]string, int, error) {
	return d.resealRows(ctx, last, `SELECT slot, '', data FROM keys WHERE slot > $1 ORDER BY slot LIMIT $2`, []any{last[0], portion},
		func(tx *sql.Tx, r *secretRow, sealed sealer) error {
			var data keyData
			if err := decode(string(r.data), &data); err != nil {
				return err
			}
			if len(data.Private) == 0 {
				return nil
			}
			place := keyPlace(r.key[0])
			clear, err := open(data.Private, place...)
			if err != nil {
				return err
			}
			if data.Private, err = sealed(clear, place...); err != nil {
				return err
			}
			text, err := encode(&data)
			if err == nil {
				_, err = tx.ExecContext(ctx, `UPDATE keys SET data = $1 WHERE slot = $2`, text, r.key[0])
			}
			return err
		})
}

func (d *base) sealRecords(ctx context.Context, open sealer, last [2]string) ([2]string, int, error) {
	return d.resealRows(ctx, last, `SELECT kind, hash, data FROM records WHERE (kind, hash) > ($1, $2) ORDER BY kind, hash LIMIT $3`,
		[]any{last[0], last[1], portion}, func(tx *sql.Tx, r *secretRow, sealed sealer) error {
			place := recordPlace(r.key[0], r.key[1])
			data, err := open(r.data, place...)
			if err == nil {
				data, err = sealed(data, place...)
			}
			if err == nil {
				_, err = tx.ExecContext(ctx, `UPDATE records SET data = $1 WHERE kind = $2 AND hash = $3`, data, r.key[0], r.key[1])
			}
			return err
		})
}

// keyPlace and recordPlace are what a secret is bound to.
func keyPlace(slot string) []string          { return []string{"keys", "private", slot} }
func recordPlace(kind, hash string) []string { return []string{"records", "data", kind, hash} }

// RotateOptions adjust RotateSecrets. The zero value, and nil, are good for most.
type RotateOptions struct {
	// Reseal makes a new data key, seals all secrets by it, and forgets the one before. Default:
	// the data key stays, and is wrapped by the new key alone.
	Reseal bool
	// Wait is how long servers have to read the new data key with the one before: see CheckSecrets.
	// Default 5 s.
	Wait time.Duration
}

// RotateSecrets replaces the key that a database was opened with by another, which may be the same.
// Servers that run go on; to start one needs the new key. Without Reseal it is one transaction.
// With it, an interruption leaves secrets sealed by either data key, which can all be read; it is
// to be called again. It returns the number of the data key that seals, and ErrUnsealed if there is
// none. o may be nil.
func (d *base) RotateSecrets(ctx context.Context, to seal.Wrapper, o *RotateOptions) (current int64, err error) {
	var options RotateOptions
	if o != nil {
		options = *o
	}
	if current, err = d.rewrap(ctx, to, options.Reseal); err != nil || !options.Reseal {
		return current, err
	}
	if err := d.sealAll(ctx, func(value []byte, place ...string) ([]byte, error) { return d.open(ctx, value, place...) }); err != nil {
		return 0, err
	}
	if err := d.pause(ctx, cmp.Or(options.Wait, 5*time.Second)); err != nil {
		return 0, err
	}
	err = d.db.Change(ctx, "forget data key", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM data_keys WHERE id < $1`, current)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE data_keys SET bridge = '' WHERE id = $1`, current)
		}
		return err
	})
	return current, err
}

// sleep waits for some time, or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrUnsealed says that the secrets in a database are in clear.
var ErrUnsealed = errors.New("the secrets in the database are not encrypted")

// rewrap wraps all data keys by another key, and with another makes a data key that seals from then on.
func (d *base) rewrap(ctx context.Context, to seal.Wrapper, another bool) (current int64, err error) {
	const doing = "wrap data keys"
	if !d.vault.open {
		return 0, d.wrap(doing, ErrSealed)
	}
	var refused error
	var made *seal.DataKey
	err = d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		refused, made = nil, nil
		if err := tx.QueryRowContext(ctx, `SELECT current FROM sealing`+d.db.Dialect.Lock).Scan(&current); err != nil {
			return err
		}
		if current == 0 {
			refused = ErrUnsealed
			return refused
		}
		var keys []*seal.DataKey
		keys, refused = d.wrapAll(ctx, tx, to)
		if refused != nil || !another {
			return refused
		}
		// The last one seals: only here one is added.
		before := keys[len(keys)-1]
		made = seal.NewDataKey(before.ID() + 1)
		wrapped, err := made.Wrap(ctx, to)
		if err != nil {
			refused = err
			return err
		}
		current = made.ID()
		_, err = tx.ExecContext(ctx, `INSERT INTO data_keys (id, created, wrapped, bridge) VALUES ($1, $2, $3, $4)`,
			current, time.Now().Unix(), wrapped, made.Bridge(before))
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE sealing SET current = $1`, current)
		}
		return err
	})
	if refused != nil {
		err = d.wrap(doing, refused)
	}
	if err != nil {
		return 0, err
	}
	d.vault.mu.Lock()
	defer d.vault.mu.Unlock()
	d.vault.wrapper = to
	if made != nil {
		d.vault.keys[made.ID()] = made
	}
	return current, nil
}

func (d *base) unwrap(ctx context.Context, k *wrappedKey) (*seal.DataKey, error) {
	d.vault.mu.Lock()
	wrapper := d.vault.wrapper
	d.vault.mu.Unlock()
	key, err := seal.Unwrap(ctx, wrapper, k.id, k.wrapped)
	if err != nil {
		return nil, &SealError{fmt.Sprintf("data_keys %d", k.id), err}
	}
	return key, nil
}

// wrapAll wraps the data keys by another key within a transaction, and returns them. They are
// unwrapped first, so that of two operators who replace a key one is told that it is another one by
// now.
func (d *base) wrapAll(ctx context.Context, tx *sql.Tx, to seal.Wrapper) (keys []*seal.DataKey, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, wrapped, bridge FROM data_keys ORDER BY id`)
	if err != nil {
		return nil, err
	}
	var all []*wrappedKey
	for rows.Next() && err == nil {
		var k *wrappedKey
		k, err = scanWrapped(rows)
		all = append(all, k)
	}
	if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, k := range all {
		key, err := d.unwrap(ctx, k)
		if err != nil {
			return nil, err
		}
		wrapped, err := key.Wrap(ctx, to)
		if err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE data_keys SET wrapped = $1 WHERE id = $2`, wrapped, k.id); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}
