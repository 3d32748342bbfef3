package issuer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// A memory is a Store of one process, behind one lock: what holds it is never
// more than a few map operations, but for the scans that say so.
type memory struct {
	mu       sync.Mutex
	clients  map[string]*Client
	digests  map[string]string // of dynamic clients, to their ids
	grants   map[string]*family
	codes    map[string]*takenCode
	refresh  map[string]*heldRefresh
	revoked  map[string]time.Time // jti of an access token, to its expiry
	used     map[[2]string]time.Time
	consents map[[3]string]*Consent
	sessions map[string]*Session
	records  map[[2]string]*record
	keys     map[string]*Key // by slot
}

var _ Store = (*memory)(nil)

type family struct {
	Grant
	revoked bool
}

type takenCode struct {
	Code
	taken bool
}

type heldRefresh struct {
	Refresh
	successor string // the hash it was rotated to
}

type record struct {
	data    []byte
	expires time.Time
}

// NewMemory returns a Store that keeps everything in memory: for tests,
// development, and issuers that may forget everything when they end. It grows
// until it is swept ([Server.Run] does that).
func NewMemory() Store {
	return &memory{
		clients:  map[string]*Client{},
		digests:  map[string]string{},
		grants:   map[string]*family{},
		codes:    map[string]*takenCode{},
		refresh:  map[string]*heldRefresh{},
		revoked:  map[string]time.Time{},
		used:     map[[2]string]time.Time{},
		consents: map[[3]string]*Consent{},
		sessions: map[string]*Session{},
		records:  map[[2]string]*record{},
		keys:     map[string]*Key{},
	}
}

// seconds is a time as a Store keeps it.
func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// isExpired says whether something that expires then is gone now.
func isExpired(expires, now time.Time) bool { return !now.Before(expires) }

// isExpiredIfSet is isExpired for what may stay for ever, with the zero time.
func isExpiredIfSet(expires, now time.Time) bool { return !expires.IsZero() && isExpired(expires, now) }

func cloneGrant(g *Grant) *Grant {
	out := *g
	out.Scopes = slices.Clone(g.Scopes)
	out.Claims = bytes.Clone(g.Claims)
	out.Groups = slices.Clone(g.Groups)
	out.AuthTime, out.Created, out.Expires = seconds(g.AuthTime), seconds(g.Created), seconds(g.Expires)
	return &out
}

func (m *memory) AddGrant(_ context.Context, g *Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.grants[g.ID] != nil {
		return errors.New("grant is there already")
	}
	if c := m.clients[g.ClientID]; g.ClientStamp != "" && (c == nil || c.Stamp != g.ClientStamp) {
		return ErrRevoked
	}
	m.grants[g.ID] = &family{Grant: *cloneGrant(g)}
	return nil
}

func (m *memory) Grant(_ context.Context, id string, now time.Time) (*Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.family(id, now)
	if g == nil {
		return nil, ErrNotFound
	}
	if g.revoked {
		return cloneGrant(&g.Grant), ErrRevoked
	}
	return cloneGrant(&g.Grant), nil
}

// family is a grant that has not expired, or nil.
func (m *memory) family(id string, now time.Time) *family {
	if g := m.grants[id]; g != nil && !isExpired(g.Expires, now) {
		return g
	}
	return nil
}

func (m *memory) RevokeGrant(_ context.Context, id string, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revoke(id)
	return nil
}

func (m *memory) revoke(id string) {
	if g := m.grants[id]; g != nil {
		g.revoked = true
	}
}

// RevokeGrants scans the grants.
func (m *memory) RevokeGrants(_ context.Context, subject, client string, now time.Time) (int, error) {
	if subject == "" && client == "" {
		return 0, errors.New("neither a person nor a client")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, g := range m.grants {
		if g.revoked || isExpired(g.Expires, now) || subject != "" && g.Subject != subject || client != "" && g.ClientID != client {
			continue
		}
		g.revoked = true
		n++
	}
	return n, nil
}

func (m *memory) AddCode(_ context.Context, hash string, c *Code) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.codes[hash] != nil {
		return errors.New("code is there already")
	}
	stored := takenCode{Code: *c}
	stored.Expires = seconds(c.Expires)
	m.codes[hash] = &stored
	return nil
}

func (m *memory) ConsumeCode(_ context.Context, hash string, now time.Time) (*Code, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.codes[hash]
	if c == nil || isExpired(c.Expires, now) {
		return nil, ErrNotFound
	}
	out := c.Code
	if c.taken {
		m.revoke(c.Grant)
		return &out, ErrConsumed
	}
	g := m.family(c.Grant, now)
	if g == nil || g.revoked {
		return nil, ErrNotFound
	}
	c.taken = true
	return &out, nil
}

