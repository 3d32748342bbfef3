package records

import (
	"context"
	"database/sql"

	"github.com/parley-mcp/parley/app/internal/store/database"
)

// Backup writes a copy of an SQLite database, as it is at one moment, to a new file; others may
// read and write meanwhile. The copy was checked. It holds private keys, as the database does.
func (d *base) Backup(ctx context.Context, file string) error { return d.db.Backup(ctx, file) }

// Restore checks a file that Backup wrote, and copies it to where dsn says that a new SQLite
// database is to be.
func Restore(ctx context.Context, backup, dsn string) error {
	return database.Restore(ctx, backup, dsn, databaseOptions(nil))
}

// Inspect reads which version the tables of a database have and what Open would execute, and
// changes nothing.
func Inspect(ctx context.Context, dsn string) (*database.Tables, error) {
	return database.Inspect(ctx, dsn, databaseOptions(nil))
}

// EndAll signs everybody out: it ends all sessions and revokes all grants, and with them codes
// and refresh tokens. It returns how many sessions and grants there were.
func (d *base) EndAll(ctx context.Context) (sessions, grants int, err error) {
	err = d.db.Change(ctx, "end all sessions and grants", func(tx *sql.Tx) error {
		var counts [2]int64
		for i, statement := range []string{`DELETE FROM sessions`, `UPDATE grants SET revoked = 1 WHERE revoked = 0`} {
			result, err := tx.ExecContext(ctx, statement)
			if err == nil {
				counts[i], err = result.RowsAffected()
			}
			if err != nil {
				return err
			}
		}
		sessions, grants = int(counts[0]), int(counts[1])
		return nil
	})
	return sessions, grants, err
}
