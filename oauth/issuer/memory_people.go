package issuer

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"
)

// RemoveSessions scans the sessions.
func (m *memory) RemoveSessions(_ context.Context, subject, except string, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for id, s := range m.sessions {
		if s.Person.Subject != subject || id == except {
			continue
		}
		delete(m.sessions, id)
		if !isExpired(s.Expires, now) {
			n++
		}
	}
	return n, nil
}

// SessionsOf scans the sessions.
func (m *memory) SessionsOf(_ context.Context, subject, after string, limit int, now time.Time) ([]*Session, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]*Session{}
	for id, s := range m.sessions {
		if s.Person.Subject == subject && !isExpired(s.Expires, now) {
			found[id] = s
		}
	}
	page, next := pageOf(found, after, limit, cloneSession)
	return page, next, nil
}

// ConsentsOf scans the consents.
func (m *memory) ConsentsOf(_ context.Context, subject, after string, limit int, now time.Time) ([]*Consent, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]*Consent{}
	for key, c := range m.consents {
		if c.Subject == subject && !isExpired(c.Expires, now) {
			found[strconv.Itoa(len(key[1]))+":"+key[1]+key[2]] = c
		}
	}
	page, next := pageOf(found, after, limit, cloneConsent)
	return page, next, nil
}

// ConnectionsOf scans the grants.
func (m *memory) ConnectionsOf(_ context.Context, subject, after string, limit int, now time.Time) ([]*Connection, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]*Connection{}
	for _, g := range m.grants {
		if subject == "" || g.Subject != subject || g.revoked || isExpired(g.Expires, now) {
			continue
		}
		c := found[g.ClientID]
		if c == nil {
			c = &Connection{ClientID: g.ClientID}
			found[g.ClientID] = c
		}
		c.Add(g.Resource, g.Scopes, g.Created)
	}
	page, next := pageOf(found, after, limit, func(c *Connection) *Connection { return c })
	return page, next, nil
}

// pageOf returns copies of the entries whose keys come after one, in the order of the keys.
func pageOf[V any](found map[string]*V, after string, limit int, clone func(*V) *V) (page []*V, next string) {
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if key <= after {
			continue
		}
		if len(page) == limit {
			return page, next
		}
		page, next = append(page, clone(found[key])), key
	}
	return page, ""
}
