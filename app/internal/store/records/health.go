package records

import (
	"context"
	"database/sql"
)

// Ping reads one row, so that an error says whether the database works. The first time, and after a
// change that failed since the disk was full or the database could only be read, it also writes.
func (d *base) Ping(ctx context.Context) error {
	var version int
	if err := d.db.Find(ctx, "ping", `SELECT max(version) FROM schema_version`, nil, &version); err != nil {
		return err
	}
	return d.db.CheckWrites(ctx, "ping by writing", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO revoked_tokens (id, expires) VALUES ('ping', 0) ON CONFLICT (id) DO NOTHING`)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM revoked_tokens WHERE id = 'ping'`)
		}
		return err
	})
}
