package records

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// MaxResources is how many resources there can be.
const MaxResources = 1000

// ErrTooMany says that there are as many resources as there can be.
var ErrTooMany = fmt.Errorf("there are %d resources, and there can be no more", MaxResources)

// changingResources is the kind of transactions that change resources.
const changingResources = 0x7061726c65790004

// CreateResource stores a resource, whose URI is in canonical form. It returns ErrExists if there is one
// with the URI, and ErrTooMany.
func (d *clients) CreateResource(ctx context.Context, r *issuer.Resource, now time.Time) error {
	return d.db.Change(ctx, "create resource", func(tx *sql.Tx) error {
		if err := d.db.Serialize(ctx, tx, changingResources); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM resources WHERE removed = 0`).Scan(&n); err != nil {
			return err
		}
		var removed int64
		err := tx.QueryRowContext(ctx, `SELECT removed FROM resources WHERE uri = $1`, r.URI).Scan(&removed)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case err == nil && removed == 0:
			return ErrExists
		case n >= MaxResources:
			return ErrTooMany
		}
		stored := *r
		if removed != 0 {
			stored.Since = moment(removed).Add(staleness)
		}
		data, err := encodeResource(&stored, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO resources (uri, created, removed, data) VALUES ($1, $2, 0, $3)
			ON CONFLICT (uri) DO UPDATE SET created = excluded.created, removed = 0, data = excluded.data`, r.URI, unix(now), data)
		return err
	})
}

// staleness is how long after a removal a server may still grant what was removed: it reads the
// resources once a second, and clocks count in seconds.
const staleness = 3 * time.Second

// Resources returns all resources, by URI.
func (d *clients) Resources(ctx context.Context) ([]issuer.Resource, error) {
	found, err := list(ctx, d.base, "list resources", scanResource, `SELECT uri, data FROM resources WHERE removed = 0 ORDER BY uri LIMIT $1`, MaxResources)
	all := make([]issuer.Resource, len(found))
	for i, r := range found {
		all[i] = *r
	}
	return all, err
}

// Resource returns the resource with a URI in canonical form, or issuer.ErrNotFound.
func (d *clients) Resource(ctx context.Context, uri string) (*issuer.Resource, error) {
	const doing = "read resource"
	if !storable(uri) {
		return nil, d.wrap(doing, issuer.ErrNotFound)
	}
	r, err := scanResource(d.db.Read.QueryRowContext(ctx, `SELECT uri, data FROM resources WHERE uri = $1 AND removed = 0`, uri))
	if err != nil {
		return nil, d.wrap(doing, err)
	}
	return r, nil
}

// resourceData is a resource but its URI. Lifetimes are in nanoseconds.
type resourceData struct {
	Name            string        `json:"name,omitzero"`
	Scopes          []scopeData   `json:"scopes,omitzero"`
	Default         []string      `json:"default,omitzero"`
	AccessLifetime  time.Duration `json:"access_lifetime,omitzero"`
	RefreshLifetime time.Duration `json:"refresh_lifetime,omitzero"`
	NoRefresh       bool          `json:"no_refresh,omitzero"`
	DPoP            bool          `json:"dpop,omitzero"`
	Introspectors   []string      `json:"introspectors,omitzero"`
	ExchangeTo      []string      `json:"exchange_to,omitzero"`
	// Since is issuer.Resource.Since, Removed when scopes were removed that are not there, by name.
	Since   int64            `json:"since,omitzero"`
	Removed map[string]int64 `json:"removed,omitzero"`
}

type scopeData struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitzero"`
	Implies     []string `json:"implies,omitzero"`
	Groups      []string `json:"groups,omitzero"`
	Since       int64    `json:"since,omitzero"`
}

