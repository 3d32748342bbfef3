package records

import (
	"context"
	"errors"
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
func (d *grants) AddSession(ctx context.Context, s *issuer.Session) error {
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
func (d *grants) Session(ctx context.Context, id string, now time.Time) (*issuer.Session, error) {
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
func (d *grants) UseSession(ctx context.Context, id string, now time.Time) error {
	_, err := d.db.Exec(ctx, "note use of session", `UPDATE sessions SET used = $1 WHERE id = $2 AND used < $1`, unix(now), id)
	return err
}

// RemoveSession implements issuer.Store.
func (d *grants) RemoveSession(ctx context.Context, id string) error {
	_, err := d.db.Exec(ctx, "remove session", `DELETE FROM sessions WHERE id = $1`, id)
	return err
}

// RemoveSessions implements issuer.Store.
func (d *grants) RemoveSessions(ctx context.Context, subject, except string, now time.Time) (int, error) {
	return d.db.Exec(ctx, "remove sessions", `DELETE FROM sessions WHERE subject = $1 AND expires > $2 AND id <> $3`,
		subject, unix(now), except)
}

// SubjectName returns what a person is called: the name of the user, or the one with which a person of
// another provider signed in last; issuer.ErrNotFound if there is none.
func (d *grants) SubjectName(ctx context.Context, subject string) (string, error) {
	const doing = "read name"
	var name string
	err := d.db.Find(ctx, doing, `SELECT name FROM users WHERE subject = $1`, []any{subject}, &name)
	if !errors.Is(err, issuer.ErrNotFound) {
		return name, err
	}
	err = d.scanRow(ctx, doing, func(row scanner) error {
		s, err := scanSession(row)
		if err == nil {
			name = s.Person.Name
		}
		return err
	}, `SELECT `+sessionColumns+` FROM sessions WHERE subject = $1 ORDER BY created DESC LIMIT 1`, subject)
	if err == nil && name == "" {
		return "", d.wrap(doing, issuer.ErrNotFound)
	}
	return name, err
}
