package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-mcp/parley/app/internal/store/seal"
	"github.com/parley-mcp/parley/oauth/issuer"
)

// ErrSealed says that the secrets in a database are sealed, and that it was opened without their key.
var ErrSealed = errors.New("the secrets in the database are encrypted, and it was opened without their key")

// A SealError says that the secret in a row could not be opened.
type SealError struct {
	// Row is the table and what names the row in it.
	Row string
	// Err is why, such as seal.ErrDamaged.
	Err error
}

func (e *SealError) Error() string {
	return "the secret in row " + e.Row + " cannot be opened: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *SealError) Unwrap() error { return e.Err }

var (
	errClear = errors.New("it is not encrypted, as it must be; delete the row if you do not know why")
	errNoKey = errors.New("there is no data key of its number")

	errLooksSealed = errors.New("the value begins as encrypted ones do")
)

// A vault has the data keys of a DB, and the key that wraps them.
//
// What is sealed are the columns of secrets that are read back: private keys (keys.data, the member
// "private") and what waits for a person (records.data), where the state of a client and the nonce
// and the PKCE verifier of a sign-in at another provider are. All other secrets are in the tables
// as hashes of 256 bits.
//
// The one row of the table sealing has the number of the data key that seals, 0 for none, and
// whether all rows are sealed. Each transaction that writes a secret reads it and holds it
// (changeSealed), so that once the number has changed no secret is written in clear, or sealed by
// the key before.
type vault struct {
	// open says that there is a key, and never changes. Then no secret in clear is read.
	open bool

	mu      sync.Mutex
	wrapper seal.Wrapper // nil for none
	keys    map[int64]*seal.DataKey
}

// A sealer seals a value for a place: a table, and what names a row in it.
type sealer func(value []byte, place ...string) ([]byte, error)

func clearValue(value []byte, _ ...string) ([]byte, error) {
	if seal.IsSealed(string(value)) {
		return nil, errLooksSealed
	}
	return value, nil
}

// changeSealed runs f in a transaction as Change does, with what seals the values that it writes.
func (d *base) changeSealed(ctx context.Context, doing string, f func(tx *sql.Tx, sealed sealer) error) error {
	for {
		var current int64
		var unknown bool
		err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
			if err := tx.QueryRowContext(ctx, `SELECT current FROM sealing`+d.share()).Scan(&current); err != nil {
				return err
			}
			if current == 0 {
				unknown = false
				return f(tx, clearValue)
			}
			key := d.vault.known(current)
			if unknown = key == nil; unknown {
				return errTaken // nothing is done yet
			}
			return f(tx, func(value []byte, place ...string) ([]byte, error) { return []byte(key.Seal(value, place...)), nil })
		})
		if !unknown {
			return err
		}
		if _, err := d.dataKey(ctx, current); err != nil {
			return d.wrap(doing, err)
		}
	}
}

// share ends a SELECT whose row stays as it is until the transaction ends.
func (d *base) share() string {
	if d.db.Dialect.Postgres {
		return " FOR SHARE"
	}
	return ""
}

func (v *vault) known(id int64) *seal.DataKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.keys[id]
}

// open opens a value of a place, which is a table and what names a row in it.
func (d *base) open(ctx context.Context, value []byte, place ...string) ([]byte, error) {
	switch {
	case seal.IsSealed(string(value)):
		return d.openSealed(ctx, value, place)
	case d.vault.open:
		return nil, sealError(place, errClear)
	}
	return value, nil
}

func (d *base) openSealed(ctx context.Context, value []byte, place []string) ([]byte, error) {
	id, err := seal.KeyOf(string(value))
	if err != nil {
		return nil, sealError(place, err)
	}
	key, err := d.dataKey(ctx, id)
	if errors.Is(err, errNoKey) {
		return nil, sealError(place, err)
	}
	if err != nil {
		return nil, err
	}
	clear, err := key.Open(string(value), place...)
	if err != nil {
		return nil, sealError(place, err)
	}
	return clear, nil
}

func sealError(place []string, err error) error {
	row := place[0]
	for _, part := range place[1:] {
		row += fmt.Sprintf(" %q", part)
	}
	return &SealError{row, err}
}

// dataKey is the data key of a number, read from the database if it is not known.
func (d *base) dataKey(ctx context.Context, id int64) (*seal.DataKey, error) {
	if key := d.vault.known(id); key != nil {
		return key, nil
	}
	if err := d.loadKeys(ctx); err != nil {
		return nil, err
	}
	if key := d.vault.known(id); key != nil {
		return key, nil
	}
	return nil, errNoKey
}

