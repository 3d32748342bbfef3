package tasks

import (
	"container/heap"
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
)

// Memory returns a store that keeps tasks in the memory of this process. It has no
// goroutine. What has expired is deleted by Expire and Create.
func Memory() Store {
	began := time.Now()
	return newMemory(func() time.Time { return began.Add(time.Since(began)) }) // it does not jump
}

func newMemory(now func() time.Time) *memory {
	return &memory{
		now: now, tasks: map[string]*memoryTask{}, byOwner: map[string]*list.List{}, byKey: map[string]int{},
		watchers: map[*memoryWatcher]struct{}{},
	}
}

// A memory is a Store behind one lock, which is held for a few operations on maps and
// lists at a time.
type memory struct {
	now func() time.Time

	mu    sync.Mutex
	last  time.Time // what the clock said last
	tasks map[string]*memoryTask
	// all, and byOwner for each owner, have the tasks in the order of their creation;
	// active those that have not ended.
	all, active list.List
	byOwner     map[string]*list.List
	byKey       map[string]int // how many tasks there are by LimitKey
	expiring    expiryHeap     // those with a TTL
	watchers    map[*memoryWatcher]struct{}
}

// A memoryTask is a task with what is not told to clients.
type memoryTask struct {
	task     Task
	owner    string
	limitKey string
	expires  time.Time // the zero time is without end
	lease    memoryLease
	work     *memoryWork // nil once the task has ended

	inAll, inOwner, inActive *list.Element
}

// memoryWork is what the worker of a task needs.
type memoryWork struct {
	repeatable bool
	call       []byte
	records    []server.Record
	answers    mcp.InputResponses
}

// A memoryLease is the last lease of a task.
type memoryLease struct {
	token  int64
	losses int       // how many leases were neither ended nor released
	ends   time.Time // the zero time is that of a lease that was released
}

var _ Store = (*memory)(nil)

// Durable implements Store.
func (m *memory) Durable() bool { return false }

// clock is the time, which does not go backwards, in UTC.
func (m *memory) clock() time.Time {
	if now := m.now().UTC().Truncate(time.Microsecond); now.After(m.last) {
		m.last = now
	}
	return m.last
}

func (t *memoryTask) expired(now time.Time) bool {
	return !t.expires.IsZero() && !now.Before(t.expires)
}

// find is a task that has not expired, or nil.
func (m *memory) find(id string, now time.Time) *memoryTask {
	if t := m.tasks[id]; t != nil && !t.expired(now) {
		return t
	}
	return nil
}

// ofOwner calls f with a task of an owner, and returns its state after that, or ErrUnknown.
func (m *memory) ofOwner(ctx context.Context, id, owner string, f func(*memoryTask, time.Time) error) (*Task, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	t := m.find(id, now)
	if t == nil || t.owner != owner {
		return nil, ErrUnknown
	}
	if err := f(t, now); err != nil {
		return nil, err
	}
	return t.copied(), nil
}

// held is the task of a lease that holds, or ErrLost.
func (m *memory) held(l Lease, now time.Time) (*memoryTask, error) {
	t := m.find(l.ID, now)
	if t == nil || t.task.Status.Ended() || t.lease.token != l.Token || t.lease.ends.IsZero() {
		return nil, ErrLost
	}
	return t, nil
}

// copied is the state of a task for a caller.
func (t *memoryTask) copied() *Task {
	c := t.task
	c.Questions = slices.Clone(c.Questions)
	return &c
}

// Create implements Store.
func (m *memory) Create(ctx context.Context, n *NewTask, lease time.Duration) (*Task, Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	m.expire(now)
	if n.MaxByKey > 0 && m.byKey[n.LimitKey] >= n.MaxByKey {
		return nil, Lease{}, &LimitError{Most: n.MaxByKey}
	}
	if n.MaxAll > 0 && len(m.tasks) >= n.MaxAll {
		return nil, Lease{}, &LimitError{All: true, Most: n.MaxAll}
	}
	if m.tasks[n.ID] != nil {
		return nil, Lease{}, errors.New("there is a task of this identifier")
	}
	t := &memoryTask{
		task: Task{
			ID: n.ID, Tool: n.Tool, Status: Working, Message: n.Message,
			Created: now, Updated: now, TTL: n.TTL, PollInterval: n.PollInterval,
		},
		owner: n.Owner, limitKey: n.LimitKey,
		lease: memoryLease{token: 1, ends: now.Add(lease)},
		work:  &memoryWork{repeatable: n.Repeatable, call: n.Call, records: slices.Clone(n.Records)},
	}
	if n.TTL != 0 {
		t.expires = now.Add(n.TTL)
	}
	m.add(t)
	m.tell(n.ID)
	return t.copied(), Lease{ID: n.ID, Token: 1}, nil
}

