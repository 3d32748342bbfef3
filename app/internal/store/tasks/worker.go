package tasks

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Change implements tasks.Store.
func (d *DB) Change(ctx context.Context, l tasks.Lease, c tasks.Change) (*tasks.Task, error) {
	const doing = "change task"
	if c.End != nil && !c.End.Status.Ended() {
		return nil, fmt.Errorf("%s: a task cannot end as %q", doing, c.End.Status)
	}
	records, err := encodeList(len(c.Records), c.Records)
	if err != nil {
		return nil, d.db.Plain(doing, err)
	}
	t, err := d.modify(ctx, doing, l.ID, ` AND token = $2 AND ended = 0 AND lease <> 0`, l.Token, func(tx *sql.Tx, r *row) error {
		var err error
		if r.changed, err = r.task.Apply(&c, r.answers, r.now); err != nil {
			return err
		}
		if c.Release {
			r.lease, r.changed = 0, true // others may claim it
		}
		if len(records) == 0 || c.End != nil {
			return nil // what has ended needs none
		}
		r.parts++
		return addPart(ctx, tx, r.seq, r.parts-1, records)
	})
	if errors.Is(err, tasks.ErrUnknown) {
		return nil, tasks.ErrLost
	}
	return t, err
}

// Answers implements tasks.Store.
func (d *DB) Answers(ctx context.Context, l tasks.Lease) (mcp.InputResponses, error) {
	if !storable(l.ID) {
		return nil, tasks.ErrLost
	}
	const doing = "read answers of task"
	var data []byte
	err := plain(d.db.Find(ctx, doing, d.sql(`SELECT answers FROM tasks
		WHERE id = $1 AND token = $2 AND ended = 0 AND lease <> 0 AND expires > NOW`), []any{l.ID, l.Token}, &data))
	if errors.Is(err, tasks.ErrUnknown) {
		return nil, tasks.ErrLost
	}
	if err != nil {
		return nil, err
	}
	var answers mcp.InputResponses
	if err := decode(data, &answers); err != nil {
		return nil, d.db.Plain(doing, err)
	}
	return answers, nil
}

// Renew implements tasks.Store.
func (d *DB) Renew(ctx context.Context, held []tasks.Lease, lease time.Duration) (lost []tasks.Lease, err error) {
	err = d.change(ctx, "renew leases", func(tx *sql.Tx) error {
		lost = nil
		for some := range slices.Chunk(held, 200) {
			not, err := d.renew(ctx, tx, some, lease)
			if err != nil {
				return err
			}
			lost = append(lost, not...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// renew renews leases by one statement, and returns those that are lost.
func (d *DB) renew(ctx context.Context, tx *sql.Tx, held []tasks.Lease, lease time.Duration) (lost []tasks.Lease, err error) {
	var conditions []string
	args := []any{micros(lease)}
	for _, l := range held {
		if storable(l.ID) {
			conditions = append(conditions, fmt.Sprintf("id = $%d AND token = $%d", len(args)+1, len(args)+2))
			args = append(args, l.ID, l.Token)
		}
	}
	if len(conditions) == 0 {
		return held, nil
	}
	rows, err := tx.QueryContext(ctx, d.sql(`UPDATE tasks SET lease = NOW + $1
		WHERE ended = 0 AND lease <> 0 AND expires > NOW AND (`+strings.Join(conditions, " OR ")+`) RETURNING id, token`), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	renewed := make(map[tasks.Lease]bool)
	for rows.Next() {
		var l tasks.Lease
		if err := rows.Scan(&l.ID, &l.Token); err != nil {
			return nil, err
		}
		renewed[l] = true
	}
	for _, l := range held {
		if !renewed[l] {
			lost = append(lost, l)
		}
	}
	return lost, rows.Err()
}

// maxClaimed is how many tasks are claimed by one statement.
const maxClaimed = 500

// Claim implements tasks.Store.
func (d *DB) Claim(ctx context.Context, lease time.Duration, n int, skip []string) (claimed []*tasks.Claimed, err error) {
	if n <= 0 {
		return nil, ctx.Err()
	}
	err = d.change(ctx, "claim tasks", func(tx *sql.Tx) error {
		bySeq, err := d.take(ctx, tx, lease, min(n, maxClaimed), skip)
		if err != nil {
			return err
		}
		claimed = nil
		var seqs []any
		for _, c := range bySeq {
			claimed, seqs = append(claimed, c.Claimed), append(seqs, c.seq)
		}
		if len(seqs) == 0 {
			return nil
		}
		return readParts(ctx, tx, bySeq, seqs)
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// A claimedRow is a claimed task with its number.
type claimedRow struct {
	*tasks.Claimed

	seq int64
}

// take claims tasks, without their parts, and returns them oldest first.
func (d *DB) take(ctx context.Context, tx *sql.Tx, lease time.Duration, n int, skip []string) (taken []claimedRow, err error) {
	lock := ""
	if d.db.Dialect.Postgres {
		lock = " FOR UPDATE SKIP LOCKED" // two workers claim at once, and do not wait
	}
	but, args := "", []any{n, micros(lease)}
	for _, id := range skip {
		if storable(id) {
			args = append(args, id)
			but += ", $" + strconv.Itoa(len(args))
		}
	}
	if but != "" {
		but = " AND id NOT IN (" + but[2:] + ")"
	}
	rows, err := tx.QueryContext(ctx, d.sql(`WITH free AS MATERIALIZED (SELECT seq AS picked FROM tasks
		WHERE ended = 0 AND lease <= NOW AND expires > NOW`+but+` ORDER BY seq LIMIT $1`+lock+`)
		UPDATE tasks SET token = token + 1, losses = losses + CASE WHEN lease = 0 THEN 0 ELSE 1 END, lease = NOW + $2
		WHERE seq IN (SELECT picked FROM free)
		RETURNING `+taskColumns+`, seq, token, losses, repeatable`), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		c := claimedRow{Claimed: &tasks.Claimed{}}
		var repeatable int64
		if c.Task, err = scanTask(rows, &c.seq, &c.Token, &c.Losses, &repeatable); err != nil {
			return nil, err
		}
		c.ID, c.Repeatable = c.Task.ID, repeatable == 1
		taken = append(taken, c)
	}
	slices.SortFunc(taken, func(a, b claimedRow) int { return cmp.Compare(a.seq, b.seq) })
	return taken, rows.Err()
}

// readParts reads calls and records of claimed tasks, which are ordered by their numbers.
func readParts(ctx context.Context, tx *sql.Tx, claimed []claimedRow, seqs []any) (err error) {
	places := make([]string, len(seqs))
	for i := range seqs {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	rows, err := tx.QueryContext(ctx, `SELECT task, n, data FROM task_parts WHERE task IN (`+strings.Join(places, ", ")+`) ORDER BY task, n`, seqs...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var task, n int64
		var data []byte
		if err := rows.Scan(&task, &n, &data); err != nil {
			return err
		}
		i, _ := slices.BinarySearchFunc(claimed, task, func(c claimedRow, seq int64) int { return cmp.Compare(c.seq, seq) })
		if n == 0 {
			claimed[i].Call = data
			continue
		}
		var records []server.Record
		if err := decode(data, &records); err != nil {
			return err
		}
		claimed[i].Records = append(claimed[i].Records, records...)
	}
	return rows.Err()
}
