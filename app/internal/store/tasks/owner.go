package tasks

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/parley-mcp/parley/ext/tasks"
	"github.com/parley-mcp/parley/mcp"
)

// Get implements tasks.Store.
func (d *DB) Get(ctx context.Context, id, owner string) (*tasks.Task, error) {
	if !storable(id) {
		return nil, tasks.ErrUnknown
	}
	t, err := scanTask(d.db.Read.QueryRowContext(ctx, d.sql(`SELECT `+taskColumns+` FROM tasks
		WHERE id = $1 AND owner = $2 AND expires > NOW`), id, digest(owner)))
	if err != nil {
		return nil, plain(d.db.Plain("read task", err))
	}
	return t, nil
}

// List implements tasks.Store.
func (d *DB) List(ctx context.Context, q tasks.Query) (found []*tasks.Task, err error) {
	const doing = "list tasks"
	after, condition, args := int64(never), ``, []any{}
	if !q.All {
		condition, args = ` AND owner = $1`, append(args, digest(q.Owner))
	}
	next := "$" + strconv.Itoa(len(args)+1)
	if q.After != "" {
		if !storable(q.After) {
			return nil, tasks.ErrUnknown
		}
		err := d.db.Find(ctx, doing, d.sql(`SELECT seq FROM tasks WHERE expires > NOW`+condition+` AND id = `+next), append(args, q.After), &after)
		if err != nil {
			return nil, plain(err)
		}
	}
	rows, err := d.db.Read.QueryContext(ctx, d.sql(`SELECT `+stateColumns+` FROM tasks WHERE expires > NOW`+condition+` AND seq < `+next+`
		ORDER BY seq DESC LIMIT $`+strconv.Itoa(len(args)+2)), append(args, after, q.Most)...)
	if err != nil {
		return nil, d.db.Plain(doing, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		t, err := scanState(rows)
		if err != nil {
			return nil, d.db.Plain(doing, err)
		}
		found = append(found, t)
	}
	if err := rows.Err(); err != nil {
		return nil, d.db.Plain(doing, err)
	}
	return found, nil
}

// Answer implements tasks.Store.
func (d *DB) Answer(ctx context.Context, id, owner string, answers mcp.InputResponses) (*tasks.Task, error) {
	return d.modify(ctx, "answer questions of task", id, ` AND owner = $2`, digest(owner), func(_ *sql.Tx, r *row) error {
		r.changed = !r.task.Status.Ended() && r.task.Take(answers, r.answers, r.now)
		return nil
	})
}

// Cancel implements tasks.Store.
func (d *DB) Cancel(ctx context.Context, id, owner, message string) (*tasks.Task, error) {
	end := &tasks.Change{End: &tasks.End{Status: tasks.Cancelled, Message: message}}
	return d.modify(ctx, "cancel task", id, ` AND owner = $2`, digest(owner), func(_ *sql.Tx, r *row) (err error) {
		if !r.task.Status.Ended() {
			r.changed, err = r.task.Apply(end, r.answers, r.now)
		}
		return err
	})
}

// modify changes a task that fulfils a condition with an argument, or returns
// tasks.ErrUnknown.
func (d *DB) modify(ctx context.Context, doing, id, condition string, arg any, f func(*sql.Tx, *row) error) (*tasks.Task, error) {
	if !storable(id) {
		return nil, tasks.ErrUnknown
	}
	var t *tasks.Task
	err := d.change(ctx, doing, func(tx *sql.Tx) error {
		r, err := scanRow(tx.QueryRowContext(ctx, d.sql(`SELECT `+rowColumns+`, NOW FROM tasks
			WHERE id = $1 AND expires > NOW`+condition+d.db.Dialect.Lock), id, arg))
		if err != nil {
			return err
		}
		t = r.task
		before := *r
		if err := f(tx, r); err != nil {
			return err
		}
		if !r.changed && r.lease == before.lease && r.parts == before.parts {
			return nil
		}
		return d.update(ctx, tx, r)
	})
	if err != nil {
		return nil, plain(err)
	}
	return t, nil
}

// update writes a row, and tells of it if the state is another.
func (d *DB) update(ctx context.Context, tx *sql.Tx, r *row) error {
	t, ended := r.task, r.task.Status.Ended()
	if ended {
		r.answers = nil // nobody asks for them any more
	}
	questions, err1 := encodeList(len(t.Questions), t.Questions)
	answers, err2 := encodeList(len(r.answers), r.answers)
	failure, err3 := encodeError(t.Error)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE tasks SET status = $1, ended = $2, message = $3, updated = $4, questions = $5, answers = $6,
		result = $7, error = $8, lease = $9, parts = $10 WHERE seq = $11`,
		string(t.Status), flag(ended), []byte(t.Message), t.Updated.UnixMicro(), questions, answers,
		nullable(t.Result), failure, r.lease, r.parts, r.seq)
	if err != nil {
		return err
	}
	if ended {
		if _, err := tx.ExecContext(ctx, `DELETE FROM task_parts WHERE task = $1`, r.seq); err != nil {
			return err
		}
	}
	if !r.changed {
		return nil
	}
	return d.tell(ctx, tx, t.ID)
}