func encodeResource(r *issuer.Resource, removed map[string]int64) (string, error) {
	data := resourceData{
		Name: r.Name, Default: r.Default, AccessLifetime: r.AccessLifetime, RefreshLifetime: r.RefreshLifetime,
		NoRefresh: r.NoRefresh, DPoP: r.DPoP, Introspectors: r.Introspectors, ExchangeTo: r.ExchangeTo,
		Since: unix(r.Since), Removed: removed,
	}
	for _, s := range r.Scopes {
		data.Scopes = append(data.Scopes, scopeData{s.Name, s.Description, s.Implies, s.Groups, unix(s.Since)})
	}
	return encode(&data)
}

func scanResource(row scanner) (*issuer.Resource, error) {
	r, _, err := scanResourceData(row)
	return r, err
}

// scanResourceData reads a resource, and when scopes were removed that are not there.
func scanResourceData(row scanner) (*issuer.Resource, map[string]int64, error) {
	r := new(issuer.Resource)
	var text string
	if err := row.Scan(&r.URI, &text); err != nil {
		return nil, nil, err
	}
	var data resourceData
	if err := decode(text, &data); err != nil {
		return nil, nil, err
	}
	r.Name, r.Default, r.Introspectors, r.ExchangeTo = data.Name, data.Default, data.Introspectors, data.ExchangeTo
	r.AccessLifetime, r.RefreshLifetime, r.NoRefresh, r.DPoP = data.AccessLifetime, data.RefreshLifetime, data.NoRefresh, data.DPoP
	r.Since = moment(data.Since)
	for _, s := range data.Scopes {
		r.Scopes = append(r.Scopes, issuer.Scope{
			Name: s.Name, Description: s.Description, Implies: s.Implies, Groups: s.Groups, Since: moment(s.Since),
		})
	}
	return r, data.Removed, nil
}