// A wrappedKey is a row of the table of data keys. The data key is wrapped by the key from outside
// and, as long as servers may not know it yet, also sealed by the data key before.
type wrappedKey struct {
	id              int64
	wrapped, bridge string
}

func scanWrapped(row scanner) (*wrappedKey, error) {
	var k wrappedKey
	return &k, row.Scan(&k.id, &k.wrapped, &k.bridge)
}

// loadKeys reads the data keys that are not known yet.
func (d *base) loadKeys(ctx context.Context) error {
	d.vault.mu.Lock()
	defer d.vault.mu.Unlock()
	if !d.vault.open {
		return ErrSealed
	}
	stored, err := list(ctx, d, "read data keys", scanWrapped, `SELECT id, wrapped, bridge FROM data_keys ORDER BY id`)
	if err != nil {
		return err
	}
	for _, k := range stored {
		if d.vault.keys[k.id] != nil {
			continue
		}
		key, err := seal.Unwrap(ctx, d.vault.wrapper, k.id, k.wrapped)
		if err != nil {
			key = d.vault.cross(k)
		}
		if key == nil {
			return &SealError{fmt.Sprintf("data_keys %d", k.id), err}
		}
		d.vault.keys[k.id] = key
	}
	return nil
}

// cross opens a data key with the one before; nil if it cannot.
func (v *vault) cross(k *wrappedKey) *seal.DataKey {
	id, err := seal.KeyOf(k.bridge)
	if err != nil || v.keys[id] == nil {
		return nil
	}
	key, err := seal.Cross(v.keys[id], k.id, k.bridge)
	if err != nil {
		return nil
	}
	return key
}

// Secrets say how the secrets of a database are stored.
type Secrets struct {
	// DataKey is the number of the data key that seals them, and Created when it was made; 0 if
	// they are in clear.
	DataKey int64
	Created time.Time
	// Key is the identifier of the seal.Key that wraps the data key; "" if it is another seal.Wrapper.
	Key string
}

// Secrets returns how the secrets of the database are stored. With a data key the database cannot
// be served without the key that wraps it.
func (d *base) Secrets(ctx context.Context) (*Secrets, error) {
	var s Secrets
	var created int64
	var wrapped string
	err := d.db.Find(ctx, "look for data key", `SELECT current, coalesce(created, 0), coalesce(wrapped, '')
		FROM sealing LEFT JOIN data_keys ON id = current`, nil, &s.DataKey, &created, &wrapped)
	if err != nil {
		return nil, err
	}
	s.Created, s.Key = moment(created), seal.WrappedBy(wrapped)
	return &s, nil
}

// sealing reads the number of the data key that seals, and whether all that is to be sealed is.
func (d *base) sealing(ctx context.Context) (current int64, done bool, err error) {
	var all int64
	err = d.db.Find(ctx, "look for data key", `SELECT current, done FROM sealing`, nil, &current, &all)
	return current, all == 1, err
}

// CheckSecrets reads a data key that another process made. A server calls it every second, so that
// it knows the key before the time is over in which it can be read with the one before. It returns
// ErrSealed if the database was opened without a key and another process has sealed it: then the
// server must end.
func (d *base) CheckSecrets(ctx context.Context) error {
	current, _, err := d.sealing(ctx)
	if err != nil || current == 0 {
		return err
	}
	if _, err := d.dataKey(ctx, current); err != nil {
		return d.wrap("read data key", err)
	}
	return nil
}

// encodeKey is what is stored of a signing key, with its private part sealed. One without a private
// part stays so.
func encodeKey(k *issuer.Key, sealed sealer) (string, error) {
	data := keyData{Algorithm: k.Algorithm}
	if len(k.Private) > 0 {
		private, err := sealed(k.Private, keyPlace(k.Slot)...)
		if err != nil {
			return "", err
		}
		data.Private = private
	}
	return encode(&data)
}

// openKeys opens the private parts of signing keys that were read, in their place.
func (d *base) openKeys(ctx context.Context, doing string, keys ...*issuer.Key) error {
	for _, k := range keys {
		if len(k.Private) == 0 {
			continue
		}
		private, err := d.open(ctx, k.Private, keyPlace(k.Slot)...)
		if err != nil {
			return d.wrap(doing, err)
		}
		k.Private = private
	}
	return nil
}

// showKey is openKeys for an operator, to whom without the key a signing key is shown without its
// private part.
func (d *base) showKey(ctx context.Context, doing string, k *issuer.Key) error {
	if !d.vault.open && seal.IsSealed(string(k.Private)) {
		k.Private = nil
		return nil
	}
	return d.openKeys(ctx, doing, k)
}
