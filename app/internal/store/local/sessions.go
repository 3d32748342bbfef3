package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/parley-mcp/parley/app/internal/store/database"
	"github.com/parley-mcp/parley/host"
)

// CreateSession implements host.Store.
func (d *DB) CreateSession(ctx context.Context, s *host.SessionInfo) error {
	return d.change(ctx, fmt.Sprintf("create session %q", s.ID), func(tx *sql.Tx) error {
		if err := fits(ctx, tx, s); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO session (id, parent, at, title, created) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING`, s.ID, sql.Null[string]{V: s.Parent, Valid: s.Parent != ""}, s.At, s.Title, nanos(s.Created))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n == 1 || err != nil {
			return err
		}
		return ownErrorf("the id is taken")
	})
}

// fits says what is wrong with a fork.
func fits(ctx context.Context, tx *sql.Tx, s *host.SessionInfo) error {
	last := int64(0)
	if s.Parent != "" {
		var err error
		if last, err = lastRecord(ctx, tx, s.Parent); err != nil {
			return err
		}
	}
	if s.At < 0 || s.At > last {
		return ownErrorf("it cannot begin after record %d; the last record of its parent is %d", s.At, last)
	}
	return nil
}

// lastRecord is the number of a session's last record, that of its parent if it has none.
func lastRecord(ctx context.Context, tx *sql.Tx, session string) (n int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce((SELECT max(n) FROM record WHERE session = id), at) FROM session WHERE id = $1`,
		session).Scan(&n)
	return n, noRow(err, host.ErrNoSession)
}

// noRow is another error in the place of sql.ErrNoRows.
func noRow(err, instead error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return instead
	}
	return err
}

const sessionColumns = `id, coalesce(parent, ''), at, title, created,
	coalesce((SELECT time FROM record WHERE session = id ORDER BY n DESC LIMIT 1), created)`

func scanSession(scan func(...any) error) (s host.SessionInfo, err error) {
	var created, used int64
	err = scan(&s.ID, &s.Parent, &s.At, &s.Title, &created, &used)
	s.Created, s.Used = moment(created), moment(used)
	return s, err
}

// readSession reads a session in a transaction.
func readSession(ctx context.Context, tx *sql.Tx, id string) (host.SessionInfo, error) {
	s, err := scanSession(tx.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM session WHERE id = $1`, id).Scan)
	return s, noRow(err, host.ErrNoSession)
}

// Session implements host.Store.
func (d *DB) Session(ctx context.Context, id string) (*host.SessionInfo, error) {
	var s host.SessionInfo
	err := d.view(ctx, fmt.Sprintf("read session %q", id), func(tx *sql.Tx) (err error) {
		s, err = readSession(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// Sessions implements host.Store.
func (d *DB) Sessions(ctx context.Context) ([]host.SessionInfo, error) {
	var list []host.SessionInfo
	err := d.view(ctx, "list sessions", func(tx *sql.Tx) error {
		return each(ctx, tx, func(scan func(...any) error) error {
			s, err := scanSession(scan)
			list = append(list, s)
			return err
		}, `SELECT `+sessionColumns+` FROM session ORDER BY created DESC, id`)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// SetTitle implements host.Store.
func (d *DB) SetTitle(ctx context.Context, id, title string) error {
	return d.changeSession(ctx, fmt.Sprintf("name session %q", id), `UPDATE session SET title = $2 WHERE id = $1`, id, title)
}

// changeSession runs a statement that changes one row, if there is the session.
func (d *DB) changeSession(ctx context.Context, doing, statement string, args ...any) error {
	return d.change(ctx, doing, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n > 0 || err != nil {
			return err
		}
		return host.ErrNoSession
	})
}

// DeleteSession implements host.Store. Entries of the audit log stay. What is deleted is
// overwritten in the file, and goes from the write-ahead log when no other process reads.
func (d *DB) DeleteSession(ctx context.Context, id string) error {
	err := d.change(ctx, fmt.Sprintf("delete session %q", id), func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `PRAGMA secure_delete = 1`); err != nil {
			return err
		}
		var forks int
		err := tx.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM session WHERE parent = s.id) FROM session s WHERE id = $1`, id).
			Scan(&forks)
		switch {
		case err != nil:
			return noRow(err, host.ErrNoSession)
		case forks > 0:
			return host.ErrHasForks
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM session WHERE id = $1`, id)
		return err
	})
	if err == nil {
		_, _ = d.db.Write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`) // a reader may be in the way
	}
	return err
}