// ChangeResource has change make another of the resource with a URI in canonical form; no other change of
// it comes between. It returns issuer.ErrNotFound if there is no such resource, and the error of change.
// A scope that goes is void in all that was granted until then, also once it is there again; it is then
// taken out of the grants, and the consents with it are forgotten.
func (d *clients) ChangeResource(ctx context.Context, uri string, now time.Time, change func(*issuer.Resource) error) error {
	const doing = "change resource"
	if !storable(uri) {
		return d.wrap(doing, issuer.ErrNotFound)
	}
	var refused error
	var gone []string
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		if err := d.db.Serialize(ctx, tx, changingResources); err != nil {
			return err
		}
		r, removed, err := scanResourceData(tx.QueryRowContext(ctx, `SELECT uri, data FROM resources WHERE uri = $1 AND removed = 0`, uri))
		if err != nil {
			return err
		}
		before := scopeNames(r)
		if refused = change(r); refused != nil {
			return refused
		}
		after := scopeNames(r)
		gone = slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
		removed = changeRemoved(r, removed, gone, now)
		data, err := encodeResource(r, removed)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE resources SET data = $1 WHERE uri = $2`, data, uri)
		return err
	})
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return err
	}
	return d.dropScopes(ctx, uri, gone, now)
}

// changeRemoved notes when scopes are removed, and in those that come back when they were.
func changeRemoved(r *issuer.Resource, removed map[string]int64, gone []string, now time.Time) map[string]int64 {
	if removed == nil {
		removed = map[string]int64{}
	}
	for _, name := range gone {
		removed[name] = unix(now)
	}
	for i := range r.Scopes {
		if at, ok := removed[r.Scopes[i].Name]; ok {
			r.Scopes[i].Since = moment(at).Add(staleness)
			delete(removed, r.Scopes[i].Name)
		}
	}
	return removed
}

func scopeNames(r *issuer.Resource) []string {
	names := make([]string, len(r.Scopes))
	for i, scope := range r.Scopes {
		names[i] = scope.Name
	}
	return names
}

// RemoveResource removes the resource with a URI in canonical form: what was granted of it is void,
// also once it is there again. Then the grants are revoked, and the consents to it forgotten. It
// returns issuer.ErrNotFound if there is no such resource.
func (d *clients) RemoveResource(ctx context.Context, uri string, now time.Time) error {
	const doing = "remove resource"
	if !storable(uri) {
		return d.wrap(doing, issuer.ErrNotFound)
	}
	err := d.db.Change(ctx, doing, func(tx *sql.Tx) error {
		if err := d.db.Serialize(ctx, tx, changingResources); err != nil {
			return err
		}
		var found string
		return tx.QueryRowContext(ctx, `UPDATE resources SET removed = $1 WHERE uri = $2 AND removed = 0 RETURNING uri`, unix(now), uri).Scan(&found)
	})
	if err != nil {
		return err
	}
	for _, statement := range []string{
		`UPDATE grants SET revoked = 1 WHERE id IN (SELECT id FROM grants WHERE resource = $1 AND revoked = 0 LIMIT $2)`,
		`DELETE FROM consents WHERE key IN (SELECT key FROM consents WHERE resource = $1 LIMIT $2)`,
	} {
		for n := portion; n == portion; {
			if n, err = d.db.Exec(ctx, doing, statement, uri, portion); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropScopes takes scopes out of the grants for a resource, in portions, so that no request waits for long,
// and removes the consents with them. A grant that had no others is revoked.
func (d *clients) dropScopes(ctx context.Context, uri string, gone []string, now time.Time) error {
	if len(gone) == 0 {
		return nil
	}
	isGone := func(scope string) bool { return slices.Contains(gone, scope) }
	err := d.eachData(ctx, "grants", "id", uri, now, func(tx *sql.Tx, id, data string) error {
		var grant grantData
		if err := decode(data, &grant); err != nil {
			return err
		}
		if !slices.ContainsFunc(grant.Scopes, isGone) {
			return nil
		}
		grant.Scopes = slices.DeleteFunc(grant.Scopes, isGone)
		changed, err := encode(&grant)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE grants SET data = $1, revoked = CASE WHEN $2 = 1 THEN 1 ELSE revoked END WHERE id = $3`,
				changed, flag(len(grant.Scopes) == 0), id)
		}
		return err
	})
	if err != nil {
		return err
	}
	return d.eachData(ctx, "consents", "key", uri, now, func(tx *sql.Tx, key, data string) error {
		var consent consentData
		err := decode(data, &consent)
		if err == nil && slices.ContainsFunc(consent.Scopes, isGone) {
			_, err = tx.ExecContext(ctx, `DELETE FROM consents WHERE key = $1`, key)
		}
		return err
	})
}

// eachData calls f with the key and the data of each row of a table that is about a resource and has
// not expired, in portions with a transaction each; f may change that row.
func (d *clients) eachData(ctx context.Context, table, key, uri string, now time.Time, f func(tx *sql.Tx, key, data string) error) error {
	const portion = 100
	for last, full := "", true; full; {
		next := ""
		err := d.db.Change(ctx, "take scopes out of "+table, func(tx *sql.Tx) error {
			rows, err := tx.QueryContext(ctx, `SELECT `+key+`, data FROM `+table+`
				WHERE resource = $1 AND `+key+` > $2 AND expires > $3 ORDER BY `+key+` LIMIT $4`, uri, last, unix(now), portion)
			if err != nil {
				return err
			}
			found, err := readPairs(rows)
			if err != nil {
				return err
			}
			full = len(found) == portion
			for _, pair := range found {
				if err := f(tx, pair[0], pair[1]); err != nil {
					return err
				}
				next = pair[0]
			}
			return nil
		})
		if err != nil {
			return err
		}
		last = next
	}
	return nil
}

func readPairs(rows *sql.Rows) ([][2]string, error) {
	defer func() { _ = rows.Close() }() // Err says what went wrong
	var pairs [][2]string
	for rows.Next() {
		var pair [2]string
		if err := rows.Scan(&pair[0], &pair[1]); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	return pairs, rows.Err()
}
