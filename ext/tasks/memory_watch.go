package tasks

import "context"

// A memoryWatcher is one call of Watch.
type memoryWatcher struct {
	// ids are the tasks to tell of, in the order of their first change; each is there
	// once, so that a slow receiver costs no more than there are tasks.
	ids  []string
	has  map[string]struct{}
	wake chan struct{}
}

// tell tells the watchers of a change of a task.
func (m *memory) tell(id string) {
	for w := range m.watchers {
		if _, ok := w.has[id]; ok {
			continue
		}
		w.has[id] = struct{}{}
		w.ids = append(w.ids, id)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Watch implements Store. It misses nothing, and returns when ctx ends.
func (m *memory) Watch(ctx context.Context, ready func(), changed func(id string)) error {
	w := &memoryWatcher{has: map[string]struct{}{}, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	m.watchers[w] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.watchers, w)
		m.mu.Unlock()
	}()
	ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wake:
		}
		for _, id := range m.told(w) {
			changed(id)
		}
	}
}

// told takes what a watcher is to be told.
func (m *memory) told(w *memoryWatcher) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := w.ids
	w.ids = nil
	clear(w.has)
	return ids
}
