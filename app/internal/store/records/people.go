package records

import (
	"context"
	"time"

	"github.com/parley-mcp/parley/oauth/issuer"
)

// SessionsOf implements issuer.Store.
func (d *grants) SessionsOf(ctx context.Context, subject, after string, limit int, now time.Time) ([]*issuer.Session, string, error) {
	if subject == "" {
		return nil, "", nil
	}
	all, err := d.Sessions(ctx, subject, after, limit+1, now)
	page, next := firstOf(all, limit, func(s *NamedSession) string { return s.ID })
	return plain(page, func(s *NamedSession) *issuer.Session { return &s.Session }), next, err
}

// ConsentsOf implements issuer.Store.
func (d *grants) ConsentsOf(ctx context.Context, subject, after string, limit int, now time.Time) ([]*issuer.Consent, string, error) {
	if subject == "" {
		return nil, "", nil
	}
	all, err := d.Consents(ctx, Filter{Subject: subject}, after, limit+1, now)
	page, next := firstOf(all, limit, func(c *NamedConsent) string { return c.Key })
	return plain(page, func(c *NamedConsent) *issuer.Consent { return &c.Consent }), next, err
}

// ConnectionsOf implements issuer.Store. It reads all grants of the person whose client comes
// after one, but keeps no more than a page. With || the index of the person is the only one that fits.
func (d *grants) ConnectionsOf(ctx context.Context, subject, after string, limit int, now time.Time) ([]*issuer.Connection, string, error) {
	if subject == "" {
		return nil, "", nil
	}
	var page []*issuer.Connection
	next := ""
	err := d.eachRow(ctx, "list connections", func(row scanner) error {
		var client, resource, data string
		var created int64
		if next != "" {
			return nil
		}
		if err := row.Scan(&client, &resource, &created, &data); err != nil {
			return err
		}
		var rest grantData
		if err := decode(data, &rest); err != nil {
			return err
		}
		if len(page) == 0 || page[len(page)-1].ClientID != client {
			if len(page) == limit {
				next = page[limit-1].ClientID
				return nil
			}
			page = append(page, &issuer.Connection{ClientID: client})
		}
		page[len(page)-1].Add(resource, rest.Scopes, moment(created))
		return nil
	}, `SELECT client_id, resource, created, data FROM grants WHERE subject = $1 AND revoked = 0 AND expires > $2
		AND client_id || '' > $3 ORDER BY client_id || ''`, subject, unix(now), after)
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// firstOf returns a page of at most limit entries, and the key of the last one if there are more.
func firstOf[T any](all []*T, limit int, key func(*T) string) (page []*T, next string) {
	if len(all) <= limit {
		return all, ""
	}
	return all[:limit], key(all[limit-1])
}

// plain takes the entries without names out of a page.
func plain[N, T any](page []*N, of func(*N) *T) []*T {
	out := make([]*T, len(page))
	for i, entry := range page {
		out[i] = of(entry)
	}
	return out
}
