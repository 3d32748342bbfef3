package server

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A registry holds the features of one kind, sorted by key. Readers take a
// snapshot without a lock; writers replace it.
type registry[T any] struct {
	mu  sync.Mutex
	now atomic.Pointer[snapshot[T]]
}

// A snapshot is the state of a registry at one generation. It never changes.
type snapshot[T any] struct {
	generation uint64
	keys       []string // sorted: the stated, stable order of lists
	byKey      map[string]T
	pages      pages
}

func (r *registry[T]) load() *snapshot[T] {
	if s := r.now.Load(); s != nil {
		return s
	}
	return &snapshot[T]{}
}

// update replaces the content by what edit makes of a copy. It reports
// whether anything was to be done.
func (r *registry[T]) update(edit func(items map[string]T) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.load()
	items := maps.Clone(old.byKey)
	if items == nil {
		items = make(map[string]T)
	}
	if !edit(items) {
		return false
	}
	r.now.Store(&snapshot[T]{
		generation: old.generation + 1,
		keys:       slices.Sorted(maps.Keys(items)),
		byKey:      items,
	})
	return true
}

// put adds or replaces items.
func (r *registry[T]) put(items map[string]T) {
	r.update(func(now map[string]T) bool {
		maps.Copy(now, items)
		return len(items) > 0
	})
}

// remove takes keys out and reports whether any was there.
func (r *registry[T]) remove(keys ...string) bool {
	return r.update(func(now map[string]T) bool {
		before := len(now)
		for _, k := range keys {
			delete(now, k)
		}
		return len(now) < before
	})
}

// after returns the position of the first key beyond key.
func (s *snapshot[T]) after(key string) int {
	i, found := slices.BinarySearch(s.keys, key)
	if found {
		i++
	}
	return i
}
