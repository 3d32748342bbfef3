package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/oauth"
	"github.com/parley-mcp/parley/oauth/issuer"
)

type clientData struct {
	SecretHash string               `json:"secret_hash,omitzero"`
	Metadata   oauth.ClientMetadata `json:"metadata"`
	Resources  []string             `json:"resources,omitzero"`
	Scopes     []string             `json:"scopes,omitzero"`
	Subject    string               `json:"subject,omitzero"`
	// In nanoseconds.
	AccessLifetime  time.Duration `json:"access_lifetime,omitzero"`
	RefreshLifetime time.Duration `json:"refresh_lifetime,omitzero"`
}

func encodeClient(c *issuer.Client) (string, error) {
	return encode(&clientData{
		SecretHash: c.SecretHash, Metadata: c.Metadata, Resources: c.Resources, Scopes: c.Scopes, Subject: c.Subject,
		AccessLifetime: c.AccessLifetime, RefreshLifetime: c.RefreshLifetime,
	})
}

const clientColumns = `id, dynamic, disabled, digest, created, expires, stamp, data`

// AddClient implements issuer.Store. Dynamic clients are added one at a time,
// so that their number and their digests hold.
func (d *clients) AddClient(ctx context.Context, c *issuer.Client, limit int) (*issuer.Client, error) {
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
			if err := makeRoom(ctx, tx, c, limit); err != nil {
				return err
			}
		}
		data, err := encodeClient(c)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `INSERT INTO clients (`+clientColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (id) DO UPDATE SET dynamic = excluded.dynamic, disabled = excluded.disabled, digest = excluded.digest,
			created = excluded.created, expires = excluded.expires, data = excluded.data,
			stamp = CASE WHEN excluded.disabled = 1 OR clients.expires <> 0 AND clients.expires <= excluded.created
				THEN excluded.stamp ELSE clients.stamp END RETURNING stamp`,
			c.ID, flag(c.Dynamic), flag(c.Disabled), c.Digest, unix(c.Created), unix(c.Expires), oauth.NewSecret(), data).Scan(&stored.Stamp)
	})
	if err != nil {
		return nil, err
	}
	return copyClient(&stored)
}

// CreateClient stores a client that is not dynamic, as issuer.NewClient makes it. It returns ErrExists if
// there is one with its ID.
func (d *clients) CreateClient(ctx context.Context, c *issuer.Client) error {
	data, err := encodeClient(c)
	if err != nil {
		return err
	}
	return d.db.Change(ctx, "create client", func(tx *sql.Tx) error {
		var id string
		err := tx.QueryRowContext(ctx, `INSERT INTO clients (`+clientColumns+`) VALUES ($1, 0, 0, '', $2, 0, $3, $4)
			ON CONFLICT (id) DO NOTHING RETURNING id`, c.ID, unix(c.Created), oauth.NewSecret(), data).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrExists
		}
		return err
	})
}

// findDigest returns the client that registered with the same metadata.
func findDigest(ctx context.Context, tx *sql.Tx, c *issuer.Client) (*issuer.Client, error) {
	if c.Digest == "" {
		return nil, sql.ErrNoRows
	}
	return scanClient(tx.QueryRowContext(ctx, `SELECT `+clientColumns+` FROM clients
		WHERE digest = $1 AND dynamic = 1 AND (expires = 0 OR expires > $2) LIMIT 1`, c.Digest, unix(c.Created)))
}

// makeRoom removes dynamic clients without a good grant that are not disabled, so that there is room
// for one more.
func makeRoom(ctx context.Context, tx *sql.Tx, c *issuer.Client, limit int) error {
	if limit <= 0 {
		return nil
	}
	var n int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM clients WHERE dynamic = 1 AND (expires = 0 OR expires > $1)`,
		unix(c.Created)).Scan(&n)
	surplus := n - limit + 1
	if err != nil || surplus <= 0 {
		return err
	}
	// A client without a good grant has no codes and no tokens; its ID is never given again.
	rows, err := tx.QueryContext(ctx, `DELETE FROM clients WHERE id IN (SELECT id FROM clients
		WHERE dynamic = 1 AND disabled = 0 AND expires > $1 AND NOT EXISTS (SELECT 1 FROM grants
			WHERE grants.client_id = clients.id AND grants.revoked = 0 AND grants.expires > $1)
		ORDER BY expires, id LIMIT $2) RETURNING id`, unix(c.Created), surplus)
	removed, err := readTexts(rows, err)
	if err != nil {
		return err
	}
	if len(removed) < surplus {
		return issuer.ErrFull
	}
	for _, id := range removed {
		if _, err := tx.ExecContext(ctx, `DELETE FROM consents WHERE client_id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// readTexts reads rows of one text, of a query that err is of.
func readTexts(rows *sql.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err says what went wrong
	var texts []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}

// copyClient returns a client as it is read, which shares nothing with c.
func copyClient(c *issuer.Client) (*issuer.Client, error) {
	data, err := encodeClient(c)
	if err != nil {
		return nil, err
	}
	out := &issuer.Client{
		ID: c.ID, Dynamic: c.Dynamic, Disabled: c.Disabled, Stamp: c.Stamp, Digest: c.Digest,
		Created: moment(unix(c.Created)), Expires: moment(unix(c.Expires)),
	}
	return out, decodeClient(data, out)
}

func decodeClient(data string, c *issuer.Client) error {
	var rest clientData
	if err := decode(data, &rest); err != nil {
		return err
	}
	c.SecretHash, c.Metadata, c.Subject = rest.SecretHash, rest.Metadata, rest.Subject
	c.Resources, c.Scopes = rest.Resources, rest.Scopes
	c.AccessLifetime, c.RefreshLifetime = rest.AccessLifetime, rest.RefreshLifetime
	return nil
}

func scanClient(row scanner) (*issuer.Client, error) {
	var c issuer.Client
	var dynamic, disabled, created, expires int64
	var data string
	if err := row.Scan(&c.ID, &dynamic, &disabled, &c.Digest, &created, &expires, &c.Stamp, &data); err != nil {
		return nil, err
	}
	c.Dynamic, c.Disabled, c.Created, c.Expires = dynamic == 1, disabled == 1, moment(created), moment(expires)
	return &c, decodeClient(data, &c)
}

// Client implements issuer.Store.
func (d *clients) Client(ctx context.Context, id string, now time.Time) (*issuer.Client, error) {
	const doing = "read client"
	if !storable(id) {
		return nil, d.wrap(doing, issuer.ErrNotFound)
	}
	var c *issuer.Client
	err := d.scanRow(ctx, doing, func(row scanner) (err error) {
		c, err = scanClient(row)
		return err
	}, `SELECT `+clientColumns+` FROM clients WHERE id = $1 AND (expires = 0 OR expires > $2)`, id, unix(now))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// UseClient implements issuer.Store.
func (d *clients) UseClient(ctx context.Context, id string, expires time.Time) error {
	_, err := d.db.Exec(ctx, "note use of client", `UPDATE clients SET expires = $1 WHERE id = $2 AND expires <> 0 AND expires < $1`,
		unix(expires), id)
	return err
}

// RemoveClient implements issuer.Store.
func (d *clients) RemoveClient(ctx context.Context, id string, now time.Time) error {
	err := d.DeleteClient(ctx, id, now)
	if errors.Is(err, issuer.ErrNotFound) {
		return nil
	}
	return err
}

// DeleteClient removes a client as RemoveClient does, and returns issuer.ErrNotFound if there is no
// such client, or another operator was first.
func (d *clients) DeleteClient(ctx context.Context, id string, now time.Time) error {
	const doing = "remove client"
	if !storable(id) {
		return d.wrap(doing, issuer.ErrNotFound)
	}
	return d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		var expires int64
		err := tx.QueryRowContext(ctx, `DELETE FROM clients WHERE id = $1 RETURNING expires`, id).Scan(&expires)
		if err == nil && expires != 0 && expires <= unix(now) {
			err = sql.ErrNoRows // nobody can see it any more
		}
		if err != nil {
			return err
		}
		if err := revokeOfClient(ctx, tx, id); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM consents WHERE client_id = $1`, id)
		return err
	})
}

