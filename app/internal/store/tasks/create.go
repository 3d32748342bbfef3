package tasks

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
)

// Create implements tasks.Store.
func (d *DB) Create(ctx context.Context, n *tasks.NewTask, lease time.Duration) (*tasks.Task, tasks.Lease, error) {
	const doing = "create task"
	records, err := encodeList(len(n.Records), n.Records)
	if err != nil || !storable(n.ID) {
		return nil, tasks.Lease{}, d.db.Plain(doing, errValue)
	}
	t := &tasks.Task{
		ID: n.ID, Tool: n.Tool, Status: tasks.Working, Message: n.Message, TTL: n.TTL, PollInterval: n.PollInterval,
	}
	var limit *tasks.LimitError
	add := func(tx *sql.Tx) error {
		var err error
		if limit, err = count(ctx, tx, n); err != nil || limit != nil {
			return errors.Join(err, errFull)
		}
		seq, err := d.insert(ctx, tx, n, t, lease)
		if err != nil {
			return err
		}
		for i, data := range [][]byte{n.Call, records} {
			if len(data) == 0 {
				continue
			}
			if err := addPart(ctx, tx, seq, int64(i), data); err != nil {
				return err
			}
		}
		return d.tell(ctx, tx, n.ID)
	}
	err = d.change(ctx, doing, add)
	if errors.Is(err, errFull) {
		// What has expired was counted, too, also if another deletes it just now.
		if _, err = d.Expire(ctx); err == nil {
			err = d.change(ctx, doing, add)
		}
	}
	switch {
	case errors.Is(err, errFull):
		return nil, tasks.Lease{}, limit
	case err != nil:
		return nil, tasks.Lease{}, err
	}
	return t, tasks.Lease{ID: n.ID, Token: 1}, nil
}

// insert adds the row of a task, and sets the times of t.
func (d *DB) insert(ctx context.Context, tx *sql.Tx, n *tasks.NewTask, t *tasks.Task, lease time.Duration) (seq int64, err error) {
	var created int64
	err = tx.QueryRowContext(ctx, d.sql(`INSERT INTO tasks (id, owner, limit_key, tool, status, ended, message,
		created, updated, expires, ttl, poll, questions, answers, error, repeatable, token, lease, losses, parts)
		VALUES ($1, $2, $3, $4, $5, 0, $6, NOW, NOW, CASE WHEN CAST($7 AS BIGINT) = 0 THEN $8 ELSE NOW + $9 END, $7, $10, $11, $11, $11, $12, 1, NOW + $13, 0, 2)
		RETURNING seq, created`),
		n.ID, digest(n.Owner), digest(n.LimitKey), []byte(n.Tool), string(t.Status), []byte(n.Message),
		int64(n.TTL), int64(never), micros(n.TTL), int64(n.PollInterval), []byte{}, flag(n.Repeatable), micros(lease),
	).Scan(&seq, &created)
	t.Created, t.Updated = moment(created), moment(created)
	return seq, err
}

// count counts one more task, and returns the bound that is passed by that, if one is.
// Those who count one key, or all, do so one after the other until they commit.
func count(ctx context.Context, tx *sql.Tx, n *tasks.NewTask) (*tasks.LimitError, error) {
	for _, c := range []struct {
		key  []byte
		most int
		all  bool
	}{{digest(n.LimitKey), n.MaxByKey, false}, {[]byte{}, n.MaxAll, true}} { // in this order everywhere
		var kept int
		err := tx.QueryRowContext(ctx, `INSERT INTO task_counts (limit_key, n) VALUES ($1, 1)
			ON CONFLICT (limit_key) DO UPDATE SET n = task_counts.n + 1 RETURNING n`, c.key).Scan(&kept)
		if err != nil {
			return nil, err
		}
		if c.most > 0 && kept > c.most {
			return &tasks.LimitError{All: c.all, Most: c.most}, nil
		}
	}
	return nil, nil // no bound is passed
}

// uncount takes tasks that were deleted from the counts.
func uncount(ctx context.Context, tx *sql.Tx, byKey map[string]int) error {
	total := 0
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		total += byKey[key]
		if err := subtract(ctx, tx, []byte(key), byKey[key]); err != nil {
			return err
		}
	}
	return subtract(ctx, tx, []byte{}, total)
}

func subtract(ctx context.Context, tx *sql.Tx, key []byte, n int) error {
	var left int
	err := tx.QueryRowContext(ctx, `UPDATE task_counts SET n = n - $1 WHERE limit_key = $2 RETURNING n`, n, key).Scan(&left)
	if err != nil || left > 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM task_counts WHERE limit_key = $1`, key)
	return err
}

// addPart keeps a part of what a worker needs.
func addPart(ctx context.Context, tx *sql.Tx, seq, n int64, data []byte) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO task_parts (task, n, data) VALUES ($1, $2, $3)`, seq, n, data)
	return err
}

// Expire implements tasks.Store.
func (d *DB) Expire(ctx context.Context) (int, error) {
	// A portion at a time, so that a writer does not wait for long.
	const portion = 500
	for total := 0; ; {
		var ids []string
		err := d.change(ctx, "delete expired tasks", func(tx *sql.Tx) (err error) {
			var byKey map[string]int
			if ids, byKey, err = d.deleteExpired(ctx, tx, portion); err != nil || len(ids) == 0 {
				return err
			}
			if err := uncount(ctx, tx, byKey); err != nil {
				return err
			}
			return d.tell(ctx, tx, ids...)
		})
		if err != nil {
			return total, err
		}
		if total += len(ids); len(ids) < portion {
			return total, nil
		}
	}
}

// deleteExpired deletes at most n tasks, and returns their identifiers, and how many had
// which limit_key.
func (d *DB) deleteExpired(ctx context.Context, tx *sql.Tx, n int) (ids []string, byKey map[string]int, err error) {
	rows, err := tx.QueryContext(ctx, d.sql(`DELETE FROM tasks WHERE expires <= NOW AND seq IN
		(SELECT seq FROM tasks WHERE expires <= NOW ORDER BY expires LIMIT $1`+d.db.Dialect.Lock+`) RETURNING id, limit_key`), n)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	byKey = make(map[string]int)
	for rows.Next() {
		var id string
		var key []byte
		if err := rows.Scan(&id, &key); err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
		byKey[string(key)]++
	}
	return ids, byKey, rows.Err()
}
