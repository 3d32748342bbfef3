package records

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// A Filter says which grants or consents are meant: those that have all of what is not empty.
type Filter struct{ Subject, Client, Resource string }

var errNoFilter = errors.New("neither a person nor a client nor a resource")

// conditions are those of a filter for rows of a table that have not expired, beside others.
// The first part of the filter is the one that fits the fewest rows, as a rule, and its index
// is used: with || there is none for the others, which SQLite could choose instead.
func (f Filter) conditions(table string, now time.Time, others ...string) (where string, args []any) {
	args = []any{unix(now)}
	all := append([]string{table + ".expires > $1"}, others...)
	for _, part := range [][2]string{{"subject", f.Subject}, {"client_id", f.Client}, {"resource", f.Resource}} {
		if part[1] != "" {
			args = append(args, part[1])
			column := table + "." + part[0]
			if len(args) > 2 {
				column += " || ''"
			}
			all = append(all, column+" = $"+strconv.Itoa(len(args)))
		}
	}
	return " WHERE " + strings.Join(all, " AND "), args
}

// named joins the names of users to the rows of a table.
func named(table string) string {
	return ", coalesce(users.name, '') FROM " + table + " LEFT JOIN users ON users.subject = " + table + ".subject"
}

// after makes the end of a statement that reads the next page, in the order of a key.
func after(key, last string, limit int, args []any) (end string, all []any) {
	all = append(args, last, limit)
	return " AND " + key + " > $" + strconv.Itoa(len(all)-1) + " ORDER BY " + key + " LIMIT $" + strconv.Itoa(len(all)), all
}

// A NamedGrant is a grant with the name of the user; empty for people of another provider.
type NamedGrant struct {
	issuer.Grant
	Name string
}

// Grants returns grants that are good and match a filter: those whose ID comes after one, by
// ID, and at most limit.
func (d *grants) Grants(ctx context.Context, f Filter, last string, limit int, now time.Time) ([]*NamedGrant, error) {
	where, args := f.conditions("grants", now, "revoked = 0")
	end, args := after("grants.id", last, limit, args)
	return list(ctx, d.base, "list grants", func(row scanner) (*NamedGrant, error) {
		var name string
		g, _, err := scanGrant(row, &name)
		if err != nil {
			return nil, err
		}
		return &NamedGrant{*g, name}, nil
	}, `SELECT `+grantColumns+named("grants")+where+end, args...)
}

// RevokeMatching revokes the grants that match a filter, which must not be empty, and returns
// how many were good until then.
func (d *grants) RevokeMatching(ctx context.Context, f Filter, now time.Time) (int, error) {
	const doing = "revoke grants"
	if f == (Filter{}) {
		return 0, errNoFilter
	}
	where, args := f.conditions("grants", now, "revoked = 0")
	return d.db.Exec(ctx, doing, `UPDATE grants SET revoked = 1`+where, args...)
}

// A NamedSession is a session with the name of the user, as in NamedGrant.
type NamedSession struct {
	issuer.Session
	Name string
}

// Sessions returns sessions of a person ("" is all), in pages as of Grants.
func (d *grants) Sessions(ctx context.Context, subject, last string, limit int, now time.Time) ([]*NamedSession, error) {
	where, args := Filter{Subject: subject}.conditions("sessions", now)
	end, args := after("sessions.id", last, limit, args)
	return list(ctx, d.base, "list sessions", func(row scanner) (*NamedSession, error) {
		var name string
		s, err := scanSession(row, &name)
		if err != nil {
			return nil, err
		}
		return &NamedSession{*s, name}, nil
	}, `SELECT `+sessionColumns+named("sessions")+where+end, args...)
}

// A NamedConsent is a consent with the name of the user, as in NamedGrant.
type NamedConsent struct {
	issuer.Consent
	// Key is what consents are in the order of.
	Key, Name string
}

// Consents returns consents that match a filter, in pages as of Grants, by their Key.
func (d *grants) Consents(ctx context.Context, f Filter, last string, limit int, now time.Time) ([]*NamedConsent, error) {
	where, args := f.conditions("consents", now)
	end, args := after("consents.key", last, limit, args)
	return list(ctx, d.base, "list consents", func(row scanner) (*NamedConsent, error) {
		var c NamedConsent
		var expires int64
		var data string
		if err := row.Scan(&c.Key, &c.Subject, &c.ClientID, &c.Resource, &expires, &data, &c.Name); err != nil {
			return nil, err
		}
		var rest consentData
		if err := decode(data, &rest); err != nil {
			return nil, err
		}
		c.Scopes, c.Redirect, c.Created, c.Expires = rest.Scopes, rest.Redirect, moment(rest.Created), moment(expires)
		return &c, nil
	}, `SELECT consents.key, consents.subject, client_id, resource, expires, data`+named("consents")+where+end, args...)
}

// RemoveMatching forgets the consents that match a filter, which must not be empty, and
// returns how many.
func (d *grants) RemoveMatching(ctx context.Context, f Filter, now time.Time) (int, error) {
	if f == (Filter{}) {
		return 0, errNoFilter
	}
	where, args := f.conditions("consents", now)
	return d.db.Exec(ctx, "remove consents", `DELETE FROM consents`+where, args...)
}