func (m *memory) add(t *memoryTask) {
	m.tasks[t.task.ID] = t
	owner := m.byOwner[t.owner]
	if owner == nil {
		owner = list.New()
		m.byOwner[t.owner] = owner
	}
	t.inAll, t.inOwner, t.inActive = m.all.PushBack(t), owner.PushBack(t), m.active.PushBack(t)
	m.byKey[t.limitKey]++
	if !t.expires.IsZero() {
		heap.Push(&m.expiring, t)
	}
}

// expire deletes what has expired.
func (m *memory) expire(now time.Time) int {
	n := 0
	for ; len(m.expiring) > 0 && m.expiring[0].expired(now); n++ {
		t, _ := heap.Pop(&m.expiring).(*memoryTask)
		delete(m.tasks, t.task.ID)
		m.all.Remove(t.inAll)
		if owner := m.byOwner[t.owner]; owner.Len() == 1 {
			delete(m.byOwner, t.owner)
		} else {
			owner.Remove(t.inOwner)
		}
		if m.byKey[t.limitKey]--; m.byKey[t.limitKey] == 0 {
			delete(m.byKey, t.limitKey)
		}
		m.finish(t)
		m.tell(t.task.ID)
	}
	return n
}

// finish lets go of what the worker of a task needed.
func (m *memory) finish(t *memoryTask) {
	if t.inActive != nil {
		m.active.Remove(t.inActive)
		t.inActive, t.work = nil, nil
	}
}

// Get implements Store.
func (m *memory) Get(ctx context.Context, id, owner string) (*Task, error) {
	return m.ofOwner(ctx, id, owner, func(*memoryTask, time.Time) error { return nil })
}

// List implements Store.
func (m *memory) List(ctx context.Context, q Query) ([]*Task, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	var next *list.Element
	switch after := m.find(q.After, now); {
	case q.After != "" && (after == nil || !q.All && after.owner != q.Owner):
		return nil, ErrUnknown
	case q.After != "" && q.All:
		next = after.inAll.Prev()
	case q.After != "":
		next = after.inOwner.Prev()
	case q.All:
		next = m.all.Back()
	case m.byOwner[q.Owner] != nil:
		next = m.byOwner[q.Owner].Back()
	}
	var found []*Task
	for ; next != nil && len(found) < q.Most; next = next.Prev() {
		t, _ := next.Value.(*memoryTask)
		if t.expired(now) {
			continue
		}
		c := t.task
		c.Questions, c.Result = nil, nil
		found = append(found, &c)
	}
	return found, nil
}

// Answer implements Store.
func (m *memory) Answer(ctx context.Context, id, owner string, answers mcp.InputResponses) (*Task, error) {
	return m.ofOwner(ctx, id, owner, func(t *memoryTask, now time.Time) error {
		if t.work == nil {
			return nil
		}
		if t.work.answers == nil {
			t.work.answers = mcp.InputResponses{}
		}
		if t.task.Take(answers, t.work.answers, now) {
			m.tell(id)
		}
		return nil
	})
}

// Cancel implements Store.
func (m *memory) Cancel(ctx context.Context, id, owner, message string) (*Task, error) {
	return m.ofOwner(ctx, id, owner, func(t *memoryTask, now time.Time) error {
		if t.task.Status.Ended() {
			return nil
		}
		return m.change(t, &Change{End: &End{Status: Cancelled, Message: message}}, now)
	})
}

// Expire implements Store.
func (m *memory) Expire(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.expire(m.clock()), nil
}

// An expiryHeap has the task that expires first at its top.
type expiryHeap []*memoryTask

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].expires.Before(h[j].expires) }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *expiryHeap) Push(x any) {
	t, _ := x.(*memoryTask)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
