package records

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// migrations bring the tables from one version to the next, in order. Those
// that were published never change. BYTES stands for the dialect's type. Times
// are seconds since 1970, flags 0 or 1; data is a JSON object with what no query
// searches for.
var migrations = [][]string{{
	`CREATE TABLE clients (id TEXT PRIMARY KEY, dynamic BIGINT NOT NULL, digest TEXT NOT NULL,
		created BIGINT NOT NULL, expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX clients_digest ON clients (digest)`,
	`CREATE INDEX clients_expires ON clients (expires)`,

	`CREATE TABLE grants (id TEXT PRIMARY KEY, client_id TEXT NOT NULL, subject TEXT NOT NULL, revoked BIGINT NOT NULL,
		created BIGINT NOT NULL, expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX grants_client ON grants (client_id)`,
	`CREATE INDEX grants_subject ON grants (subject)`,
	`CREATE INDEX grants_expires ON grants (expires)`,

	`CREATE TABLE codes (hash TEXT PRIMARY KEY, grant_id TEXT NOT NULL, taken BIGINT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX codes_expires ON codes (expires)`,

	// family is when the grant expires, gone when the token is as good as
	// absent: at its own expiry or, once it is rotated, at that of the grant.
	`CREATE TABLE refresh_tokens (hash TEXT PRIMARY KEY, grant_id TEXT NOT NULL, successor TEXT NOT NULL,
		created BIGINT NOT NULL, expires BIGINT NOT NULL, rotated BIGINT NOT NULL,
		family BIGINT NOT NULL, gone BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX refresh_tokens_gone ON refresh_tokens (gone)`,

	`CREATE TABLE revoked_tokens (id TEXT PRIMARY KEY, expires BIGINT NOT NULL)`,
	`CREATE INDEX revoked_tokens_expires ON revoked_tokens (expires)`,

	// key is a hash of issuer and id, which are as long as strangers like.
	`CREATE TABLE used_ids (key TEXT PRIMARY KEY, expires BIGINT NOT NULL)`,
	`CREATE INDEX used_ids_expires ON used_ids (expires)`,

	// key is a hash of subject, client and resource.
	`CREATE TABLE consents (key TEXT PRIMARY KEY, subject TEXT NOT NULL, client_id TEXT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,
	`CREATE INDEX consents_subject ON consents (subject)`,
	`CREATE INDEX consents_expires ON consents (expires)`,

	`CREATE TABLE records (kind TEXT NOT NULL, hash TEXT NOT NULL, expires BIGINT NOT NULL, data BYTES NOT NULL,
		PRIMARY KEY (kind, hash))`,
	`CREATE INDEX records_expires ON records (expires)`,

	`CREATE TABLE keys (slot TEXT PRIMARY KEY, id TEXT NOT NULL, created BIGINT NOT NULL, retires BIGINT NOT NULL,
		expires BIGINT NOT NULL, data TEXT NOT NULL)`,

	`CREATE TABLE users (name TEXT PRIMARY KEY, subject TEXT NOT NULL UNIQUE, created BIGINT NOT NULL, hash TEXT NOT NULL)`,
}}

var errNewer = errors.New("tables are of a newer version of this program")

// migrate makes the tables. Each step is a transaction, of which one runs at a
// time among all processes, so that several may start at once.
func (d *DB) migrate(ctx context.Context) error {
	for done := false; !done; {
		err := d.change(ctx, "make tables", func(tx *sql.Tx) error {
			if err := d.serialize(ctx, tx, migrating); err != nil {
				return err
			}
			version, err := tableVersion(ctx, tx)
			switch {
			case err != nil:
				return err
			case version > len(migrations):
				return errNewer
			case version == len(migrations):
				done = true
				return nil
			}
			for _, statement := range migrations[version] {
				statement = strings.ReplaceAll(statement, " BYTES ", " "+d.dialect.bytes+" ")
				if _, err := tx.ExecContext(ctx, statement); err != nil {
					return err
				}
			}
			_, err = tx.ExecContext(ctx, `UPDATE schema_version SET version = $1`, version+1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tableVersion reads how many migrations were made, 0 in an empty database.
func tableVersion(ctx context.Context, tx *sql.Tx) (int, error) {
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)`); err != nil {
		return 0, err
	}
	var version int
	err := tx.QueryRowContext(ctx, `SELECT version FROM schema_version`).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, `INSERT INTO schema_version (version) VALUES (0)`)
	}
	return version, err
}
