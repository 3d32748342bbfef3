package records

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

type sessionData struct {
	Issuer string        `json:"issuer,omitzero"`
	Person issuer.Person `json:"person"`
	Remote string        `json:"remote,omitzero"`
	Agent  string        `json:"agent,omitzero"`
}

const sessionColumns = `sessions.id, sessions.created, used, expires, data`

// AddSession implements issuer.Store.
func (d *DB) AddSession(ctx context.Context, s *issuer.Session) error {
	const doing = "add session"
	rest := sessionData{Issuer: s.Issuer, Person: s.Person, Remote: s.Remote, Agent: s.Agent}
	rest.Person.AuthTime = moment(unix(s.Person.AuthTime))
	data, err := encode(&rest)
	if err != nil {
		return d.wrap(doing, err)
	}
	return d.add(ctx, doing, `INSERT INTO sessions (id, subject, created, used, expires, data) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT DO NOTHING`, s.ID, s.Person.Subject, unix(s.Created), unix(s.Used), unix(s.Expires), data)
}

func scanSession(row scanner, more ...any) (*issuer.Session, error) {
	var s issuer.Session
	var created, used, expires int64
	var data string
	if err := row.Scan(append([]any{&s.ID, &created, &used, &expires, &data}, more...)...); err != nil {
		return nil, err
	}
	var rest sessionData
	if err := decode(data, &rest); err != nil {
		return nil, err
	}
	s.Issuer, s.Person, s.Remote, s.Agent = rest.Issuer, rest.Person, rest.Remote, rest.Agent
	s.Created, s.Used, s.Expires = moment(created), moment(used), moment(expires)
	return &s, nil
}

// Session implements issuer.Store.
func (d *DB) Session(ctx context.Context, id string, now time.Time) (*issuer.Session, error) {
	var s *issuer.Session
	err := d.scanRow(ctx, "read session", func(row scanner) (err error) {
		s, err = scanSession(row)
		return err
	}, `SELECT `+sessionColumns+` FROM sessions WHERE id = $1 AND expires > $2`, id, unix(now))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// UseSession implements issuer.Store.
func (d *DB) UseSession(ctx context.Context, id string, now time.Time) error {
	_, err := d.db.Exec(ctx, "note use of session", `UPDATE sessions SET used = $1 WHERE id = $2 AND used < $1`, unix(now), id)
	return err
}

// RemoveSession implements issuer.Store.
func (d *DB) RemoveSession(ctx context.Context, id string) error {
	_, err := d.db.Exec(ctx, "remove session", `DELETE FROM sessions WHERE id = $1`, id)
	return err
}

// RemoveSessions implements issuer.Store.
func (d *DB) RemoveSessions(ctx context.Context, subject, except string, now time.Time) (int, error) {
	return d.db.Exec(ctx, "remove sessions", `DELETE FROM sessions WHERE subject = $1 AND expires > $2 AND id <> $3`,
		subject, unix(now), except)
}
