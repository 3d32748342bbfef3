package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// A Store keeps secrets by name: credentials and tokens. Names are plain text of up to 512 bytes;
// values up to 64 KiB. It may be used by many goroutines, and those of several processes, at once.
type Store interface {
	// Get returns a value, or ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)
	Set(ctx context.Context, name string, value []byte) error
	// Delete removes a value; one that is not there is no error.
	Delete(ctx context.Context, name string) error
	// Names lists what there is.
	Names(ctx context.Context) ([]string, error)
	// Lock waits until nobody else, in any process, holds the lock of this name, and takes it until
	// unlock is called or the process ends.
	Lock(ctx context.Context, name string) (unlock func(), err error)
}

// ErrNotFound says that a Store has no such value.
var ErrNotFound = errors.New("not found")

// A Memory is a Store that lasts as long as the process. Several Clients may share one.
type Memory struct {
	mu     sync.Mutex
	values map[string][]byte
	locks  map[string]chan struct{} // closed when the lock is released
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty Memory.
func NewMemory() *Memory {
	return &Memory{values: map[string][]byte{}, locks: map[string]chan struct{}{}}
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
	return slices.Sorted(maps.Keys(m.values)), nil
}

// Lock takes the lock of a name, or gives up when ctx ends.
func (m *Memory) Lock(ctx context.Context, name string) (func(), error) {
	for {
		m.mu.Lock()
		held := m.locks[name]
		if held == nil {
			released := make(chan struct{})
			m.locks[name] = released
			m.mu.Unlock()
			return sync.OnceFunc(func() {
				m.mu.Lock()
				delete(m.locks, name)
				m.mu.Unlock()
				close(released)
			}), nil
		}
		m.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// maxFallback is how many values a fallbackStore keeps.
const maxFallback = 1024

// A fallbackStore keeps in memory what a Store does not take: rotated tokens cannot be had again.
// stale is what the store had then: once it has something else, another process has written that.
type fallbackStore struct {
	Store
	kept, stale *Memory
}

func (k fallbackStore) Get(ctx context.Context, name string) ([]byte, error) {
	value, err := k.Store.Get(ctx, name)
	kept, missing := k.kept.Get(ctx, name)
	if stale, _ := k.stale.Get(ctx, name); missing == nil && (err != nil || bytes.Equal(value, stale)) {
		return kept, nil //nolint:nilerr // a store that cannot be read has nothing newer
	}
	return value, err
}

func (k fallbackStore) Set(ctx context.Context, name string, value []byte) error {
	err := k.Store.Set(ctx, name, value)
	if err == nil {
		return errors.Join(k.kept.Delete(ctx, name), k.stale.Delete(ctx, name))
	}
	if names, _ := k.kept.Names(ctx); len(names) >= maxFallback {
		_ = errors.Join(k.kept.Delete(ctx, names[0]), k.stale.Delete(ctx, names[0]))
	}
	stale, _ := k.Store.Get(context.WithoutCancel(ctx), name)
	return errors.Join(err, k.kept.Set(ctx, name, value), k.stale.Set(ctx, name, stale))
}

func (k fallbackStore) Delete(ctx context.Context, name string) error {
	return errors.Join(k.kept.Delete(ctx, name), k.stale.Delete(ctx, name), k.Store.Delete(ctx, name))
}

func (k fallbackStore) Names(ctx context.Context) ([]string, error) {
	kept, _ := k.kept.Names(ctx)
	names, err := k.Store.Names(ctx)
	names = append(slices.Clone(names), kept...)
	slices.Sort(names)
	return slices.Compact(names), err
}
