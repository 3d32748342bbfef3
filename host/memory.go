package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Memory is a [Store] that ends with the process. The zero value is empty and
// ready.
type Memory struct {
	mu       sync.Mutex
	sessions map[string]*memorySession
	pins     map[PinKey]Pin
	grants   []Grant
	audit    []AuditEntry
}

type memorySession struct {
	info    SessionInfo
	records []Record
	blobs   map[string][]byte
}

var _ Store = (*Memory)(nil)

// used is what describes the session, with the time of its last record.
func (s *memorySession) used() SessionInfo {
	info := s.info
	info.Used = info.Created
	if n := len(s.records); n > 0 {
		info.Used = s.records[n-1].Time
	}
	return info
}

// session returns a session. m.mu is held.
func (m *Memory) session(id string) (*memorySession, error) {
	s, ok := m.sessions[id]
	if !ok {
		return nil, fmt.Errorf("session %q: %w", id, ErrNoSession)
	}
	return s, nil
}

// CreateSession adds a session.
func (m *Memory) CreateSession(_ context.Context, info *SessionInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.sessions[info.ID]; taken {
		return fmt.Errorf("session %q: the id is taken", info.ID)
	}
	if err := m.fits(info); err != nil {
		return err
	}
	if m.sessions == nil {
		m.sessions = make(map[string]*memorySession)
	}
	m.sessions[info.ID] = &memorySession{info: *info, blobs: make(map[string][]byte)}
	return nil
}

// fits says what is wrong with a fork. m.mu is held.
func (m *Memory) fits(info *SessionInfo) error {
	last := int64(0)
	if info.Parent != "" {
		p, err := m.session(info.Parent)
		if err != nil {
			return fmt.Errorf("parent of session %q: %w", info.ID, err)
		}
		last = p.info.At + int64(len(p.records))
	}
	if info.At < 0 || info.At > last {
		return fmt.Errorf("session %q: it cannot begin after record %d; the last of its parent is %d", info.ID, info.At, last)
	}
	return nil
}

// Session returns a session.
func (m *Memory) Session(_ context.Context, id string) (*SessionInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.session(id)
	if err != nil {
		return nil, err
	}
	info := s.used()
	return &info, nil
}

// Sessions returns all sessions, the newest first.
func (m *Memory) Sessions(context.Context) ([]SessionInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]SessionInfo, 0, len(m.sessions))
	for _, s := range m.sessions {
		list = append(list, s.used())
	}
	slices.SortFunc(list, func(a, b SessionInfo) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// SetTitle changes the title of a session.
func (m *Memory) SetTitle(_ context.Context, id, title string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.session(id)
	if err == nil {
		s.info.Title = title
	}
	return err
}

// DeleteSession removes a session that has no forks.
func (m *Memory) DeleteSession(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.session(id); err != nil {
		return err
	}
	for _, s := range m.sessions {
		if s.info.Parent == id {
			return fmt.Errorf("session %q: %w", id, ErrHasForks)
		}
	}
	delete(m.sessions, id)
	return nil
}

// Append adds records to a session.
func (m *Memory) Append(_ context.Context, session string, records ...Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.session(session)
	if err != nil {
		return err
	}
	next := s.info.At + int64(len(s.records)) + 1
	for i, r := range records {
		if r.N != next+int64(i) {
			return fmt.Errorf("record %d of session %q, not %d: %w", r.N, session, next+int64(i), ErrConflict)
		}
		// Another store could not keep it.
		if _, err := EncodeBody(r.Body); err != nil {
			return fmt.Errorf("record %d of session %q: %w", r.N, session, err)
		}
	}
	s.records = append(s.records, records...)
	return nil
}

// Records returns the session's own records.
func (m *Memory) Records(_ context.Context, session string) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.session(session)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.records), nil
}

// PutBlob keeps bytes beside the records of a session.
func (m *Memory) PutBlob(_ context.Context, session, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.session(session)
	if err == nil {
		s.blobs[name] = slices.Clone(data)
	}
	return err
}

// Blob returns a part of what PutBlob kept.
func (m *Memory) Blob(_ context.Context, session, name string, offset, limit int64) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.session(session)
	if err != nil {
		return nil, 0, err
	}
	data, ok := s.blobs[name]
	if !ok {
		return nil, 0, fmt.Errorf("%q of session %q: %w", name, session, ErrNoBlob)
	}
	size := int64(len(data))
	rest := data[min(max(offset, 0), size):]
	return slices.Clone(rest[:min(max(limit, 0), int64(len(rest)))]), size, nil
}

// Pin returns the pin under a key, or nil.
func (m *Memory) Pin(_ context.Context, key PinKey) (*Pin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.pins[key]
	if !ok {
		return nil, nil // what Store says
	}
	p.Definition = slices.Clone(p.Definition)
	return &p, nil
}

// Pins returns the pins of a server, or all.
func (m *Memory) Pins(_ context.Context, server string) ([]Pin, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Pin, 0)
	for _, p := range m.pins {
		if server == "" || p.Server == server {
			p.Definition = slices.Clone(p.Definition)
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool))
	})
	return list, nil
}

// PutPin adds or replaces a pin.
func (m *Memory) PutPin(_ context.Context, p *Pin) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pins == nil {
		m.pins = make(map[PinKey]Pin)
	}
	kept := *p
	kept.Definition = slices.Clone(p.Definition)
	m.pins[p.PinKey] = kept
	return nil
}

// DeletePin removes a pin.
func (m *Memory) DeletePin(_ context.Context, key PinKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pins, key)
	return nil
}

// PutGrant adds a grant.
func (m *Memory) PutGrant(_ context.Context, g *Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.ContainsFunc(m.grants, func(old Grant) bool { return old.ID == g.ID }) {
		m.grants = append(m.grants, *g)
	}
	return nil
}

// Grants returns all grants, the oldest first.
func (m *Memory) Grants(context.Context) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.grants)
	slices.SortFunc(list, func(a, b Grant) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// RevokeGrant ends a grant.
func (m *Memory) RevokeGrant(_ context.Context, id string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.grants {
		if g := &m.grants[i]; g.ID == id {
			if g.Revoked.IsZero() {
				g.Revoked = at
			}
			return nil
		}
	}
	return fmt.Errorf("grant %q: %w", id, ErrNoGrant)
}

// Audit adds an entry to the audit log.
func (m *Memory) Audit(_ context.Context, e *AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audit = append(m.audit, *e)
	return nil
}

// AuditLog returns the audit log, the oldest entry first.
func (m *Memory) AuditLog() []AuditEntry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.audit)
}
