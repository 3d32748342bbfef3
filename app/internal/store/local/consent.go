package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/parley-mcp/parley/host"
	"github.com/parley-mcp/parley/strictjson"
)

const pinColumns = `server, tool, digest, definition, time`

func scanPin(scan func(...any) error) (p host.Pin, err error) {
	var definition []byte
	var at int64
	err = scan(&p.Server, &p.Tool, &p.Digest, &definition, &at)
	p.Definition, p.Time = definition, moment(at)
	return p, err
}

// Pin implements host.Store.
func (d *DB) Pin(ctx context.Context, key host.PinKey) (*host.Pin, error) {
	var p host.Pin
	err := d.view(ctx, "read a pin", func(tx *sql.Tx) (err error) {
		p, err = scanPin(tx.QueryRowContext(ctx, `SELECT `+pinColumns+` FROM pin WHERE server = $1 AND tool = $2`,
			key.Server, key.Tool).Scan)
		return err
	})
	switch {
	case errors.Is(err, errNoRow):
		return nil, nil // what host.Store says
	case err != nil:
		return nil, err
	}
	return &p, nil
}

// Pins implements host.Store.
func (d *DB) Pins(ctx context.Context, server string) ([]host.Pin, error) {
	var list []host.Pin
	err := d.view(ctx, "list pins", func(tx *sql.Tx) error {
		return each(ctx, tx, func(scan func(...any) error) error {
			p, err := scanPin(scan)
			list = append(list, p)
			return err
		}, `SELECT `+pinColumns+` FROM pin WHERE $1 IN ('', server) ORDER BY server, tool`, server)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// PutPin implements host.Store.
func (d *DB) PutPin(ctx context.Context, p *host.Pin) error {
	_, err := d.db.Exec(ctx, "keep a pin", `INSERT INTO pin (`+pinColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (server, tool) DO UPDATE SET digest = excluded.digest, definition = excluded.definition, time = excluded.time`,
		p.Server, p.Tool, p.Digest, notNull(p.Definition), nanos(p.Time))
	return d.advise(err)
}

// DeletePin implements host.Store.
func (d *DB) DeletePin(ctx context.Context, key host.PinKey) error {
	_, err := d.db.Exec(ctx, "remove a pin", `DELETE FROM pin WHERE server = $1 AND tool = $2`, key.Server, key.Tool)
	return d.advise(err)
}

// PutGrant implements host.Store.
func (d *DB) PutGrant(ctx context.Context, g *host.Grant) error {
	data, err := strictjson.Marshal(g)
	if err != nil {
		return fmt.Errorf("keep grant %q: %w", g.ID, err)
	}
	_, err = d.db.Exec(ctx, fmt.Sprintf("keep grant %q", g.ID), `INSERT INTO grant_ (id, created, expires, revoked, data)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, g.ID, nanos(g.Created), nanos(g.Expires), nanos(g.Revoked), data)
	return d.advise(err)
}

// Grants implements host.Store.
func (d *DB) Grants(ctx context.Context) ([]host.Grant, error) {
	type stored struct {
		id                        string
		created, expires, revoked int64
		data                      []byte
	}
	var rows []stored
	err := d.view(ctx, "list grants", func(tx *sql.Tx) error {
		return each(ctx, tx, func(scan func(...any) error) error {
			var r stored
			err := scan(&r.id, &r.created, &r.expires, &r.revoked, &r.data)
			rows = append(rows, r)
			return err
		}, `SELECT id, created, expires, revoked, data FROM grant_ ORDER BY created, id`)
	})
	if err != nil {
		return nil, err
	}
	list := make([]host.Grant, len(rows))
	for i, r := range rows {
		g := &list[i]
		if err := strictjson.Unmarshal(r.data, g); err != nil {
			return nil, unreadable(fmt.Sprintf("read grant %q", r.id), err)
		}
		g.ID, g.Created, g.Expires, g.Revoked = r.id, moment(r.created), moment(r.expires), moment(r.revoked)
	}
	return list, nil
}

// RevokeGrant implements host.Store.
func (d *DB) RevokeGrant(ctx context.Context, id string, at time.Time) error {
	return d.change(ctx, fmt.Sprintf("revoke grant %q", id), func(tx *sql.Tx) error {
		var revoked int64
		if err := tx.QueryRowContext(ctx, `SELECT revoked FROM grant_ WHERE id = $1`, id).Scan(&revoked); err != nil {
			return noRow(err, host.ErrNoGrant)
		}
		if revoked != 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, `UPDATE grant_ SET revoked = $2 WHERE id = $1`, id, nanos(at))
		return err
	})
}
