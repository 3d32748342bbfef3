package client

import (
	"container/list"
	"sync"
)

// maxEras bounds the memory of eras.
const maxEras = 1024

// processEras is the memory that clients share unless told otherwise (spec
// 2026-07-28, basic/versioning: clients SHOULD cache the era for the lifetime
// of the process or origin).
var processEras EraMemory = NewEraMemory()

// NewEraMemory returns a memory of the last thousand or so servers, which is
// lost with the process.
func NewEraMemory() EraMemory {
	return &eraMemory{entries: make(map[string]*list.Element)}
}

type eraMemory struct {
	mu      sync.Mutex
	entries map[string]*list.Element
	order   list.List // of eraEntry, the most recently remembered first
}

type eraEntry struct{ key, version string }

func (m *eraMemory) Recall(key string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok {
		return e.Value.(eraEntry).version, true
	}
	return "", false
}

func (m *eraMemory) Remember(key, version string) {
	if key == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok {
		m.order.Remove(e)
		delete(m.entries, key)
	}
	if version == "" {
		return
	}
	m.entries[key] = m.order.PushFront(eraEntry{key, version})
	if m.order.Len() > maxEras {
		oldest := m.order.Back()
		m.order.Remove(oldest)
		delete(m.entries, oldest.Value.(eraEntry).key)
	}
}
