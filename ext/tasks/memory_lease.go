package tasks

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/parley-mcp/parley/mcp"
)

// change makes a change to a task that has not ended.
func (m *memory) change(t *memoryTask, c *Change, now time.Time) error {
	changed, err := t.task.Apply(c, t.work.answers, now)
	if err != nil {
		return err
	}
	t.work.records = append(t.work.records, c.Records...)
	if c.Release {
		t.lease.ends = time.Time{}
	}
	if t.task.Status.Ended() {
		m.finish(t)
	}
	if changed || c.Release {
		m.tell(t.task.ID)
	}
	return nil
}

// Change implements Store.
func (m *memory) Change(ctx context.Context, l Lease, c Change) (*Task, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	t, err := m.held(l, now)
	if err != nil {
		return nil, err
	}
	if err := m.change(t, &c, now); err != nil {
		return nil, err
	}
	return t.copied(), nil
}

// Answers implements Store.
func (m *memory) Answers(ctx context.Context, l Lease) (mcp.InputResponses, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.held(l, m.clock())
	if err != nil {
		return nil, err
	}
	return maps.Clone(t.work.answers), nil
}

// Claim implements Store.
func (m *memory) Claim(ctx context.Context, lease time.Duration, n int, skip []string) ([]*Claimed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	var claimed []*Claimed
	for next := m.active.Front(); next != nil && len(claimed) < n; next = next.Next() {
		t, _ := next.Value.(*memoryTask)
		if t.expired(now) || now.Before(t.lease.ends) || slices.Contains(skip, t.task.ID) {
			continue
		}
		if !t.lease.ends.IsZero() {
			t.lease.losses++
		}
		t.lease.token, t.lease.ends = t.lease.token+1, now.Add(lease)
		claimed = append(claimed, &Claimed{
			Lease: Lease{ID: t.task.ID, Token: t.lease.token}, Task: t.copied(), Losses: t.lease.losses,
			Repeatable: t.work.repeatable, Call: t.work.call, Records: slices.Clone(t.work.records),
		})
	}
	return claimed, nil
}

// Renew implements Store.
func (m *memory) Renew(ctx context.Context, held []Lease, lease time.Duration) (lost []Lease, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	for _, l := range held {
		t, err := m.held(l, now)
		if err != nil {
			lost = append(lost, l)
			continue
		}
		t.lease.ends = now.Add(lease)
	}
	return lost, nil
}