// Append implements host.Store.
func (d *DB) Append(ctx context.Context, session string, records ...host.Record) error {
	bodies := make([][]byte, len(records))
	for i, r := range records {
		raw, err := host.EncodeBody(r.Body)
		if err != nil {
			return fmt.Errorf("add to session %q: record %d: %w", session, r.N, err)
		}
		bodies[i] = raw
	}
	return d.change(ctx, fmt.Sprintf("add to session %q", session), func(tx *sql.Tx) error {
		last, err := lastRecord(ctx, tx, session)
		if err != nil {
			return err
		}
		for i, r := range records {
			if r.N != last+1+int64(i) {
				return ownErrorf("record %d, not %d: %w", r.N, last+1+int64(i), host.ErrConflict)
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO record (session, n, time, kind, body) VALUES ($1, $2, $3, $4, $5)`,
				session, r.N, nanos(r.Time), r.Body.Kind(), bodies[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// A row is a record as it is stored.
type row struct {
	n, time int64
	kind    string
	body    []byte
}

// missing is the error for a record that is not there.
func missing(session string, n int64) error {
	return ownErrorf("record %d of session %q is missing: the file was damaged or changed; restore it from a copy", n, session)
}

// eachRecord calls f for the records of a session from one number to another, which must
// all be there; to is -1 for all that there are.
func eachRecord(ctx context.Context, tx *sql.Tx, session string, from, to int64, f func(row) error) error {
	next := from
	limit := to
	if to < 0 {
		limit = 1<<63 - 1
	}
	err := each(ctx, tx, func(scan func(...any) error) error {
		var r row
		if err := scan(&r.n, &r.time, &r.kind, &r.body); err != nil {
			return err
		}
		if r.n != next {
			return missing(session, next)
		}
		next++
		return f(r)
	}, `SELECT n, time, kind, body FROM record WHERE session = $1 AND n <= $2 ORDER BY n`, session, limit)
	if err == nil && to >= next {
		return missing(session, next)
	}
	return err
}

// Records implements host.Store. A record that is missing is an error, and so is one that
// cannot be read; one that only a newer version of this program knows is host.ErrNewer.
func (d *DB) Records(ctx context.Context, session string) ([]host.Record, error) {
	var rows []row
	err := d.view(ctx, fmt.Sprintf("read session %q", session), func(tx *sql.Tx) error {
		s, err := readSession(ctx, tx, session)
		if err != nil {
			return err
		}
		return eachRecord(ctx, tx, session, s.At+1, -1, func(r row) error {
			rows = append(rows, r)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	list := make([]host.Record, len(rows))
	for i, r := range rows {
		body, err := host.DecodeBody(r.kind, r.body)
		if err != nil {
			return nil, fmt.Errorf("read record %d of session %q: %w", r.n, session, err)
		}
		list[i] = host.Record{N: r.n, Time: moment(r.time), Body: body}
	}
	return list, nil
}

// PutBlob implements host.Store.
func (d *DB) PutBlob(ctx context.Context, session, name string, data []byte) error {
	return d.changeSession(ctx, fmt.Sprintf("keep %q of session %q", name, session),
		`INSERT INTO blob (session, name, data) SELECT id, $2, $3 FROM session WHERE id = $1
			ON CONFLICT (session, name) DO UPDATE SET data = excluded.data`, session, name, notNull(data))
}

// Blob implements host.Store.
func (d *DB) Blob(ctx context.Context, session, name string, offset, limit int64) (part []byte, size int64, err error) {
	const most = 1 << 32 // SQLite keeps less
	offset, limit = min(max(offset, 0), most), min(max(limit, 0), most)
	var length sql.Null[int64]
	err = d.db.Find(ctx, fmt.Sprintf("read %q of session %q", name, session),
		`SELECT length(data), substr(data, $3 + 1, $4) FROM session LEFT JOIN blob ON session = id AND name = $2 WHERE id = $1`,
		[]any{session, name, offset, limit}, &length, &part)
	switch {
	case errors.Is(err, errNoRow):
		return nil, 0, fmt.Errorf("read %q of session %q: %w", name, session, host.ErrNoSession)
	case err != nil:
		return nil, 0, d.advise(err)
	case !length.Valid:
		return nil, 0, fmt.Errorf("read %q of session %q: %w", name, session, host.ErrNoBlob)
	}
	return part, length.V, nil
}

// unreadable is an error for what is stored but cannot be read.
func unreadable(what string, err error) error {
	return fmt.Errorf("%s: %w: %w; restore the file from a copy", what, database.ErrUnreadable, err)
}
