package login

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
)

// A Memory is a Store that lasts as long as the process. Several Clients may
// share one.
type Memory struct {
	mu     sync.Mutex
	values map[string][]byte
	locks  map[string]*memoryLock
}

// memoryLock is held by whoever has put a value into turn; users counts those
// who hold it or wait, so that it can be forgotten.
type memoryLock struct {
	turn  chan struct{}
	users int
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty Memory.
func NewMemory() *Memory {
	return &Memory{values: map[string][]byte{}, locks: map[string]*memoryLock{}}
}

// Format writes what it is for each verb, and nothing of what it keeps.
func (m *Memory) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "store in memory") }

// Get returns a copy of a value, or ErrNotFound.
func (m *Memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[name]
	if !ok {
		return nil, ErrNotFound
	}
	return slices.Clone(value), nil
}

// Set keeps a copy of a value.
func (m *Memory) Set(_ context.Context, name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = slices.Clone(value)
	return nil
}

// Delete removes a value.
func (m *Memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, name)
	return nil
}

// Names lists the names in order.
func (m *Memory) Names(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.values))
	for name := range m.values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Lock takes the lock of a name, or gives up when ctx ends.
func (m *Memory) Lock(ctx context.Context, name string) (func(), error) {
	m.mu.Lock()
	lock := m.locks[name]
	if lock == nil {
		lock = &memoryLock{turn: make(chan struct{}, 1)}
		m.locks[name] = lock
	}
	lock.users++
	m.mu.Unlock()
	select {
	case lock.turn <- struct{}{}:
		return sync.OnceFunc(func() {
			<-lock.turn
			m.leave(name, lock)
		}), nil
	case <-ctx.Done():
		m.leave(name, lock)
		return nil, context.Cause(ctx)
	}
}

// leave forgets a lock once nobody holds it or waits for it.
func (m *Memory) leave(name string, lock *memoryLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(m.locks, name)
	}
}
