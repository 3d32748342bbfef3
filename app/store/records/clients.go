package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/store/database"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

type clientData struct {
	SecretHash string               `json:"secret_hash,omitzero"`
	Metadata   oauth.ClientMetadata `json:"metadata"`
}

const clientColumns = `id, dynamic, digest, created, expires, data`

// AddClient implements issuer.Store. Dynamic clients are added one at a time,
// so that their number and their digests hold.
func (d *DB) AddClient(ctx context.Context, c *issuer.Client, limit int) (*issuer.Client, error) {
	const doing = "add client"
	stored := *c
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		stored = *c
		if c.Dynamic {
			if err := d.db.Serialize(ctx, tx, registering); err != nil {
				return err
			}
			old, err := findDigest(ctx, tx, c)
			if err == nil {
				stored = *old
				return nil
			}
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if err := checkRoom(ctx, tx, c, limit); err != nil {
				return err
			}
		}
		data, err := encode(&clientData{SecretHash: c.SecretHash, Metadata: c.Metadata})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO clients (`+clientColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET dynamic = excluded.dynamic, digest = excluded.digest,
			created = excluded.created, expires = excluded.expires, data = excluded.data`,
			c.ID, flag(c.Dynamic), c.Digest, unix(c.Created), unix(c.Expires), data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return copyClient(&stored)
}

// findDigest returns the client that registered with the same metadata.
func findDigest(ctx context.Context, tx *sql.Tx, c *issuer.Client) (*issuer.Client, error) {
	if c.Digest == "" {
		return nil, sql.ErrNoRows
	}
	return scanClient(tx.QueryRowContext(ctx, `SELECT `+clientColumns+` FROM clients
		WHERE digest = $1 AND dynamic = 1 AND (expires = 0 OR expires > $2) LIMIT 1`, c.Digest, unix(c.Created)))
}

func checkRoom(ctx context.Context, tx *sql.Tx, c *issuer.Client, limit int) error {
	if limit <= 0 {
		return nil
	}
	var n int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM clients WHERE dynamic = 1 AND (expires = 0 OR expires > $1)`,
		unix(c.Created)).Scan(&n)
	if err == nil && n >= limit {
		return issuer.ErrFull
	}
	return err
}

// copyClient returns a client as it is read, which shares nothing with c.
func copyClient(c *issuer.Client) (*issuer.Client, error) {
	data, err := encode(&clientData{SecretHash: c.SecretHash, Metadata: c.Metadata})
	if err != nil {
		return nil, err
	}
	out := &issuer.Client{ID: c.ID, Dynamic: c.Dynamic, Digest: c.Digest, Created: moment(unix(c.Created)), Expires: moment(unix(c.Expires))}
	return out, decodeClient(data, out)
}

func decodeClient(data string, c *issuer.Client) error {
	var rest clientData
	if err := decode(data, &rest); err != nil {
		return err
	}
	c.SecretHash, c.Metadata = rest.SecretHash, rest.Metadata
	return nil
}

func scanClient(row *sql.Row) (*issuer.Client, error) {
	var c issuer.Client
	var dynamic, created, expires int64
	var data string
	if err := row.Scan(&c.ID, &dynamic, &c.Digest, &created, &expires, &data); err != nil {
		return nil, err
	}
	c.Dynamic, c.Created, c.Expires = dynamic == 1, moment(created), moment(expires)
	return &c, decodeClient(data, &c)
}

// Client implements issuer.Store.
func (d *DB) Client(ctx context.Context, id string, now time.Time) (*issuer.Client, error) {
	const doing = "read client"
	if !storable(id) {
		return nil, d.wrap(doing, issuer.ErrNotFound)
	}
	c, err := scanClient(d.db.Read.QueryRowContext(ctx, `SELECT `+clientColumns+` FROM clients
		WHERE id = $1 AND (expires = 0 OR expires > $2)`, id, unix(now)))
	if err != nil {
		return nil, d.wrap(doing, err)
	}
	return c, nil
}

// UseClient implements issuer.Store.
func (d *DB) UseClient(ctx context.Context, id string, expires time.Time) error {
	_, err := d.db.Exec(ctx, "note use of client", `UPDATE clients SET expires = $1 WHERE id = $2 AND expires <> 0 AND expires < $1`,
		unix(expires), id)
	return err
}

// RemoveClient implements issuer.Store.
func (d *DB) RemoveClient(ctx context.Context, id string, _ time.Time) error {
	return d.db.Change(ctx, "remove client", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM clients WHERE id = $1`, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE grants SET revoked = 1 WHERE client_id = $1 AND revoked = 0`, id)
		return err
	})
}

// storable says whether a stranger's text can be in a column at all: PostgreSQL
// takes no other.
func storable(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func encode(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", errors.New("value cannot be stored")
	}
	return string(data), nil
}

func decode(data string, v any) error {
	if json.Unmarshal([]byte(data), v) != nil {
		return database.ErrUnreadable
	}
	return nil
}
