package issuer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/parley-mcp/parley/oauth"
)

func cloneClient(c *Client) *Client {
	out := *c
	m := &out.Metadata
	m.RedirectURIs = slices.Clone(m.RedirectURIs)
	m.GrantTypes = slices.Clone(m.GrantTypes)
	m.ResponseTypes = slices.Clone(m.ResponseTypes)
	m.Contacts = slices.Clone(m.Contacts)
	m.JWKS = slices.Clone(m.JWKS)
	out.Resources, out.Scopes = slices.Clone(c.Resources), slices.Clone(c.Scopes)
	out.Created, out.Expires = seconds(c.Created), seconds(c.Expires)
	return &out
}

// AddClient scans the clients if there is a limit, and the grants if it is reached.
func (m *memory) AddClient(_ context.Context, c *Client, limit int) (*Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Dynamic {
		if old := m.clients[m.digests[c.Digest]]; c.Digest != "" && old != nil && !isExpiredIfSet(old.Expires, c.Created) {
			return cloneClient(old), nil
		}
		if err := m.makeRoom(limit, c.Created); err != nil {
			return nil, err
		}
	}
	stored := cloneClient(c)
	stored.Stamp = oauth.NewSecret()
	if old := m.clients[c.ID]; old != nil && !c.Disabled && !isExpiredIfSet(old.Expires, c.Created) {
		stored.Stamp = old.Stamp
	}
	m.dropClient(c.ID)
	m.clients[c.ID] = stored
	if c.Dynamic && c.Digest != "" {
		m.digests[c.Digest] = c.ID
	}
	return cloneClient(stored), nil
}

// makeRoom removes dynamic clients without a good grant that are not disabled, so that there is room
// for one more.
func (m *memory) makeRoom(limit int, now time.Time) error {
	surplus := m.countDynamic(now) - limit + 1
	if limit <= 0 || surplus <= 0 {
		return nil
	}
	granted := map[string]bool{}
	for _, g := range m.grants {
		if !g.revoked && !isExpired(g.Expires, now) {
			granted[g.ClientID] = true
		}
	}
	var unused []*Client
	for _, c := range m.clients {
		if c.Dynamic && !c.Disabled && !c.Expires.IsZero() && !isExpired(c.Expires, now) && !granted[c.ID] {
			unused = append(unused, c)
		}
	}
	if len(unused) < surplus {
		return ErrFull
	}
	slices.SortFunc(unused, func(a, b *Client) int { return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.ID, b.ID)) })
	for _, c := range unused[:surplus] {
		m.removeClient(c.ID)
	}
	return nil
}

func (m *memory) countDynamic(now time.Time) int {
	n := 0
	for _, c := range m.clients {
		if c.Dynamic && !isExpiredIfSet(c.Expires, now) {
			n++
		}
	}
	return n
}

func (m *memory) dropClient(id string) {
	c := m.clients[id]
	if c == nil {
		return
	}
	delete(m.clients, id)
	if m.digests[c.Digest] == id {
		delete(m.digests, c.Digest)
	}
}

func (m *memory) Client(_ context.Context, id string, now time.Time) (*Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clients[id]
	if c == nil || isExpiredIfSet(c.Expires, now) {
		return nil, ErrNotFound
	}
	return cloneClient(c), nil
}

func (m *memory) UseClient(_ context.Context, id string, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.clients[id]; c != nil && !c.Expires.IsZero() && expires.After(c.Expires) {
		c.Expires = seconds(expires)
	}
	return nil
}

func (m *memory) RemoveClient(_ context.Context, id string, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removeClient(id)
	return nil
}

// removeClient scans the grants and the consents.
func (m *memory) removeClient(id string) {
	m.dropClient(id)
	for _, g := range m.grants {
		if g.ClientID == id {
			g.revoked = true
		}
	}
	for key := range m.consents {
		if key[1] == id {
			delete(m.consents, key)
		}
	}
}