func (m *memory) AddRefresh(_ context.Context, hash string, r *Refresh) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refresh[hash] != nil {
		return errors.New("refresh token is there already")
	}
	m.refresh[hash] = holdRefresh(r)
	return nil
}

func holdRefresh(r *Refresh) *heldRefresh {
	held := &heldRefresh{Refresh: *r}
	held.Created, held.Expires, held.Rotated = seconds(r.Created), seconds(r.Expires), time.Time{}
	return held
}

// present says whether a refresh token is there for a caller: a current one
// until it expires, a rotated one as long as its family.
func (m *memory) present(r *heldRefresh, now time.Time) bool {
	return r != nil && m.family(r.Grant, now) != nil && (!r.Rotated.IsZero() || !isExpired(r.Expires, now))
}

func (m *memory) Refresh(_ context.Context, hash string, now time.Time) (*Refresh, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.refresh[hash]
	if !m.present(r, now) {
		return nil, ErrNotFound
	}
	out := r.Refresh
	return &out, nil
}

func (m *memory) RotateRefresh(_ context.Context, old, hash string, next *Refresh, grace time.Duration, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.refresh[old]
	if !m.present(r, now) {
		return ErrNotFound
	}
	g := m.grants[r.Grant]
	if !r.Rotated.IsZero() && (hash != r.successor || !now.Before(r.Rotated.Add(grace)) || !m.isCurrent(hash, now)) {
		g.revoked = true
		return ErrReused
	}
	if g.revoked {
		return ErrRevoked
	}
	if !r.Rotated.IsZero() {
		return nil // once more, within the grace
	}
	if m.refresh[hash] != nil {
		return errors.New("successor is there already")
	}
	r.Rotated, r.successor = seconds(now), hash
	m.refresh[hash] = holdRefresh(next)
	return nil
}

// isCurrent says whether a refresh token is there and was not rotated.
func (m *memory) isCurrent(hash string, now time.Time) bool {
	r := m.refresh[hash]
	return m.present(r, now) && r.Rotated.IsZero()
}

func (m *memory) RevokeToken(_ context.Context, id string, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.revoked[id] = seconds(expires)
	return nil
}

func (m *memory) TokenRevoked(_ context.Context, id, grant string, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if expires, ok := m.revoked[id]; ok && !isExpired(expires, now) {
		return true, nil
	}
	if grant == "" {
		return false, nil
	}
	g := m.family(grant, now)
	return g == nil || g.revoked, nil
}

func (m *memory) UseID(_ context.Context, issuer, id string, expires, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{issuer, id}
	if until, ok := m.used[key]; ok && !isExpired(until, now) {
		return false, nil
	}
	m.used[key] = seconds(expires)
	return true, nil
}

func cloneConsent(c *Consent) *Consent {
	out := *c
	out.Scopes = slices.Clone(c.Scopes)
	out.Created, out.Expires = seconds(c.Created), seconds(c.Expires)
	return &out
}

func (m *memory) SetConsent(_ context.Context, c *Consent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.consents[[3]string{c.Subject, c.ClientID, c.Resource}] = cloneConsent(c)
	return nil
}

func (m *memory) Consent(_ context.Context, subject, client, resource string, now time.Time) (*Consent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.consents[[3]string{subject, client, resource}]
	if c == nil || isExpired(c.Expires, now) {
		return nil, ErrNotFound
	}
	return cloneConsent(c), nil
}

// RemoveConsents scans the consents.
func (m *memory) RemoveConsents(_ context.Context, subject, client string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.consents {
		if key[0] == subject && (client == "" || key[1] == client) {
			delete(m.consents, key)
		}
	}
	return nil
}

func cloneSession(s *Session) *Session {
	out := *s
	out.Person.Claims = bytes.Clone(s.Person.Claims)
	out.Person.Groups = slices.Clone(s.Person.Groups)
	out.Person.AuthTime = seconds(s.Person.AuthTime)
	out.Created, out.Used, out.Expires = seconds(s.Created), seconds(s.Used), seconds(s.Expires)
	return &out
}

func (m *memory) AddSession(_ context.Context, s *Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.ID] != nil {
		return errors.New("session is there already")
	}
	m.sessions[s.ID] = cloneSession(s)
	return nil
}

func (m *memory) Session(_ context.Context, id string, now time.Time) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil || isExpired(s.Expires, now) {
		return nil, ErrNotFound
	}
	return cloneSession(s), nil
}

func (m *memory) UseSession(_ context.Context, id string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[id]; s != nil && now.After(s.Used) {
		s.Used = seconds(now)
	}
	return nil
}

func (m *memory) RemoveSession(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, id)
	return nil
}

