package tasks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// change is database.DB.Change, which wakes those that watch in this process.
func (d *DB) change(ctx context.Context, doing string, f func(*sql.Tx) error) error {
	err := d.db.Change(ctx, doing, f)
	d.mu.Lock()
	defer d.mu.Unlock()
	for wake := range d.watchers {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	return err
}

// keptChanges is how many of the last changes an SQLite file has for those that watch.
const keptChanges = 20_000

// tell tells those that watch of changes of tasks, once tx was committed.
func (d *DB) tell(ctx context.Context, tx *sql.Tx, ids ...string) error {
	if d.db.Dialect.Postgres {
		_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, id) FROM unnest($2::text[]) AS id`, d.channel, ids)
		return err
	}
	for _, id := range ids {
		var n int64
		err := tx.QueryRowContext(ctx, `INSERT INTO task_changes (id) VALUES ($1) RETURNING n`, id).Scan(&n)
		if err != nil {
			return err
		}
		if n%1000 != 0 {
			continue
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM task_changes WHERE n <= $1`, n-keptChanges); err != nil {
			return err
		}
	}
	return nil
}

var (
	errMissed      = errors.New("watch tasks: changes were missed")
	errUnreachable = errors.New("watch tasks: the database does not answer any more")
)

// Watch implements tasks.Store. With PostgreSQL it has a connection of its own, and hears
// of changes when they are made. With SQLite it is told at once of changes of this DB, and
// looks for those of others five times a second.
func (d *DB) Watch(ctx context.Context, ready func(), changed func(id string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	if d.db.Dialect.Postgres {
		err = d.watchPostgres(ctx, ready, changed)
	} else {
		err = d.watchSQLite(ctx, ready, changed)
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return err
}

func (d *DB) watchPostgres(ctx context.Context, ready func(), changed func(id string)) error {
	const doing = "watch tasks"
	conn, err := d.db.Connect(ctx)
	if err != nil {
		return d.db.Plain(doing, err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // there is nothing left to do
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{d.channel}.Sanitize()); err != nil {
		return d.db.Plain(doing, err)
	}
	ready()
	for {
		id, err := d.heard(ctx, conn)
		switch {
		case errors.Is(err, errUnreachable):
			return err
		case err != nil:
			return d.db.Plain(doing, err)
		}
		changed(id)
	}
}

// heard waits for the next notification. A connection that was silent for a while is asked
// for a sign of life: one that was cut without a word looks the same.
func (d *DB) heard(ctx context.Context, conn *pgx.Conn) (string, error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, d.silence)
		n, err := conn.WaitForNotification(waiting)
		silent := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			return n.Payload, nil
		case !silent || ctx.Err() != nil:
			return "", err
		}
		asking, cancel := context.WithTimeout(ctx, d.answer)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return "", errUnreachable
		}
	}
}

func (d *DB) watchSQLite(ctx context.Context, ready func(), changed func(id string)) error {
	const interval = 200 * time.Millisecond
	wake := make(chan struct{}, 1)
	d.mu.Lock()
	d.watchers[wake] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.watchers, wake)
		d.mu.Unlock()
	}()
	var last int64
	if err := d.db.Find(ctx, "watch tasks", `SELECT coalesce(max(n), 0) FROM task_changes`, nil, &last); err != nil {
		return err
	}
	ready()
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case <-look.C:
		}
		ids, err := d.changesAfter(ctx, &last)
		if err != nil {
			return err
		}
		for _, id := range ids {
			changed(id)
		}
	}
}

// changesAfter are the tasks that changed after a number, which it sets to the last.
func (d *DB) changesAfter(ctx context.Context, last *int64) (ids []string, err error) {
	const doing = "watch tasks"
	rows, err := d.db.Read.QueryContext(ctx, `SELECT n, id FROM task_changes WHERE n > $1 ORDER BY n`, *last)
	if err != nil {
		return nil, d.db.Plain(doing, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		var id string
		if err := rows.Scan(&n, &id); err != nil {
			return nil, d.db.Plain(doing, err)
		}
		if n != *last+1 {
			return nil, fmt.Errorf("%w: more than %d", errMissed, keptChanges)
		}
		*last, ids = n, append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, d.db.Plain(doing, err)
	}
	return ids, nil
}
