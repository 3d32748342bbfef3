package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// A NewerError says that a newer version of this program made the tables.
type NewerError struct {
	// Tables is the version of the tables, Program the last one that this program knows.
	Tables, Program int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("tables of version %d are of a newer version of this program, which knows those up to %d; use the newer one",
		e.Tables, e.Program)
}

// migrate makes the tables. Each step is a transaction, of which one runs at a
// time among all processes, so that several may start at once.
func (d *DB) migrate(ctx context.Context) error {
	for done := false; !done; {
		err := d.Change(ctx, "make tables", func(tx *sql.Tx) error {
			if err := d.Serialize(ctx, tx, migrating); err != nil {
				return err
			}
			version, err := d.version(ctx, tx)
			switch {
			case err != nil:
				return err
			case version > len(d.options.Migrations):
				return &NewerError{version, len(d.options.Migrations)}
			case version == len(d.options.Migrations):
				done = true
				return nil
			}
			for _, statement := range d.options.Migrations[version] {
				if _, err := tx.ExecContext(ctx, d.Dialect.types.Replace(statement)); err != nil {
					return err
				}
			}
			_, err = tx.ExecContext(ctx, `UPDATE `+d.options.Version+` SET version = $1`, version+1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// version reads how many migrations were made, 0 in an empty database.
func (d *DB) version(ctx context.Context, tx *sql.Tx) (int, error) {
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+d.options.Version+` (version BIGINT NOT NULL)`); err != nil {
		return 0, err
	}
	var version int
	err := tx.QueryRowContext(ctx, `SELECT version FROM `+d.options.Version).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.ExecContext(ctx, `INSERT INTO `+d.options.Version+` (version) VALUES (0)`)
	}
	return version, err
}