// revokeOfClient revokes all that was granted to a client, within a transaction.
func revokeOfClient(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `UPDATE grants SET revoked = 1 WHERE client_id = $1 AND revoked = 0`, id)
	return err
}

// Clients returns the clients that have not expired and whose IDs come after one, by ID, and at most limit.
func (d *clients) Clients(ctx context.Context, after string, limit int, now time.Time) ([]*issuer.Client, error) {
	return list(ctx, d.base, "list clients", func(row scanner) (*issuer.Client, error) { return scanClient(row) },
		`SELECT `+clientColumns+` FROM clients WHERE id > $1 AND (expires = 0 OR expires > $2) ORDER BY id LIMIT $3`,
		after, unix(now), limit)
}

// DisableClient disables a client, gives it another stamp, and revokes what was granted to it. It returns
// issuer.ErrNotFound if there is no such client.
func (d *clients) DisableClient(ctx context.Context, id string, now time.Time) error {
	return d.changeClient(ctx, "disable client", id, now, revokeOfClient, `disabled = 1, stamp = $3`, oauth.NewSecret())
}

// EnableClient enables a client again; what was revoked stays so. It returns issuer.ErrNotFound if there
// is no such client.
func (d *clients) EnableClient(ctx context.Context, id string, now time.Time) error {
	return d.changeClient(ctx, "enable client", id, now, nil, `disabled = 0`)
}

// ErrNoSecret says that a client does not authenticate with a secret.
var ErrNoSecret = errors.New("the client has no secret")

// SetClientSecret gives a client another secret, by its hash. It returns ErrNoSecret for one that
// authenticates otherwise, or not at all, and issuer.ErrNotFound if there is no such client.
func (d *clients) SetClientSecret(ctx context.Context, id, hash string, now time.Time) error {
	const doing = "set client secret"
	if !storable(id) {
		return d.wrap(doing, issuer.ErrNotFound)
	}
	return d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		if err := d.db.Serialize(ctx, tx, registering); err != nil {
			return err
		}
		c, err := scanClient(tx.QueryRowContext(ctx, `SELECT `+clientColumns+` FROM clients
			WHERE id = $1 AND (expires = 0 OR expires > $2)`, id, unix(now)))
		if err != nil {
			return err
		}
		if c.SecretHash == "" {
			return ErrNoSecret
		}
		c.SecretHash = hash
		data, err := encodeClient(c)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE clients SET data = $1 WHERE id = $2`, data, id)
		return err
	})
}

// changeClient sets columns of a client, to values that are $3 and later, and does what follows from it, if
// that is not nil, in the same transaction.
func (d *clients) changeClient(
	ctx context.Context, doing, id string, now time.Time,
	then func(ctx context.Context, tx *sql.Tx, id string) error, set string, args ...any,
) error {
	if !storable(id) {
		return d.wrap(doing, issuer.ErrNotFound)
	}
	args = append([]any{id, unix(now)}, args...)
	return d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		var found string
		err := tx.QueryRowContext(ctx, `UPDATE clients SET `+set+` WHERE id = $1 AND (expires = 0 OR expires > $2) RETURNING id`,
			args...).Scan(&found)
		if err != nil || then == nil {
			return err
		}
		return then(ctx, tx, id)
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
