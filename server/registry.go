package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A registry holds the features of one kind, sorted by key. Readers take a
// snapshot, without a lock but for the first one after a change.
//
// Features are read with each request and change rarely. A change is made in place
// and drops the snapshot; the first reader after it sorts the names and shares the
// map, and a later change copies the map first. If each change made a snapshot,
// adding 8,000 resources would copy and sort them 8,000 times, which took 9.4
// seconds. The cost: the first request after a change waits for the sorting (2 ms
// with 8,000 features), and changes that alternate with requests cost a copy each.
// "make guard" compares the allocations for each feature at 1,000 and at 8,000.
type registry[T any] struct {
	now atomic.Pointer[snapshot[T]] // nil after a change, until it is read

	mu         sync.Mutex
	generation uint64
	items      map[string]T
	shared     bool // items are those of a snapshot, and must not change
}

// A snapshot is the state of a registry at one generation. It never changes.
type snapshot[T any] struct {
	generation uint64
	keys       []string // sorted: the stated, stable order of lists
	byKey      map[string]T
	pages      pages
}

// load returns the snapshot of the present state. It is made for the first
// reader after a change, so that many changes in a row cost what they are.
func (r *registry[T]) load() *snapshot[T] {
	if s := r.now.Load(); s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.now.Load(); s != nil {
		return s
	}
	s := &snapshot[T]{generation: r.generation, keys: slices.Sorted(maps.Keys(r.items)), byKey: r.items}
	r.shared = true
	r.now.Store(s)
	return s
}

// change notes a change and makes items ready for it. The lock is held.
func (r *registry[T]) change() {
	if r.shared {
		r.items, r.shared = maps.Clone(r.items), false
	}
	if r.items == nil {
		r.items = make(map[string]T)
	}
	r.generation++
	r.now.Store(nil)
}

// put adds or replaces items, and reports whether there were any.
func (r *registry[T]) put(items map[string]T) bool {
	if len(items) == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change()
	maps.Copy(r.items, items)
	return true
}

// remove takes keys out and reports whether any was there.
func (r *registry[T]) remove(keys ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(keys, func(k string) bool { _, ok := r.items[k]; return ok }) {
		return false
	}
	r.change()
	for _, k := range keys {
		delete(r.items, k)
	}
	return true
}

// after returns the position of the first key beyond key.
func (s *snapshot[T]) after(key string) int {
	i, found := slices.BinarySearch(s.keys, key)
	if found {
		i++
	}
	return i
}