func (m *memory) SetRecord(_ context.Context, kind, hash string, data []byte, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[[2]string{kind, hash}] = &record{data: bytes.Clone(data), expires: seconds(expires)}
	return nil
}

func (m *memory) Record(_ context.Context, kind, hash string, now time.Time) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[[2]string{kind, hash}]
	if r == nil || isExpired(r.expires, now) {
		return nil, ErrNotFound
	}
	return bytes.Clone(r.data), nil
}

func (m *memory) TakeRecord(_ context.Context, kind, hash string, now time.Time) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{kind, hash}
	r := m.records[key]
	if r == nil || isExpired(r.expires, now) {
		return nil, ErrNotFound
	}
	delete(m.records, key)
	return r.data, nil
}

func cloneKey(k *Key) *Key {
	out := *k
	out.Private = bytes.Clone(k.Private)
	out.Created, out.Retires, out.Expires = seconds(k.Created), seconds(k.Retires), seconds(k.Expires)
	return &out
}

func (m *memory) AddKey(_ context.Context, k *Key, now time.Time) (*Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.keys[k.Slot]; old != nil && !isExpired(old.Expires, now) {
		return cloneKey(old), nil
	}
	m.keys[k.Slot] = cloneKey(k)
	return cloneKey(k), nil
}

func (m *memory) Keys(_ context.Context, now time.Time) ([]*Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*Key
	for _, k := range m.keys {
		if !isExpired(k.Expires, now) {
			out = append(out, cloneKey(k))
		}
	}
	slices.SortFunc(out, func(a, b *Key) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Slot, b.Slot))
	})
	return out, nil
}

// signingKey is a key that is no secret and has not expired, or nil. It scans the keys.
func (m *memory) signingKey(id string, now time.Time) *Key {
	for _, k := range m.keys {
		if k.ID == id && k.Algorithm != SecretAlgorithm && !isExpired(k.Expires, now) {
			return k
		}
	}
	return nil
}

func (m *memory) RetireKey(_ context.Context, id string, from, now time.Time) (*Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.signingKey(id, now)
	switch {
	case k == nil:
		return nil, ErrNotFound
	case k.State == KeyRevoked:
		return cloneKey(k), ErrRevoked
	}
	if from = seconds(from); from.Before(k.Retires) {
		k.Retires, k.Expires = from, k.Expires.Add(from.Sub(k.Retires))
	}
	if !seconds(now).Before(from) {
		k.State = KeyRetired
	}
	return cloneKey(k), nil
}

func (m *memory) RevokeKey(_ context.Context, id string, now time.Time) (*Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.signingKey(id, now)
	if k == nil {
		return nil, ErrNotFound
	}
	if k.State != KeyRevoked {
		k.State, k.Private = KeyRevoked, nil
		if now = seconds(now); now.Before(k.Retires) {
			k.Retires = now
		}
		maps.DeleteFunc(m.keys, func(_ string, k *Key) bool { return k.Algorithm == SecretAlgorithm })
	}
	return cloneKey(k), nil
}

// Sweep takes the lock anew for each kind, so that no request waits for all.
func (m *memory) Sweep(ctx context.Context, now time.Time) (int, error) {
	n := 0
	for _, portion := range []func() int{
		func() int {
			return sweep(m.clients, func(c *Client) bool { return isExpiredIfSet(c.Expires, now) })
		},
		func() int {
			sweep(m.digests, func(id string) bool { return m.clients[id] == nil })
			return 0 // no records of their own
		},
		func() int {
			return sweep(m.grants, func(g *family) bool { return isExpired(g.Expires, now) })
		},
		func() int { return sweep(m.codes, func(c *takenCode) bool { return isExpired(c.Expires, now) }) },
		func() int { return sweep(m.refresh, func(r *heldRefresh) bool { return !m.present(r, now) }) },
		func() int { return sweep(m.revoked, func(e time.Time) bool { return isExpired(e, now) }) },
		func() int { return sweep(m.used, func(e time.Time) bool { return isExpired(e, now) }) },
		func() int { return sweep(m.consents, func(c *Consent) bool { return isExpired(c.Expires, now) }) },
		func() int { return sweep(m.sessions, func(s *Session) bool { return isExpired(s.Expires, now) }) },
		func() int { return sweep(m.records, func(r *record) bool { return isExpired(r.expires, now) }) },
		func() int { return sweep(m.keys, func(k *Key) bool { return isExpired(k.Expires, now) }) },
	} {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		m.mu.Lock()
		n += portion()
		m.mu.Unlock()
	}
	return n, nil
}

func sweep[K comparable, V any](in map[K]V, gone func(V) bool) int {
	before := len(in)
	for key, value := range in {
		if gone(value) {
			delete(in, key)
		}
	}
	return before - len(in)
}
