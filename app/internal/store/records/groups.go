package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-mcp/parley/app/internal/printable"
)

// maxGroupName is the size in bytes of the longest name of a group.
const maxGroupName = 255

// ErrGroupName says that no group can have a name.
var ErrGroupName = fmt.Errorf("the name of a group has 1 to %d bytes, which can be printed, and no space around it", maxGroupName)

// An AlikeGroupError says that there is a group whose name could be taken for another.
type AlikeGroupError struct{ Group string }

func (e *AlikeGroupError) Error() string {
	return fmt.Sprintf("there is a group %q that looks like it", e.Group)
}

// maxMemberships is how many groups a person can be in.
const maxMemberships = 200

// ErrManyGroups says that a person is in as many groups as can be.
var ErrManyGroups = fmt.Errorf("the user is in %d groups, and can be in no more", maxMemberships)

// changingGroups is the kind of transactions that add people to groups.
const changingGroups = 0x7061726c65790005

// GoodGroup says whether a group can have a name.
func GoodGroup(name string) bool {
	return printable.Name(name, maxGroupName) && strings.TrimSpace(name) == name
}

// A Membership is a person in a group.
type Membership struct {
	Group, Subject string
	// Name is that of the user; empty for people of another provider.
	Name string
}

// AddToGroup puts a person into a group, which is there as long as somebody is in it. It returns
// ErrGroupName, an *AlikeGroupError for a name that could be taken for another, which would make a
// group that only seems to be that one, and ErrManyGroups. It says whether the person was not in the group
// before.
func (d *users) AddToGroup(ctx context.Context, group, subject string) (added bool, err error) {
	const doing = "add to group"
	if !GoodGroup(group) {
		return false, ErrGroupName
	}
	var alike *AlikeGroupError
	err = d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		alike, added = nil, false
		if err := d.db.Serialize(ctx, tx, changingGroups); err != nil {
			return err
		}
		names, err := readTexts(tx.QueryContext(ctx, `SELECT DISTINCT name FROM memberships`))
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(names, func(name string) bool { return look(name) == look(group) }); i >= 0 && !slices.Contains(names, group) {
			alike = &AlikeGroupError{names[i]}
			return ErrExists
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM memberships WHERE subject = $1`, subject).Scan(&n); err != nil {
			return err
		}
		var found string
		err = tx.QueryRowContext(ctx, `INSERT INTO memberships (name, subject) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name`,
			group, subject).Scan(&found)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if added = err == nil; added && n >= maxMemberships {
			return ErrManyGroups
		}
		return err
	})
	if alike != nil {
		return false, alike
	}
	return added, err
}

// RemoveFromGroup takes a person out of a group. It says whether the person was in it.
func (d *users) RemoveFromGroup(ctx context.Context, group, subject string) (bool, error) {
	if !storable(group) {
		return false, nil
	}
	n, err := d.db.Exec(ctx, "remove from group", `DELETE FROM memberships WHERE name = $1 AND subject = $2`, group, subject)
	return n > 0, err
}

// GroupsOf returns the groups that a person is in, in order.
func (d *users) GroupsOf(ctx context.Context, subject string) ([]string, error) {
	var groups []string
	err := d.eachRow(ctx, "read groups", func(row scanner) error {
		var name string
		err := row.Scan(&name)
		groups = append(groups, name)
		return err
	}, `SELECT name FROM memberships WHERE subject = $1 ORDER BY name`, subject)
	return groups, err
}

// SetLoginGroups notes the groups that a person of another provider has at a sign-in.
func (d *users) SetLoginGroups(ctx context.Context, subject string, groups []string) error {
	data, err := encode(groups)
	if err != nil {
		return err
	}
	_, err = d.db.Exec(ctx, "note groups of a sign-in", `INSERT INTO login_groups (subject, data) VALUES ($1, $2)
		ON CONFLICT (subject) DO UPDATE SET data = excluded.data`, subject, data)
	return err
}

// GroupsNow returns the groups that a person is in: those that GroupsOf returns, and those that were noted
// at the last sign-in, or login if none were.
func (d *users) GroupsNow(ctx context.Context, subject string, login []string) ([]string, error) {
	groups := login
	var own []string
	err := d.eachRow(ctx, "read groups", func(row scanner) error {
		var text string
		var atLogin int64
		if err := row.Scan(&text, &atLogin); err != nil {
			return err
		}
		if atLogin == 1 {
			groups = nil
			return decode(text, &groups)
		}
		own = append(own, text)
		return nil
	}, `SELECT name, 0 AS at_login FROM memberships WHERE subject = $1
		UNION ALL SELECT data, 1 FROM login_groups WHERE subject = $1 ORDER BY at_login, 1`, subject)
	if err != nil {
		return nil, err
	}
	return slices.Concat(groups, own), nil
}

// Memberships returns who is in which group: of one group or person, unless these are empty. They
// come after those of a group and subject, in order, and at most limit.
func (d *users) Memberships(ctx context.Context, group, subject string, after [2]string, limit int) ([]*Membership, error) {
	return list(ctx, d.base, "list groups", func(row scanner) (*Membership, error) {
		m := new(Membership)
		return m, row.Scan(&m.Group, &m.Subject, &m.Name)
	}, `SELECT memberships.name, memberships.subject`+named("memberships")+`
		WHERE (memberships.name, memberships.subject) > ($1, $2) AND ($3 = '' OR memberships.name = $3) AND ($4 = '' OR memberships.subject = $4)
		ORDER BY memberships.name, memberships.subject LIMIT $5`, after[0], after[1], group, subject, limit)
}
